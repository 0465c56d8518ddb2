"""``stats`` on real servers: every number is the one that reading all documents gives."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from es_simhash import DEFAULT_SCHEME, MappingError, NoIndexError, fingerprint_fields, get_scheme
from es_simhash.quality import read_stats
from tests.servers.support import ON_BOTH, put

OWN = {"agency": {"type": "keyword"}, "body": {"type": "text"}}
TWO_SHARDS = {"number_of_shards": 2, "number_of_replicas": 0}


def grouped(id_, group, distance=0, value=7, **more):
    """Return a document of a group; the canonical has the name of the group."""
    own = fingerprint_fields(value) | {"_id": id_, **more}
    own["simhash"] |= {"group": group} | ({} if group == id_ else {"duplicate_of": group, "distance": distance})
    return own


def planted(count, *, seed=3):
    """Return documents, most of them with fingerprints and groups; some groups have no canonical."""
    chance = random.Random(seed)
    documents = [{"_id": "plain"}]
    for number in range(count):
        id_ = f"{number:04d}"
        own = {"body": f"text {number} <script>", "agency": f"agency {number % 7}"}
        group = f"{max(1, number % 40 - chance.randrange(3)):04d}" if number >= 40 else id_
        of_group = grouped(id_, group, chance.randrange(4), chance.getrandbits(64), **own)
        documents.append(of_group if number % 10 else {"_id": id_, **own})
    # The canonical of one was deleted by another program.
    return [*documents, grouped("lone", "gone", 3), {"_id": "ungrouped", **fingerprint_fields(8)}]


def expected(documents):
    """Return the numbers, by reading every document."""
    ours = [each["simhash"] for each in documents if "simhash" in each]
    sizes = Counter(Counter(each["group"] for each in ours if "group" in each).values())
    distances = Counter(each["distance"] for each in ours if "distance" in each)
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
        "distances": [{"distance": bits, "duplicates": number} for bits, number in sorted(distances.items())],
    }


def counted(found):
    return {name: found.to_dict()[name] for name in expected([])}


@pytest.fixture
def filled(server, sync_simhash, index):
    """Two indices behind one alias, with planted documents; returns the alias and the documents."""
    documents = planted(200)
    for number, name in enumerate((index, f"{index}-b")):
        sync_simhash.create_index(name, text_field="body", mappings={"properties": OWN}, settings=TWO_SHARDS)
        put(server, name, documents[number::2])
        server.request("PUT", f"/{name}/_alias/{index}-all")
    return f"{index}-all", documents


@ON_BOTH
def test_the_numbers_are_those_of_all_documents(filled, simhash, monkeypatch):
    """By alias, over several shards and indices, in pages of three groups; also of a part."""
    monkeypatch.setattr(read_stats, "PAGE", 3)
    alias, documents = filled
    found = simhash.stats(alias)
    assert counted(found) == expected(documents)
    assert (found.scheme, found.grouping) == (str(get_scheme(DEFAULT_SCHEME)), ())
    assert found.groups.largest[0].documents == found.largest
    matching = [each for each in documents if each.get("agency") == "agency 3"]
    assert counted(simhash.stats(alias, filter={"term": {"agency": "agency 3"}})) == expected(matching)


def test_a_report(filled, simhash):
    """The numbers of stats, and the largest groups; of a part, the health is that of all."""
    alias, documents = filled
    found = simhash.report(alias, sample=20)
    assert counted(found.stats) == expected(documents)
    assert found.groups[0].documents == found.stats.largest
    by_id = {each["_id"]: each for each in documents}
    for member in (each for group in found.groups for each in (group.canonical, *group.members) if each):
        own = by_id[member.id]
        assert (member.text, member.distance) == (own.get("body"), own["simhash"].get("distance", 0))
    # The planted fingerprints are not those of the texts.
    assert "stale" in {each.kind for each in found.diagnosis.findings}
    query = {"term": {"agency": "agency 3"}}
    part = simhash.report(alias, sample=20, filter=query)
    matching = [each for each in documents if each.get("agency") == "agency 3"]
    assert counted(part.stats) == expected(matching)
    sizes = Counter(each["simhash"].get("group") for each in matching if "simhash" in each)
    assert {each.id: each.documents for each in part.groups} == {each.id: sizes[each.id] for each in part.groups}
    assert {by_id[each.id]["agency"] for group in part.groups for each in group.members} == {"agency 3"}
    assert (part.diagnosis.documents, part.to_dict()["filter"]) == (len(documents), [query])


def test_one_id_in_several_indices(server, sync_simhash, simhash, run, index):
    """Groups of one name count as one, and the numbers say so."""
    for name in (index, f"{index}-b"):
        sync_simhash.create_index(name, text_field="body")
        others = {"a": "a", "b": "a", "c": "c", "d": "c" if name == index else "d"}
        put(server, name, [grouped(*each) for each in others.items()])
    found = simhash.stats(f"{index}*").groups
    assert (dict(found.sizes), found.several_canonicals, found.without_canonical) == ({3: 1, 4: 1}, 2, 0)
    assert simhash.stats(index).to_dict()["several_canonicals"] == 0
    result = run("report", f"{index}*")
    assert "groups with several canonicals" in result.stdout
    assert "2 names of several groups" in result.stderr


def test_one_id_in_several_indices_that_are_grouped_together(server, simhash, run, index):
    """A name means one canonical: its id, and the index before it where another canonical has that id."""

    def groups():
        return {each.id: [one.id for one in each.members] for each in simhash.groups(f"{index}*")}

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
    assert groups() == {"a": ["a", "b"], f"{index}-b/a": ["a", "b"], "same": ["same", "same"]}
    # What comes near a canonical with a full name takes that name, and names of deleted canonicals are missed.
    [report] = simhash.ingest(f"{index}-b", [{"_id": "late", "body": "shares " * 30}])
    assert (report.action, report.canonical) == ("tagged", f"{index}-b/a")
    server.request("DELETE", f"/{index}-b/_doc/a?refresh=true")
    assert simhash.reconcile(f"{index}*", since="2020-01-01T00:00:00Z").is_settled
    assert groups() == {"a": ["a", "b"], "b": ["b", "late"], "same": ["same", "same"]}


def test_a_real_index(server, simhash, index):
    """Empty, with one document, and grouped; then with a pattern. What has no fields of ours cannot be counted."""
    put(server, f"{index}-x", [{"_id": "a", "body": "text"}])
    with pytest.raises(MappingError, match="has no 'simhash' fields"):
        simhash.stats(f"{index}-x")
    with pytest.raises(NoIndexError):
        simhash.stats(f"{index}-none*")
    simhash.create_index(index, text_field="body")
    assert counted(simhash.stats(index)) == expected([])
    for id_, number in (("a", 0), ("b", 1)):
        list(simhash.ingest(index, [{"_id": id_, "body": "the council votes on the new bridge across the harbour"}]))
        server.request("POST", f"/{index}/_refresh")
        found = simhash.stats(f"{index},{index}-none*")
        assert (found.documents, found.duplicates, found.groups.number) == (number + 1, number, number)
    assert (dict(found.groups.sizes), dict(found.distances), found.share) == ({2: 1}, {0: 1}, 0.5)
    assert [each.id for each in found.groups.largest] == ["a"]
    assert found.grouping[0]["rule"] == "star"


def test_a_report_shows_what_tells_documents_apart(server, simhash, index):
    """Title, address, source and date by usual names, also where the mapping has them below another; no numbers."""
    fields = {"page": {"properties": {"headline": {"type": "text"}, "link": {"type": "keyword", "index": False}}}}
    simhash.create_index(index, text_field="body", mappings={"properties": fields})
    pages = [{"headline": "A bridge", "link": "https://a.example/1"}, {"headline": ["Again", "B"], "link": 7}, {}]
    text = "The council approved the new bridge over the river."
    given = [
        {"_id": str(n), "body": text, "page": page, "site": "a.example", "date": f"2026-01-0{n + 1}"}
        for n, page in enumerate(pages)
    ]
    assert len(list(simhash.ingest(index, given))) == 3
    server.request("POST", f"/{index}/_refresh")
    [group] = simhash.report(index).groups
    found = {each.id: (each.title, each.url, each.time) for each in (group.canonical, *group.members)}
    assert found == {
        "0": ("A bridge", "https://a.example/1", "2026-01-01"),
        "1": ("Again", "", "2026-01-02"),
        "2": ("", "", "2026-01-03"),
    }
    assert group.canonical.source == "a.example"


def test_fields_of_any_name(server, sync_simhash, run, index, tmp_path):
    """A name is data: no name rearranges a line of the terminal or a page. An index without anything makes a page."""
    text, page = "</script><b>\u2066\x1b[31m", tmp_path / "report.html"
    sync_simhash.create_index(index, text_field=text, mappings={"properties": {text: {"type": "text"}}})
    assert run("report", index, "--language", "zh").exit_code == 2
    result = run("report", index, "--out", page, "--language", "zh", "--json")
    assert (result.exit_code, json.loads(result.stdout)["stats"]["documents"]) == (0, 0)
    assert page.read_text(encoding="utf-8").startswith('<!DOCTYPE html>\n<html lang="zh">')
    put(server, index, [grouped("a", "a", **{text: "y"}), grouped("b", "a", **{text: "y"})])
    for out in ([], ["--out", page]):
        shown = run("report", index, *out)
        assert (shown.exit_code, shown.output.replace("\n", "").isprintable()) == (0, True)
    assert not {"\u2066", "\x1b"} & {*page.read_text(encoding="utf-8")}
