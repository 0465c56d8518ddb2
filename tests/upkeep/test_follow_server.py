"""Following an index, on real servers: what arrives in any way gets its fingerprint and its group."""

import contextlib
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import pytest

from es_simhash import (
    InvalidInputError,
    MappingError,
    SimHashClient,
    WritesRefusedError,
)
from es_simhash.groups import reconcile
from es_simhash.groups.reconcile import read_groups
from es_simhash.mapping.resolve import SettingsChanged
from tests.estates.wire import Wire
from tests.servers.fixtures import client_through, make_client
from tests.servers.support import (
    ON_BOTH,
    ONE_SHARD,
    assert_all_right,
    expected_groups,
    numbered,
    put,
    read_all,
    send_lines,
    stored_groups,
    texts,
)


@pytest.fixture
def state(index):
    """The name of the index of positions, which is deleted with the test's own."""
    return f"{index}-state"


def update(server, index, changes):
    """Change documents as other programs do: partial updates, by id."""
    lines = []
    for id_, doc in changes.items():
        lines += [{"update": {"_index": index, "_id": id_}}, {"doc": doc}]
    send_lines(server, lines)


def last(reports):
    """Return the last report of a follower."""
    return list(reports)[-1]


def make_grouped(server, simhash, index, count):
    """Make an index that records a grouping, and let another program write *count* documents."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    simhash.reconcile(index, max_distance=12, verify=False)
    put(server, index, numbered(texts(count)))


def assert_grouped(server, index):
    """Every document has its fingerprint, and the group of the rule that :func:`make_grouped` records."""
    documents = read_all(server, index)
    assert_all_right(documents)
    assert stored_groups(documents) == expected_groups(documents, 12)


@ON_BOTH
def test_what_arrives_gets_its_fingerprint(server, index, state, simhash, pages):
    """Missing, stale, marked by a pipeline, emptied; hostile texts are reported; then nothing is read again."""
    simhash.create_index(index, text_field="body", settings={"number_of_shards": 3, "number_of_replicas": 0})
    found = texts(60)
    put(server, index, numbered(found))
    done = last(simhash.follow(index, once=True, state_index=state))
    assert (done.state, done.read, done.written, done.stale, done.lag_operations) == ("done", 60, 60, 0, 0)
    assert_all_right(read_all(server, index))
    assert last(simhash.follow(index, once=True, state_index=state)).read == 0  # nor what the follower wrote itself
    changes = {"00001": {"body": found[50]}, "00002": {"body": "…"}, "00003": {"simhash": {"block1": "beef"}}}
    update(server, index, changes)
    marked = {"_id": "00004", "body": found[5], "simhash": {"error": "too_long"}}
    more = [{"_id": "list", "body": found[:2]}, {"_id": "large", "body": found[3] * 3_000}, {"_id": "none", "n": 7}]
    put(server, index, [marked, *more, {"_id": "number", "body": 7}])
    server.request("DELETE", f"/{index}/_doc/00005")
    pages(2)
    reports = list(simhash.follow(index, once=True, state_index=state))
    assert (reports[-1].read, reports[-1].stale, reports[-1].failed) == (8, 3, 1)
    [failure] = [failure for each in reports for failure in each.failures]
    assert (failure.kind, failure.id) == ("unusable", "number")
    documents = read_all(server, index)
    documents.pop("number")
    assert "simhash" not in documents.pop("none")
    documents["list"]["body"] = "\n".join(documents["list"]["body"])
    assert_all_right(documents)


def test_groups_are_those_of_reconcile(server, index, state, simhash):
    """After random edits by others: new texts, copies, changed texts and deletions."""
    chance, found = random.Random(7), texts(60)
    make_grouped(server, simhash, index, 60)
    options = {"once": True, "state_index": state}
    last(simhash.follow(index, **options))
    for number in range(2):
        ids = sorted(read_all(server, index))
        new = [chance.choice([text, chance.choice(found)]) for text in texts(8, seed=number)]
        put(server, index, [{"_id": f"new{number}{n}", "body": text} for n, text in enumerate(new)])
        update(server, index, {id_: {"body": chance.choice(found)} for id_ in chance.sample(ids, 5)})
        send_lines(server, [{"delete": {"_index": index, "_id": id_}} for id_ in chance.sample(ids, 5)])
        done = last(simhash.follow(index, **options))
        assert_grouped(server, index)
        assert simhash.reconcile(index, dry_run=True).changed == 0
        assert done.regrouped > 0


def test_settings_that_change_while_groups_are_decided(index, state, simhash, server, monkeypatch):
    """They are decided anew: a mapping that was remembered, or that could not be read, ends no follower."""
    make_grouped(server, simhash, index, 30)
    changes = [SettingsChanged(index)] * 2

    async def read(*args, **options):
        if changes:
            raise changes.pop()
        return await read_groups(*args, **options)

    monkeypatch.setattr(reconcile, "read_groups", read)
    assert last(simhash.follow(index, once=True, state_index=state)).state == "done"
    assert not changes
    assert simhash.reconcile(index, dry_run=True).changed == 0


def test_another_rule_since_the_last_follower(server, index, state, simhash):
    """All groups are decided anew, and not only those of what changed."""
    make_grouped(server, simhash, index, 40)
    last(simhash.follow(index, once=True, state_index=state))
    path = f"/{index}/_mapping"
    meta = server.request("GET", path)[index]["mappings"]["_meta"]
    meta["es_simhash"]["simhash"]["grouping"]["max_distance"] = 3
    server.request("PUT", path, {"_meta": meta})
    put(server, index, [{"_id": "new", "body": texts(1, seed=9)[0]}])
    last(simhash.follow(index, once=True, state_index=state))
    documents = read_all(server, index)
    assert stored_groups(documents) == expected_groups(documents, 3)


def test_only_deletions_have_the_canonicals_of_all_groups_looked_at(server, index, state, sync_simhash, monkeypatch):
    """A document that is written twice leaves a gap in the numbers, too."""
    looked = []

    async def note(*arguments, may_lack, **options):
        looked.append(may_lack)
        return await reconcile.reconcile(*arguments, may_lack=may_lack, **options)

    make_grouped(server, sync_simhash, index, 20)
    put(server, index, numbered(texts(20)))
    last(sync_simhash.follow(index, once=True, state_index=state))
    monkeypatch.setattr("es_simhash.upkeep.follow.reconcile", note)
    reports = sync_simhash.follow(index, state_index=state, interval=0.01)
    next(report for report in reports if report.state == "waiting")
    for text in texts(2, seed=3):
        update(server, index, {"00001": {"body": text}})
    next(report for report in islice(reports, 100) if report.state == "waiting" and looked)
    send_lines(server, [{"delete": {"_index": index, "_id": "00002"}}])
    done = next(report for report in islice(reports, 100) if report.state == "waiting" and len(looked) > 1)
    reports.close()
    assert looked == [False, True]
    assert done.failed == 0
    assert_grouped(server, index)


def test_the_name_of_a_group_whose_namesake_is_deleted(server, index, state, simhash):
    """Of two canonicals with one id the other has the id as its name then, though no document names the one gone."""
    names = [f"{index}-a", f"{index}-b"]
    for name, seed in zip(names, (1, 2), strict=True):
        simhash.create_index(name, text_field="body", settings=ONE_SHARD)
        put(server, name, [{"_id": id_, "body": texts(1, seed=seed)[0]} for id_ in ("x", f"y{seed}")])
    simhash.setup(names)
    assert read_all(server, names[1])["x"]["simhash"]["group"] == f"{names[1]}/x"
    last(simhash.follow(names, once=True, state_index=state))
    send_lines(server, [{"delete": {"_index": names[0], "_id": "x"}}])
    assert last(simhash.follow(names, once=True, state_index=state)).regrouped == 3
    assert stored_groups(read_all(server, names[0])) == {"y1": "y1"}
    assert stored_groups(read_all(server, names[1])) == {"x": "x", "y2": "x"}
    assert simhash.reconcile(names, dry_run=True).changed == 0


@ON_BOTH
def test_new_and_recreated_indices(server, index, state, sync_simhash):
    """A rollover, which gets our fields too; and an index that was deleted and made again while it was followed."""
    alias = f"{index}-alias"
    sync_simhash.create_index(f"{index}-1", text_field="body", settings=ONE_SHARD)
    server.request("PUT", f"/{index}-1/_alias/{alias}", {"is_write_index": True})
    found = numbered(texts(30))
    put(server, f"{index}-1", found[:10])
    reports = sync_simhash.follow(alias, state_index=state, interval=0.01)
    wait_until_read(reports, 10)
    server.request("PUT", f"/{index}-2", {"settings": ONE_SHARD})
    server.request("PUT", f"/{index}-2/_alias/{alias}", {})
    put(server, f"{index}-2", found[10:20])
    wait_until_read(reports, 20)
    server.request("DELETE", f"/{index}-1")
    server.request("PUT", f"/{index}-1", {"settings": ONE_SHARD, "aliases": {alias: {}}})
    put(server, f"{index}-1", found[20:])
    wait_until_read(reports, 30)
    reports.close()
    documents = read_all(server, alias)
    assert sorted(documents) == [each["_id"] for each in found[10:]]
    assert_all_right(documents)


def wait_until_read(reports, number):
    """Read *reports* until a follower has read *number* documents, and waits."""
    return next(each for each in reports if each.state == "waiting" and each.read >= number)


def test_two_followers_at_once(server, index, state, sync_simhash, pages):
    """They make the index of positions together, and do the same work twice; nothing is left out, nor changed after."""
    make_grouped(server, sync_simhash, index, 60)

    def begin(_):
        together.wait(60)
        with contextlib.closing(make_client(server)) as client:
            return last(SimHashClient(client).follow(index, state_index=state, once=True)).state

    pages(7)
    together = threading.Barrier(3)
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(begin, range(3))) == ["done"] * 3
    last(sync_simhash.follow(index, state_index=state, once=True))
    assert_grouped(server, index)


def test_a_blocked_index_is_waited_for(server, index, state, sync_simhash, impatient):
    """Before what is written, and before groups are; then both are done."""
    make_grouped(server, sync_simhash, index, 20)

    def block(is_blocked):
        server.request("PUT", f"/{index}/_settings", {"index.blocks.write": is_blocked})

    block(True)
    reports = sync_simhash.follow(index, state_index=state, interval=0.01)
    assert next(each for each in reports if each.state == "retrying").errors == {"blocked": 1}
    block(False)
    done = next(each for each in reports if each.state == "waiting" and each.regrouped)
    assert (done.written, done.regrouped) == (20, 20)
    put(server, index, [{"_id": f"later-{each}", "body": text} for each, text in enumerate(texts(5))])
    assert next(each for each in reports if each.state == "grouping").written == 25
    block(True)
    assert next(each for each in reports if each.state == "retrying").errors == {"blocked": 2}
    block(False)
    done = next(each for each in reports if each.state == "waiting")
    reports.close()
    assert (done.regrouped, done.failed) == (25, 0)
    assert_grouped(server, index)


def test_once_a_block_is_said_and_not_waited_for(server, index, state, simhash):
    """As an ingest says it: what blocks the index, and what to do."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    put(server, index, numbered(texts(2)))
    server.request("PUT", f"/{index}/_settings", {"index.blocks.write": True})
    with pytest.raises(WritesRefusedError, match=r"takes no writes now .*: remove the block, or make room") as raised:
        list(simhash.follow(index, once=True, state_index=state))
    assert raised.value.kind == "blocked"
    server.request("PUT", f"/{index}/_settings", {"index.blocks.write": None})
    assert last(simhash.follow(index, once=True, state_index=state)).written == 2


@pytest.mark.parametrize("left", [8, 32, 56])
def test_a_follower_that_ends_at_any_request(server, index, state, sync_simhash, left, pages, impatient):
    """As by a kill: the next one misses nothing, and what it has done itself is no work for a third."""
    make_grouped(server, sync_simhash, index, 30)
    list(sync_simhash.follow(index, state_index=state, once=True))
    update(server, index, {f"{n:05}": {"body": texts(30)[n + 1]} for n in range(0, 30, 3)})
    send_lines(server, [{"delete": {"_index": index, "_id": "00001"}}])
    pages(4)
    with client_through(server, Wire(left=left)) as ending, contextlib.suppress(Exception):
        for report in ending.follow(index, state_index=state, once=True):
            assert report.state != "retrying"
    last(sync_simhash.follow(index, state_index=state, once=True))
    assert_grouped(server, index)
    third = last(sync_simhash.follow(index, state_index=state, once=True))
    assert (third.read, third.written, third.regrouped) == (0, 0, 0)


def test_what_only_the_user_can_change_ends_it(server, index, state, simhash):
    """An index that is missing or has no scheme; a text field that no document can have."""
    with pytest.raises(Exception, match="index_not_found"):
        list(simhash.follow(index, state_index=state))
    server.request("PUT", f"/{index}", {"settings": ONE_SHARD})
    with pytest.raises(MappingError):
        list(simhash.follow(index, state_index=state))
    with pytest.raises(InvalidInputError, match="another cluster"):
        list(simhash.follow(f"far:{index}", state_index=state))
    with pytest.raises(InvalidInputError, match="state index"):
        list(simhash.follow(index, state_index=index))
    put(server, index, numbered(texts(3)))
    assert last(simhash.follow(index, text_field="body", once=True, state_index=state)).written == 3
