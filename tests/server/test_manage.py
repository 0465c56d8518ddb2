"""Creating, preparing, checking and clearing indices on real servers."""

import pytest

from es_simhash import InvalidInputError, MappingError, get_scheme

TEXT = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."
ONE_SHARD = {"number_of_shards": 1, "number_of_replicas": 0}


def mapping_of(server, index):
    return server.request("GET", f"/{index}/_mapping")[index]["mappings"]


def test_create_keeps_what_is_the_callers_own(server, index, simhash):
    """Their mapping, their ``_meta`` and their settings stand beside ours."""
    mappings = {"_meta": {"owner": "search team"}, "properties": {"body": {"type": "text"}}}
    simhash.create_index(index, text_field="body", max_distance=8, mappings=mappings, settings=ONE_SHARD)
    held = mapping_of(server, index)
    assert held["properties"]["body"] == {"type": "text"}
    assert held["_meta"]["owner"] == "search team"
    assert held["_meta"]["es_simhash"]["simhash"]["scheme"]["name"] == get_scheme("shingles").name
    assert held["properties"]["simhash"]["properties"]["block0"]["type"] == "keyword"
    [report] = simhash.check(index)
    assert (report.ready, report.problems, report.max_distance, report.text_fields) == (True, (), 8, ("body",))


def test_create_refuses_a_clash(index, simhash):
    """Before any request."""
    with pytest.raises(InvalidInputError, match="another prefix"):
        simhash.create_index(index, mappings={"properties": {"simhash": {"type": "keyword"}}})


def test_an_index_that_exists_is_not_created_again(index, simhash):
    """The client's own error, unchanged."""
    simhash.create_index(index, settings=ONE_SHARD)
    with pytest.raises(Exception, match="resource_already_exists"):
        simhash.create_index(index)


def test_put_mapping_prepares_an_index_that_exists(server, index, simhash):
    """Their fields and ``_meta`` stay; saying less the second time takes nothing back."""
    server.request(
        "PUT", f"/{index}", {"mappings": {"_meta": {"owner": "x"}, "properties": {"body": {"type": "text"}}}}
    )
    assert simhash.put_mapping(index, text_field="body", max_distance=5) == [index]
    assert simhash.put_mapping(index) == [index]
    held = mapping_of(server, index)
    assert held["_meta"]["owner"] == "x"
    assert held["_meta"]["es_simhash"]["simhash"]["text_fields"] == ["body"]
    assert held["_meta"]["es_simhash"]["simhash"]["max_distance"] == 5
    list(simhash.ingest(index, [{"_id": "1", "body": TEXT}]))
    server.request("POST", f"/{index}/_refresh")
    assert [each.id for each in simhash.find_near_dups(index, TEXT)] == ["1"]


def test_put_mapping_refuses_another_scheme(index, make_simhash):
    """Bits of two schemes in one field cannot be told apart."""
    make_simhash().create_index(index, scheme="words", settings=ONE_SHARD)
    with pytest.raises(MappingError, match=r"words-1.*keywords.*second prefix"):
        make_simhash().put_mapping(index, scheme="keywords")


def test_put_mapping_of_several_writes_to_none_if_one_does_not_fit(server, index, simhash):
    """All or nothing."""
    server.request("PUT", f"/{index}-a", {"mappings": {"properties": {"body": {"type": "text"}}}})
    server.request("PUT", f"/{index}-b", {"mappings": {"properties": {"simhash": {"type": "text"}}}})
    with pytest.raises(MappingError):
        simhash.put_mapping(f"{index}-*")
    assert "simhash" not in mapping_of(server, f"{index}-a")["properties"]


def test_check_counts_what_has_no_fingerprint(server, index, simhash):
    """And says what to do."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    list(simhash.ingest(index, [{"_id": "1", "body": TEXT}]))
    server.request("PUT", f"/{index}/_doc/2?refresh=true", {"body": TEXT})
    [report] = simhash.check(index)
    assert (report.ready, report.documents, report.fingerprinted) == (True, 2, 1)
    assert "backfill" in report.problems[0]


def test_check_of_what_is_not_there(index, simhash):
    """A wildcard that matches nothing is told."""
    with pytest.raises(InvalidInputError, match="no index matches"):
        simhash.check(f"{index}-*")


def test_remove_takes_our_fields_out_and_leaves_the_rest(server, index, simhash):
    """Documents, the user's ``_meta`` and their fields stay; nothing is found any more."""
    simhash.create_index(index, text_field="body", mappings={"_meta": {"owner": "x"}}, settings=ONE_SHARD)
    list(simhash.ingest(index, [{"_id": str(n), "n": n, "body": TEXT} for n in range(50)]))
    removal = simhash.remove(index)
    assert (removal.documents, removal.failures, removal.indices) == (50, (), (index,))
    source = server.request("GET", f"/{index}/_doc/7")["_source"]
    assert source.pop("simhash", None) is None
    assert source == {"n": 7, "body": TEXT}
    assert mapping_of(server, index)["_meta"] == {"owner": "x"}
    query = {"query": {"exists": {"field": "simhash"}}}
    assert server.request("POST", f"/{index}/_count", query)["count"] == 0
    with pytest.raises(MappingError):
        simhash.find_near_dups(index, TEXT)
    assert simhash.put_mapping(index, text_field="body") == [index]
