"""Fingerprints for documents that are there already, on real servers."""

import pytest

from es_simhash import MappingError, build_mapping
from es_simhash.mapping.meta import marker_name, read_settings
from tests.servers.support import (
    ON_BOTH,
    ONE_SHARD,
    assert_all_right,
    numbered,
    open_contexts,
    put,
    read_all,
    send_lines,
    texts,
)

SHARDS = {"number_of_shards": 3, "number_of_replicas": 0}


@ON_BOTH
def test_an_index_without_our_fields(server, index, simhash, pages):
    """The fields are added, every slice is read, the user's own fields stay, and the second run writes nothing."""
    server.request("PUT", f"/{index}", {"settings": SHARDS})
    documents = [*numbered(texts(400)), {"_id": "blank", "body": "…"}]
    put(server, index, documents)
    with pytest.raises(MappingError):
        list(simhash.backfill(index))
    shown = list(simhash.backfill(index, text_field="body", dry_run=True))[-1]
    assert (shown.total, shown.seen, shown.changed) == (401, 401, 400)
    assert all("simhash" not in source for source in read_all(server, index).values())
    pages(50)
    reports = list(simhash.backfill(index, text_field="body", slices=3))
    last = reports[-1]
    assert (last.total, last.seen, last.changed, last.stale, last.failed) == (401, 401, 400, 0, 0)
    assert last.is_done
    found = read_all(server, index)
    assert_all_right(found)
    assert [found[f"{n:05d}"]["n"] for n in range(400)] == list(range(400))
    assert list(simhash.backfill(index))[-1].changed == 0
    assert simhash.find_near_dups(index, documents[0]["body"])[0].id == "00000"
    assert open_contexts(server, index) == 0


def test_the_marker_is_there_afterwards(server, index, simhash):
    """In an index that had no fields, and in one whose mapping never had a marker; a dry run adds none."""
    put(server, index, numbered(texts(2)))
    list(simhash.backfill(index, text_field="body"))
    assert simhash.check(index)[0].faults == ()
    mapping = build_mapping(text_field="body")
    del mapping["properties"]["simhash"]["properties"][marker_name(read_settings(mapping))]
    server.request("DELETE", f"/{index}")
    server.request("PUT", f"/{index}", {"mappings": mapping})
    put(server, index, numbered(texts(2)))
    list(simhash.backfill(index, dry_run=True))
    assert [each.kind for each in simhash.check(index)[0].faults] == ["no_marker", "without_fingerprint"]
    list(simhash.backfill(index))
    server.request("POST", f"/{index}/_refresh")
    assert simhash.check(index)[0].faults == ()


@ON_BOTH
def test_stale_fingerprints_are_found_and_mended(server, index, simhash):
    """After partial updates made elsewhere: text changed, text emptied, fingerprint tampered with, error outlived."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    list(simhash.ingest(index, numbered(texts(60))))
    server.request("POST", f"/{index}/_refresh")
    new = texts(1, seed=8)[0]
    changes = {"00001": {"body": new}, "00002": {"body": "…"}, "00003": {"simhash": {"block1": "beef"}}}
    # A pipeline found the text too long, and somebody emptied it.
    server.request("PUT", f"/{index}/_doc/00004", {"body": "…", "simhash": {"error": "too_long"}})
    lines = []
    for id_, doc in changes.items():
        lines += [{"update": {"_index": index, "_id": id_}}, {"doc": doc}]
    send_lines(server, lines)
    [*_, shown] = simhash.backfill(index, dry_run=True)
    assert (shown.changed, shown.stale) == (4, 3)
    [*_, last] = simhash.backfill(index)
    assert (last.changed, last.stale) == (4, 3)
    assert_all_right(read_all(server, index))
    assert simhash.reconcile(index).failures == ()
