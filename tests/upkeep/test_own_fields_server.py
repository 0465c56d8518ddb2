"""A field of the user's own with the name of our prefix: no operation changes or deletes what is in it."""

import json

import pytest

from es_simhash import InvalidInputError, MappingError, document_fields
from tests.servers.command_line import OTHER, TEXT
from tests.servers.support import ON_BOTH, put as put_actions, read_all

OWN = {
    "string": "33e68120ecb2d7de",
    "list": [{"v": 1}],
    "number": 0,
    "object": {"v1": 123, "algo": "charikar"},
    "ours": {"value": 77},
}


def put(server, index, documents):
    put_actions(server, index, [{"_id": id_, **each} for id_, each in documents.items()])


@pytest.fixture
def taken(server, index):
    """An index that does not map `simhash`, in which documents have something with that name."""
    server.request("PUT", f"/{index}", {"mappings": {"dynamic": False, "properties": {"body": {"type": "text"}}}})
    put(server, index, {id_: {"body": TEXT, "simhash": own} for id_, own in OWN.items()} | {"free": {"body": TEXT}})
    put(server, index, {"kept": {"body": TEXT, "simhash": {**document_fields(OTHER)["simhash"], "mine": 1}}})
    return index


@ON_BOTH
def test_what_is_there_stays_and_is_named(taken, server, simhash, run):
    """By setup, backfill and follow, also in their dry runs; the others get theirs, and keys beside ours stay."""
    before = read_all(server, taken)
    would = simhash.setup(taken, text_field="body", dry_run=True)
    found = simhash.setup(taken, text_field="body")
    for filled in (would.filled, found.filled, list(simhash.backfill(taken))[-1]):
        assert filled.failed == len(OWN)
    assert {(each.kind, each.id) for each in found.filled.failures} == {("taken", id_) for id_ in OWN}
    assert (would.filled.failures, found.groups.duplicates) == (found.filled.failures, 1)
    for command in (["setup", "--yes"], ["setup"]):
        result = run(command[0], taken, *command[1:])
        assert (result.exit_code, result.stderr.count("choose another prefix")) == (3, len(OWN)), result.output
        assert "documents changed" not in result.output
    result = run("follow", taken, "--once", "--state-index", f"{taken}-state")
    assert (result.exit_code, result.stderr.count("choose another prefix")) == (3, len(OWN)), result.output
    held = read_all(server, taken)
    assert {id_: held[id_] for id_ in OWN} == {id_: before[id_] for id_ in OWN}
    kept = held["kept"]["simhash"]
    assert (kept["mine"], kept["fingerprint"]) == (1, document_fields(TEXT)["simhash"]["fingerprint"])
    removed = simhash.remove_fields(taken)
    assert (removed.documents, removed.failures) == (2, ())
    left = read_all(server, taken)
    assert {id_: left[id_] for id_ in OWN} == {id_: before[id_] for id_ in OWN}
    assert left["free"].get("simhash") is None
    assert {key: value for key, value in left["kept"]["simhash"].items() if value is not None} == {"mine": 1}


def test_setup_names_what_failed(server, index, simhash, run):
    """With id and reason, also as JSON; before, they were counted, and others were said to change documents."""
    server.request("PUT", f"/{index}", {"mappings": {"properties": {"body": {"type": "text"}}}})
    put(server, index, {"a": {"body": TEXT}, "b": {"body": OTHER}, "number": {"body": 12345}})
    found = simhash.setup(index, text_field="body")
    assert [(each.id, each.kind) for each in found.filled.failures] == [("number", "unusable")]
    result = run("setup", index, "--yes", "--json")
    assert (result.exit_code, len(result.stderr.splitlines())) == (3, 1), result.output
    [failure] = json.loads(result.stdout)["filled"]["failures"]
    assert failure["id"] == json.loads(result.stderr)["error"]["id"] == "number"
    assert "number: field 'body' holds 12345" in run("setup", index).stderr


def test_a_field_in_the_mapping(server, index, simhash, make_simhash, run):
    """Whatever needs ours is refused, with another prefix as the way, and never a command that fails the same way."""
    properties = {"body": {"type": "text"}, "simhash": {"type": "long"}}
    server.request("PUT", f"/{index}", {"mappings": {"properties": properties}})
    put(server, index, {"a": {"body": TEXT, "simhash": 5}, "b": {"body": TEXT, "simhash": 6}})
    commands = [["setup", index, "-t", "body", "--yes"], ["find", index, TEXT]]
    commands.append(["create", index, "--existing", "-t", "body", "--yes"])
    for command in commands:
        result = run(*command)
        assert (result.exit_code, result.stdout) == (1, ""), result.output
        assert "choose another prefix" in result.stderr
        assert "--existing" not in result.stderr
    assert run("remove-fields", index, "--yes").exit_code == 1
    with pytest.raises(MappingError, match="not record") as caught:
        simhash.remove_fields(index)
    assert caught.value.kinds == ("no_fields",)
    assert make_simhash(prefix="near").setup(index, text_field="body").is_complete
    result = run("find", index, TEXT)
    assert "this index has the prefix 'near': give --prefix near" in result.stderr
    assert len(make_simhash(prefix="near").find_near_dups(index, TEXT)) == 2
    assert {id_: each["simhash"] for id_, each in read_all(server, index).items()} == {"a": 5, "b": 6}
    # Behind a pattern it is passed over, as an index without our fields is; to write there is refused.
    simhash.create_index(f"{index}-ours", text_field="body")
    put(server, f"{index}-ours", {"c": {"body": TEXT, **document_fields(TEXT)}})
    assert [each.id for each in simhash.find_near_dups(f"{index}*", TEXT)] == ["c"]
    with pytest.raises(MappingError, match="one of your own"):
        simhash.setup(f"{index}*", text_field="body")


def test_an_object_of_other_fields_in_the_mapping(server, index, simhash):
    """Ours are not put into it."""
    own = {"properties": {"algo": {"type": "keyword"}}}
    server.request("PUT", f"/{index}", {"mappings": {"properties": {"body": {"type": "text"}, "simhash": own}}})
    put(server, index, {"a": {"body": TEXT, "simhash": {"algo": "x"}}})
    for work in (lambda: simhash.setup(index, text_field="body"), lambda: simhash.put_mapping(index)):
        with pytest.raises(MappingError, match="one of your own") as caught:
            work()
        assert caught.value.kinds == ("users_field",)
    with pytest.raises((MappingError, InvalidInputError), match="not record"):
        simhash.remove_fields(index)
    assert read_all(server, index) == {"a": {"body": TEXT, "simhash": {"algo": "x"}}}


def test_an_ingest_refuses_it(server, index, simhash):
    """Nothing is written under our prefix that is not ours, and the report says so."""
    simhash.create_index(index, text_field="body")
    given = {id_: {"body": TEXT, "simhash": OWN[id_]} for id_ in ("object", "ours")}
    reports = list(simhash.ingest(index, [{"_id": id_, **each} for id_, each in given.items()], on_duplicate="tag"))
    assert [(each.action, "choose another prefix" in each.reason) for each in reports] == [("refused", True)] * 2
    assert read_all(server, index) == {}
