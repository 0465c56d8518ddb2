"""Groups by texts, keywords and dates, on real servers: what reconcile and pairs make of them."""

import functools
import random

import pytest

from es_simhash import InvalidInputError, MappingError, fingerprint_fields
from tests.reference import are_neighbours, canonical_order, connected_of, star_of
from tests.server.support import ONE_SHARD, put, read_all, stored_groups, texts

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


def oracle(stored, grouping):
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
    order = canonical_order(items, grouping.get("canonical", ["id"]))
    within = grouping.get("within")

    @functools.cache
    def near(a, b):
        return are_neighbours(
            items[order[a]],
            items[order[b]],
            max_distance=grouping["max_distance"],
            similarity=grouping["verify"],
            per=grouping.get("per"),
            within=within and (within[0], DAY * int(within[1][:-1])),
        )

    rule = star_of if grouping.get("rule", "star") == "star" else connected_of
    places = rule(len(items), near)
    return {items[order[a]]["id"]: items[order[b]]["id"] for a, b in enumerate(places)}


@pytest.mark.parametrize(
    "grouping",
    [
        {"max_distance": 4, "verify": 0.6},
        {"max_distance": 4, "verify": 0.6, "rule": "connected", "canonical": ["source.raw:y>*", "-views", "published"]},
        {"max_distance": 40, "verify": 0.5, "per": "source.raw", "within": ("published", "7d"), "canonical": "longest"},
    ],
    ids=["star", "connected", "conditions"],
)
def test_the_result_is_the_rules(server, index, simhash, grouping):
    """A second run writes nothing, and what is recorded is used from then on."""
    fill(simhash, server, index)
    shown = simhash.reconcile(index, dry_run=True, **grouping)
    report = simhash.reconcile(index, **grouping)
    stored = read_all(server, index)
    expected = oracle(stored, {**grouping, "canonical": list_of(grouping.get("canonical", "id"))})
    assert stored_groups(stored) == expected
    assert 10 < report.duplicates < 100
    assert (report.is_settled, report.changed, report.groups) == (True, shown.changed, len(set(expected.values())))
    assert report.unread == (8 if "per" not in grouping else report.unread)
    assert simhash.reconcile(index).changed == 0
    assert simhash.reconcile(index, since="2026-01-01").changed == 0
    with pytest.raises(InvalidInputError):
        simhash.reconcile(index, verify=0.55)


def list_of(canonical):
    return [canonical] if isinstance(canonical, str) else canonical


def test_a_text_that_a_plain_update_changed(server, index, simhash):
    """The present text decides, not the one of the fingerprint."""
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    same = fingerprint_fields(7)
    text = "the council approved the new bridge on tuesday"
    put(server, index, [{"_id": id_, "body": text, **same} for id_ in "abc"])
    report = simhash.reconcile(index, verify=True)
    assert (report.groups, report.duplicates) == (1, 2)
    server.request("POST", f"/{index}/_update/b?refresh=true", {"doc": {"body": "shares of the chip maker fell again"}})
    report = simhash.reconcile(index)
    assert (report.groups, report.changed, report.unread) == (2, 1, 0)
    assert stored_groups(read_all(server, index)) == {"a": "a", "b": "b", "c": "a"}


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
    assert [check.scheme for check in simhash.check(index)] == ["shingles-2"]
    assert "grouping" not in str(server.request("GET", f"/{index}/_mapping"))
