"""
What is read from mappings and files may be anybody's: damaged input is refused by an error of ours, in one line.

``make fuzz`` tries some hundred times as many inputs, other ones each time.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings, strategies as st

from es_simhash import SimHashError
from es_simhash.cli.lines import Reader
from es_simhash.errors import InvalidInputError
from es_simhash.mapping.faults import find_faults
from es_simhash.mapping.meta import IndexSettings, build_settings, read_settings
from es_simhash.removal.plan_options import PlanHeader
from es_simhash.removal.records import Archived, PlannedDocument, PlannedRemoval
from es_simhash.removal.removal_file import PlanWriter, RemovalFile, open_archived
from es_simhash.removal.review import removal_summary
from es_simhash.removal.take_decisions import take_in
from es_simhash.transport.protocol import Key

EXAMPLES = os.environ.get("ES_SIMHASH_FUZZ_EXAMPLES")
MANY = settings(
    max_examples=int(EXAMPLES or 40),
    derandomize=EXAMPLES is None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

KEYS = (
    "_meta", "es_simhash", "simhash", "scheme", "text_fields", "max_distance", "value", "name", "version", "parameters",
    "preprocess", "libraries", "digests", "properties", "type", "fields", "_source", "_id", "_index", "_op_type", "doc",
    "upsert", "script", "source", "lang", "body", "body.text", "fingerprint", "block0", "grouping", "size", "dynamic",
)  # fmt: skip
VALUES = (
    "shingles", "keywords", "xxh3_64", "html", "keyword", "long", "index", "create", "update",
    "delete", "painless", "string", "0000000000000003", "simhash", "body", "a text with words", "\ud800", "",
    "ctx.n = 1", 0, 1, 2, 3, 64, 65, -1, 2**64, 1.5, float("nan"), True, False, None,
)  # fmt: skip
some_keys = st.sampled_from(KEYS)
values = st.recursive(
    st.sampled_from(VALUES),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(some_keys, inner, max_size=6),
    max_leaves=12,
)
objects = st.dictionaries(some_keys, values, max_size=6)


def damaged(draw, value):
    """Return a copy of *value* with one thing in it replaced, added or left out."""
    if isinstance(value, dict) and value:
        key = draw(st.sampled_from([*value, None]))
        if key is not None:
            return {**value, key: damaged(draw, value[key])}
        if draw(st.booleans()):
            return {key: value[key] for key in list(value)[1:]}
    if isinstance(value, dict) and draw(st.booleans()):
        return {**value, **draw(objects)}
    return draw(values)


@MANY
@given(st.data(), st.sampled_from(["shingles", "keywords"]), st.integers(0, 3), st.booleans())
def test_meta(data, scheme, damages, is_ours):
    """A mapping is read, or refused by an error of ours; what was read survives being written and read again."""
    entry = build_settings(scheme=scheme, text_field="body", max_distance=8).to_dict()
    for _ in range(damages):
        entry = damaged(data.draw, entry)
    # The servers see to it that _meta, properties and each field are objects; what stands in them is anybody's.
    fields = st.dictionaries(st.sampled_from(["fingerprint", "block0", "value"]), objects)
    mapping = {
        "_meta": {"es_simhash": {"simhash": entry}} if is_ours else data.draw(objects),
        "properties": {"simhash": data.draw(st.fixed_dictionaries({"properties": fields}) | objects)},
    }
    before = repr(mapping)
    try:
        find_faults(mapping)
        found = read_settings(mapping)
    except SimHashError:
        return
    finally:
        assert repr(mapping) == before
    if found is not None and not any(isinstance(each, float) for each in found.extra.values()):
        assert IndexSettings.from_dict(json.loads(json.dumps(found.to_dict()))).scheme == found.scheme


@MANY
@given(st.sampled_from(["a.jsonl", "a.csv", "a.csv.xz", "a.jsonl.gz"]), st.binary(max_size=300))
def test_records(name, content):
    """A file of any content is read to its end; its lines come in order, as a value or a reason on one line."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(content)
        reader = Reader([str(path)])
        records = list(reader)
        assert reader.position == path.stat().st_size or records
    assert [each.line for each in records] == sorted(each.line for each in records)
    for each in records:
        assert each.reason is None or "\n" not in each.reason
        if each.reason is None:
            json.dumps(each.value, ensure_ascii=False, allow_nan=False).encode()


def spliced(draw, whole, most):
    """Return *whole* with some bytes in the place of at most so many."""
    place = draw(st.integers(0, len(whole)))
    text = draw(st.binary(max_size=200))
    return whole[:place] + text + whole[place + draw(st.integers(0, most) | st.just(len(text))) :]


def usable(path, read):
    """Return what *read* returns; ``None`` where it refuses the file, in one line that names it."""
    try:
        return read(path)
    except InvalidInputError as error:
        message = str(error)
    assert str(path) in message
    assert "\n" not in message
    return None


def archived_of(path):
    with open_archived(path, writes=False) as removal:
        return list(removal.archived())


def planned_in(path):
    with RemovalFile(path) as removal:
        return [each.document.id for each in removal.removals()]


ARCHIVED = [Archived("i", id_, None, '{"n": 1.0}', Key("i", "z"), number) for number, id_ in enumerate("bc")]


def make_plan(path):
    """Make a removal, and return its bytes."""
    documents = [PlannedDocument(id_, "i", None, 1, 1, "", {"body": "text"}) for id_ in "abc"]
    with PlanWriter(path) as writer:
        for each in documents[1:]:
            writer.add(PlannedRemoval(each, documents[0], 2, 0.9, "same"))
        writer.finish(PlanHeader({"i": "u"}, "simhash", {}, 2, decided_by={"i": ("body",)}))
    with RemovalFile(path, writes=True) as removal:
        for each in ARCHIVED:
            removal.append([each], [each.line], "2026-11-27T10:00:00Z")
    return path.read_bytes()


@MANY
@given(st.data(), st.booleans())
def test_removal(data, is_ours):
    """A removal that was changed is refused in one line, or read as it was written; only what is whole is restored."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "removal.db")
        whole = make_plan(path)
        path.write_bytes(spliced(data.draw, whole, 63) if is_ours else data.draw(st.binary(max_size=300)))
        assert usable(path, planned_in) in (None, ["b", "c"])
        assert all(each in (None, *ARCHIVED) for each in usable(path, archived_of) or ())


@MANY
@given(st.data())
def test_decisions(data):
    """Decisions that were damaged never keep fewer documents of the plan; else they are refused in one line."""
    with tempfile.TemporaryDirectory() as folder:
        path, file = Path(folder, "removal.db"), Path(folder, "decisions")
        make_plan(path)
        head = {"format": "es-simhash-decisions", "version": 1, "by": "Ann", "at": "2026-11-27T10:00:00Z"}
        head |= {"plan_sha256": removal_summary(path)["plan"]}
        keep = [{"index": "i", "id": "b", "routing": None}]
        whole = json.dumps(head | {"keep": keep, "remove": []}).encode()
        file.write_bytes(spliced(data.draw, whole, 3))
        with RemovalFile(path) as removal:
            usable(file, lambda file: take_in(removal, [file]))
            assert removal.kept in (set(), {Key("i", "b")}, {Key("i", "c")})
