"""
A plan of removal as lines of text: its numbers, then removals beside what stays. The caller makes them safe to print.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from es_simhash.quality.worddiff import Change, Segment
from es_simhash.review.differences import FieldPair, compare_fields
from es_simhash.review.summary import Portion, Summary
from es_simhash.review.tables import band_name, percent, percent_similar, relation

if TYPE_CHECKING:
    from es_simhash.removal.records import PlannedRemoval

__all__ = ["removal_lines", "summary_lines"]

# The marks have the meaning of the colours of the page.
_MARKS = {Change.SAME: ("", ""), Change.REMOVED: ("[-", "-]"), Change.ADDED: ("{+", "+}")}


def summary_lines(summary: Summary, said: Mapping[str, str]) -> Iterator[str]:
    """
    Yield the numbers of a plan.
    """
    total = summary.total
    of = "" if total.documents is None else f" of {total.documents:,} ({percent(total.share)})"
    yield f"{total.removals:,}{of} documents would go; {summary.canonicals:,} stay for them"
    for name, text in said.items():
        yield f"  {name}: {text}"
    yield from _table("by similarity", [(band_name(band), f"{number:,}") for band, number in summary.bands.items()])
    yield from _table("by index", map(_row, summary.indices))
    for name, shares in summary.fields.items():
        yield from _table(f"by {name}", map(_row, shares))
    largest = [(f"{id_} in {index}", f"{number:,}") for index, id_, number in summary.groups]
    yield from _table("what stays for most removals", largest)


def _row(share: Portion) -> tuple[str, str]:
    of = "" if share.documents is None else f" of {share.documents:,} ({percent(share.share)})"
    return share.name if share.name is not None else "(none)", f"{share.removals:,}{of}"


def _table(title: str, rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    for place, (name, number) in enumerate(rows):
        if not place:
            yield title
        yield f"  {number:>12}  {name}"


def removal_lines(removal: PlannedRemoval) -> Iterator[str]:
    """
    Yield a removal beside what stays, with the words that differ marked ``[-goes-]`` and ``{+stays+}``.
    """
    goes, stays = removal.document, removal.canonical
    where = f"{goes.index}/{goes.id}"
    kept = stays.id if stays.index == goes.index else f"{stays.index}/{stays.id}"
    yield f"{percent_similar(removal.similarity)}  {where} would go, {kept} stays ({relation(removal)})"
    for pair in compare_fields(removal):
        yield from (f"    {line}" for line in _field_lines(pair))


def _field_lines(pair: FieldPair) -> Iterator[str]:
    if pair.diff is None:
        values = [value if value is not None else "(none)" for value in (pair.goes, pair.stays)]
        yield f"{pair.name}: {values[0]}" if pair.is_equal else f"{pair.name}: [-{values[0]}-] {{+{values[1]}+}}"
        return
    if not pair.diff.excerpts:
        yield f"{pair.name}: no words differ"
    for excerpt in pair.diff.excerpts:
        yield f"{pair.name}: {_excerpt(excerpt)}"
    if pair.diff.omitted:
        yield f"{pair.name}: and {pair.diff.omitted:,} more place{'' if pair.diff.omitted == 1 else 's'}"
    if pair.diff.is_cut or pair.is_cut:
        yield f"{pair.name}: the texts are long, and only their beginnings were compared here"


def _excerpt(excerpt: Iterable[Segment]) -> str:
    return "".join(f"{_MARKS[part.change][0]}{part.text}{_MARKS[part.change][1]}" for part in excerpt)
