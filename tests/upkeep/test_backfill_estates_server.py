"""Backfill where indices differ, documents were written by others, or the mapping came late; on real servers."""

import pytest

from es_simhash import InvalidInputError, MappingError, build_mapping, fingerprint, fingerprint_fields
from tests.servers.support import ON_BOTH, ONE_SHARD, assert_all_right, numbered, put, read_all, texts


def meta(server, index):
    """Return what the mapping of *index* records of our fields."""
    return server.request("GET", f"/{index}/_mapping")[index]["mappings"]["_meta"]["es_simhash"]["simhash"]


def mapped(**changes):
    """Return the body of an index whose mapping records *changes* of our settings."""
    mapping = build_mapping(text_field="body")
    mapping["_meta"]["es_simhash"]["simhash"] |= changes
    return {"mappings": mapping, "settings": ONE_SHARD}


def test_each_index_goes_by_its_own_settings(server, index, simhash):
    """Other text fields, and with and without the copy for scripts, behind one pattern."""
    server.request("PUT", f"/{index}-a", mapped())
    server.request("PUT", f"/{index}-b", mapped(text_fields=["headline"], value=False))
    first, second = numbered(texts(5)), texts(5, seed=3)
    put(server, f"{index}-a", [{**each, "headline": "not the text"} for each in first])
    stale = {"fingerprint": "0" * 16, "value": "7"}
    put(server, f"{index}-b", [{"_id": f"b{n}", "headline": text, "simhash": stale} for n, text in enumerate(second)])
    [*_, last] = simhash.backfill(f"{index}-*")
    assert (last.changed, last.empty, last.failed) == (10, 0, 0)
    assert_all_right(read_all(server, f"{index}-a"))
    for n, text in enumerate(second):
        fields = read_all(server, f"{index}-b")[f"b{n}"]["simhash"]
        assert fields.pop("value") is None
        assert fields == fingerprint_fields(fingerprint(text), value=False)["simhash"]
    assert list(simhash.backfill(f"{index}-*"))[-1].changed == 0
    with pytest.raises(InvalidInputError, match=f"{index}-b"):
        list(simhash.backfill(f"{index}-*", text_field="body"))


def test_an_index_that_came_later_gets_the_settings_of_those_beside_it(server, index, simhash):
    """The fields are mapped before anything is written, with scheme, distance and text field of the others."""
    server.request("PUT", f"/{index}-a", mapped(max_distance=7))
    server.request("PUT", f"/{index}-b", {"settings": ONE_SHARD})
    put(server, f"{index}-a", numbered(texts(4)))
    put(server, f"{index}-b", numbered(texts(4, seed=5)))
    assert list(simhash.backfill(f"{index}-*"))[-1].changed == 8
    assert meta(server, f"{index}-b") == meta(server, f"{index}-a")
    assert len(simhash.find_near_dups(f"{index}-*", texts(1, seed=5)[0])) >= 1


def test_a_field_that_no_document_has_is_refused_and_not_recorded(server, index, simhash):
    """Neither by the mapping, nor by what a mapped field turns out to hold."""
    server.request(
        "PUT", f"/{index}", {"settings": ONE_SHARD, "mappings": {"properties": {"abstract": {"type": "text"}}}}
    )
    put(server, index, numbered(texts(3)))
    for field, advice in (("boddy", "check the name"), ("body.keyword", "name body"), ("abstract", "check the name")):
        for dry_run in (True, False):
            with pytest.raises(InvalidInputError, match=advice):
                list(simhash.backfill(index, text_field=field, dry_run=dry_run))
    assert list(simhash.backfill(index, text_field="body"))[-1].changed == 3
    assert meta(server, index)["text_fields"] == ["body"]
    with pytest.raises(InvalidInputError, match="differs"):
        list(simhash.backfill(index, text_field="abstract"))


def flows(simhash, index, path):
    """Return all that reads documents and writes them again."""
    return (
        lambda: list(simhash.backfill(index)),
        lambda: list(simhash.follow(index, once=True)),
        lambda: simhash.remove_fields(index),
        lambda: simhash.reconcile(index),
        lambda: simhash.plan_removal(index, path),
    )


@pytest.mark.parametrize("source", [{"excludes": ["body"]}, {"includes": ["n"]}, {"enabled": False}])
def test_an_index_that_keeps_a_part_of_source_is_refused(server, index, simhash, source, tmp_path):
    """An update would lose the postings of the rest; the check names it, and nothing is changed."""
    mapping = build_mapping(text_field="body") | {"_source": source}
    mapping["properties"]["body"] = {"type": "text"}
    server.request("PUT", f"/{index}", {"mappings": mapping, "settings": ONE_SHARD})
    put(server, index, [{**each, "n": 1} for each in numbered(texts(2))])
    for flow in flows(simhash, index, tmp_path / "plan"):
        with pytest.raises(MappingError, match="_source"):
            flow()
    [report] = simhash.check(index)
    assert {fault.kind for fault in report.faults} >= {"no_source" if "enabled" in source else "partial_source"}
    assert server.request("POST", f"/{index}/_count", {"query": {"match": {"body": texts(1)[0]}}})["count"] >= 1


@pytest.mark.parametrize("server", ["elasticsearch"], indirect=True)
def test_a_source_that_a_setting_turns_off_is_refused(server, index, simhash, tmp_path):
    """As one that the mapping turns off; documents without a decision are taken."""
    settings = {**ONE_SHARD, "index.mapping.source.mode": "disabled"}
    simhash.create_index(index, text_field="body", settings=settings)
    documents = numbered(texts(2))
    assert {each.action for each in simhash.ingest(index, documents, on_duplicate=None)} == {"written"}
    for flow in (*flows(simhash, index, tmp_path / "plan"), lambda: list(simhash.ingest(index, documents))):
        with pytest.raises(MappingError, match="_source"):
            flow()
    assert "no_source" in {fault.kind for fault in simhash.check(index)[0].faults}


@ON_BOTH
def test_dotted_spellings_become_one_object(server, index, simhash):
    """Right or stale or of a text without features: one nested object is left, and lookups find it."""
    server.request("PUT", f"/{index}", mapped())
    found = texts(3)

    def dotted(number):
        return {f"simhash.{name}": value for name, value in fingerprint_fields(number)["simhash"].items()}

    documents = [
        {"_id": "right", "body": found[0], **dotted(fingerprint(found[0]))},
        {"_id": "stale", "body": found[1], **dotted(7)},
        {"_id": "both", "body": found[2], **dotted(7), **fingerprint_fields(fingerprint(found[2]))},
        {"_id": "empty", "body": "…", **dotted(7)},
    ]
    put(server, index, documents)
    [*_, last] = simhash.backfill(index)
    assert (last.changed, last.failed) == (4, 0)
    sources = read_all(server, index)
    assert not [key for each in sources.values() for key, value in each.items() if "." in key and value is not None]
    assert_all_right({id_: each for id_, each in sources.items() if id_ != "empty"})
    assert [each.id for each in simhash.find_near_dups(index, fingerprint=7)] == []
    assert {"both", "right", "stale"} == {each.id for each in simhash.find_near_dups(index, found[2], max_distance=64)}
    assert list(simhash.backfill(index))[-1].changed == 0
    assert simhash.remove_fields(index).documents == 3
    assert server.request("POST", f"/{index}/_count", {"query": {"exists": {"field": "simhash"}}})["count"] == 0


@ON_BOTH
def test_what_was_written_before_the_mapping_is_indexed(server, index, simhash):
    """_source has the right fields, but the index has no postings of them."""
    server.request("PUT", f"/{index}", {"mappings": {"dynamic": False}, "settings": ONE_SHARD})
    documents = numbered(texts(4))
    put(server, index, [{**each, **fingerprint_fields(fingerprint(each["body"]))} for each in documents])
    simhash.put_mapping(index, text_field="body")
    asked = [each["body"] for each in documents]
    assert not any(simhash.find_near_dups_many(index, asked, max_distance=3))
    assert list(simhash.backfill(index))[-1].changed == 4
    server.request("POST", f"/{index}/_refresh")
    answers = zip(documents, simhash.find_near_dups_many(index, asked, max_distance=3), strict=True)
    assert all(document["_id"] in [hit.id for hit in hits] for document, hits in answers)
    assert list(simhash.backfill(index))[-1].changed == 0


def test_fingerprints_of_a_text_that_cannot_be_seen_are_kept(server, index, simhash):
    """As for a user from whom field-level security hides the text: it is not in the mapping either."""
    server.request("PUT", f"/{index}", mapped())
    put(server, index, [{"_id": "1", **fingerprint_fields(7)}])
    with pytest.raises(MappingError, match="hidden"):
        list(simhash.backfill(index))
    assert read_all(server, index)["1"] == fingerprint_fields(7)


@ON_BOTH
def test_an_index_without_any_mapping_behind_a_pattern(server, index, simhash, pages):
    """OpenSearch cannot read it in slices; alone, it is a backfill of nothing."""
    server.request("PUT", f"/{index}-empty", {"settings": ONE_SHARD})
    assert list(simhash.backfill(f"{index}-*", text_field="body", slices=2))[-1].total == 0
    put(server, f"{index}-full", numbered(texts(9)))
    pages(2)
    report = list(simhash.backfill(f"{index}-*", text_field="body", slices=2))[-1]
    assert (report.seen, report.changed, report.is_done) == (9, 9, True)
    assert_all_right(read_all(server, f"{index}-full"))


def test_an_unrelated_index_behind_a_pattern_is_left_as_it_is(server, index, simhash):
    """It has no such text, and gets no field of ours."""
    server.request("PUT", f"/{index}-a", mapped())
    put(server, f"{index}-a", numbered(texts(2)))
    put(server, f"{index}-b", [{"_id": "1", "other": 1}])
    assert list(simhash.backfill(f"{index}-*"))[-1].changed == 2
    assert server.request("GET", f"/{index}-b/_mapping")[f"{index}-b"]["mappings"]["properties"].keys() == {"other"}


@pytest.mark.parametrize("source", [{"enabled": False}, {"excludes": ["simhash.group"]}])
def test_an_index_whose_source_hides_groups_takes_documents_without_a_decision(server, index, simhash, source):
    """Whatever would read groups is refused before anything is written; the rest works, and goes on working."""
    mapping = build_mapping(text_field="body") | {"_source": source}
    server.request("PUT", f"/{index}", {"mappings": mapping, "settings": ONE_SHARD})
    documents = [{"_id": id_, "body": texts(1)[0]} for id_ in "ab"]
    for policy in ("tag", "skip"):
        with pytest.raises(MappingError, match="_source"):
            list(simhash.ingest(index, documents, on_duplicate=policy))
    assert "grouping" not in meta(server, index)
    for _ in range(2):
        assert {each.action for each in simhash.ingest(index, documents, on_duplicate=None)} == {"written"}
    server.request("POST", f"/{index}/_refresh")
    assert [each.id for each in simhash.find_near_dups_of(index, "a")] == ["b"]
    assert [each.id for each in simhash.find_near_dups(index, texts(1)[0])] == ["a", "b"]
