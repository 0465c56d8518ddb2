"""Fingerprints for documents that are there already, on real servers."""

import pytest

from es_simhash import MappingError, build_mapping
from es_simhash.mapping.meta import marker_name, read_settings
from tests.servers.support import ON_BOTH, assert_all_right, numbered, open_contexts, put, read_all, texts

SHARDS = {"number_of_shards": 3, "number_of_replicas": 0}


@ON_BOTH
def test_an_index_without_our_fields(server, index, simhash, pages):
    """The fields are added, every slice is read, the user's own fields stay, and the second run writes nothing."""
    server.request("PUT", f"/{index}", {"settings": SHARDS})
    documents = [*numbered(texts(120)), {"_id": "blank", "body": "…"}]
    put(server, index, documents)
    with pytest.raises(MappingError):
        list(simhash.backfill(index))
    shown = list(simhash.backfill(index, text_field="body", dry_run=True))[-1]
    assert (shown.total, shown.seen, shown.changed) == (121, 121, 120)
    assert all("simhash" not in source for source in read_all(server, index).values())
    pages(20)
    reports = list(simhash.backfill(index, text_field="body", slices=3))
    last = reports[-1]
    assert (last.total, last.seen, last.changed, last.stale, last.failed) == (121, 121, 120, 0, 0)
    assert last.is_done
    found = read_all(server, index)
    assert_all_right(found)
    assert [found[f"{n:05d}"]["n"] for n in range(120)] == list(range(120))
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
