"""Groups made right, shown, and used, on real servers."""

import random
from datetime import UTC, datetime

import pytest

from es_simhash import SimHashClient, fingerprint, fingerprint_fields
from es_simhash.client.port import finish
from es_simhash.groups import neighbourhood, reconcile
from es_simhash.groups.grouping_request import GroupingRequest
from tests.servers.fixtures import make_client
from tests.servers.support import (
    ON_BOTH,
    ONE_SHARD,
    ByDistance,
    expected_groups,
    numbered,
    put,
    read_all,
    send_lines,
    stored_groups,
    texts,
)


@pytest.fixture
def simhash(simhash):
    """These tests are about bits."""
    return ByDistance(simhash)


def fill(simhash, server, index, found, **options):
    mappings = {"properties": {"n": {"type": "integer"}}}
    simhash.create_index(index, text_field="body", settings=ONE_SHARD, mappings=mappings)
    documents = numbered(found)
    random.Random(4).shuffle(documents)
    list(simhash.ingest(index, documents, **options))
    server.request("POST", f"/{index}/_refresh")
    return documents


@pytest.mark.parametrize("lookups", ["server", "memory"])
def test_who_stays_is_one_order(server, index, simhash, lookups):
    """Ids at random, several runs, copies in one bulk, documents given again, and a reconcile: none changes a group."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    some, others, more = (random.Random(n).sample(texts(80, seed=n // 2), 60) for n in (8, 9, 10))
    given = [{"_id": f"{chance.random()}", "body": body} for chance in [random.Random(1)] for body in others]
    for documents in ([{"body": body} for body in some], given, given[20:]):
        reports = list(simhash.ingest(index, documents, max_distance=8, lookups=lookups))
        assert simhash.reconcile(index).changed == 0
    assert {report.action for report in reports} == {"unchanged"}
    list(simhash.ingest(index, [{"body": body} for body in more], on_duplicate=None))
    report = simhash.reconcile(index)
    assert report.changed >= len(more)
    assert simhash.reconcile(index).changed == 0
    list(simhash.ingest(index, [{"body": body} for body in more], lookups=lookups))
    assert simhash.reconcile(index).changed == 0
    found = read_all(server, index)
    assert stored_groups(found) == expected_groups(found, 8)


def test_a_document_without_a_moment_stays_the_oldest(server, index, simhash):
    """Grouping it does not make it the document that was written last: the second run writes nothing."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    text = texts(1)[0]
    list(simhash.ingest(index, [{"_id": "b", "body": text}], canonical="-simhash.at", max_distance=3))
    list(simhash.ingest(index, [{"_id": each, "body": text} for each in "ac"], on_duplicate=None))
    first, second = simhash.reconcile(index), simhash.reconcile(index)
    assert (first.changed, second.changed) == (2, 0)
    assert set(stored_groups(read_all(server, index)).values()) == {"b"}


def test_a_regroup_that_is_stopped_is_known_and_finished(server, index, simhash, monkeypatch, caplog):
    """Ctrl-C after some documents: check says what to run, and what shows groups that they may be old."""
    fill(simhash, server, index, texts(60), max_distance=3)
    simhash.reconcile(index)
    monkeypatch.setitem(reconcile.reconcile.__kwdefaults__, "batch", 5)

    def stop(progress):
        if progress.step == "rewriting groups":
            raise OSError("stopped")

    with pytest.raises(OSError, match="stopped"):
        simhash.reconcile(index, regroup=True, max_distance=12, canonical="-n", progress=stop)
    groups = stored_groups(read_all(server, index))
    assert groups not in (expected_groups(read_all(server, index), 3), expected_groups(read_all(server, index), 12))
    list(simhash.ingest(index, [{"_id": "new", "n": 100, "body": texts(1)[0]}]))
    [said] = [text for text in simhash.check(index)[0].problems if "reconcile(index)" in text and "finish" in text]
    assert said.startswith("the grouping was changed")
    for show in (lambda: list(simhash.groups(index)), lambda: simhash.plan_removal(index)):
        caplog.clear()
        assert show()
        said = "the grouping was changed, and documents may still have groups of the one before"
        assert f"{index}: {said}" in caplog.text
    assert simhash.reconcile(index).is_settled
    documents = read_all(server, index)
    assert stored_groups(documents) == expected_groups(documents, 12, lambda _, source: -source["n"])
    assert {fault.kind for fault in simhash.check(index)[0].faults} == {"not_verified"}


def test_since_repairs_what_changes_upset(server, index, simhash):
    """A canonical deleted, one changed, an earlier one added: looking at these alone does it."""
    documents = fill(simhash, server, index, texts(200, edits=1), max_distance=3)
    simhash.reconcile(index)
    moment = datetime.now(UTC)
    groups = stored_groups(read_all(server, index))
    sizes = {name: list(groups.values()).count(name) for name in set(groups.values())}
    smallest = sorted((size, name) for name, size in sizes.items() if size > 1)[:3]
    deleted, changed, joined = (name for _, name in smallest)
    text = {document["_id"]: document["body"] for document in documents}
    send_lines(server, [{"delete": {"_index": index, "_id": deleted}}])
    list(simhash.ingest(index, [{"_id": changed, "body": texts(1, seed=77)[0]}, {"_id": "!", "body": text[joined]}]))
    report = simhash.reconcile(index, since=moment)
    found = read_all(server, index)
    assert stored_groups(found) == expected_groups(found, 3)
    assert 0 < report.changed <= report.documents < len(found)
    assert simhash.reconcile(index).changed == 0


def test_since_follows_names_as_well_as_distances(server, index, simhash):
    """What names a document that is only reached from a changed one is read in the same run, and so on."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    near, far, farther = texts(1)[0], texts(1, seed=2)[0], texts(1, seed=3)[0]
    plain = [{"_id": "a", "body": near}, {"_id": "c", "body": far}, {"_id": "d", "body": far}]
    list(simhash.ingest(index, [*plain, {"_id": "e", "body": farther}], on_duplicate=None))
    list(simhash.ingest(index, [{"_id": "b", "body": near}], max_distance=3))
    for own, name in (("c", "a"), ("e", "d")):  # by another program, whose texts have changed since
        told = {"group": name, "duplicate_of": name, "distance": 0}
        server.request("POST", f"/{index}/_update/{own}?refresh=true", {"doc": {"simhash": told}})
    report = simhash.reconcile(index, since="2020-01-01")
    found = read_all(server, index)
    assert stored_groups(found) == expected_groups(found, 3)
    assert (report.documents, simhash.reconcile(index, since="2020-01-01").changed) == (5, 0)


def repair(simhash, index, ids):
    """Make the groups right that documents with these *ids* may have upset."""
    return finish(reconcile.reconcile(simhash._server(), index, GroupingRequest(), ids=ids, may_lack=False))


@pytest.mark.parametrize(
    ("rule", "seed"), [({"verify": False, "max_distance": 8}, 1), ({"max_distance": 16}, 0), ({"per": "n"}, 1)], ids=str
)
def test_a_repair_by_ids_is_what_a_whole_reconcile_says(server, index, sync_simhash, rule, seed, monkeypatch):
    """After texts changed, documents came without a group, and canonicals went: then there is nothing left to do."""
    chance = random.Random(seed)
    monkeypatch.setattr(neighbourhood, "MAX_HITS", 2_000 * seed or 3)  # more is near some than a page has
    sync_simhash.create_index(
        index, text_field="body", settings=ONE_SHARD, mappings={"properties": {"n": {"type": "keyword"}}}
    )
    found = texts(130, seed=seed, edits=6)
    documents = [{"_id": f"{chance.random()}", "n": n % 3, "body": text} for n, text in enumerate(found)]
    list(sync_simhash.ingest(index, documents[:100], **rule))
    for _ in range(2):
        groups = stored_groups(read_all(server, index))
        canonicals = sorted({name for id_, name in groups.items() if id_ != name})
        deleted = chance.sample(canonicals, 4) + chance.sample(sorted(groups), 4)
        rest = chance.sample(sorted(groups.keys() - deleted), 10 + 10 * seed) + chance.sample(documents[100:], 3)
        changed = [
            {**(each if isinstance(each, dict) else {"_id": each, "n": 1}), "body": chance.choice(found)}
            for each in rest
        ]
        send_lines(server, [{"delete": {"_index": index, "_id": id_}} for id_ in set(deleted)])
        list(sync_simhash.ingest(index, changed, on_duplicate=None))
        assert repair(sync_simhash, index, {*deleted, *(document["_id"] for document in changed)}).changed
        assert sync_simhash.reconcile(index).changed == 0


def test_a_repair_asks_no_more_in_an_index_of_many_documents(server, index, sync_simhash):
    """Of 3,000 documents nearly all are connected by steps of 16 bits of 56, though no two texts are alike."""
    chance = random.Random(1)
    sync_simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    sync_simhash.reconcile(index, max_distance=16, verify=0.8)
    documents = []
    for number in range(3_000):
        own = fingerprint_fields(chance.getrandbits(56))["simhash"] | {"group": str(number), "at": "2026-01-01"}
        text = " ".join(f"{chance.getrandbits(40):x}" for _ in range(5))
        documents.append({"_id": str(number), "body": text, "simhash": own})
    put(server, index, documents)
    found, sent = count_repair(server, index, range(0, 3_000, 120))
    assert (found.changed, found.is_settled, 25 < found.documents < 200) == (0, True, True)
    assert len(sent) <= 30, sent


def count_repair(server, index, numbers):
    """Return what a repair finds, and the requests that it sends."""
    sent = []
    with make_client(server, **{"timeout" if server.product == "opensearch" else "request_timeout": 120}) as client:
        perform = client.transport.perform_request

        def count(method, url, *arguments, **options):
            sent.append(f"{method} {url}")
            return perform(method, url, *arguments, **options)

        client.transport.perform_request = count
        return repair(SimHashClient(client), index, list(map(str, numbers))), sent


def test_a_repair_asks_together_where_scripts_are_refused(server, index, sync_simhash, monkeypatch):
    """Each lookup had a search of its own there."""
    monkeypatch.setattr(neighbourhood, "IN_MEMORY", 0)
    sync_simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    sync_simhash.reconcile(index, max_distance=12, verify=False)
    list(sync_simhash.ingest(index, [{"_id": str(number), "body": text} for number, text in enumerate(texts(60))]))
    found, sent = count_repair(server, index, range(60))
    assert (found.changed, found.is_settled, found.documents) == (0, True, 60)
    assert len(sent) <= 30, sent


def test_since_follows_ids_that_occur_twice(server, index, simhash):
    """A change of one document leaves another of its id, in another index, in the group it belongs to."""
    near, far = texts(1)[0], texts(1, seed=2)[0]
    for name, documents in (("a", []), ("b", [{"_id": "a", "body": near}, {"_id": "x", "body": near}])):
        simhash.create_index(f"{index}-{name}", text_field="body", settings=ONE_SHARD)
        list(simhash.ingest(f"{index}-{name}", documents, max_distance=3))
    names = f"{index}-*"
    simhash.reconcile(names, max_distance=3)
    moment = datetime.now(UTC)
    list(simhash.ingest(f"{index}-a", [{"_id": "x", "body": far}]))
    assert simhash.reconcile(names, since=moment).changed == 0
    assert stored_groups(read_all(server, f"{index}-b")) == {"a": "a", "x": "a"}
    assert simhash.reconcile(names, dry_run=True).changed == 0


def test_since_finds_a_canonical_that_was_written_anew(server, index, simhash):
    """Written without its group, it is no canonical: its members are grouped again."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    list(simhash.ingest(index, [{"_id": each, "body": texts(1)[0]} for each in "abc"], max_distance=3))
    moment = datetime.now(UTC)
    list(simhash.ingest(index, [{"_id": "a", "body": texts(1, seed=2)[0]}], on_duplicate=None))
    assert simhash.reconcile(index, since=moment).changed == 3
    assert stored_groups(read_all(server, index)) == {"a": "a", "b": "b", "c": "b"}
    assert simhash.reconcile(index, dry_run=True).changed == 0


@ON_BOTH
def test_pairs_within_and_between(server, index, simhash):
    """Every pair once; between two indices, from one to the other."""
    found = texts(120)
    prints = [fingerprint(text) for text in found]
    for name, part in (("a", range(60)), ("b", range(60, 120))):
        simhash.create_index(f"{index}-{name}", text_field="body", settings=ONE_SHARD)
        documents = numbered(found)
        list(simhash.ingest(f"{index}-{name}", [documents[n] for n in part], on_duplicate=None))
        server.request("POST", f"/{index}-{name}/_refresh")
    near = {(a, b): (prints[a] ^ prints[b]).bit_count() for b in range(120) for a in range(b)}
    near = {pair: distance for pair, distance in near.items() if distance <= 8}
    inside = list(simhash.pairs(f"{index}-a", max_distance=8))
    told = {tuple(sorted((int(pair.id), int(pair.other_id)))): pair.distance for pair in inside}
    assert told == {pair: distance for pair, distance in near.items() if pair[1] < 60}
    assert len(told) == len(inside)
    between = list(simhash.pairs(f"{index}-b", f"{index}-a", max_distance=8))
    told = {(int(pair.other_id), int(pair.id)): pair.distance for pair in between}
    assert told == {pair: distance for pair, distance in near.items() if pair[0] < 60 <= pair[1]}
    assert {(pair.index, pair.other_index) for pair in between} == {(f"{index}-b", f"{index}-a")}
    assert len(list(simhash.pairs(f"{index}-a", f"{index}-*", max_distance=8))) >= len(inside)
    simhash.create_index(f"{index}-empty", text_field="body", settings=ONE_SHARD)
    for names in ((f"{index}-empty", f"{index}-a"), (f"{index}-a", f"{index}-empty")):
        assert list(simhash.pairs(*names, max_distance=8)) == []


def test_an_index_that_a_rollover_makes_meanwhile(server, index, sync_simhash, monkeypatch):
    """Its documents are read by the text fields of the index before it, and grouped with the others."""
    old, new, alias = f"{index}-000001", f"{index}-000002", f"{index}-all"
    text = " ".join(f"word{n}" for n in range(40))
    for name, id_ in ((old, "a"), (new, "b")):
        sync_simhash.create_index(name, text_field="body", settings=ONE_SHARD)
        assert len(list(sync_simhash.ingest(name, [{"_id": id_, "body": text}], canonical="longest", verify=0.8))) == 1
    server.request("PUT", f"/{old}/_alias/{alias}", {"is_write_index": True})

    async def roll_over(port, names):
        server.request("PUT", f"/{new}/_alias/{alias}", {"is_write_index": False})
        await refresh(port, names)

    refresh = reconcile.refresh
    monkeypatch.setattr(reconcile, "refresh", roll_over)
    assert sync_simhash.reconcile(alias).documents == 2
    monkeypatch.undo()
    assert stored_groups(read_all(server, alias)) == {"a": "a", "b": "a"}


@pytest.mark.parametrize(("kind", "canonical", "stays"), [("date", "at", "a"), ("date_nanos", "-at", "d")])
@ON_BOTH
def test_dates_count_to_the_millisecond_and_then_the_id(server, index, simhash, kind, canonical, stays):
    """For the order, and for the span of ``within``: at ingest, for groups, and in a dry run."""
    simhash.create_index(index, text_field="body", mappings={"properties": {"at": {"type": kind}}})
    digits = {"b": "123000001", "a": "123000999", "e": "124999999", "d": "124000000"}
    documents = [{"_id": id_, "body": texts(1)[0], "at": f"2026-01-01T00:00:00.{at}Z"} for id_, at in digits.items()]
    rule = {"canonical": canonical, "within": ("at", "1ms")}
    reports = list(simhash.ingest(index, documents, **rule))
    assert [each.canonical for each in reports] == [*"bbbb"]
    assert simhash.reconcile(index, dry_run=True).changed == 4
    simhash.reconcile(index)
    assert stored_groups(read_all(server, index)) == dict.fromkeys("abde", stays)
    assert simhash.reconcile(index, dry_run=True).changed == 0


@ON_BOTH
def test_what_has_no_readable_fingerprint_is_counted_and_named(server, index, simhash, caplog):
    """Left out of the rule until setup mends it; of a group that is shown, too."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    text = texts(1)[0]
    list(simhash.ingest(index, [{"_id": id_, "body": text} for id_ in "abc"]))
    broken = {"simhash": {"fingerprint": "zz"}}
    send_lines(server, [{"update": {"_index": index, "_id": "b"}}, {"doc": broken}])
    report = simhash.reconcile(index)
    assert (report.documents, report.unreadable, report.first_unreadable) == (2, 1, f"{index}/b")
    [group] = simhash.groups(index)
    assert ([each.id for each in group.members], group.unreadable) == (["a", "c"], ("b",))
    assert "b: no readable fingerprint" in group._repr_html_()
    assert [(pair.id, pair.other_id) for pair in simhash.pairs(index)] == [("a", "c")]
    assert f"1 document left out: no readable fingerprint, as {index}/b: run setup" in caplog.text
    plan = simhash.plan_removal(index)
    assert (plan.count, plan.left_out) == (1, {"no_fingerprint": 1})
