"""Where a restored document goes: an index that is gone, an alias, another scheme, a stream, through pipelines."""

from __future__ import annotations

import json

import pytest

from es_simhash import InvalidInputError, NoIndexError, get_scheme
from es_simhash.mapping.mapping import build_mapping
from tests.servers.archives import delete, source_of, write_archive
from tests.servers.support import read_all, texts

# Embedded Elasticsearch has neither data streams nor pipelines.
on_opensearch = pytest.mark.parametrize("server", ["opensearch"], indirect=True)


def test_an_index_that_is_gone_is_not_made_again(server, made, index, simhash, tmp_path):
    """Its documents are refused by name, and go elsewhere if that is asked for; a file counts once by any names."""
    lost = f"{index}-lost"
    rows = [(lost, "a", None, source_of("one two three"), "c"), (made, "b", None, source_of("four five six"), "c")]
    path = write_archive(tmp_path / "removed.db", rows)
    records = list(simhash.restore([path, f"{tmp_path}/../{tmp_path.name}/{path.name}"]))
    assert [(each.id, each.action, each.kind) for each in records] == [
        ("a", "refused", "index_missing"),
        ("b", "restored", None),
    ]
    assert server.request("GET", f"/{lost}", missing_ok=True) is None
    records = list(simhash.restore(path, index=made))
    assert [(each.id, each.action, each.index) for each in records] == [("a", "restored", made), ("b", "exists", made)]


def test_a_name_that_is_no_index(server, made, index, simhash, tmp_path):
    """An alias is not written through, whether the file or the caller names it; a name without an index is refused."""
    alias, shut = f"{index}-alias", f"{index}-shut"
    server.request("PUT", f"/{shut}", {"mappings": build_mapping(text_field="body")})
    server.request("POST", f"/{shut}/_close", None)
    server.request("PUT", f"/{made}/_alias/{alias}", {"is_write_index": True})
    path = write_archive(tmp_path / "removed.db", [(alias, "a", None, source_of("one two three"), "c")])
    [record] = simhash.restore(path)
    assert (record.action, record.kind) == ("refused", "index_missing")
    for pattern in (f"{index}-none*", f"{shut}*"):
        with pytest.raises(NoIndexError, match="no index matches .*, or only closed ones: check the name"):
            list(simhash.restore(path, index=pattern))
    for name in (alias, f"{made}*"):
        with pytest.raises(InvalidInputError, match=f"is no index and no data stream: give one, such as {made}"):
            list(simhash.restore(path, index=name, dry_run=True))
    assert read_all(server, made) == {}


def test_fingerprints_of_another_scheme_stay_out(server, made, index, simhash, tmp_path):
    """In an index that was made again, or that the caller names, a fingerprint must be the scheme's own."""
    other = f"{index}-other"
    server.request(
        "PUT", f"/{other}", {"mappings": build_mapping(text_field="body", scheme=get_scheme("shingles", hash="md5"))}
    )
    plain = f"{index}-plain"
    server.request("PUT", f"/{plain}", {})
    rows = [
        (name, f"d{n}", None, source_of("one two three four five"), "c") for n, name in enumerate([made, other, plain])
    ]
    rows.append((other, "stale", None, source_of("six seven").replace("six", "another"), "c"))
    path = write_archive(tmp_path / "removed.db", rows, at="2999-01-01T00:00:00.000Z")  # a clock that is fast
    records = list(simhash.restore(path))
    assert [(each.action, each.kind) for each in records] == [
        ("restored", None),
        ("refused", "other_scheme"),
        ("refused", "unmapped"),
        ("refused", "other_scheme"),
    ]
    assert read_all(server, other) == {} == read_all(server, plain)
    assert {each.kind for each in simhash.restore(path, index=other)} == {"other_scheme"}


@on_opensearch
def test_a_data_stream(server, index, tmp_path, simhash):
    """A document of a backing index goes to the stream, once, also after a rollover."""
    stream = f"{index}-stream"
    template = {"index_patterns": [f"{stream}*"], "priority": 300, "data_stream": {}}
    template |= {"template": {"mappings": build_mapping(text_field="body")}}
    server.request("PUT", f"/_index_template/{index}", template)
    try:
        server.request("PUT", f"/_data_stream/{stream}")
        for n, text in enumerate(texts(5, edits=1)):
            document = json.loads(source_of(text, **{"@timestamp": "2026-01-01T00:00:00Z"}))
            server.request("PUT", f"/{stream}/_create/d{n}?refresh=true", document)
        first = read_all(server, stream)
        [backing] = server.request("GET", f"/{stream}/_mapping")
        rows = [(backing, id_, None, json.dumps(source), "canonical") for id_, source in first.items()]
        path = write_archive(tmp_path / "removed.db", rows)
        delete(server, backing, ["d1", "d2", "d3"])
        wanted = ["exists"] * 2 + ["would restore"] * 3
        assert sorted(each.action for each in simhash.restore(path, dry_run=True)) == wanted
        assert [each.action for each in simhash.restore(path)].count("restored") == 3
        assert read_all(server, stream) == first
        delete(server, backing, ["d4"])
        server.request("POST", f"/{stream}/_rollover")
        [record] = [each for each in simhash.restore(path) if each.action == "restored"]
        assert (record.id, record.index == backing) == ("d4", False)
        assert {each.action for each in simhash.restore(path)} == {"exists"}
        stale = source_of("six seven", **{"@timestamp": "2026-01-01T00:00:00Z"}).replace("six", "another")
        rows = [(name, name, None, stale, "canonical") for name in server.request("GET", f"/{stream}/_mapping")]
        both = write_archive(tmp_path / "both.db", rows)
        assert [each.kind for each in simhash.restore(both)] == ["other_scheme"] * 2
        assert read_all(server, stream) == first
    finally:
        server.request("DELETE", f"/_data_stream/{stream}")
        server.request("DELETE", f"/_index_template/{index}")


@pytest.fixture
def pipeline(server, made, index):
    """A pipeline that changes documents, but for the first one."""
    steps = [{"set": {"field": "seen", "value": 2, "if": "ctx.n != 1"}}]
    server.request("PUT", f"/_ingest/pipeline/{index}", {"processors": steps})
    yield index
    server.request("DELETE", f"/{made}")
    server.request("DELETE", f"/_ingest/pipeline/{index}")


@on_opensearch
@pytest.mark.parametrize(
    ("kind", "outcomes"),
    [("default", [("restored", None)] * 2), ("final", [("differs", "pipeline"), ("restored", None)])],
)
def test_pipelines(server, made, pipeline, tmp_path, simhash, kind, outcomes):
    """The default one is left out; what a final one, which cannot be left out, has changed is not said to be back."""
    simhash.reconcile(made)
    server.request("PUT", f"/{made}/_settings", {f"index.{kind}_pipeline": pipeline})
    sources = [source_of(f"one two three {n}", n=n) for n in range(2)]
    rows = [(made, f"d{n}", None, source, "c") for n, source in enumerate(sources)]
    records = list(simhash.restore(write_archive(tmp_path / "removed.db", rows)))
    assert [(each.action, each.kind) for each in records] == outcomes
    assert [each.is_done for each in records] == [each == ("restored", None) for each in outcomes]
    there = read_all(server, made)
    assert all("group" in source["simhash"] for source in there.values())
    assert ["seen" in there[f"d{n}"] for n in range(2)] == [not each.is_done for each in records]
