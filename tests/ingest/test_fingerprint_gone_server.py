"""A text that loses its fingerprint: nothing of the earlier text stays in its document, or in those that named it."""

import pytest

from tests.servers.support import ONE_SHARD, put, read_all, send_lines, stored_groups, texts

# Words that the scheme leaves out: such a text has passages, and no fingerprint.
STOPPED = "the of and to in is it that for on are as with "


@pytest.fixture
def simhash(make_simhash):
    return make_simhash(scheme="keywords")


@pytest.fixture
def filled(server, index, simhash):
    """An index with passages: "a" is the canonical of "b" and "c"."""
    simhash.create_index(index, text_field="body", passages=True, settings=ONE_SHARD)
    text = texts(1)[0]
    list(simhash.ingest(index, [{"_id": id_, "body": text} for id_ in "abc"], max_distance=3, verify=False))
    server.request("POST", f"/{index}/_refresh")
    return text


def left(server, index, id_):
    """Return what our object in a document holds."""
    own = read_all(server, index)[id_].get("simhash") or {}
    return {name: value for name, value in own.items() if value is not None}


@pytest.mark.parametrize(
    ("upsert", "is_grouped"), [({}, True), ({"doc_as_upsert": True}, False), ({"upsert": {"body": "bridge"}}, True)]
)
def test_a_partial_update_states_all(server, index, simhash, filled, is_grouped, upsert):
    """The server merges objects, so what is not stated would stay; ``skip`` then drops what nothing else holds."""
    put(server, index, [{"_id": "lonely", "body": texts(1, seed=8)[0]}])
    list(simhash.backfill(index))
    put(server, index, [{"_id": "d", "simhash": {"error": "too_long"}}])
    ways = {"on_duplicate": "tag", "max_distance": 3, "verify": False} if is_grouped else {"on_duplicate": None}
    actions = [{"_op_type": "update", "_id": id_, "doc": {"body": STOPPED}, **upsert} for id_ in ("a", "lonely")]
    actions += [{"_op_type": "update", "_id": "d", "doc": {"body": filled}, **upsert}]
    reasons = [each.reason for each in simhash.ingest(index, actions, **ways)]
    assert reasons[:2] == [None, None]
    assert bool(reasons[2]) == is_grouped  # a copy is near whose canonical has another text now
    server.request("POST", f"/{index}/_refresh")
    for id_ in ("a", "lonely"):
        assert set(left(server, index, id_)) == ({"passages", "group", "at"} if is_grouped else {"passages"})
        assert left(server, index, id_).get("group", id_) == id_
    assert "error" not in left(server, index, "d")
    assert "fingerprint" in left(server, index, "d")
    new = {"_id": "new", "body": texts(1, seed=8)[0]}
    assert [each.action for each in simhash.ingest(index, [new], on_duplicate="skip")] == ["written"]


@pytest.mark.parametrize(("way", "text"), [("backfill", STOPPED), ("follow", STOPPED), ("follow", "…")])
def test_what_takes_a_fingerprint_out_takes_its_group_out(server, index, simhash, filled, way, text):
    """Whoever changed the text; and what named the document as its canonical is put into another group."""
    dotted = {"simhash.duplicate_of": "a", "simhash.distance": 0, "simhash.fingerprint": "00" * 8}
    changes = {"a": {"body": text}, "c": {"body": text, "simhash": {"error": "x", "mine": 7}}}
    lines = [line for id_, doc in changes.items() for line in ({"update": {"_index": index, "_id": id_}}, {"doc": doc})]
    send_lines(server, lines)
    tagged = {"_id": "e", "body": text, "simhash": {"duplicate_of": "a", "distance": 2}}
    put(server, index, [{"_id": "d", "body": text, **dotted}, tagged])
    if way == "backfill":
        list(simhash.backfill(index))
        simhash.reconcile(index, since="2100-01-01")
    else:
        list(simhash.follow(index, once=True, state_index=f"{index}-state"))
    kept = {"passages"} if text == STOPPED else set()
    found = read_all(server, index)
    assert not any(found["d"].get(name) for name in dotted)
    assert [set(left(server, index, id_)) for id_ in "acde"] == [kept, {*kept, "mine"}, kept, kept]
    assert stored_groups({"b": found["b"]}) == {"b": "b"}
    assert simhash.reconcile(index, dry_run=True).changed == 0
    assert list(simhash.backfill(index, dry_run=True))[-1].changed == 0


def test_a_canonical_that_is_written_without_a_text(server, index, simhash, filled):
    """A follower sees a document that needs nothing; its members need another canonical."""
    options = {"once": True, "state_index": f"{index}-state"}
    list(simhash.follow(index, **options))
    put(server, index, [{"_id": "a", "n": 1}])
    list(simhash.follow(index, **options))
    found = read_all(server, index)
    assert stored_groups({id_: found[id_] for id_ in "bc"}) == {"b": "b", "c": "b"}


@pytest.mark.parametrize("since", [None, "2100-01-01"])
def test_reconcile_clears_what_is_tagged_without_a_fingerprint(server, index, simhash, filled, since):
    """Other programs leave such documents; one that only names itself was written by ``ingest``, and stays."""
    tagged = {"group": "a", "duplicate_of": "a", "distance": 0, "at": "2020-01-01"}
    dotted = {"_id": "dotted", "simhash.duplicate_of": "a", "simhash.distance": 3}
    own = {"_id": "own", "simhash": {"group": "own", "at": "2020-01-01"}}
    put(server, index, [{"_id": "old", "simhash": tagged}, dotted, own])
    assert simhash.reconcile(index, since=since, dry_run=True).changed == 2
    done = simhash.reconcile(index, since=since)
    assert (done.changed, done.is_settled, done.failures) == (2, True, ())
    found = read_all(server, index)
    assert [left(server, index, id_) for id_ in ("old", "dotted")] == [{}, {}]
    assert not any(found["dotted"].values())
    assert set(left(server, index, "own")) == {"group", "at"}
    assert simhash.reconcile(index).changed == 0
