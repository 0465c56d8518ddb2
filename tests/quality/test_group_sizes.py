"""Counting groups by size: all of them, and never a part of them."""

import pytest

from es_simhash import IncompleteSearchError
from es_simhash.quality.read_stats import _core, _interval, count_groups
from es_simhash.quality.stats import Count
from tests.transport.by_hand import ServerError, drive, scripted

DAY = 86_400_000


class Groups:
    """A server with groups: for each name the number of its duplicates, and of its canonicals."""

    def __init__(self, groups, *, silent=0):
        self.groups = dict(sorted(groups.items()))
        self.silent = silent

    def __call__(self, call):
        body = call.arguments["body"]
        [(name, aggregation)] = body["aggs"].items()
        found = self._page(aggregation["composite"]) if "composite" in aggregation else self._named(body)
        shards = {"total": 2, "successful": 2 - self.silent, "failed": 0}
        return {"_shards": shards, "aggregations": {name: found}}

    def _page(self, composite):
        after = composite.get("after", {"value": ""})["value"]
        names = [name for name in self.groups if name > after][: composite["size"]]
        buckets = [{"key": {"value": name}, "doc_count": self.groups[name][0]} for name in names]
        return {"buckets": buckets, **({"after_key": {"value": names[-1]}} if names else {})}

    def _named(self, body):
        names = body["query"]["bool"]["filter"][-1]["terms"]["simhash.group"]
        counts = {name: self.groups[name][1] for name in names}
        return {"buckets": [{"key": name, "doc_count": number} for name, number in counts.items() if number]}


def count(server):
    """Return the counts and the number of searches."""
    result, calls, _ = drive(count_groups(scripted(), "index"), server)
    return result, len(calls)


# Two documents or three; of every hundredth group only one is left, because its canonical is gone.
GROUPS = {f"g{n:05}": (1 + n % 2, int(n % 100 > 0)) for n in range(2_500)}


def test_every_group_is_counted():
    """By its documents that are there; a group of one document is none."""
    found, _ = count(Groups(GROUPS))
    sizes = [sum(each) for each in GROUPS.values()]
    assert found.sizes == {size: sizes.count(size) for size in sorted({*sizes}) if size > 1}
    assert found.without_canonical == 25
    assert found.number == 2_475
    assert [each.id for each in found.largest] == [f"g{n:05}" for n in range(1, 20, 2)]


def test_the_cost():
    """One search for all these groups, and one for the canonicals of every 10,000."""
    groups = {f"g{n:05}": (1, 1) for n in range(25_000)}
    assert count(Groups(groups))[1] == 4


def test_a_missing_shard_and_a_refusal_come_out():
    """No part is taken for the whole, and what is refused for another reason is not asked again."""
    with pytest.raises(IncompleteSearchError):
        count(Groups(GROUPS, silent=1))
    refused = ServerError(403, "too_many_buckets_exception")
    with pytest.raises(ServerError):
        drive(count_groups(scripted(), "index"), lambda _: refused)


def test_a_few_wrong_dates_do_not_choose_the_interval():
    """The years that have nearly all documents do; where documents are spread, all years."""
    years = {n * 365 * DAY: Count(1) for n in (0, 80)} | {n * 365 * DAY: Count(500) for n in (50, 51)}
    assert _core(years) == (50 * 365 * DAY, 51 * 365 * DAY)
    assert _core({n: Count(5) for n in range(9)}) == (0, 8)
    assert _core({7: Count(1)}) == (7, 7)
    spans = (60_000, DAY, 30 * DAY, 365 * DAY, 5 * 365 * DAY, 20 * 365 * DAY, 300 * 365 * DAY)
    assert [_interval(span) for span in spans] == ["minute", "hour", "day", "week", "month", "quarter", "year"]
