"""Documents that were given as text: the server holds that text, with our object in it, from every way of writing."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from es_simhash import fingerprint_fields
from es_simhash.hashing import fingerprint
from es_simhash.transport.raw_json import split_members
from tests.servers.archives import put_raw, raw_source
from tests.servers.command_line import NEAR, OTHER, TEXT
from tests.servers.support import read_all

NUMBERS = '"price":1.10,"long" : 1234567890.123456789012, "deep": {"big": 123456789012345678901, "e": [1E5, -0.0]}'
MAPPING = {"properties": {"price": {"type": "keyword"}, "long": {"type": "keyword"}, "deep": {"enabled": False}}}
VALUES = split_members("{" + NUMBERS + "}")
OLD = json.dumps(fingerprint_fields(fingerprint(OTHER))["simhash"] | {"group": "z", "mine": 0})[:-1] + ', "kept": 2.50}'
THIRD = "The mayor opened a new bridge over the river after eleven years of building and two of quarrels."


def filled(template, body):
    """Return *template* with the numbers, an older fingerprint and *body* in it."""
    return template.replace("NUMBERS", NUMBERS).replace("OLD", OLD).replace("BODY", body)


@pytest.fixture
def made(index, server):
    server.request("PUT", f"/{index}", {"mappings": MAPPING})
    return index


def assert_held(server, index, id_, text, *, group=None):
    """The document has its fingerprint, and every other value as it was given."""
    server.request("POST", f"/{index}/_refresh")
    members = split_members(raw_source(server, index, id_).decode())
    own = json.loads(members.pop("simhash"))
    assert json.loads(members.pop("body")) == text
    assert members == VALUES
    assert own.items() >= fingerprint_fields(fingerprint(text))["simhash"].items()
    assert own.get("group") == group
    found = server.request("POST", f"/{index}/_search", {"query": {"term": {"price": "1.10"}}})
    assert id_ in [hit["_id"] for hit in found["hits"]["hits"]]


@pytest.mark.parametrize("on_duplicate", ["tag", None])
def test_ingested_text(simhash, made, server, on_duplicate):
    """Plain or as an action, new or in place of an older fingerprint, tagged or not."""
    simhash.put_mapping(made, text_field="body")
    given = [
        filled('{"_id": "a", NUMBERS, "body": "BODY"}', TEXT),
        filled('{"_op_type": "create", "_id": "b", "_source":{"body": "BODY",\nNUMBERS}}\n', NEAR).encode(),
        filled('{"_id": "c", "simhash": OLD, "body": "BODY", NUMBERS}', OTHER),
        filled('{"_op_type": "update", "_id": "d", "doc": {}, "upsert": {NUMBERS, "body": "BODY"}}', THIRD),
    ]
    distance = {} if on_duplicate is None else {"max_distance": 8, "verify": False}
    reports = list(simhash.ingest(made, given, on_duplicate=on_duplicate, **distance))
    assert Counter(each.action for each in reports)["refused"] == 0, reports
    groups = {"tag": "aa", None: [None, None]}[on_duplicate]
    assert_held(server, made, "b", NEAR, group=groups[1])
    assert b'"kept": 2.50' in raw_source(server, made, "c")
    assert_held(server, made, "c", OTHER, group="c" if on_duplicate else "z")
    assert_held(server, made, "a", TEXT, group=groups[0])
    found = read_all(server, made)["d"]  # its numbers are what the server made of an update
    assert (found["body"], found["simhash"].get("group")) == (THIRD, "d" if on_duplicate else None)


def test_an_update_writes_numbers_anew(simhash, made, server):
    """As the docs say: zeros, exponents and the digits of long fractions go, and whole numbers stay."""
    simhash.put_mapping(made, text_field="body")
    put_raw(server, made, "a", filled('{NUMBERS, "body": "BODY"}', TEXT))
    server.request("POST", f"/{made}/_refresh")
    assert list(simhash.backfill(made))[-1].changed == 1
    held = split_members(raw_source(server, made, "a").decode())
    deep = split_members(held["deep"])
    assert (held["price"], deep["big"]) == ("1.1", "123456789012345678901")
    assert json.loads(deep["e"]) == [1e5, -0.0]
    assert "1E5" not in deep["e"]
    assert len(held["long"]) < len(VALUES["long"])
    assert float(held["long"]) == float(VALUES["long"])


def test_the_lines_of_a_file(run, made, server, tmp_path):
    """Lines go as they are; a key that stands twice costs its line, and no value is lost in silence."""
    lines = [
        filled('{"_id": "a", NUMBERS, "body": "BODY"}', TEXT),
        filled('{"_id": "b", "_source": {"body": "BODY",  NUMBERS}}', OTHER),
        filled('{"key": "c", "body": "BODY", "n": 1, "n": 2}', TEXT),
        filled('{"_id": "d", "_source": {"body": "one"}, "_source": {"body": "BODY"}}', TEXT),
    ]
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    result = run("create", made, "--existing", "-t", "body", "--yes")
    assert result.exit_code == 0, result.output
    result = run("ingest", made, tmp_path / "x.jsonl", "--on-duplicate", "skip", "--report", tmp_path / "report")
    assert result.exit_code == 3, result.output
    assert "2 unreadable" in result.stdout
    report = [json.loads(line) for line in (tmp_path / "report").read_text().splitlines()]
    assert ["twice" in (each["reason"] or "") for each in report] == [False, False, True, True]
    assert sorted(read_all(server, made)) == ["a", "b"]
    assert_held(server, made, "a", TEXT, group="a")
    assert_held(server, made, "b", OTHER, group="b")
    # What took the place of another is counted, also within one file.
    again = [{"_id": id_, "body": f"{TEXT} {n}"} for n, id_ in enumerate("acc")]
    (tmp_path / "y.jsonl").write_text("".join(json.dumps(each) + "\n" for each in again))
    said = run("ingest", made, tmp_path / "y.jsonl", "--on-duplicate", "none").stdout
    assert "3 documents written, 3 with a fingerprint, 2 in place of one with the same id" in said


def test_a_server_refuses_a_key_that_stands_twice(simhash, made, server):
    """As we do: so nothing is refused that it would take."""
    simhash.put_mapping(made, text_field="body")
    text = filled('{"body": "BODY", "deep": {"n": 1, "n": 2}}', TEXT)
    with pytest.raises(AssertionError, match=r"[Dd]uplicate"):
        put_raw(server, made, "a", text)
    [report] = simhash.ingest(made, [text])
    assert (report.action, "'n' stands twice" in report.reason) == ("refused", True)
