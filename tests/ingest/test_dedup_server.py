"""Near-duplicates decided about as they are written, on real servers."""

import pytest

from tests.servers.batches import ingest_in_batches
from tests.servers.support import ONE_SHARD, ByDistance, random_texts, read_all, send_lines, stored_groups, texts


@pytest.fixture
def simhash(simhash):
    """These tests are about bits."""
    return ByDistance(simhash)


def test_skip_loses_no_update(server, index, simhash):
    """A near-duplicate whose id is in the index is written and tagged, so no document keeps an old state."""
    mappings = {"properties": {"title": {"type": "keyword"}}}
    simhash.create_index(index, text_field="body", settings=ONE_SHARD, mappings=mappings)
    text, other = texts(1)[0], texts(1, seed=2)[0]
    first = [{"_id": id_, "title": "old", "body": text} for id_ in "ab"]
    list(simhash.ingest(index, [*first, {"_id": "c", "title": "old", "body": other}]))
    for batch in (1, 500):
        new = f"new {batch}"
        changed = [{"_id": id_, "title": new, "body": text} for id_ in "abcde"]
        # In the same run, but not in the index before: "f" is written, and again with a text that is near "a".
        again = [{"_id": "f", "title": "old", "body": texts(1, seed=3)[0]}, {"_id": "f", "title": new, "body": text}]
        reports = list(simhash.ingest(index, [*changed, *again], on_duplicate="skip", batch=batch))
        actions = ["written", "tagged", "tagged", "skipped", "skipped", "written", "tagged"]
        assert [each.action for each in reports] == actions
        assert [each.updated for each in reports[:5]] == [True, True, True, False, False]
        held = read_all(server, index)
        assert {id_: source["title"] for id_, source in held.items()} == dict.fromkeys("abcf", new)
        assert {id_: source["simhash"].get("duplicate_of") for id_, source in held.items()} == {
            "a": None, **dict.fromkeys("bcf", "a")
        }  # fmt: skip
    deletion = {"_op_type": "delete", "_id": "f"}
    reports = list(simhash.ingest(index, [deletion, {"_id": "g", "body": text}], on_duplicate="skip"))
    assert [each.action for each in reports] == ["written", "skipped"]
    for body in ("…", None):  # an update that leaves no fingerprint is no deletion
        bare = [{"_id": "h", "body": other}, {"_op_type": "update", "_id": "h", "doc": {"body": body}}]
        reports = list(simhash.ingest(index, [*bare, {"_id": "h", "body": text}], on_duplicate="skip"))
        assert reports[-1].action == "tagged"
        assert read_all(server, index)["h"]["body"] == text
        server.request("DELETE", f"/{index}/_doc/h?refresh=true")


@pytest.mark.parametrize("lookups", ["server", "memory"])
def test_what_is_there_as_it_is_given_is_not_written_again(server, index, simhash, lookups):
    """What differs in a type alone is; and whatever follows a document of its id in the same ingest."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    first = [{"_id": str(n), "body": text, "n": 1} for n, text in enumerate(texts(30))]
    list(simhash.ingest(index, first, lookups=lookups))
    before = read_all(server, index)
    reports = list(simhash.ingest(index, first, lookups=lookups))
    assert {report.action for report in reports} == {"unchanged"}
    assert {report.id: report.canonical for report in reports} == stored_groups(before)
    distances = {id_: source["simhash"].get("distance", 0) for id_, source in before.items()}
    assert {report.id: report.distance for report in reports} == distances
    assert read_all(server, index) == before
    again = [{**first[0], "n": "1"}, {**first[1], "n": 1.0}, {**first[2], "more": None}, {**first[3], "_routing": "r"}]
    assert {each.action for each in simhash.ingest(index, again, lookups=lookups)} <= {"written", "tagged"}
    assert len(read_all(server, index)) in (30, 31)  # of one id and another routing
    for given in ([{**first[9], "n": 2}, first[9]], [{"_op_type": "update", "_id": "9", "doc": {"n": 2}}, first[9]]):
        for batch in (1, 50):
            reports = list(simhash.ingest(index, given, batch=batch, lookups=lookups))
            assert "unchanged" not in [each.action for each in reports]
            assert read_all(server, index)["9"]["n"] == 1
    bare = {"_id": "bare", "n": 1}  # nothing is looked up for it
    list(simhash.ingest(index, [bare]))
    reports = list(simhash.ingest(index, [bare, {"_op_type": "update", "_id": "bare", "doc": {"n": 2}}, bare], batch=1))
    assert [report.action for report in reports] == ["unchanged", "written", "written"]
    assert read_all(server, index)["bare"]["n"] == 1


@pytest.mark.parametrize("options", [{}, {"lookups": "memory", "verify": 0.5}])
def test_a_copy_that_lost_its_canonical_is_decided_anew(server, index, simhash, options):
    """Though it is given as it is, so that no reconcile is needed first. A copy whose canonical is there stays."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    one, other = texts(2)
    first = [{"_id": id_, "body": one if id_ < "c" else other} for id_ in "abcde"]
    list(simhash.ingest(index, first, **options))
    send_lines(server, [{"delete": {"_index": index, "_id": "a"}}])
    reports = list(simhash.ingest(index, first[1:], **options))
    assert [report.action for report in reports] == ["written", *["unchanged"] * 3]
    assert stored_groups(read_all(server, index)) == {"b": "b", "c": "c", "d": "c", "e": "c"}


@pytest.mark.parametrize("options", [{"lookups": "memory"}, {"verify": 0.5, "per": "site"}])
def test_a_canonical_is_written_again(server, index, simhash, options):
    """Its own group is no reason to skip it: with what searches show, and with what this ingest wrote."""
    mappings = {"properties": {"site": {"type": "keyword"}}}
    simhash.create_index(index, text_field="body", settings=ONE_SHARD, mappings=mappings)
    text, *corrected = [f"{texts(1)[0]} {word}" for word in ("a", "b", "c", "d")]
    grouping = {"max_distance": 16, **options}
    first = [{"_id": id_, "body": text, "site": "s"} for id_ in "az"]
    assert [each.action for each in simhash.ingest(index, first, **grouping)] == ["written", "tagged"]
    again = [{"_id": "a", "body": each, "site": "s"} for each in corrected]
    for part in (again[:1], [again[1], {**first[1], "more": 1}, again[2]]):
        server.request("POST", f"/{index}/_refresh")
        reports = list(simhash.ingest(index, part, on_duplicate="skip", **grouping))
        assert [each.action for each in reports] == ["written" if each.id == "a" else "tagged" for each in reports]
    source = read_all(server, index)["a"]
    assert (source["body"], source["simhash"]["group"]) == (corrected[2], "a")
    assert "duplicate_of" not in source["simhash"]


def test_updates_deletes_and_texts_without_features(server, index, simhash):
    """Each action keeps its meaning, and nothing is near to what has no fingerprint."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    first, second = texts(2, seed=5, edits=0)[0], texts(1, seed=9)[0]
    actions = [
        {"_id": "a", "body": first},
        {"_op_type": "update", "_id": "a", "doc": {"body": second}},
        {"_id": "b", "body": first},
        {"_op_type": "delete", "_id": "b"},
        {"_id": "c", "body": first},
        {"_id": "d", "body": "…"},
        {"_id": "e", "body": "…"},
        {"_op_type": "update", "_id": "c", "doc": {"seen": True}},
        {"_id": "f", "body": second},
    ]
    reports = list(simhash.ingest(index, actions, max_distance=3))
    assert [report.action for report in reports] == ["written"] * 8 + ["tagged"]
    documents = read_all(server, index)
    assert set(documents) == set("acdef")
    groups = {id_: source["simhash"]["group"] for id_, source in documents.items()}
    assert groups == {"a": "a", "c": "c", "d": "d", "e": "e", "f": "a"}
    assert documents["c"]["seen"] is True


# By kind, the writes of a document with another text that the server refuses.
REFUSED = {
    "index": lambda new: {"body": new, "n": "many"},
    "create": lambda new: {"_op_type": "create", "body": new},
    "update": lambda new: {"_op_type": "update", "doc": {"body": new, "n": "many"}},
    "delete": lambda _: {"_op_type": "delete", "if_seq_no": 99, "if_primary_term": 1},
    "version": lambda new: {"_version": 3, "_version_type": "external", "_source": {"body": new}},
}


@pytest.mark.parametrize("on_duplicate", ["tag", "skip"])
def test_what_a_refused_write_hid_is_found_again(server, index, simhash, client, call, on_duplicate):
    """The document that a refused write would have changed is still there: nothing is written as if it were not."""
    mapping = {"properties": {"n": {"type": "integer"}}}
    simhash.create_index(index, text_field="body", settings=ONE_SHARD, mappings=mapping)
    options = {"on_duplicate": on_duplicate, "max_distance": 3, "batch": 50}
    again = "tagged" if on_duplicate == "tag" else "skipped"
    expected = {}
    for kind, refused in REFUSED.items():
        old, new = random_texts(2, kind)
        a, b, c, d = (f"{kind}-{letter}" for letter in "abcd")
        first = [{"_id": a, "_version": 5, "_version_type": "external", "_source": {"body": old}}]
        ingest_in_batches(client, call, index, first, **options)
        documents = [{"_id": a, **refused(new)}, {"_id": b, "body": old}, {"_id": c, "body": old}]
        reports = ingest_in_batches(client, call, index, [*documents, {"_id": d, "body": new}], **options)
        assert [each.action for each in reports] == ["refused", "tagged", again, "written"], kind
        assert [each.canonical for each in reports] == [None, a, a, d], kind
        expected |= {a: a, b: a, d: d} | ({c: a} if on_duplicate == "tag" else {})
    assert {id_: source["simhash"]["group"] for id_, source in read_all(server, index).items()} == expected
    assert simhash.reconcile(index).changed == 0


def test_a_copy_of_a_canonical_whose_new_text_was_refused(index, simhash, client, call):
    """The canonical stands: nothing is said of one that is gone, and the distance is that to it."""
    mapping = {"properties": {"n": {"type": "integer"}}}
    simhash.create_index(index, text_field="body", settings=ONE_SHARD, mappings=mapping)
    old, new = random_texts(2, 4)
    options = {"max_distance": 3, "batch": 50}
    ingest_in_batches(client, call, index, [{"_id": each, "body": old} for each in "ab"], **options)
    documents = [{"_id": "a", "body": new, "n": "many"}, {"_id": "c", "body": old}]
    reports = ingest_in_batches(client, call, index, documents, on_duplicate="skip", **options)
    told = [(each.action, each.canonical, each.distance, each.reason) for each in reports[1:]]
    assert told == [("skipped", "a", 0, None)]
    assert simhash.reconcile(index).changed == 0
