"""Indices that were shrunk, on real servers: in one shard, several documents have one sequence number."""

import random

import pytest

from es_simhash import fingerprint_fields
from tests.folding.test_search_server import read_pages
from tests.servers.batches import ingest_in_batches
from tests.servers.support import (
    assert_all_right,
    expected_groups,
    numbered,
    put,
    random_texts,
    read_all,
    resize,
    send_lines,
    stored_groups,
    texts,
)

SHARDS = {"number_of_shards": 8, "number_of_replicas": 0}


@pytest.mark.parametrize(("kind", "shards", "batch"), [("shrink", 1, 1), ("shrink", 1, 500), ("split", 16, 7)])
def test_follow(server, index, sync_simhash, pages, kind, shards, batch):
    """Every document gets its fingerprint and its group, however small the pages."""
    pages(batch)
    source = f"{index}-source"
    sync_simhash.create_index(source, text_field="body", settings=SHARDS, max_distance=12)
    put(server, source, numbered(texts(40)))
    sync_simhash.reconcile(source, max_distance=12, verify=False)
    resize(server, source, index, shards, kind=kind)
    *_, done = sync_simhash.follow(index, once=True, state_index=f"{index}-state")
    # Groups of all documents are decided at once, and what that wrote is read again.
    assert (done.read, done.written, done.failed) == (80, 40, 0)
    documents = read_all(server, index)
    assert_all_right(documents)
    assert stored_groups(documents) == expected_groups(documents, 12)


def test_documents_that_went_before_it_was_shrunk(server, index, sync_simhash):
    """Other documents have their numbers, but the groups that lost their canonical are decided."""
    source = f"{index}-source"
    sync_simhash.create_index(source, text_field="body", settings=SHARDS, max_distance=12)
    found = numbered(texts(40))
    put(server, source, found)
    list(sync_simhash.backfill(source))
    sync_simhash.reconcile(source, max_distance=12, verify=False)
    groups = stored_groups(read_all(server, source))
    gone = next(group for id_, group in groups.items() if id_ != group)
    send_lines(server, [{"delete": {"_index": source, "_id": gone}}])
    resize(server, source, index, 1)
    list(sync_simhash.follow(index, once=True, state_index=f"{index}-state"))
    documents = read_all(server, index)
    assert stored_groups(documents) == expected_groups(documents, 12)


def test_a_table_in_memory(server, index, client, call, sync_simhash):
    """It has the fingerprint of each document, also after writes by others."""
    source, own = f"{index}-source", random_texts(40, seed=1)
    sync_simhash.create_index(source, text_field="body", settings=SHARDS, max_distance=3)
    list(sync_simhash.ingest(source, numbered(own), max_distance=3, verify=False))
    resize(server, source, index, 1)
    options = {"batch": 5, "max_distance": 3, "lookups": "memory"}
    for number in range(2):
        given = [{"_id": f"{number}{n}", "body": text} for n, text in enumerate(own)]
        reports = ingest_in_batches(client, call, index, given, **options)
        assert [each.canonical for each in reports] == [f"{n:05d}" for n in range(40)]


def test_pages_of_a_distinct_search(server, index, simhash, sync_simhash):
    """Hits with the same values, and one number, are shown once each, in pages of any size."""
    chance, source = random.Random(8), f"{index}-source"
    sync_simhash.create_index(source, text_field="body", settings=SHARDS)
    list(sync_simhash.ingest(source, [{"_id": "first", "body": "records the grouping"}]))
    marks = [fingerprint_fields(chance.getrandbits(64))["simhash"] | {"group": f"g{n}"} for n in range(20)]
    put(server, source, [{"_id": f"{copy}-{n}", "simhash": mark} for copy in "ab" for n, mark in enumerate(marks)])
    resize(server, source, index, 1)
    for size in (1, 7):
        pages = read_pages(simhash, index, {"query": {"prefix": {"simhash.group": "g"}}}, size=size)
        shown = [hit.id[2:] for page in pages for hit in page]
        assert sorted(shown, key=int) == [str(n) for n in range(20)]
