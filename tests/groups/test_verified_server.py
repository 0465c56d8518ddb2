"""Groups by texts, keywords and dates, on real servers: what reconcile and pairs make of them."""

import random

import pytest

from es_simhash import InvalidInputError, MappingError, fingerprint_fields
from es_simhash.mapping.meta import marker_properties, read_settings
from es_simhash.mapping.rule import Grouping
from tests.groups.strategies import oracle
from tests.servers.support import ON_BOTH, ONE_SHARD, put, read_all, stored_groups, texts

MAPPINGS = {
    "properties": {
        "source": {"type": "text", "fields": {"raw": {"type": "keyword"}}},
        "views": {"type": "long"},
        "published": {"type": "date"},
    }
}
DAY = 86_400_000


def fill(simhash, server, index, count=120):
    """Write documents whose fingerprints are near more often than their texts, and return them by id."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD, mappings=MAPPINGS)
    chance = random.Random(7)
    found = {}
    for number, text in enumerate(texts(count, edits=4)):
        document = {"body": text} if number % 17 else {"title": text}
        value = chance.choice([0, 0xFF00FF00FF00FF00]) ^ 1 << chance.randrange(3)
        document |= fingerprint_fields(value)
        if number % 11:
            document["source"] = chance.choice(["x", "y"])
        if number % 7:
            document["published"] = f"2026-03-{chance.randint(1, 28):02d}T00:00:00Z"
        if number % 5:
            document["views"] = chance.sample(range(-9, 9), chance.randint(1, 2))
        found[f"{number:05d}"] = document
    put(server, index, [{"_id": id_, **document} for id_, document in found.items()])
    return found


def expected_groups(stored, max_distance, similarity, **rule):
    """Return the group of each document, by slow and obvious code."""
    items = []
    for id_, source in stored.items():
        day = source.get("published")
        views = source.get("views", [])
        items.append(
            {
                "id": id_,
                "index": "",
                "fingerprint": int(source["simhash"]["fingerprint"], 16),
                "text": source.get("body"),
                "source.raw": [source["source"]] if "source" in source else [],
                "published": [DAY * int(day[8:10])] if day else [],
                "views": views if isinstance(views, list) else [views],
            }
        )
    places = oracle(items, Grouping(max_distance, similarity, **rule))
    return {items[a]["id"]: items[b]["id"] for a, b in places.items()}


@pytest.mark.parametrize(
    "grouping",
    [
        {"max_distance": 4, "verify": 0.6, "canonical": ["source.raw:y>*", "-views", "published"]},
        {"max_distance": 40, "verify": 0.5, "per": "source.raw", "within": ("published", "7d"), "canonical": "longest"},
    ],
    ids=["order", "conditions"],
)
def test_the_result_is_the_rules(server, index, simhash, grouping):
    """A second run writes nothing, and what is recorded is used from then on."""
    fill(simhash, server, index)
    shown = simhash.reconcile(index, dry_run=True, **grouping)
    report = simhash.reconcile(index, **grouping)
    stored = read_all(server, index)
    rule = {{"verify": "similarity", "canonical": "order"}.get(name, name): value for name, value in grouping.items()}
    expected = expected_groups(stored, **rule)
    assert stored_groups(stored) == expected
    assert 10 < report.duplicates < 100
    assert (report.is_settled, report.changed, report.groups) == (True, shown.changed, len(set(expected.values())))
    assert report.unread == (8 if "per" not in grouping else report.unread)
    assert simhash.reconcile(index).changed == 0
    assert simhash.reconcile(index, since="2026-01-01").changed == 0
    with pytest.raises(InvalidInputError):
        simhash.reconcile(index, verify=0.55)


def test_fields_that_cannot_decide(server, index, simhash):
    """``per`` needs a keyword, ``within`` a date, a preference a keyword; nothing is recorded."""
    fill(simhash, server, index, 3)
    for wrong in (
        {"per": "source"},
        {"per": "missing"},
        {"within": ("views", "7d")},
        {"canonical": ["source:x>y"]},
        {"canonical": "source.raw"},
    ):
        with pytest.raises(MappingError):
            simhash.reconcile(index, **wrong)
    assert [check.scheme for check in simhash.check(index)] == ["shingles-3"]
    assert "grouping" not in str(server.request("GET", f"/{index}/_mapping"))


def meta_of(server, name):
    return server.request("GET", f"/{name}/_mapping")[name]["mappings"]["_meta"]


def record(server, name, **changed):
    """Record another grouping, as a reconcile does that is killed then."""
    meta = meta_of(server, name)
    meta["es_simhash"]["simhash"]["grouping"] |= changed
    mapping = next(iter(server.request("GET", f"/{name}/_mapping").values()))["mappings"] | {"_meta": meta}
    marker = marker_properties(read_settings(mapping), prefix="simhash", mapping=mapping)
    body = {"_meta": meta, "properties": {"simhash": {"properties": marker}}}
    server.request("PUT", f"/{name}/_mapping", body)


def test_regrouping_replaces_the_grouping(server, index, simhash):
    """By another rule, order, distance and verification; what is not given stays, and the record says so."""
    fill(simhash, server, index)
    simhash.reconcile(index, max_distance=1, verify=False, canonical="-views")
    assert {fault.kind for fault in simhash.check(index)[0].faults} == {"not_verified"}
    before = read_all(server, index)
    asked = {"max_distance": 4, "verify": 0.6, "per": "source.raw"}
    with pytest.raises(InvalidInputError):
        simhash.reconcile(index, **asked)
    shown = simhash.reconcile(index, dry_run=True, **asked)
    assert read_all(server, index) == before
    report = simhash.reconcile(index, regroup=True, **asked)
    expected = expected_groups(before, 4, 0.6, per="source.raw", order=["-views"])
    assert stored_groups(read_all(server, index)) == expected
    assert (report.changed, report.is_settled) == (shown.changed, True)
    check = simhash.check(index)[0]
    assert check.faults == ()
    assert check.grouping == {
        "rule": "star",
        "max_distance": 4,
        "canonical": ["-views"],
        "similarity": 0.6,
        "per": "source.raw",
    }
    assert simhash.reconcile(index, **asked).changed == 0
    simhash.reconcile(index, regroup=True, per=False, verify=False)
    assert simhash.check(index)[0].grouping["similarity"] is None
    assert "per" not in simhash.check(index)[0].grouping


def test_an_ingest_stops_when_the_grouping_changes(server, index, sync_simhash):
    """It writes no group by the old rule after the change has begun."""
    fill(sync_simhash, server, index, 5)
    sync_simhash.reconcile(index, max_distance=1, verify=False)
    written = []

    def documents():
        for number in range(3_000):
            if number == 1_600:
                record(server, index, max_distance=3)
            yield {"_id": f"new{number}", "body": f"text number {number}"}

    with pytest.raises(MappingError):
        written.extend(sync_simhash.ingest(index, documents()))
    server.request("POST", f"/{index}/_refresh")
    assert server.request("GET", f"/{index}/_count")["count"] < 3_000


def test_groups_whose_rule_changes_while_they_are_read_are_an_error(server, index, sync_simhash):
    """Else some would be those of the rule before."""
    fill(sync_simhash, server, index)
    sync_simhash.reconcile(index, max_distance=3, verify=False)
    groups = sync_simhash.groups(index)
    next(groups)
    record(server, index, max_distance=1)
    with pytest.raises(MappingError, match="changed while its groups were read"):
        list(groups)


def test_indices_that_a_change_has_reached_in_part(server, index, simhash):
    """One index has the new grouping and groups by it, one its record alone, one the old one: the next run ends it."""
    names = [f"{index}-{letter}" for letter in "abc"]
    for name in names:
        fill(simhash, server, name, 20)
    simhash.reconcile(names, max_distance=1, verify=False)
    simhash.reconcile(names[0], regroup=True, max_distance=3)
    record(server, names[1], max_distance=3)
    with pytest.raises(InvalidInputError, match=r"grouped by different rules .* regroup=True"):
        simhash.reconcile(names)
    assert simhash.reconcile(names, regroup=True, max_distance=3).is_settled
    assert {check.grouping["max_distance"] for check in simhash.check(names)} == {3}
    assert simhash.reconcile(names).changed == 0


@ON_BOTH
def test_groups_sorted_filtered_and_shown(server, index, simhash):
    """By size, of a smallest size, with a document that matches; whole groups, with the fields asked for."""
    fill(simhash, server, index)
    simhash.reconcile(index, max_distance=4, verify=0.6)
    stored = read_all(server, index)
    groups = stored_groups(stored)
    members = {name: {id_ for id_ in groups if groups[id_] == name} for name in set(groups.values())}
    expected = {name: ids for name, ids in members.items() if len(ids) > 1}
    by_size = sorted(expected, key=lambda name: (-len(expected[name]), name))
    assert [group.id for group in simhash.groups(index)] == sorted(expected)
    assert [group.id for group in simhash.groups(index, sort="size")] == by_size
    largest = len(expected[by_size[0]])
    assert [group.id for group in simhash.groups(index, min_size=largest)] == [
        name for name in sorted(expected) if len(expected[name]) == largest
    ]
    wanted = {"term": {"source.raw": "x"}}
    found = {group.id: {each.id for each in group.members} for group in simhash.groups(index, filter=wanted)}
    assert found == {
        name: ids for name, ids in expected.items() if any(stored[id_].get("source") == "x" for id_ in ids)
    }
    sizes = [len(group.members) for group in simhash.groups(index, filter=wanted, sort="size")]
    assert sizes == sorted(sizes, reverse=True)
    for group in simhash.groups(index, source=["views"]):
        assert {each.id: dict(each.source) for each in group.members} == {
            id_: {"views": stored[id_]["views"]} if "views" in stored[id_] else {} for id_ in expected[group.id]
        }
