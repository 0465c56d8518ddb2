"""Lookups on real servers: their options, limits and pages, ids of any kind, and who is asked about."""

import pytest

from es_simhash import IncompleteSearchError, InvalidInputError, fingerprint_fields
from es_simhash.client.port import finish, port_of
from es_simhash.lookup.find import find
from es_simhash.lookup.lookup_options import LookupOptions, Sizes
from tests.servers.support import ON_BOTH, ONE_SHARD, fill, open_contexts, send_lines

TEXT = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."


@ON_BOTH
def test_a_lowered_limit_is_named(server, index, simhash):
    """Requests ask for what servers allow by default; of less, the server's own words say which setting is too low."""
    simhash.create_index(index, settings={**ONE_SHARD, "max_result_window": 40})
    fill(server, index, [7] * 333)
    with pytest.raises(Exception, match="index.max_result_window"):
        simhash.find_near_dups(index, fingerprint=7)
    with pytest.raises(Exception, match="index.max_result_window"):
        list(simhash.pairs(index))
    simhash.create_index(f"{index}-b", settings=ONE_SHARD)
    with pytest.raises(IncompleteSearchError, match="index.max_result_window"):  # of the shards of one index
        simhash.find_near_dups(f"{index}*", fingerprint=7)
    assert open_contexts(server, index) == 0


@ON_BOTH
def test_long_lists_of_ids(server, index, simhash):
    """Elasticsearch takes 10,000 in one query."""
    simhash.create_index(index, settings=ONE_SHARD)
    fill(server, index, [7] * 5)
    ids = [f"{number:05d}" for number in range(1, 12_000)]
    assert [each.id for each in simhash.find_near_dups(index, fingerprint=7, exclude_ids=ids)] == ["00000"]


@ON_BOTH
def test_many_pages_of_several_indices(server, index, sync_simhash, sync_client):
    """No hit is lost between pages, though shards of different indices have the same number."""
    for part in "abc":
        sync_simhash.create_index(f"{index}-{part}", settings=ONE_SHARD)
        fill(server, f"{index}-{part}", [7] * 100)
    small = Sizes(first_page=40, next_page=40, largest_page=40)
    for size in (None, 140):
        options = LookupOptions(max_distance=3, size=size, sizes=small)
        found = finish(find(port_of(sync_client), f"{index}-*", options, fingerprint=7))
        assert (len({each.key for each in found}), found.candidates, found.complete) == (size or 300, 300, True)
    assert open_contexts(server, index) == 0


def test_filter_exclude_source_and_routing(server, index, simhash):
    """What a search offers beside the lookup."""
    simhash.create_index(index, settings={"number_of_shards": 4, "number_of_replicas": 0})
    lines = []
    for number in range(40):
        routing = "a" if number % 2 else "b"
        lines.append({"index": {"_index": index, "_id": f"{number:02d}", "routing": routing}})
        lines.append({"n": number, "body": "x", **fingerprint_fields(number % 4)})
    send_lines(server, lines)
    recent = {"range": {"n": {"gte": 30}}}
    found = simhash.find_near_dups(index, fingerprint=0, max_distance=1, filter=recent, source=["n"])
    assert {each.source["n"] for each in found} == {30, 32, 33, 34, 36, 37, 38}
    assert all(set(each.source) == {"n"} for each in found)
    found = simhash.find_near_dups(index, fingerprint=0, max_distance=0, filter=[recent], exclude_ids=["32"])
    assert [each.id for each in found] == ["36"]
    found = simhash.find_near_dups(index, fingerprint=0, max_distance=64, routing="a")
    assert {int(each.id) % 2 for each in found} == {1}


def test_a_lookup_beside_an_index_without_our_fields(server, index, make_simhash):
    """A server without scripts refuses the plan in some shards only: those of the other index have nothing to run."""
    make_simhash().create_index(f"{index}-ours", settings=ONE_SHARD)
    server.request("PUT", f"/{index}-theirs", {"settings": {"number_of_shards": 2}})
    server.request("POST", f"/{index}-ours/_refresh")
    assert len(make_simhash().find_near_dups(f"{index}-*", fingerprint=0, max_distance=9)) == 0
    fill(server, f"{index}-ours", [1, 0])
    found = make_simhash().find_near_dups(f"{index}-*", fingerprint=0, max_distance=9)
    assert sorted(each.id for each in found)[:2] == ["00000", "00001"]


def test_two_prefixes_side_by_side(server, index, make_simhash):
    """Title and body, or an old and a new scheme, in one index."""
    make_simhash().create_index(index, settings=ONE_SHARD, text_field="body")
    second = make_simhash(prefix="title_hash", scheme="keywords")
    assert second.put_mapping(index, text_field="title") == [index]
    document = {"_id": "1", "title": "The bridge over the river is approved", "body": TEXT}
    list(make_simhash().ingest(index, [document]))
    [action] = list(second.with_fingerprints(index, [document]))
    send_lines(server, [{"update": {"_index": index, "_id": "1"}}, {"doc": {"title_hash": action["title_hash"]}}])
    assert [each.id for each in second.find_near_dups(index, document["title"])] == ["1"]
    assert [each.id for each in make_simhash().find_near_dups(index, TEXT)] == ["1"]


def test_ids_of_any_kind(server, index, simhash):
    """Slashes, quotes and other scripts in ids."""
    ids = {"a/b c", 'quo"te', "新聞 1", "a?b=c&d", "%2F"}
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    list(simhash.ingest(index, [{"_id": id_, "body": TEXT} for id_ in ids]))
    server.request("POST", f"/{index}/_refresh")
    for id_ in ids:
        assert {each.id for each in simhash.find_near_dups_of(index, id_)} == ids - {id_}
        assert {each.id for each in simhash.find_near_dups(index, TEXT, exclude_ids=[id_])} == ids - {id_}


@pytest.mark.parametrize(
    ("mappings", "routing", "later"),
    [({"_source": {"excludes": ["simhash"]}}, {}, None), ({}, {"routing": "elsewhere"}, None), ({}, {}, 2**64 - 1)],
    ids=["not in _source", "routed", "changed since the refresh"],
)
def test_a_document_whose_stored_terms_are_not_to_be_had(server, index, simhash, mappings, routing, later):
    """The terms lookup by id finds nothing, or other terms than searches do: the answer is whole all the same."""
    settings = {"number_of_shards": 5, "number_of_replicas": 0, "refresh_interval": "-1"}
    simhash.create_index(index, settings=settings, mappings=mappings)
    headers = [{"index": {"_index": index, "_id": str(n), **routing}} for n in range(6)]
    send_lines(server, [line for header in headers for line in (header, fingerprint_fields(7))])
    if later is not None:
        server.request("PUT", f"/{index}/_doc/0", fingerprint_fields(later))
    assert [each.id for each in simhash.find_near_dups_of(index, "0")] == ["1", "2", "3", "4", "5"]


def test_a_document_that_is_not_there_or_has_no_fingerprint(server, index, simhash):
    """Told apart, with what to do."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    list(simhash.ingest(index, [{"_id": "blank", "body": "…"}]))
    server.request("POST", f"/{index}/_refresh")
    with pytest.raises(InvalidInputError, match="no document 'gone'"):
        simhash.find_near_dups_of(index, "gone")
    with pytest.raises(InvalidInputError, match="no fingerprint"):
        simhash.find_near_dups_of(index, "blank")
