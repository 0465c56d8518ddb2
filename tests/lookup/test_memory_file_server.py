"""The fingerprints that a run leaves in a file, on real servers: the next run reads what is new, and finds all."""

import logging
from dataclasses import replace

import pytest

from es_simhash import InvalidInputError, fingerprint_fields, make_plan
from es_simhash.lookup import from_memory, memory_operations as reading
from es_simhash.lookup.lookup_options import LookupRequest
from es_simhash.lookup.memory_file import Kept
from es_simhash.mapping.meta import read_settings
from tests.servers.batches import ingest_in_batches
from tests.servers.support import ONE_SHARD, document, fill, open_contexts, planted, put, random_texts, send_lines

SHARDS = {"number_of_shards": 2, "number_of_replicas": 0, "refresh_interval": "-1"}
STORED = planted(120)
OWN = random_texts(12, seed=1)
NAMES = [f"n{number}" for number in range(len(OWN))]


@pytest.fixture
def shown(monkeypatch):
    """Return a list to which comes how many fingerprints each search has shown."""
    found = []

    def count(digits):
        found.append(len(digits))
        return read(digits)

    read = reading.read_fingerprints
    monkeypatch.setattr(reading, "read_fingerprints", count)
    return found


@pytest.fixture
def ingest(client, call, tmp_path):
    """Return a function that ingests the texts OWN and returns which were tagged as duplicates of what."""

    def run(index, **options):
        given = [{"_id": name, "body": text} for name, text in zip(NAMES, OWN, strict=True)]
        options = {"lookups": "memory", "memory_file": tmp_path / "file", **options}
        reports = ingest_in_batches(client, call, index, given, batch=5, max_distance=3, **options)
        return {each.id: each.canonical for each in reports if each.action == "tagged"}

    return run


def delete(server, index, ids):
    send_lines(server, [{"delete": {"_index": index, "_id": each}} for each in ids])


def counted(shown):
    total = sum(shown)
    shown.clear()
    return total


def test_the_next_ingest_reads_what_is_new(server, index, simhash, ingest, shown, tmp_path):
    """Whatever was written, changed, deleted and merged meanwhile; ``auto`` begins in memory, as there is a file."""
    simhash.create_index(index, text_field="body", settings=SHARDS)
    fill(server, index, STORED)
    put(server, index, [document("old", OWN[3]), document("gone", OWN[4]), document("changed", OWN[5])])
    first = ingest(index, memory_file=tmp_path / "other")
    delete(server, index, NAMES)
    assert first == {"n3": "old", "n4": "gone", "n5": "changed"}
    counted(shown)
    ingest(index)
    assert counted(shown) >= len(set(STORED)) + 3
    delete(server, index, NAMES)
    put(server, index, [document("new", OWN[6]), document("changed", OWN[7])])
    delete(server, index, ["gone"])
    server.request("POST", f"/{index}/_forcemerge?max_num_segments=1")
    assert ingest(index, lookups="auto") == {"n3": "old", "n6": "new", "n7": "changed"}
    assert counted(shown) < len(STORED) // 2
    again = ingest(index, lookups="auto")  # the same ids: they were tagged before, and nobody wrote meanwhile
    assert again == {"n3": "old", "n6": "new", "n7": "changed"}
    assert counted(shown) < len(STORED) // 2


@pytest.mark.parametrize("change", ["recreated", "history", "emptied", "another index", "cut"])
def test_a_file_that_fits_no_more_is_read_anew(server, index, simhash, ingest, shown, tmp_path, change, caplog):
    """What was near before is not believed, and all that is near now is found."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    fill(server, index, STORED)
    put(server, index, [document("before", OWN[3])])
    ingest(index)
    path, name = tmp_path / "file", index
    if change == "recreated":
        server.remove(index)
        simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    if change == "emptied":
        delete(server, index, ["before", *NAMES, *(f"{number:05d}" for number in range(len(STORED)))])
    if change == "another index":
        name = f"{index}-other"
        simhash.create_index(name, text_field="body", settings=ONE_SHARD)
    if change == "history":
        [answer] = server.request("GET", f"/{index}/_mapping").values()
        file = LookupRequest(memory_file=path).file("simhash", read_settings(answer["mappings"]))
        kept = file.read()
        # As if these numbers were of operations that a stale primary has lost: its file knows none of the documents.
        file.write(Kept(kept.fingerprints[:1], {replace(each, history="h"): n for each, n in kept.certain.items()}))
    if change == "cut":
        path.write_bytes(path.read_bytes()[:-8])
    put(
        server,
        name,
        [document("now", OWN[8]), *(document(f"more{n}", text) for n, text in enumerate(random_texts(20, seed=2)))],
    )
    delete(server, name, NAMES)
    counted(shown)
    caplog.clear()
    with caplog.at_level(logging.INFO, "es_simhash"):
        found = ingest(name)
    expected = {"n8": "now"} | ({"n3": "before"} if change in ("history", "cut") else {})
    assert found == expected
    assert any("memory_file" in each.getMessage() and "anew" in each.getMessage() for each in caplog.records)
    assert open_contexts(server, index) == 0


def test_an_alias_that_rolled_over(server, index, simhash, ingest, shown):
    """Of the indices that the file knows only what is new is read, and the new one whole."""
    first, second, alias = f"{index}-a", f"{index}-b", f"{index}-alias"
    for name in (first, second):
        simhash.create_index(name, text_field="body", settings=SHARDS)
    add = {"add": {"index": first, "alias": alias, "is_write_index": True}}
    server.request("POST", "/_aliases", {"actions": [add]})
    fill(server, first, STORED)
    put(server, first, [document("old", OWN[2])])
    ingest(alias)
    actions = [
        {"add": {"index": first, "alias": alias, "is_write_index": False}},
        {"add": {"index": second, "alias": alias, "is_write_index": True}},
    ]
    server.request("POST", "/_aliases", {"actions": actions})
    put(server, second, [document("rolled", OWN[9])])
    delete(server, first, NAMES)
    counted(shown)
    assert ingest(alias) == {"n2": "old", "n9": "rolled"}
    assert counted(shown) < len(STORED) // 2


def test_lookups_of_many_use_the_file(server, index, simhash, shown, tmp_path):
    """With a filter, after changes, and over two indices: the answers of the server."""
    simhash.create_index(f"{index}-a", text_field="body", settings=SHARDS)
    simhash.create_index(f"{index}-b", text_field="body", settings=ONE_SHARD)
    fill(server, f"{index}-a", STORED, lang="zh")
    fill(server, f"{index}-b", STORED[::3], lang="en")
    wanted, both = [*STORED[::4], 0], f"{index}-a,{index}-b"
    options = {"max_distance": 8, "filter": {"term": {"lang.keyword": "zh"}}, "size": 5}
    path = tmp_path / "file"

    def compared(**more):
        answers = [
            simhash.find_near_dups_many(both, fingerprints=wanted, **options, **each)
            for each in (more, {"lookups": "server"})
        ]
        memory, plain = ([(each.items, each.complete) for each in found] for found in answers)
        assert memory == plain
        return sum(len(each[0]) for each in plain)

    many = compared(lookups="memory", memory_file=path)
    assert counted(shown) >= len(set(STORED))
    before = path.stat().st_ino
    assert compared(memory_file=path) == many
    assert path.stat().st_ino == before  # nothing was new, so nothing was written
    counted(shown)
    delete(server, f"{index}-a", [f"{number:05d}" for number in range(10)])
    fill(server, f"{index}-b", [each ^ 1 << 60 for each in STORED[::12]], lang="zh")
    assert compared(memory_file=path) != many
    assert counted(shown) < len(STORED) // 2
    with pytest.raises(InvalidInputError, match="memory_file"):
        compared(lookups="server", memory_file=path)
    planned = simhash.find_near_dups_many(
        both, fingerprints=wanted[:1], plan=make_plan(8, (2, 2, 2, 2)), memory_file=path
    )
    assert not counted(shown)
    assert planned[0].plan == make_plan(8, (2, 2, 2, 2))
    assert open_contexts(server, index) == 0


@pytest.mark.parametrize("when", ["before", "after"])
def test_documents_that_are_written_again_around_the_point_in_time(server, index, simhash, tmp_path, monkeypatch, when):
    """After the table was read: the fingerprints that the point in time shows are all in it."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    fill(server, index, STORED[60:])
    path, wanted = tmp_path / "file", [each ^ 0b1 for each in STORED[:40]]
    options = {"max_distance": 3, "lookups": "memory", "memory_file": path}
    simhash.find_near_dups_many(index, fingerprints=wanted, **options)
    fill(server, index, STORED)
    open_view = from_memory.open_view

    async def rewrite(*arguments):
        if when == "before":
            fill(server, index, [each ^ 0b100 for each in STORED[:40]])
        view = await open_view(*arguments)
        if when == "after":
            fill(server, index, [each ^ 0b100 for each in STORED[:40]])
        return view

    monkeypatch.setattr(from_memory, "open_view", rewrite)
    found = simhash.find_near_dups_many(index, fingerprints=wanted, **options)
    bits = 2 if when == "before" else 1
    for number, each in enumerate(found):
        assert (f"{number:05d}", bits) in {(one.id, one.distance) for one in each}


def test_a_filtered_alias_uses_all_of_the_file(server, index, simhash, shown, tmp_path):
    """What it hides is in the table, and not in the answers; that is no reason to read all anew."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    fill(server, index, STORED, lang="zh")
    lines = [{"_id": f"e{n}", "lang": "en", **fingerprint_fields(each)} for n, each in enumerate(STORED[:9])]
    put(server, index, lines)
    alias, path = f"{index}-alias", tmp_path / "file"
    add = {"add": {"index": index, "alias": alias, "filter": {"term": {"lang.keyword": "en"}}}}
    server.request("POST", "/_aliases", {"actions": [add]})
    for _ in range(2):
        counted(shown)
        found = simhash.find_near_dups_many(alias, fingerprints=STORED[:9], lookups="memory", memory_file=path)
        plain = simhash.find_near_dups_many(alias, fingerprints=STORED[:9], lookups="server")
        assert [each.items for each in found] == [each.items for each in plain]
        assert all(one.id.startswith("e") for each in found for one in each)
    assert counted(shown) < 9
