"""Texts that no `exists` query sees, and fields that hold none: what setup, tune and the checks make of them."""

import pytest

from es_simhash import InvalidInputError
from es_simhash.mapping.user_fields import exist_clauses
from tests.servers.command_line import OTHER, TEXT
from tests.servers.support import put

HIDDEN = {
    "nested": ({"properties": {"c": {"type": "nested", "properties": {"t": {"type": "text"}}}}}, "c.t"),
    "not mapped": ({"dynamic": False, "properties": {}}, "t"),
    "not indexed": ({"properties": {"t": {"type": "text", "index": False}}}, "t"),
    "not enabled": ({"properties": {"c": {"type": "object", "enabled": False}}}, "c.t"),
    "long keyword": ({"properties": {"t": {"type": "keyword", "ignore_above": 10}}}, "t"),
}


@pytest.mark.parametrize("kind", ["nested", "long keyword"])
def test_a_text_that_no_query_sees(server, index, simhash, run, kind):
    """It is drawn from all documents, filled, and counted where it is missing, with what no query tells from it."""
    mapping, field = HIDDEN[kind]
    server.request("PUT", f"/{index}", {"mappings": mapping})

    def document(id_, text):
        return {"_id": id_, "c": [{"t": text}]} if "." in field else {"_id": id_, "t": text}

    put(server, index, [document("a", TEXT), document("b", TEXT.upper()), document("c", OTHER), {"_id": "none"}])
    assert simhash.tune(index, text_field=field).documents == 3
    found = simhash.setup(index, text_field=field)
    assert (found.sampled, found.filled.changed, found.groups.duplicates) == (3, 3, 1)
    assert found.is_complete
    put(server, index, [document("d", TEXT)])
    [check] = simhash.check(index)
    # With the one that has no text.
    assert [(each.kind, each.found) for each in check.faults] == [("without_fingerprint", "2")]
    assert simhash.setup(index).filled.changed == 1


def test_which_fields_a_query_sees():
    """Plain texts and keywords, and a field that no document can have."""
    text = {"type": "text"}
    seen = {"properties": {"t": text, "k": {"type": "keyword"}, "o": {"properties": {"t": text}}}}
    for field in ("t", "k", "o.t", "not.there"):
        assert exist_clauses([field], [seen]) == [{"bool": {"should": [{"exists": {"field": field}}]}}]
    for mapping, field in HIDDEN.values():
        assert exist_clauses(["t", field], [seen, mapping]) == []


def test_documents_without_a_text_are_drawn_again(server, index, simhash):
    """An empty text matches the query, so others are drawn in its place."""
    server.request("PUT", f"/{index}", {"mappings": {"properties": {"body": {"type": "text"}}}})
    put(server, index, [{"_id": str(n), "body": "" if n % 2 else f"{TEXT} {n}"} for n in range(120)])
    found = simhash.tune(index, text_field="body", sample=55)
    assert (found.sampled, found.documents) == (55, pytest.approx(60, abs=12))
    assert simhash.tune(index, text_field="body", sample=80).sampled == 60


@pytest.mark.parametrize("type_", ["date", "nested"])
def test_a_field_that_is_no_text(server, index, simhash, run, type_):
    """Refused before anything is written, with the field to name; a keyword may hold a text."""
    inner = {"properties": {"text": {"type": "text"}}} if type_ == "nested" else {}
    properties = {"when": {"type": type_, **inner}, "kept": {"type": "keyword"}}
    server.request("PUT", f"/{index}", {"mappings": {"properties": properties}})
    put(server, index, [{"_id": "a", "kept": TEXT}])
    before = server.request("GET", f"/{index}/_mapping")
    wanted = "an object .* name a text inside it, when.text" if inner else f"mapped as '{type_}'"
    for work in (simhash.setup, simhash.tune, simhash.put_mapping, lambda *a, **k: list(simhash.backfill(*a, **k))):
        with pytest.raises(InvalidInputError, match=wanted):
            work(index, text_field="when")
    result = run("setup", index, "-t", "when", "--yes")
    assert (result.exit_code, "--text-field 'when'" in result.stderr) == (1, True), result.output
    assert server.request("GET", f"/{index}/_mapping") == before
    assert simhash.setup(index, text_field="kept").filled.changed == 1


def test_a_narrower_pattern_says_that_it_regroups(server, index, simhash, run):
    """A duplicate whose canonical is in an index that is left out is no duplicate any more."""
    for year, id_ in ((2023, "a"), (2024, "b")):
        server.request("PUT", f"/{index}-{year}", {"mappings": {"properties": {"body": {"type": "text"}}}})
        put(server, f"{index}-{year}", [{"_id": id_, "body": TEXT}])
    assert simhash.setup(f"{index}-*", text_field="body").outside == 0
    narrow = f"{index}-*,-{index}-2023"
    would = simhash.setup(narrow, dry_run=True)
    assert (would.outside, would.groups.changed) == (1, 1)
    result = run("setup", narrow, "--yes")
    assert result.exit_code == 0, result.output
    assert "grouped anew without it" in result.stderr
    assert simhash.setup(narrow).outside == 0
