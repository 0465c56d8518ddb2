"""The numbers of a report as tables with a bar in each row. No page is made here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from es_simhash.dashboards.charts import size_rows
from es_simhash.quality.report.words import Speech
from es_simhash.quality.stats import Count, SourceCounts, Stats, TimeCounts, utc_text


@dataclass(frozen=True, slots=True)
class NumberTable:
    """A table: its *head*, and *rows* of cells, of which the first is a name, each with how full its bar is, 0 to 1."""

    title: str
    head: Sequence[str]
    rows: Sequence[tuple[Sequence[str], float]]
    note: str = ""


def number_tables(stats: Stats, say: Speech) -> Iterator[NumberTable]:
    """Yield the tables of what was counted."""
    if stats.time is not None and stats.time.parts:
        yield _over_time(stats.time, say)
    if stats.sources is not None and stats.sources.parts:
        yield _by_source(stats.sources, say)
    sizes = {row["label"]: row["groups"] for row in size_rows(stats.groups.sizes)}
    distances = {str(bits): number for bits, number in stats.distances.items()}
    for key, head, numbers in (
        ("sizes", (say("size"), say("number_of_groups")), sizes),
        ("distances", (say("distance"), say("duplicates")), distances),
    ):
        if numbers:
            yield NumberTable(say(key), head, _bars(numbers))


def _bars(numbers: Mapping[str, int]) -> list[tuple[Sequence[str], float]]:
    most = max(numbers.values())
    return [((name, f"{number:,}"), number / most) for name, number in numbers.items()]


def _over_time(time: TimeCounts, say: Speech) -> NumberTable:
    counts = [(utc_text(start).removesuffix("T00:00:00Z"), each) for start, each in time.parts.items()]
    outside = {"earlier": time.earlier, "later": time.later, "no_value": time.without}
    counts += [(say(name), each) for name, each in outside.items() if each.documents]
    return _counted("over_time", "from", counts, say, note=say(time.interval))


def _by_source(sources: SourceCounts, say: Speech) -> NumberTable:
    # A source may have any name, also "(none)".
    counts = list(sources.parts.items())
    if rest := sources.number - len(sources.parts):
        counts.append((say("other_sources", number=rest), sources.others))
    if sources.without.documents:
        counts.append((say("no_value"), sources.without))
    return _counted("by_source", "source", counts, say)


def _counted(key: str, name: str, counts: Iterable[tuple[str, Count]], say: Speech, *, note: str = "") -> NumberTable:
    """Return a table whose bars are the share of duplicates."""
    rows = [
        ((label, f"{each.documents:,}", f"{each.duplicates:,}", say.percent(each.share)), each.share or 0.0)
        for label, each in counts
    ]
    return NumberTable(say(key), (say(name), say("documents"), say("duplicates"), say("share")), rows, note)
