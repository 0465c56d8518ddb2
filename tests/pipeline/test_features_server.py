"""The ingest pipeline of the scheme weighted, on a real OpenSearch: from a field of features to their fingerprint."""

import json
import os
from pathlib import Path

import pytest

from es_simhash import Scheme, build_pipeline, fingerprint_features, get_scheme, to_hex
from es_simhash.errors import has_lone_surrogate
from es_simhash.pipeline.source import LONGEST
from tests.pipeline_features import expected_of, hostile_features
from tests.servers.support import ONE_SHARD, found_in, simulate

VECTORS = json.loads((Path(__file__).parents[1] / "vectors.json").read_text(encoding="utf-8"))["features"]
COMPUTED = [each for each in VECTORS if each["scheme"]["parameters"]["hash"] == "xxh3_64"]
# `ES_SIMHASH_PIPELINE_FEATURES=40000` compares as many as docs/pipeline.md says.
HOSTILE = int(os.environ.get("ES_SIMHASH_PIPELINE_FEATURES", "1000"))


def outcomes(documents):
    """Return the fingerprint of each document, or its error, or None."""
    ours = [each.get("simhash") or {} for each in documents]
    return [each.get("fingerprint") or each.get("error") for each in ours]


@pytest.mark.parametrize("vectors", COMPUTED, ids=[str(Scheme.from_dict(each["scheme"])) for each in COMPUTED])
def test_golden_vectors(opensearch, vectors):
    """Bit for bit. A server refuses half a character in a name, not in a list: there a feature of weight 2 is twice."""
    pipeline = build_pipeline(scheme=Scheme.from_dict(vectors["scheme"]), text_field="tags")
    features = vectors["features"]
    if any(map(has_lone_surrogate, features)):
        features = [name for name, weight in features.items() for _ in range(weight)]
    assert found_in(simulate(opensearch, pipeline, [{"tags": features}])) == [vectors["fingerprint"]]


@pytest.mark.parametrize("settings", [{}, {"levels": 5}, {"seed": 2**64 - 1}, {"seed": 1_234_567_890_123}], ids=str)
def test_hostile_features(opensearch, settings):
    """No differing bit, and what Python refuses is marked."""
    scheme = get_scheme("weighted", **settings)
    pipeline = build_pipeline(scheme=scheme, text_field="tags")
    for seed in range(0, HOSTILE // 4, 500):
        given = hostile_features(min(500, HOSTILE // 4 - seed), seed=seed)
        made = outcomes(simulate(opensearch, pipeline, [{"tags": each} for each in given]))
        expected = [expected_of(each, scheme) for each in given]
        assert [each for each in zip(given, made, expected, strict=True) if each[1] != each[2]] == []


def test_values_of_other_forms(opensearch):
    """A single value is a list of one, as for a server. What is no features is marked, and nothing is refused."""
    pipeline = build_pipeline(scheme="weighted", text_field="tags")
    one, two = to_hex(fingerprint_features(["a"])), to_hex(fingerprint_features({"a": 1, "b": 2}))
    cases = [
        ("a", one),
        (["a"], one),
        ({"a": 1, "b": 2}, two),
        (["a", "b", "b"], two),
        (["a", None], "not_features"),
        ([{"a": 1, "b": 2}], "not_features"),
        ([["a", 1], ["b", 2]], "not_features"),
        (["a", ["b", "b"]], "not_features"),
        ({}, None),
        ({"a": 0}, None),
        ([], "0" * 16),
        (None, "0" * 16),
        (5, "not_features"),
        (["a", 5], "not_features"),
        ([{"a": 1}, {"b": 2}], "not_features"),
        (["a", {"b": 2}], "not_features"),
        ({"a": 1e-9}, "not_features"),
        (["a" * 300_000] * 4, "too_long"),
        (["a" * (LONGEST - 1)], to_hex(fingerprint_features(["a" * (LONGEST - 1)]))),
        (["", *map(str, range(100_000))], to_hex(fingerprint_features(["", *map(str, range(100_000))]))),
    ]
    stale = {"simhash": {"fingerprint": "0" * 16}}
    made = outcomes(simulate(opensearch, pipeline, [{"tags": value, **stale} for value, _ in cases]))
    assert made == [expected for _, expected in cases]


@pytest.mark.parametrize("server", ["opensearch"], indirect=True)
def test_any_program_writes_features(server, index, simhash, call, pipeline_name):
    """An index records its field of features; a written document is found by another one's fingerprint."""
    mappings = {"properties": {"tags": {"type": "object", "enabled": False}}}
    simhash.create_index(index, scheme="weighted", text_field="tags", settings=ONE_SHARD, mappings=mappings)
    installed = simhash.put_pipeline(index, name=pipeline_name, use_as="final")
    assert (installed.scheme, installed.text_fields) == ("weighted-1", ("tags",))
    tags = {f"tag {number}": number % 7 + 0.5 for number in range(40)}
    near = tags | {"tag 1": 1.6}
    for id_, features in (("a", tags), ("b", near), ("c", {"another": 1}), ("d", {"bad": "1"})):
        server.request("PUT", f"/{index}/_doc/{id_}?refresh=true", {"tags": features})
    asked = fingerprint_features(tags)
    found = {hit.id: hit.distance for hit in call(simhash.find_near_dups(index, fingerprint=asked, max_distance=8))}
    assert found == {"a": 0, "b": (asked ^ fingerprint_features(near)).bit_count()}
    assert [fault.found for fault in call(simhash.check(index))[0].faults if fault.kind == "pipeline_errors"] == ["1"]
