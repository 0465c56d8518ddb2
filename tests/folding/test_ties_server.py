"""Pages of a distinct search where hits tie, move, or cannot be told apart, and where a cluster allows little."""

import random

import pytest

from es_simhash import InvalidInputError, fingerprint_fields
from es_simhash.transport.protocol import error_text
from tests.folding.test_search_server import SHARDS, read_pages
from tests.servers.support import ONE_SHARD, WORDS, put


def test_twins_in_two_indices(server, simhash, index, sync_simhash):
    """Copies with the same sequence numbers, two in each group: shown once, however they tie."""
    chance = random.Random(8)
    marks = [fingerprint_fields(chance.getrandbits(64))["simhash"] | {"group": f"g{n}"} for n in range(40)]
    for number in range(2):
        name = f"{index}-{number}"
        sync_simhash.create_index(name, text_field="body", settings=ONE_SHARD)
        list(sync_simhash.ingest(name, [{"_id": f"{number}-first", "body": "records the grouping"}]))
        put(server, name, [{"_id": f"{number}-{n}", "body": "", "simhash": mark} for n, mark in enumerate(marks)])
    query = {"query": {"prefix": {"simhash.group": "g"}}}
    for size in (1, 3):
        pages = read_pages(simhash, f"{index}-*", query, size=size)
        shown = [hit.id[2:] for page in pages for hit in page]
        assert sorted(shown, key=int) == [str(n) for n in range(40)]


def test_a_shown_document_that_moves(server, simhash, index, sync_simhash):
    """The last one of a page goes behind another and into its group: the group comes once more, and is not lost."""
    sync_simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    list(sync_simhash.ingest(index, [{"_id": "first", "body": "records the grouping"}]))
    own = fingerprint_fields(7)["simhash"]
    found = [{"_id": name, "n": n, "simhash": own | {"group": name}} for name, n in (("x", 1), ("y", 2), ("z", 3))]
    put(server, index, found)
    page = simhash.search_distinct(index, {"sort": "n", "query": {"range": {"n": {"gte": 1}}}}, size=1)
    put(server, index, [{"_id": "x", "n": 2, "simhash": own | {"group": "y"}}])
    following = simhash.search_distinct(
        index, {"sort": "n", "query": {"range": {"n": {"gte": 1}}}}, size=9, after=page.after
    )
    assert [each.id for each in following] == ["y", "z"]


def test_values_of_several_kinds(server, simhash, index, sync_simhash):
    """No page goes on behind a missing value there; with one kind for all, each document comes once."""
    for kind in ("integer", "long"):
        name = f"{index}-{kind}"
        sync_simhash.create_index(name, text_field="body", settings=ONE_SHARD)
        server.request("PUT", f"/{name}/_mapping", {"properties": {"n": {"type": kind}}})
        list(sync_simhash.ingest(name, [{"_id": "first", "body": "records the grouping"}]))
        put(server, name, [{"_id": f"{kind}{n}", "body": "", **({"n": n} if n < 3 else {})} for n in range(6)])
    with pytest.raises(InvalidInputError, match="sort by n has several kinds of values .*integer, long.*numeric_type"):
        simhash.search_distinct(f"{index}-*", {"sort": "n"})
    pages = read_pages(simhash, f"{index}-*", {"sort": [{"n": {"order": "asc", "numeric_type": "long"}}]}, size=2)
    shown = [hit.id for page in pages for hit in page]
    assert len(set(shown)) == len(shown) == 13


def test_few_buckets(server, simhash, index, sync_simhash):
    """A cluster that allows few says so at once, by the name of the setting."""
    sync_simhash.create_index(index, text_field="body", settings=SHARDS)
    list(sync_simhash.ingest(index, [{"_id": f"{n}", "body": word * 3} for n, word in enumerate(WORDS)]))
    server.request("POST", f"/{index}/_refresh")
    server.request("PUT", "/_cluster/settings", {"transient": {"search.max_buckets": 5}})
    try:
        with pytest.raises(Exception, match="search_phase_execution_exception") as caught:
            simhash.search_distinct(index, {}, size=len(WORDS), total=True)
        assert "search.max_buckets" in error_text(caught.value)
    finally:
        server.request("PUT", "/_cluster/settings", {"transient": {"search.max_buckets": None}})
