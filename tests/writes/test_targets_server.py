"""Writing through an alias or a data stream whose indices, or the next of them, lack our mapping; on real servers."""

import pytest

from es_simhash import MappingError, build_component_template, build_index_template
from tests.servers.support import ON_BOTH, ONE_SHARD, numbered, read_all, texts


def make_alias(server, index, *names):
    """Make the alias *index*-all of *names*; the last one is written to."""
    actions = [{"add": {"index": name, "alias": f"{index}-all", "is_write_index": name == names[-1]}} for name in names]
    server.request("POST", "/_aliases", {"actions": actions})
    return f"{index}-all"


@pytest.fixture
def template(server, index):
    """Return a function that stores our component and an index template for a pattern; both are deleted afterwards."""

    def make(pattern, *, priority=200, **more):
        server.request("PUT", f"/_component_template/{index}-fields", build_component_template(text_field="body"))
        body = build_index_template([pattern], component=f"{index}-fields", priority=priority) | more
        server.request("PUT", f"/_index_template/{index}", body)

    yield make
    server.request("DELETE", f"/_index_template/{index}", missing_ok=True)
    server.request("DELETE", f"/_component_template/{index}-fields", missing_ok=True)


def test_an_index_behind_an_alias_gets_the_mapping_before_it_is_written_to(server, index, simhash):
    """Lookups through the alias find what is in all of its indices."""
    simhash.create_index(f"{index}-old", text_field="body", max_distance=6, settings=ONE_SHARD)
    server.request("PUT", f"/{index}-new", {"settings": ONE_SHARD})
    alias = make_alias(server, index, f"{index}-old", f"{index}-new")
    documents = numbered(texts(3))
    assert all(report.action in ("written", "tagged") for report in simhash.ingest(alias, documents))
    server.request("POST", f"/{index}-new/_refresh")
    assert len(read_all(server, f"{index}-new")) == 3
    assert [report.ready for report in simhash.check(f"{index}-new,{index}-old")] == [True, True]
    assert simhash.find_near_dups(alias, documents[0]["body"])[0].id == "00000"


@ON_BOTH
def test_a_rollover_without_a_template_is_refused(server, index, simhash, template):
    """Before anything is written; with the template it works, also after the rollover."""
    first = f"{index}-000001"
    simhash.create_index(first, text_field="body", settings=ONE_SHARD)
    alias = make_alias(server, index, first)
    documents = numbered(texts(4))
    with pytest.raises(MappingError, match="does not exist"):
        list(simhash.ingest(alias, documents))
    assert read_all(server, first) == {}
    template(f"{index}-0*", template={"settings": ONE_SHARD})
    list(simhash.ingest(alias, documents[:2]))
    server.request("POST", f"/{alias}/_rollover", {})
    list(simhash.ingest(alias, documents[2:]))
    server.request("POST", f"/{index}-000002/_refresh")
    assert sorted(read_all(server, f"{index}-000002")) == ["00002", "00003"]
    found = [simhash.find_near_dups(alias, each["body"], max_distance=0) for each in documents]
    assert all(each["_id"] in {one.id for one in answer} for each, answer in zip(documents, found, strict=True))


@pytest.mark.parametrize("server", ["opensearch"], indirect=True)
def test_a_data_stream_needs_its_template(server, index, simhash, template):
    """The error names the template; the template with our component is accepted."""
    body = {"index_patterns": [f"{index}*"], "data_stream": {}, "priority": 300, "template": {"settings": ONE_SHARD}}
    server.request("PUT", f"/_index_template/{index}", body)
    server.request("PUT", f"/_data_stream/{index}", None)
    simhash.put_mapping(index, text_field="body")
    documents = [{**each, "@timestamp": "2026-01-01", "_op_type": "create"} for each in numbered(texts(3))]
    with pytest.raises(MappingError, match=f"index template '{index}'"):
        list(simhash.ingest(index, documents))
    template(f"{index}*", priority=300, data_stream={}, template={"settings": ONE_SHARD})
    assert all(report.action in ("written", "tagged") for report in simhash.ingest(index, documents))
    server.request("POST", f"/{index}/_rollover", {})
    more = [{**each, "_id": f"more{each['_id']}"} for each in documents]
    list(simhash.ingest(index, more, on_duplicate="tag"))
    server.request("POST", f"/{index}/_refresh")
    assert len(simhash.find_near_dups(index, documents[0]["body"], max_distance=0)) >= 2
    server.remove(index)  # before its template


def test_an_alias_of_one_index_without_a_number_is_written_to(server, index, simhash):
    """Nothing says that it is rolled over."""
    simhash.create_index(f"{index}-one", text_field="body", settings=ONE_SHARD)
    alias = make_alias(server, index, f"{index}-one")
    assert (
        len([each for each in simhash.ingest(alias, numbered(texts(2))) if each.action in ("written", "tagged")]) == 2
    )
