"""The numbers of an index as plain values; ``quality.read_stats`` reads them, and no request is made here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from es_simhash.dashboards.charts import size_rows
from es_simhash.errors import count
from es_simhash.record import Record
from es_simhash.tables.notebook import Part, Sheet, percent
from es_simhash.tables.tabular import Tabular

OTHERS = EARLIER, LATER, OTHER_SOURCES, NONE = "(earlier)", "(later)", "(other sources)", "(none)"
"""The rows that are no interval and no source."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Count(Record):
    """Documents, also those without a fingerprint, and how many of them are duplicates of a canonical."""

    _NAMES = "documents duplicates share"

    documents: int = 0
    duplicates: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.documents + other.documents, self.duplicates + other.duplicates)

    @property
    def share(self) -> float | None:
        """The part that are duplicates, 0 to 1; ``None`` without documents."""
        return round(self.duplicates / self.documents, 6) if self.documents else None


@dataclass(frozen=True, slots=True)
class TimeCounts(Record):
    """
    Documents over time: intervals for the years from the first to the last that have many documents, and the rest.
    *interval*: ``"minute"``, ``"hour"``, ``"day"``, ``"week"``, ``"month"``, ``"quarter"`` or ``"year"``, in UTC.
    *parts*: by the start of each interval that has documents, in milliseconds since 1970. *earlier*, *later*: documents
    before and after these years. *without*: documents without a date.
    """

    field: str
    interval: str
    parts: Mapping[int, Count]
    earlier: Count = Count()
    later: Count = Count()
    without: Count = Count()

    def sheet(self) -> Sheet:
        """Return what is there by name, in order, with what is in no interval."""
        parts = [(utc_text(start).removesuffix("T00:00:00Z"), part) for start, part in self.parts.items()]
        rows = [(EARLIER, self.earlier), *parts, (LATER, self.later), (NONE, self.without)]
        return _counted("Over time", self.interval, rows)

    def to_dict(self) -> dict[str, Any]:
        parts = [{"from": utc_text(start), **count.to_dict()} for start, count in self.parts.items()]
        return Record.to_dict(self) | {"parts": parts}


@dataclass(frozen=True, slots=True)
class SourceCounts(Record):
    """
    Documents by source; a document with several sources counts in each.
    *parts*: the sources with the most duplicates, then with the most documents. *others*: all other sources together.
    *number*: how many different sources there are. *without*: documents without a source.
    """

    field: str
    parts: Mapping[str, Count]
    others: Count = Count()
    number: int = 0
    without: Count = Count()

    def sheet(self) -> Sheet:
        """Return what is there by name; a source may have any, also that of the rows that are no source."""
        rows = [*self.parts.items(), (OTHER_SOURCES, self.others), (NONE, self.without)]
        return _counted("By source", "source", rows)

    def to_dict(self) -> dict[str, Any]:
        return Record.to_dict(self) | {
            "parts": [{"source": name, **part.to_dict()} for name, part in self.parts.items()]
        }


@dataclass(frozen=True, slots=True)
class GroupSize(Record):
    """One of the largest groups; its *id* is that of its canonical, and the canonical counts among *documents*."""

    id: str
    documents: int


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """
    How many groups of two or more documents there are.
    *sizes*: number of groups by number of documents, smallest first. *largest*: largest first. *without_canonical*:
    groups, also of one document, whose canonical is not among the documents counted. *lost*: number of documents of
    these groups: they name a canonical that is not there. *several_canonicals*: groups with more than one canonical:
    several indices have a document of that id, and their groups of that name count as one.
    """

    sizes: Mapping[int, int] = field(default_factory=dict)
    largest: tuple[GroupSize, ...] = ()
    without_canonical: int = 0
    several_canonicals: int = 0
    lost: int = 0

    @property
    def number(self) -> int:
        return sum(self.sizes.values())


@dataclass(frozen=True, slots=True)
class Stats(Tabular):
    """
    The numbers of an index, counted over all its documents, or over those that match a filter.

    Attributes:
        index:
            What was counted.
        documents:
            Number of all documents.
        fingerprinted:
            Number of documents with a fingerprint.
        ungrouped:
            Number of documents with a fingerprint that belong to no group yet.
        duplicates:
            Number of documents that are near-duplicates of their canonical.
        groups:
            The groups of two or more documents.
        distances:
            For each distance to the canonical, in bits, the number of duplicates; smallest first.
        time:
            The documents over time; ``None`` without a time field.
        sources:
            The documents by source; ``None`` without a source field.
        scheme:
            The scheme of the fingerprints.
        grouping:
            What each index records of its grouping, each different record once; empty where none was ever grouped.
    """

    index: str
    documents: int = 0
    fingerprinted: int = 0
    ungrouped: int = 0
    duplicates: int = 0
    groups: GroupCounts = field(default_factory=GroupCounts)
    distances: Mapping[int, int] = field(default_factory=dict)
    time: TimeCounts | None = None
    sources: SourceCounts | None = None
    scheme: str = ""
    grouping: tuple[Mapping[str, Any], ...] = ()

    @property
    def share(self) -> float | None:
        """The part of the documents that are duplicates, 0 to 1; ``None`` without documents."""
        return Count(self.documents, self.duplicates).share

    @property
    def without_fingerprint(self) -> int:
        """Number of documents that no lookup finds."""
        return self.documents - self.fingerprinted

    @property
    def largest(self) -> int:
        """Number of documents of the largest group; 0 without groups."""
        return max(self.groups.sizes, default=0)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return {
            "index": self.index,
            **Count(self.documents, self.duplicates).to_dict(),
            "fingerprinted": self.fingerprinted,
            "without_fingerprint": self.without_fingerprint,
            "ungrouped": self.ungrouped,
            "groups": self.groups.number,
            "largest": self.largest,
            "sizes": [{"size": size, "groups": number} for size, number in self.groups.sizes.items()],
            "distances": [{"distance": bits, "duplicates": number} for bits, number in self.distances.items()],
            "largest_groups": [group.to_dict() for group in self.groups.largest],
            "without_canonical": self.groups.without_canonical,
            "several_canonicals": self.groups.several_canonicals,
            "time": self.time and self.time.to_dict(),
            "sources": self.sources and self.sources.to_dict(),
            "scheme": self.scheme,
            "grouping": [dict(grouping) for grouping in self.grouping],
        }

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a row for each size of groups, distance, interval of time and source; ``by`` says of which it is."""
        plain = self.to_dict()
        rows = [{"by": "size", "value": part["size"], "groups": part["groups"]} for part in plain["sizes"]]
        rows += [
            {"by": "distance", "value": part["distance"], "duplicates": part["duplicates"]}
            for part in plain["distances"]
        ]
        for by, name, key in (("time", "time", "from"), ("source", "sources", "source")):
            for part in (plain[name] or {}).get("parts", ()):
                rows.append({"by": by, "value": part[key], **{k: v for k, v in part.items() if k != key}})
        return rows

    def _title(self) -> str:
        share = "" if self.share is None else f" ({percent(self.share)})"
        several = self.groups.several_canonicals
        return (
            f"{self.index}: {count(self.documents, 'document')}, {count(self.duplicates, 'duplicate')}{share}, "
            f"{count(self.groups.number, 'group')}"
            + (f" ({several:,} with several canonicals)" if several else "")
            + (f", scheme {self.scheme}" if self.scheme else "")
        )

    def _sheets(self) -> Sequence[Part]:
        numbers = {
            "duplicates": self.duplicates,
            "without fingerprint": self.without_fingerprint,
            "not grouped yet": self.ungrouped,
            "groups of two or more": self.groups.number,
            "documents of the largest group": self.largest,
            "groups without their canonical": self.groups.without_canonical,
        }
        if self.groups.several_canonicals:
            numbers["groups with several canonicals"] = self.groups.several_canonicals
        summary = [{"": name, "number": number} for name, number in numbers.items()]
        largest = [{"group": group.id, "documents": group.documents} for group in self.groups.largest]
        return [Sheet("", summary), *([Sheet("Largest groups", largest)] if largest else []), *self.counts()]

    def counts(self) -> list[Sheet]:
        """Return the tables over time, by source, by size of group and by distance, as far as they have rows."""
        sizes = [{"documents": row["label"], "groups": row["groups"]} for row in size_rows(self.groups.sizes)]
        distances = [{"bits": bits, "duplicates": number} for bits, number in self.distances.items()]
        most = max((size["groups"] for size in sizes), default=0), max(self.distances.values(), default=0)
        sheets = [part.sheet() for part in (self.time, self.sources) if part is not None]
        sheets.append(Sheet("Groups by number of documents", sizes, {"groups": most[0]}))
        sheets.append(Sheet("Duplicates by distance", distances, {"duplicates": most[1]}))
        return [sheet for sheet in sheets if sheet.rows]


def _counted(title: str, name: str, counts: Iterable[tuple[str, Count]]) -> Sheet:
    """Return a table whose bars are the share of duplicates."""
    rows = [
        {name: key, "documents": numbers.documents, "duplicates": numbers.duplicates, "share": numbers.share}
        for key, numbers in counts
        if numbers.documents
    ]
    return Sheet(title, rows, {"share": 1})


def utc_text(milliseconds: int) -> str:
    """Return a moment, in milliseconds since 1970, as ISO 8601, or as ``"N ms"`` if Python's calendar lacks it."""
    try:
        return (_EPOCH + timedelta(milliseconds=milliseconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    except OverflowError:
        return f"{milliseconds} ms"
