"""Many lookups with fingerprints in memory, on real servers: they find what asking the server for each finds."""

import random

import pytest

from es_simhash import NearDups, build_mapping, fingerprint_fields
from es_simhash.lookup import index_table as reading, lookup_options as request
from es_simhash.lookup.lookup_options import Sizes
from es_simhash.mapping.context import IndexStats
from tests.servers.support import ON_BOTH, ONE_SHARD, fill, open_contexts, planted, send_lines, truth

# The smallest and the largest of 64 bits too, whatever their sign.
STORED = [*planted(250), 0, 1, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1]
ASKED = [*random.Random(4).sample(STORED, 20), 0, None, 2**64, STORED[0], *(each ^ 0b1011 for each in STORED[::17])]


def answers(simhash, index, given, **options):
    """Return what each answer says, apart from the way that it was found."""
    found = simhash.find_near_dups_many(index, **given, **options)
    return [
        (each.items, [one.source for one in each], each.complete, each.scheme, each.max_distance, each.unverified)
        if isinstance(each, NearDups)
        else repr(each)
        for each in found
    ]


def assert_equal(simhash, index, given, **options):
    """Check that both ways give the same answers, and return these."""
    simhash._context.stats.learn(index, IndexStats(1_000_000))  # a small index would be scanned
    memory, server = (answers(simhash, index, given, **options, lookups=way) for way in ("memory", "server"))
    assert memory == server
    return memory


@pytest.mark.parametrize("max_distance", [3, 12])
def test_memory_finds_what_the_server_finds(server, index, simhash, monkeypatch, max_distance):
    """Over two indices and several shards, in ranges that do not fit on a page, with all options of a lookup."""
    monkeypatch.setattr(reading, "PAGE", 32)
    for number, name in enumerate((f"{index}-a", f"{index}-b")):
        simhash.create_index(name, text_field="body", settings={**ONE_SHARD, "number_of_shards": 2 - number})
        fill(server, name, STORED[number::2], lang="en" if number else "zh")
    both, given = f"{index}-a,{index}-b", {"fingerprints": ASKED}
    found = assert_equal(simhash, both, given, max_distance=max_distance)
    assert [len(each[0]) for each in found[:20]] == [len(truth(STORED, each, max_distance)) for each in ASKED[:20]]
    options = {"filter": {"term": {"lang.keyword": "zh"}}, "source": ["n"], "exclude_ids": ["00001", "00100"]}
    assert_equal(simhash, f"{index}-*", given, max_distance=max_distance, **options)
    assert open_contexts(server, index) == 0


@ON_BOTH
def test_where_expensive_queries_are_forbidden(server, index, simhash, monkeypatch):
    """Ranges of a keyword are among them: the table is read by numbers of operations."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    fill(server, index, STORED)
    monkeypatch.setattr(reading, "PAGE", 32)
    server.request("PUT", "/_cluster/settings", {"transient": {"search.allow_expensive_queries": False}})
    try:
        assert_equal(simhash, index, {"fingerprints": ASKED * 3}, max_distance=3)
    finally:
        server.request("PUT", "/_cluster/settings", {"transient": {"search.allow_expensive_queries": None}})
    assert open_contexts(server, index) == 0


def test_routing_restricts_the_reading(server, index, simhash):
    """Only the shard of that routing value is read and searched."""
    simhash.create_index(index, settings={**ONE_SHARD, "number_of_shards": 3})
    lines = []
    for number, each in enumerate(STORED):
        lines += [{"index": {"_index": index, "routing": f"r{number % 5}"}}, fingerprint_fields(each)]
    send_lines(server, lines)
    found = assert_equal(simhash, index, {"fingerprints": ASKED}, max_distance=8, routing="r1")
    assert {one.routing for each in found if len(each) == 6 for one in each[0]} >= {"r1"}


def test_more_documents_than_a_page(server, index, simhash):
    """
    A fingerprint that very many documents have: all are returned, beyond the result window of 10,000. The server is
    asked for it, and the others stay in memory.
    """
    simhash.create_index(index, settings=ONE_SHARD)
    fill(server, index, [0xF0F0] * 10_050 + STORED)
    found = assert_equal(simhash, index, {"fingerprints": [0xF0F0, *STORED[:20]]}, max_distance=3)
    assert len(found[0][0]) == len({each.id for each in found[0][0]}) == 10_050
    assert len(simhash.find_near_dups(index, fingerprint=0xF0F0, size=5)) == 5
    assert open_contexts(server, index) == 0


@ON_BOTH
def test_an_index_that_is_made_anew(server, index, sync_simhash):
    """Between two batches: the point in time is of the former index; the same documents are found in the new one."""
    asked = [each ^ 1 for each in STORED] * 12
    size = Sizes().batch_in_memory

    def make():
        server.remove(index)
        sync_simhash.create_index(index, settings=ONE_SHARD)
        fill(server, index, STORED)

    make()
    found = sync_simhash.stream_near_dups_many(index, fingerprints=asked, max_distance=3, lookups="memory")
    first = [next(found) for _ in range(size)]
    make()
    every = [*first, *found]
    assert len(every) == len(asked) > size
    wanted = [truth(STORED, one, 3) for one in asked[: len(STORED)]] * 12
    assert [[(near.distance, near.id) for near in each] for each in every] == wanted


def test_fingerprints_that_cannot_be_searched(server, index, simhash, monkeypatch):
    """The server is asked instead, by block terms."""
    monkeypatch.setattr(request, "FEWEST_LOOKUPS", 1)
    monkeypatch.setattr(request, "READ_FINGERPRINT_MS", 0.0)
    mapping = build_mapping()
    mapping["properties"]["simhash"]["properties"]["fingerprint"]["index"] = False
    server.request("PUT", f"/{index}", {"mappings": mapping, "settings": ONE_SHARD})
    fill(server, index, STORED)
    auto, plain = (
        answers(simhash, index, {"fingerprints": ASKED}, lookups=way, max_distance=8) for way in ("auto", "server")
    )
    assert auto == plain
    assert [len(each[0]) for each in plain[:20]] == [len(truth(STORED, each, 8)) for each in ASKED[:20]]
    assert open_contexts(server, index) == 0


@pytest.mark.parametrize("server", ["opensearch"], indirect=True)
def test_a_data_stream(server, index, simhash):
    """It is read over all its indices."""
    template = {"mappings": build_mapping(), "settings": ONE_SHARD}
    template = {"index_patterns": [f"{index}*"], "data_stream": {}, "priority": 500, "template": template}
    server.request("PUT", f"/_index_template/{index}", template)
    try:
        for part in (STORED[:150], STORED[150:]):
            fields = [{"@timestamp": "2026-01-01T00:00:00Z", **fingerprint_fields(each)} for each in part]
            send_lines(server, [line for each in fields for line in ({"create": {"_index": index}}, each)])
            server.request("POST", f"/{index}/_rollover")
        found = assert_equal(simhash, index, {"fingerprints": ASKED}, max_distance=8)
        assert [len(each[0]) for each in found[:20]] == [len(truth(STORED, each, 8)) for each in ASKED[:20]]
    finally:
        server.remove(index)
        server.request("DELETE", f"/_index_template/{index}")
