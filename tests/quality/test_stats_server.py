"""``stats`` on real servers: every number is the one that reading all documents gives."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from es_simhash import (
    DEFAULT_SCHEME,
    InvalidInputError,
    MappingError,
    NoIndexError,
    SimHashClient,
    fingerprint_fields,
    get_scheme,
)
from es_simhash.quality import read_stats, read_stats as group_sizes
from es_simhash.transport import buckets
from tests.servers.support import put

FIELDS = {"time_field": "published", "source_field": "agency"}
OWN = {"published": {"type": "date"}, "agency": {"type": "keyword"}, "body": {"type": "text"}}
TWO_SHARDS = {"number_of_shards": 2, "number_of_replicas": 0}


def planted(count, *, seed=3):
    """Return documents with fingerprints; some have a group, a source and a date; some groups have no canonical."""
    chance = random.Random(seed)
    documents = [{"_id": "wrong-date", "published": "1970-01-01"}]
    for number in range(count):
        id_ = f"{number:04d}"
        day = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=chance.randrange(60))
        own = {"_id": id_, "body": f"text {number} <script>", "published": day.isoformat()}
        own |= {} if number % 9 == 0 else {"agency": f"agency {number % 7}"}
        if number % 10:
            own |= fingerprint_fields(chance.getrandbits(64))
            group = f"{max(1, number % 40 - chance.randrange(3)):04d}" if number >= 40 else id_
            own["simhash"] |= {"group": group}
            own["simhash"] |= {} if group == id_ else {"duplicate_of": group, "distance": chance.randrange(4)}
        documents.append(own)
    # The canonical of this one was deleted by another program.
    lone = fingerprint_fields(7) | {"_id": "lone"}
    lone["simhash"] |= {"group": "gone", "duplicate_of": "gone", "distance": 3}
    return [*documents, lone, {"_id": "ungrouped", **fingerprint_fields(8)}]


def expected(documents):
    """Return the numbers, by reading every document."""
    ours = [each["simhash"] for each in documents if "simhash" in each]
    sizes = Counter(Counter(each["group"] for each in ours if "group" in each).values())
    return {
        "documents": len(documents),
        "fingerprinted": len(ours),
        "duplicates": sum("duplicate_of" in each for each in ours),
        "ungrouped": sum("group" not in each for each in ours),
        "groups": sum(number for size, number in sizes.items() if size > 1),
        "largest": max((size for size in sizes if size > 1), default=0),
        "without_canonical": len(
            {each["group"] for each in ours if "duplicate_of" in each}
            - {each.get("group") for each in ours if "duplicate_of" not in each}
        ),
        "sizes": [{"size": size, "groups": sizes[size]} for size in sorted(sizes) if size > 1],
        "distances": [
            {"distance": bits, "duplicates": number}
            for bits, number in sorted(Counter(each["distance"] for each in ours if "distance" in each).items())
        ],
    }


def counted(found):
    return {name: found[name] for name in expected([])}


@pytest.fixture
def filled(server, sync_client, index):
    """Two indices behind one alias, with planted documents; returns the alias and the documents."""
    documents = planted(200)
    simhash = SimHashClient(sync_client)
    for number, name in enumerate((index, f"{index}-b")):
        simhash.create_index(name, text_field="body", mappings={"properties": OWN}, settings=TWO_SHARDS)
        put(server, name, documents[number::2])
        server.request("POST", "/_aliases", {"actions": [{"add": {"index": name, "alias": f"{index}-all"}}]})
    return f"{index}-all", documents


def test_the_numbers_are_those_of_all_documents(filled, simhash, monkeypatch):
    """By alias, over several shards and indices, in pages of three groups and sources."""
    alias, documents = filled
    monkeypatch.setattr(group_sizes, "PAGE", 3)
    monkeypatch.setattr(read_stats, "PAGE", 3)
    found = simhash.stats(alias, **FIELDS).to_dict()
    assert counted(found) == expected(documents)
    assert (found["scheme"], found["grouping"]) == (str(get_scheme(DEFAULT_SCHEME)), [])
    by_source = Counter(each.get("agency") for each in documents)
    assert {each["source"]: each["documents"] for each in found["sources"]["parts"]} == {
        name: number for name, number in by_source.items() if name
    }
    assert found["sources"]["without"]["documents"] == by_source[None]
    assert found["sources"]["number"] == 7
    shares = [each["duplicates"] for each in found["sources"]["parts"]]
    assert shares == sorted(shares, reverse=True)
    time = found["time"]
    assert (time["interval"], time["earlier"]["documents"], time["without"]["documents"]) == ("day", 1, 2)
    days = Counter(each["published"][:10] for each in documents if each.get("published", "1970") > "1971")
    assert {each["from"][:10]: each["documents"] for each in time["parts"]} == days
    assert found["largest_groups"][0]["documents"] == found["largest"]


def test_one_id_in_several_indices(server, sync_client, simhash, run, index):
    """Groups of one name count as one, and the numbers say so."""
    for name in (index, f"{index}-b"):
        SimHashClient(sync_client).create_index(name, text_field="body")
        own = {"a": None, "b": "a", "c": None, "d": "c" if name == index else None}
        put(server, name, [grouped(id_, canonical) for id_, canonical in own.items()])
    found = simhash.stats(f"{index}*").groups
    assert (dict(found.sizes), found.several_canonicals, found.without_canonical) == ({3: 1, 4: 1}, 2, 0)
    assert simhash.stats(index).to_dict()["several_canonicals"] == 0
    result = run("report", f"{index}*")
    assert "groups with several canonicals" in result.stdout
    assert "2 names of several groups" in result.stderr


def test_one_id_in_several_indices_that_are_grouped_together(server, simhash, run, index):
    """A name means one canonical: its id, and the index before it where another canonical has that id."""
    others = {index: ["rain", "bridge", "copy"], f"{index}-b": ["shares", "trees", "copy"]}
    for name, (first, second, third) in others.items():
        simhash.create_index(name, text_field="body", max_distance=3)
        bodies = {"a": first, "b": first, "x": second, "same": third}
        put(server, name, [{"_id": id_, "body": f"{word} " * 30} for id_, word in bodies.items()])
        list(simhash.backfill(name))
        simhash.reconcile(name)
    assert "1 name of several groups" in run("groups", f"{index}*").stderr
    assert simhash.reconcile(f"{index}*").is_settled
    assert not simhash.reconcile(f"{index}*").changed
    assert "several" not in run("groups", f"{index}*").stderr
    groups = {each.id: [(one.index, one.id) for one in each.members] for each in simhash.groups(f"{index}*")}
    assert groups == {
        "a": [(index, "a"), (index, "b")],
        f"{index}-b/a": [(f"{index}-b", "a"), (f"{index}-b", "b")],
        "same": [(index, "same"), (f"{index}-b", "same")],
    }
    # What comes near a canonical with a full name takes that name, and names of deleted canonicals are missed.
    body = {"_id": "late", "body": "shares " * 30}
    [report] = simhash.ingest(f"{index}-b", [body])
    assert (report.action, report.canonical) == ("tagged", f"{index}-b/a")
    server.request("DELETE", f"/{index}-b/_doc/a?refresh=true")
    assert simhash.reconcile(f"{index}*", since="2020-01-01T00:00:00Z").is_settled
    groups = {each.id: [one.id for one in each.members] for each in simhash.groups(f"{index}*")}
    assert groups == {"a": ["a", "b"], "b": ["b", "late"], "same": ["same", "same"]}


def grouped(id_, canonical):
    """Return a document of the group of *canonical*, or of its own."""
    own = fingerprint_fields(7) | {"_id": id_}
    own["simhash"] |= {"group": canonical or id_} | ({"duplicate_of": canonical, "distance": 0} if canonical else {})
    return own


def test_values_of_all_scripts(server, sync_client, simhash, index, monkeypatch):
    """Each once, also where a document has several, and each answer has one more value."""
    names = ["", " ", "A", "a", "a\x00", "ab", "é", "e\u0301", "北京", "\uffee", "😀", "z" * 200]
    chance = random.Random(1)
    documents = [{"_id": str(n), "agency": chance.sample(names, chance.randrange(4))} for n in range(60)]
    SimHashClient(sync_client).create_index(index, text_field="body", mappings={"properties": OWN}, settings=TWO_SHARDS)
    put(server, index, documents)
    monkeypatch.setattr(read_stats, "PAGE", 1)
    monkeypatch.setattr(buckets, "READ", 4)
    found = simhash.stats(index, source_field="agency").to_dict()["sources"]
    expected_counts = Counter(name for each in documents for name in each["agency"])
    assert {each["source"]: each["documents"] for each in found["parts"]} == expected_counts
    assert found["without"]["documents"] == sum(not each["agency"] for each in documents)


def test_a_real_index(server, simhash, call, index):
    """Empty, with one document, and grouped; then with a pattern."""
    simhash.create_index(index, text_field="body", mappings={"properties": OWN})
    assert counted(simhash.stats(index, **FIELDS).to_dict()) == expected([])
    text = "the council votes on the new bridge across the harbour"
    list(call(simhash.ingest(index, [{"_id": "a", "body": text}], on_duplicate="tag")))
    server.request("POST", f"/{index}/_refresh")
    found = simhash.stats(index, **FIELDS)
    assert (found.documents, found.fingerprinted, found.groups.number, found.share) == (1, 1, 0, 0.0)
    list(call(simhash.ingest(index, [{"_id": "b", "body": text}], on_duplicate="tag")))
    server.request("POST", f"/{index}/_refresh")
    found = simhash.stats(f"{index}*")
    assert (found.duplicates, dict(found.groups.sizes), dict(found.distances)) == (1, {2: 1}, {0: 1})
    assert [each.id for each in found.groups.largest] == ["a"]
    assert found.grouping[0]["rule"] == "star"


def test_what_cannot_be_counted(server, simhash, index, tmp_path):
    """No fields of ours, a field that is not mapped or of the wrong type, a pattern without an index."""
    put(server, index, [{"_id": "a", "body": "text", "published": "2026-01-01"}])
    with pytest.raises(MappingError, match="has no 'simhash' fields"):
        simhash.stats(index)
    with pytest.raises(NoIndexError):
        simhash.stats(f"{index}-none*")
    off = {"index": False, "doc_values": False}
    own = {"when": {"type": "date", **off}, "agency": {"type": "keyword", **off}, "place": {"type": "geo_point"}}
    server.request("PUT", f"/{index}/_mapping", {"properties": own | {"ages": {"type": "integer_range"}}})
    simhash.put_mapping(index, text_field="body")
    for wrong in (
        {"time_field": "nothing"},
        {"time_field": "body"},
        {"time_field": "when"},
        *({"source_field": name} for name in ("agency", "place", "ages")),
    ):
        with pytest.raises(InvalidInputError, match=next(iter(wrong.values()))):
            simhash.stats(index, **wrong)
    # A string that the server mapped by itself is counted by its keyword.
    for name in ("body.keyword", "body"):
        found = simhash.stats(index, source_field=name, time_field="published")
        assert found.sources.parts.keys() == {"text"}
    with pytest.raises(MappingError, match=r"\(per\): name 'body\.keyword'"):
        simhash.reconcile(index, per="body")


def test_a_report(filled, simhash):
    """The numbers of stats, and the largest groups."""
    alias, documents = filled
    found = simhash.report(alias, sample=20, text_field="body", **FIELDS)
    assert counted(found.stats.to_dict()) == expected(documents)
    assert found.groups[0].documents == found.stats.largest
    shown = {each.id: each for group in found.groups for each in (group.canonical, *group.members) if each}
    by_id = {each["_id"]: each for each in documents}
    for id_, member in shown.items():
        assert member.text == by_id[id_].get("body")
        assert member.source == by_id[id_].get("agency", "")
        assert by_id[id_].get("published", "")[:10] == member.time[:10]
        assert member.distance == by_id[id_]["simhash"].get("distance", 0)
    # The planted fingerprints are not those of the texts.
    assert "stale" in {each.kind for each in found.diagnosis.findings}
    json.dumps(found.to_dict())


def test_a_report_shows_titles_and_addresses(server, simhash, index):
    """By the usual names of their fields, also where the mapping has them below another; numbers are none."""
    fields = {"page": {"properties": {"headline": {"type": "text"}, "link": {"type": "keyword", "index": False}}}}
    simhash.create_index(index, text_field="body", mappings={"properties": fields})
    given = [
        {"_id": str(n), "body": "The council approved the new bridge over the river.", "page": page}
        for n, page in enumerate(
            [{"headline": "A bridge", "link": "https://a.example/1"}, {"headline": ["Again", "B"], "link": 7}, {}]
        )
    ]
    assert len(list(simhash.ingest(index, given))) == 3
    server.request("POST", f"/{index}/_refresh")
    [group] = simhash.report(index).groups
    found = {each.id: (each.title, each.url) for each in (group.canonical, *group.members)}
    assert found == {"0": ("A bridge", "https://a.example/1"), "1": ("Again", ""), "2": ("", "")}


def test_a_report_of_a_part(filled, simhash):
    """Numbers, groups and samples are those of the documents that match; the health is that of all."""
    alias, documents = filled
    query = {"term": {"agency": "agency 3"}}
    found = simhash.report(alias, sample=20, filter=query, **FIELDS)
    matching = [each for each in documents if each.get("agency") == "agency 3"]
    assert counted(found.stats.to_dict()) == expected(matching)
    assert {each.source for group in found.groups for each in group.members} == {"agency 3"}
    sizes = Counter(each["simhash"].get("group") for each in matching if "simhash" in each)
    assert {each.id: each.documents for each in found.groups} == {each.id: sizes[each.id] for each in found.groups}
    assert found.diagnosis.documents == len(documents)
    assert found.to_dict()["filter"] == [query]


def test_fields_of_any_name(server, sync_client, run, index, tmp_path):
    """A name is data: what is mapped is counted, and no name rearranges a line of the terminal or a page."""
    source, text = "a\u202eb</title>\x1b[31m", "</script><b>\u2066"
    mapped = {"properties": {source: {"type": "keyword"}, text: {"type": "text"}}}
    SimHashClient(sync_client).create_index(index, text_field=text, mappings=mapped)
    put(server, index, [grouped(id_, "a" if id_ == "b" else None) | {source: "x", text: "y"} for id_ in "ab"])
    shown = run("report", index, "--source-field", source)
    assert shown.exit_code == 0, shown.output
    found = run("report", index, "--source-field", source, "--json")
    assert json.loads(found.stdout)["sources"]["parts"][0]["documents"] == 2
    wrong = run("report", index, "--source-field", source[1:])
    assert wrong.exit_code == 1
    for result in (shown, found, wrong):
        assert result.output.replace("\n", "").isprintable()
    page = tmp_path / "report.html"
    assert run("report", index, "--out", page, "--source-field", source, "--text-field", text).exit_code == 0
    html = page.read_text(encoding="utf-8")
    assert "a\\u202eb&lt;/title&gt;\\x1b[31m" in html
    assert not {"\u202e", "\u2066", "\x1b"} & {*html}


def test_the_command_of_the_report(run, index, sync_client, tmp_path):
    """An index without anything makes a page."""
    SimHashClient(sync_client).create_index(index, text_field="body")
    assert run("report", index, "--text-field", "body").exit_code == 2
    page = tmp_path / "report.html"
    result = run("report", index, "--out", page, "--language", "zh", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["stats"]["documents"] == 0
    assert page.read_text(encoding="utf-8").startswith('<!DOCTYPE html>\n<html lang="zh">')
