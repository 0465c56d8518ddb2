"""Ingest that only creates documents (``op_type="create"``), and data streams, on real servers."""

import pytest

from es_simhash import InvalidInputError, build_component_template, build_index_template
from tests.estates.wire import Wire
from tests.servers.fixtures import client_through
from tests.servers.support import ONE_SHARD, numbered, put, read_all, texts

ONE = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."
TWO = "Shares fell sharply after the company cut its forecast for the coming year."
THREE = "Heavy rain is expected in the northern valleys until the end of the coming week."


@pytest.mark.parametrize("on_duplicate", [None, "tag"])
@pytest.mark.parametrize("has_ids", [True, False])
def test_a_lost_answer(server, index, sync_simhash, on_duplicate, has_ids):
    """A document that the server created at the first attempt is reported as written, not as refused by itself."""
    sync_simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    faults = ("503 after the work", "lost", "503 for items after the work", "429 for items")
    for number, fault in enumerate(faults):
        wire = Wire(script={("bulk", 0): fault})
        documents = [{"_id": f"{fault} {n}", "body": f"{ONE} {fault} {n}"} for n in range(5)]
        if not has_ids:
            documents = [{"body": each["body"]} for each in documents]
        with client_through(server, wire) as simhash:
            reports = list(simhash.ingest(index, documents, op_type="create", on_duplicate=on_duplicate))
        assert wire.log
        assert len(read_all(server, index)) == 5 * (number + 1), fault
        assert {each.kind for each in reports} == {None}
        # The clients repeat a whole request by themselves: without a moment of grouping nothing tells whose it is.
        is_hidden = fault in ("lost", "503 after the work") and on_duplicate is None and has_ids
        assert ({each.action for each in reports} == {"unchanged"}) == is_hidden, fault


@pytest.mark.parametrize(
    ("faults", "batch", "first"),
    [({}, 1, {}), ({("bulk", 0): "lost"}, 500, {}), ({}, 500, {"_routing": "r"}), ({("bulk", 0): "lost"}, 1, {})],
)
def test_one_document_twice(server, index, faults, batch, first):
    """The second is not taken for an attempt of its own whose answer was lost, whatever batch and routing value."""
    with client_through(server, Wire(script=faults)) as simhash:
        simhash.create_index(index, text_field="body", settings=ONE_SHARD)
        document = {"_id": "a", "body": ONE}
        reports = list(simhash.ingest(index, [document | first, document], op_type="create", batch=batch))
        assert [each.action for each in reports] == ["written", "unchanged"]
        assert list(read_all(server, index)) == ["a"]


def count(server, stream):
    server.request("POST", f"/{stream}/_refresh")
    return server.request("GET", f"/{stream}/_count")["count"]


ON_OPENSEARCH = pytest.mark.parametrize("server", ["opensearch"], indirect=True)


@pytest.fixture
def stream(server, index):
    """The name of a data stream with our fields; it and its templates are deleted afterwards."""
    server.request("PUT", f"/_component_template/{index}-fields", build_component_template(text_field="body"))
    template = build_index_template([f"{index}*"], component=f"{index}-fields", priority=300)
    more = {"data_stream": {}, "template": {"settings": ONE_SHARD}}
    server.request("PUT", f"/_index_template/{index}", template | more)
    server.request("PUT", f"/_data_stream/{index}", None)
    yield index
    for path in (f"_data_stream/{index}", f"_index_template/{index}", f"_component_template/{index}-fields"):
        server.request("DELETE", f"/{path}")


@ON_OPENSEARCH
@pytest.mark.parametrize("on_duplicate", [None, "tag", "skip"])
def test_a_data_stream_that_rolls_over_meanwhile(server, stream, simhash, on_duplicate):
    """Every document is created once, in the backing index of its time, and groups reach over both."""
    documents = [{**each, "@timestamp": f"2026-01-{n + 1:02}"} for n, each in enumerate(numbered(texts(20, edits=0)))]

    def source():
        for n, document in enumerate(documents):
            if n == 12:
                # The source is read ahead: the first batch has to be written before the stream rolls over.
                any(count(server, stream) for _ in range(200))
                server.request("POST", f"/{stream}/_rollover", {})
            yield document

    options = {"op_type": "create", "on_duplicate": on_duplicate, "batch": 4}
    options |= {} if on_duplicate is None else {"max_distance": 0}
    reports = list(simhash.ingest(stream, source(), **options))
    assert [each.kind for each in reports] == [None] * 20
    wanted = len({each["body"] for each in documents}) if on_duplicate == "skip" else 20
    server.request("POST", f"/{stream}/_refresh")
    hits = server.request("POST", f"/{stream}/_search", {"size": 100})["hits"]["hits"]
    assert len(hits) == len({hit["_id"] for hit in hits}) == wanted
    assert len({hit["_index"] for hit in hits}) == 2
    assert {each.index for each in reports if each.action != "skipped"} <= {hit["_index"] for hit in hits}
    if on_duplicate == "tag":
        by_text = {}
        for hit in hits:
            by_text.setdefault(hit["_source"]["body"], set()).add(hit["_source"]["simhash"]["group"])
        assert {len(groups) for groups in by_text.values()} == {1}
        assert simhash.reconcile(stream, dry_run=True).changed == 0


@ON_OPENSEARCH
def test_a_data_stream_takes_documents_without_an_id(stream, simhash):
    """And refuses each that has no moment."""
    documents = [{"@timestamp": "2026-01-01", "body": ONE}, {"body": TWO}]
    reports = list(simhash.ingest(stream, documents, op_type="create"))
    assert [each.kind for each in reports] == [None, "refused"]
    [plain] = simhash.ingest(stream, documents[:1])
    assert plain.kind == "refused"  # a data stream takes no other operation


def test_an_id_of_blanks_is_an_id(server, index, simhash):
    """Servers take it: it is written, found by, left out and explained as any other."""
    simhash.create_index(index, text_field="body", passages=True, settings=ONE_SHARD)
    written = list(simhash.ingest(index, [{"_id": " ", "body": ONE}, {"_id": "b", "body": ONE}]))
    assert [(each.id, each.action) for each in written] == [(" ", "written"), ("b", "tagged")]
    server.request("POST", f"/{index}/_refresh")
    for found in (simhash.find_near_dups_of(index, " "), simhash.find_passages_of(index, " ")):
        assert [each.id for each in found] == ["b"]
    for found in (
        simhash.find_near_dups(index, ONE, exclude_ids=[" "]),
        simhash.find_passages(index, ONE, exclude_ids=[" "]),
    ):
        assert [each.id for each in found] == ["b"]
    assert simhash.explain(index, " ", "b").similarity == 1
    assert [each.id for each in simhash.tag_written(index, [" "])] == [" "]
    with pytest.raises(InvalidInputError, match="'' is empty"):
        simhash.find_near_dups_of(index, "")


@pytest.mark.parametrize(("field", "real"), [("text", "body"), ("all", "body"), ("body.words", "body")])
def test_a_field_that_no_document_holds_is_told_with_the_real_one(server, index, simhash, field, real):
    """An alias, a field that the server copies others into, a multi-field; before anything is done."""
    body = {"type": "text", "copy_to": "all", "fields": {"words": {"type": "text"}}}
    properties = {"body": body, "text": {"type": "alias", "path": "body"}, "all": {"type": "text"}}
    server.request("PUT", f"/{index}", {"settings": ONE_SHARD, "mappings": {"properties": properties}})
    put(server, index, [{"_id": "1", "body": "The council approved the new bridge."}])
    said = f"{field}' is filled by index .* from {real}, and no document holds it: name {real}"
    for refused in (simhash.put_mapping, simhash.setup, simhash.tune):
        with pytest.raises(InvalidInputError, match=said):
            refused(index, text_field=field)
    with pytest.raises(InvalidInputError, match=said):
        list(simhash.backfill(index, text_field=field))
    with pytest.raises(InvalidInputError, match=said):
        simhash.create_index(f"{index}-new", text_field=field, mappings={"properties": properties})
    simhash.put_mapping(index, text_field=())
    with pytest.raises(InvalidInputError, match=said):
        list(simhash.ingest(index, [{"body": "x"}], text_field=field))
    with pytest.raises(InvalidInputError, match=said):
        list(simhash.screen(index, [{"body": "x"}], text_field=field))
