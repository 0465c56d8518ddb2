"""The numbers of an index as plain values; ``quality.read_stats`` reads them, and no request is made here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from es_simhash.dashboards.charts import size_rows
from es_simhash.errors import count
from es_simhash.record import Record
from es_simhash.tables.notebook import Part, Sheet, percent
from es_simhash.tables.tabular import Tabular


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
    scheme: str = ""
    grouping: tuple[Mapping[str, Any], ...] = ()

    @property
    def share(self) -> float | None:
        """The part of the documents that are duplicates, 0 to 1; ``None`` without documents."""
        return round(self.duplicates / self.documents, 6) if self.documents else None

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
            "documents": self.documents,
            "duplicates": self.duplicates,
            "share": self.share,
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
            "scheme": self.scheme,
            "grouping": [dict(grouping) for grouping in self.grouping],
        }

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a row for each size of groups and each distance; ``by`` says of which it is."""
        plain = self.to_dict()
        rows = [{"by": "size", "value": part["size"], "groups": part["groups"]} for part in plain["sizes"]]
        return rows + [
            {"by": "distance", "value": part["distance"], "duplicates": part["duplicates"]}
            for part in plain["distances"]
        ]

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
        """Return the tables by size of group and by distance, as far as they have rows."""
        sizes = [{"documents": row["label"], "groups": row["groups"]} for row in size_rows(self.groups.sizes)]
        distances = [{"bits": bits, "duplicates": number} for bits, number in self.distances.items()]
        most = max((size["groups"] for size in sizes), default=0), max(self.distances.values(), default=0)
        sheets = [
            Sheet("Groups by number of documents", sizes, {"groups": most[0]}),
            Sheet("Duplicates by distance", distances, {"duplicates": most[1]}),
        ]
        return [sheet for sheet in sheets if sheet.rows]
