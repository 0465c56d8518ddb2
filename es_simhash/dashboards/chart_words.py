"""
The words in charts, so that a chart can be drawn in another language. No chart is here.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ENGLISH", "ChartWords"]


@dataclass(frozen=True, slots=True)
class ChartWords:
    """
    The words of the charts over time, by source, by size and by distance.

    Attributes:
        duplicates, others:
            The two kinds of documents.
        of:
            Stands between a part and its whole, with its blanks.
        over_time, by_source, by_size, by_distance:
            What each chart shows, for those who do not see it.
        documents_in_group, groups, bits:
            Titles of axes.
    """

    duplicates: str = "duplicates"
    others: str = "all other documents"
    of: str = " of "
    over_time: str = "Documents over time; duplicates have a colour of their own."
    by_source: str = "Share of duplicates in each source; the source with the most duplicates is first."
    by_size: str = "Groups by size: how many groups have how many documents, the canonical included."
    by_distance: str = "Duplicates by their distance to the canonical, in bits of 64."
    documents_in_group: str = "documents in the group"
    groups: str = "groups"
    bits: str = "bits that differ from the canonical"


ENGLISH = ChartWords()
