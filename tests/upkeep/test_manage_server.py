"""Creating, preparing, checking and clearing indices on real servers."""

import pytest

from es_simhash import (
    MappingError,
    SchemeError,
    build_component_template,
    build_index_template,
    build_mapping,
    get_scheme,
)
from es_simhash.mapping.meta import build_settings, is_marked, marker_name, markers_in_use, read_settings
from tests.servers.support import ON_BOTH, ONE_SHARD, read_all

TEXT = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."


def mapping_of(server, index):
    return server.request("GET", f"/{index}/_mapping")[index]["mappings"]


PLAIN = {"_meta": {"owner": "x"}, "properties": {"body": {"type": "text"}}}


def test_what_is_the_callers_own_stays(server, index, simhash):
    """Their mapping and ``_meta`` stand beside ours, whichever came first; saying less takes nothing back."""
    other = f"{index}-other"
    simhash.create_index(index, text_field="body", max_distance=5, mappings=PLAIN, settings=ONE_SHARD)
    server.request("PUT", f"/{other}", {"mappings": PLAIN})
    assert simhash.put_mapping(other, text_field="body", max_distance=5) == [other]
    assert simhash.put_mapping(other) == [other]
    for name in (index, other):
        held = mapping_of(server, name)
        assert (held["properties"]["body"], held["_meta"]["owner"]) == ({"type": "text"}, "x")
        [report] = simhash.check(name)
        assert (report.ready, report.problems, report.max_distance, report.text_fields) == (True, (), 5, ("body",))
        assert report.scheme == str(get_scheme("shingles"))


def test_fields_that_an_index_does_not_have(server, index, simhash):
    """Removing them leaves its mapping as it is, and says so."""
    server.request("PUT", f"/{index}", {"mappings": PLAIN})
    before = server.request("GET", f"/{index}/_mapping")
    for options in ({}, {"groups_only": True}, {"dry_run": True}):
        removed = simhash.remove_fields(index, **options)
        assert (removed.documents, removed.failures, removed.indices) == (0, (), ())
    assert server.request("GET", f"/{index}/_mapping") == before


@ON_BOTH
def test_one_document_that_refuses_its_change_leaves_scripts_on(server, index, simhash, monkeypatch):
    """The others, read after it, have no null in place of our object."""
    monkeypatch.setattr("es_simhash.upkeep.backfill.PAGE_DOCUMENTS", 1)
    simhash.create_index(index, text_field="body", settings=ONE_SHARD, mappings=PLAIN | {"dynamic": False})
    odd = {"_id": "0", "body": TEXT, "unknown": 1}
    list(simhash.ingest(index, [odd, *({"_id": id_, "body": TEXT} for id_ in "1234")]))
    server.request("PUT", f"/{index}/_mapping", {"dynamic": "strict"})
    server.request("POST", f"/{index}/_refresh")
    removed = simhash.remove_fields(index)
    assert (removed.documents, [each.id for each in removed.failures], removed.indices) == (4, ["0"], ())
    held = read_all(server, index)
    expected = {"body": TEXT} if server.product == "opensearch" else {"body": TEXT, "simhash": None}
    assert [held[id_] for id_ in "1234"] == [expected] * 4
    assert held["0"]["simhash"]["fingerprint"]


@ON_BOTH
def test_an_index_that_parses_no_document_is_refused(server, index, simhash):
    """With or without our fields: searches there find nothing, and say that they are complete."""
    plain, document = f"{index}-plain", {"_id": "a", "body": TEXT}
    server.request("PUT", f"/{index}", {"mappings": build_mapping(text_field="body") | {"enabled": False}})
    server.request("PUT", f"/{plain}", {"mappings": {"enabled": False}})
    for call in (
        lambda: simhash.find_near_dups(index, TEXT),
        lambda: list(simhash.ingest(index, [document])),
        lambda: list(simhash.backfill(index)),
        lambda: simhash.reconcile(index),
        lambda: simhash.put_mapping(plain),
        lambda: list(simhash.backfill(plain, text_field="body")),
        lambda: list(simhash.backfill(f"{index}*", text_field="body")),
        lambda: simhash.create_index(f"{index}-new", mappings={"enabled": False}),
    ):
        with pytest.raises(MappingError, match="the whole mapping is not enabled"):
            call()
    [report] = simhash.check(index)
    assert (report.ready, [each.kind for each in report.faults]) == (False, ["not_parsed"])


def test_put_mapping_refuses_another_scheme(index, make_simhash):
    """Bits of two schemes in one field cannot be told apart."""
    make_simhash().create_index(index, scheme="keywords", settings=ONE_SHARD)
    with pytest.raises(MappingError, match=r"keywords-1.*shingles.*second prefix"):
        make_simhash().put_mapping(index, scheme="shingles")


def test_put_mapping_of_several_writes_to_none_if_one_does_not_fit(server, index, simhash):
    """All or nothing."""
    server.request("PUT", f"/{index}-a", {"mappings": PLAIN})
    server.request("PUT", f"/{index}-b", {"mappings": {"properties": {"simhash": {"type": "text"}}}})
    with pytest.raises(MappingError):
        simhash.put_mapping(f"{index}-*")
    assert "simhash" not in mapping_of(server, f"{index}-a")["properties"]


@pytest.mark.parametrize("blocked", "ab")
def test_put_mapping_of_several_says_what_it_changed(server, index, simhash, run, blocked):
    """Where the server refuses one of them: by a note, and on the command line in the message."""
    for name in "ab":
        server.request("PUT", f"/{index}-{name}", {"mappings": PLAIN})
    server.request("PUT", f"/{index}-{blocked}/_settings", {"index.blocks.read_only": True})
    try:
        result = run("create", f"{index}-*", "--existing", "--yes", "--text-field", "body")
        with pytest.raises(Exception, match="cluster_block_exception") as raised:
            simhash.put_mapping(f"{index}-*", text_field="body")
    finally:
        server.request("PUT", f"/{index}-{blocked}/_settings", {"index.blocks.read_only": None})
    assert raised.value.__notes__ == [f"the mappings changed before this: {f'{index}-a' if blocked == 'b' else 'none'}"]
    assert result.exit_code == 1
    assert raised.value.__notes__[0] in result.stderr
    assert "simhash" not in mapping_of(server, f"{index}-b")["properties"]
    assert ("simhash" in mapping_of(server, f"{index}-a")["properties"]) == (blocked == "b")


@ON_BOTH
def test_remove_takes_our_fields_out_and_leaves_the_rest(server, index, simhash):
    """Documents, the user's ``_meta`` and their fields stay; nothing is found any more."""
    simhash.create_index(index, text_field="body", mappings={"_meta": {"owner": "x"}}, settings=ONE_SHARD)
    list(simhash.ingest(index, [{"_id": str(n), "n": n, "body": TEXT} for n in range(9)]))
    removal = simhash.remove_fields(index)
    assert (removal.documents, removal.failures, removal.indices) == (9, (), (index,))
    source = server.request("GET", f"/{index}/_doc/7")["_source"]
    assert source.pop("simhash", None) is None
    assert source == {"n": 7, "body": TEXT}
    assert mapping_of(server, index)["_meta"] == {"owner": "x"}
    query = {"query": {"exists": {"field": "simhash"}}}
    assert server.request("POST", f"/{index}/_count", query)["count"] == 0
    with pytest.raises(MappingError):
        simhash.find_near_dups(index, TEXT)
    assert simhash.put_mapping(index, text_field="body") == [index]


@pytest.fixture
def template(server, index):
    """A template that gives *index*, and nothing else, our fields with the scheme shingles and max_distance 5."""
    component = build_component_template(scheme="shingles", text_field="body", max_distance=5)
    server.request("PUT", f"/_component_template/{index}", component)
    server.request("PUT", f"/_index_template/{index}", build_index_template([index], component=index, priority=9001))
    yield
    server.request("DELETE", f"/_index_template/{index}")
    server.request("DELETE", f"/_component_template/{index}")


def fill(server, simhash, index):
    list(simhash.ingest(index, [{"_id": "1", "body": TEXT}], on_duplicate=None))
    server.request("POST", f"/{index}/_refresh")


@pytest.mark.usefixtures("template")
@pytest.mark.parametrize(("scheme", "value"), [("keywords", True), ("shingles", False)])
def test_create_outdoes_a_template(server, index, make_simhash, scheme, value):
    """A client that remembers the template's settings notices that the index was created again with others."""
    stale, creator = make_simhash(), make_simhash()
    server.request("PUT", f"/{index}", {"settings": ONE_SHARD})
    fill(server, stale, index)
    assert [each.id for each in stale.find_near_dups(index, TEXT)] == ["1"]
    server.request("DELETE", f"/{index}")
    settings = creator.create_index(index, scheme=scheme, text_field=["title", "body"], value=value, settings=ONE_SHARD)
    assert read_settings(mapping_of(server, index)) == settings
    assert is_marked(mapping_of(server, index), settings, prefix="simhash")
    assert creator.check(index)[0].faults == ()
    fill(server, creator, index)
    assert [each.id for each in creator.find_near_dups(index, TEXT)] == ["1"]
    for _ in range(2):
        found = stale.find_near_dups(index, TEXT)
        assert ([each.id for each in found], found.scheme) == (["1"], get_scheme(scheme))


@pytest.mark.usefixtures("template")
def test_an_index_with_two_markers(server, index, make_simhash):
    """Check names an index that was created without our method; a new client and put_mapping do not fall for it."""
    stale = make_simhash()
    server.request("PUT", f"/{index}", {"settings": ONE_SHARD})
    fill(server, stale, index)
    stale.find_near_dups(index, TEXT)
    server.request("DELETE", f"/{index}")
    ours = build_mapping(scheme=get_scheme("shingles", size=5), text_field="body", max_distance=5)
    server.request("PUT", f"/{index}", {"settings": ONE_SHARD, "mappings": ours})
    assert len(markers_in_use(mapping_of(server, index), prefix="simhash")) == 2
    fresh = make_simhash()
    fill(server, fresh, index)
    assert [each.id for each in fresh.find_near_dups(index, TEXT)] == ["1"]
    [fault] = fresh.check(index)[0].faults
    assert (fault.kind, fault.found) == ("several_markers", "2")
    fresh.put_mapping(index)
    assert fresh.check(index)[0].faults == ()
    assert [each.id for each in stale.find_near_dups(index, TEXT)] == ["1"]


def fill_up(server, index):
    """Let the mapping of *index* have as many fields as it may."""
    for limit in range(1, 60):
        try:
            server.request("PUT", f"/{index}/_settings", {"index.mapping.total_fields.limit": limit})
            server.request("PUT", f"/{index}/_mapping", {"properties": {"body": {"type": "text"}}})
        except Exception:  # noqa: BLE001, S112 -- the server has more fields than this
            continue
        with pytest.raises(Exception, match="total fields"):
            server.request("PUT", f"/{index}/_mapping", {"properties": {"other": {"type": "text"}}})
        return
    pytest.fail("no limit was found")


@ON_BOTH
def test_remove_where_the_mapping_is_full(server, index, make_simhash):
    """It needs no new field: the old marker is retired, and our entry is gone."""
    simhash, stale = make_simhash(), make_simhash()
    simhash.create_index(index, text_field="body", mappings=PLAIN, settings=ONE_SHARD)
    fill(server, simhash, index)
    assert [each.id for each in stale.find_near_dups(index, TEXT)] == ["1"]
    fill_up(server, index)
    with pytest.raises(Exception, match="total fields") as raised:
        simhash.put_mapping(index, max_distance=9)
    wanted = marker_name(build_settings(text_field="body", max_distance=9))
    assert f"adds simhash.{wanted}:" in raised.value.__notes__[0]
    removal = simhash.remove_fields(index)
    assert (removal.documents, removal.failures, removal.indices) == (1, (), (index,))
    assert read_settings(mapping_of(server, index)) is None
    assert markers_in_use(mapping_of(server, index), prefix="simhash") == []
    with pytest.raises(MappingError):
        stale.find_near_dups(index, TEXT)


@pytest.mark.parametrize("change", [{"name": "words", "version": 1}, {"parameters": {"seed": 7}}], ids=str)
def test_a_recorded_scheme_that_there_is_not(server, index, make_simhash, change):
    """Everything that reads the record refuses it in one sentence, and what the sentence says helps."""
    simhash = make_simhash()
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    list(simhash.ingest(index, [{"_id": "1", "body": TEXT}]))
    meta = mapping_of(server, index)["_meta"]
    meta["es_simhash"]["simhash"]["scheme"] |= change
    server.request("PUT", f"/{index}/_mapping", {"_meta": meta})
    simhash = make_simhash()
    for ask in (
        lambda: simhash.find_near_dups(index, TEXT),
        lambda: list(simhash.ingest(index, [{"_id": "2", "body": TEXT}])),
        lambda: list(simhash.backfill(index)),
        lambda: simhash.setup(index),
    ):
        with pytest.raises(SchemeError, match=r"remove its fields with remove_fields\(index\), then fill others"):
            ask()
    assert "bad_record" in {fault.kind for fault in simhash.check(index)[0].faults}
    simhash.remove_fields(index)
    simhash.setup(index, text_field="body")
    assert [hit.id for hit in simhash.find_near_dups(index, TEXT)] == ["1"]
