"""The review of a removal: its numbers, its lines field by field, as text. Callers make it safe for a terminal."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import islice
from math import isnan
from typing import TYPE_CHECKING, Any, Self

from es_simhash.arguments import check_input
from es_simhash.removal.decisions import in_words
from es_simhash.removal.guard_rails import allowing, doubt_refusal, find_titles, in_english, refusal
from es_simhash.removal.removal_file import RemovalFile
from es_simhash.tables.notebook import cut, percent
from es_simhash.tables.words import Words
from es_simhash.texts.measures import DIFFERENCES, SAID, Difference
from es_simhash.texts.worddiff import Change, WordDiff, word_diff

if TYPE_CHECKING:
    from es_simhash.arguments import FilePath
    from es_simhash.removal.guard_rails import Guards, Say
    from es_simhash.removal.records import PlannedRemoval


def band_name(band: Band, say: Say = in_english) -> str:
    if band is None:
        return say("Texts not compared")
    if band >= 1:
        return say("Same words (100 %)")
    return say("{low} to {high} % similar", low=f"{band * 100:.0f}", high=f"{(band + 1 / BANDS) * 100:.0f}")


def percent_similar(similarity: float | None) -> str:
    """Return a similarity in percent, cut and not rounded, so that only texts with the same words show 100 %."""
    if band_of(similarity) is None:
        return "not compared"
    return f"{cut(similarity or 0.0) * 100:g} %"


def relation(removal: PlannedRemoval) -> str:
    """Return what the document that stays is to the one that goes, and how the text of the latter differs."""
    said = f"{removal.distance} bit{'' if removal.distance == 1 else 's'} apart"
    return said if removal.difference is None else f"{said}, {SAID[removal.difference]}"


# The marks have the meaning of the colours of the page.
_MARKS = {Change.SAME: ("", ""), Change.REMOVED: ("[-", "-]"), Change.ADDED: ("{+", "+}")}


def summary_lines(summary: Summary, said: Mapping[str, str]) -> Iterator[str]:
    total = summary.total
    of = "" if total.documents is None else f" of {total.documents:,} ({percent(total.share)})"
    yield f"{total.removals:,}{of} documents would go; {summary.canonicals:,} stay for them"
    for name, text in said.items():
        yield f"  {name}: {text}"
    for name, number in summary.differing.items():
        yield f"  in {number:,} of {total.removals:,} the field {name} differs from that of what stays"
    kinds = [(SAID[kind], f"{number:,}") for kind, number in summary.classes.items() if kind is not None]
    yield from _table("by how the text that goes differs from the one that stays", kinds)
    yield from _table("by similarity", [(band_name(band), f"{number:,}") for band, number in summary.bands.items()])
    yield from _table("by index", map(_row, summary.indices))
    for name, shares in summary.fields.items():
        yield from _table(f"by {name}", map(_row, shares))
    largest = [(f"{id_} in {index}", f"{number:,}") for index, id_, number in summary.groups]
    shown = f"{len(largest):,} of {summary.canonicals:,}"
    yield from _table(f"what stays for most removals ({shown})", largest)


def _row(share: Portion) -> tuple[str, str]:
    of = "" if share.documents is None else f" of {share.documents:,} ({percent(share.share)})"
    return share.name if share.name is not None else "(none)", f"{share.removals:,}{of}"


def _table(title: str, rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    for place, (name, number) in enumerate(rows):
        if not place:
            yield title
        yield f"  {number:>12}  {name}"


def removal_lines(removal: PlannedRemoval) -> Iterator[str]:
    """Yield a removal beside what stays, with the words that differ marked ``[-goes-]`` and ``{+stays+}``."""
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
        text = [f"{_MARKS[part.change][0]}{part.text}{_MARKS[part.change][1]}" for part in excerpt]
        yield f"{pair.name}: {''.join(text)}"
    if pair.diff.omitted:
        yield f"{pair.name}: and {pair.diff.omitted:,} more place{'' if pair.diff.omitted == 1 else 's'}"
    if pair.diff.is_cut or pair.is_cut:
        yield f"{pair.name}: the texts are long, and only their beginnings were compared here"


def review_html(path: FilePath, *, language: str = "en") -> str:
    """
    Return the plan of removal in the file *path* as one HTML page, to judge it before it is applied.

    The page has every removal beside what stays, by how their texts differ, least similar first, and loads nothing from
    anywhere. For a plan of many thousand removals, write the pieces of ``Review.html`` to a file instead.

    Args:
        path:
            File of a removal.
        language:
            ``"en"`` or ``"zh"``.

    Raises:
        InvalidInputError: If the file is no removal, or was cut short or changed.
    """
    with Review(check_input("path", path)) as review:
        return "".join(review.html(language=language))


def removal_summary(path: FilePath) -> dict[str, Any]:
    """
    Return the numbers of the removal in the file *path*, what was asked for and what was decided, as plain JSON values.

    Args:
        path:
            File of a removal.

    Raises:
        InvalidInputError: If the file is no removal, or was cut short or changed.
    """
    with Review(check_input("path", path)) as review:
        return review.to_dict()


class Review:
    """The review of a removal, which is read and found whole when it is made; else InvalidInputError is raised."""

    def __init__(self, path: FilePath) -> None:
        with ExitStack() as stack:
            self._removal = stack.enter_context(RemovalFile(path))
            self.sha256 = self._removal.sha256
            self.summary: Summary = summarize(self._removal.removals(), self._removal.header.guards)
            stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._removal.close()

    @property
    def allowing(self) -> list[str]:
        """The options of the command ``apply`` without which it would refuse the plan."""
        return allowing(*self._removal.refusals())

    def html(self, *, language: str = "en") -> Iterator[str]:
        from es_simhash.removal.review_page import CATALOGUE, ReviewPage, write_page  # noqa: PLC0415 -- only for pages

        found, say = self._removal, Words(language, CATALOGUE)
        said = describe(found, say, language)
        page = ReviewPage(found.path.name, found.sha256, said, self.summary, found.removals, found.log, self.allowing)
        yield from write_page(page, say)

    def text(self, *, limit: int | None = None) -> Iterator[str]:
        """Yield the review as lines, least similar first; line breaks and controls of the documents are in them."""
        yield from summary_lines(self.summary, describe(self._removal))
        if self.summary.total.removals and limit != 0:
            yield ""
            yield "[-words-] are only in the document that would go, {+words+} only in what stays"
        for removal in islice(self._removal.removals(), limit):
            yield ""
            yield from removal_lines(removal)

    def removals(self) -> Iterator[PlannedRemoval]:
        """Yield the removals, least similar first."""
        return self._removal.removals()

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers of the plan as plain JSON values."""
        header = self._removal.header
        titles = find_titles(self._removal, header.title, self._removal.kept)
        excess, _ = self._removal.refusals()
        return {
            "plan": self.sha256,
            "at": header.at,
            "indices": list(header.index_uuids),
            "grouping": dict(header.grouping),
            "asked": dict(header.asked),
            "shown": dict(header.shown),
            "max_share": header.guards.max_share,
            "protect": header.guards.protect,
            "excess": [asdict(portion) for portion in excess],
            "titles": titles.to_dict() if header.title is not None else None,
            "decisions": [decision.to_dict() for decision in self._removal.log],
            "kept": len(self._removal.kept),
            **self.summary.to_dict(),
        }


def describe(removal: RemovalFile, say: Say = in_english, language: str = "en") -> dict[str, str]:
    """Return what a plan says of itself, for people: a name and a text for each fact."""
    header = removal.header
    guards = header.guards
    limit = say("at most {share} % of the documents", share=f"{guards.max_share * 100:g}")
    limit += say(", and of each value of {field}", field=guards.protect) if guards.protect else ""
    excess, doubts = removal.refusals()
    refused = [refusal(excess, say)] if excess else []
    refused += [doubt_refusal(doubt, say) for doubt in doubts]
    decided = say("{number} of them stay, by {by}", number=f"{len(removal.kept):,}", by=in_words(removal.approved))
    before = say("{number} stay by earlier decisions", number=f"{header.decided or 0:,}")
    return {
        "made": header.at or say("at an unknown time"),
        "indices": ", ".join(header.index_uuids),
        "grouping": say("; ").join(header.rule_parts(language)),
        "guard rail": limit,
        **({"decided before": before} if header.decided else {}),
        **({"decided": decided} if removal.approved else {}),
        **({"apply will refuse this": "; ".join(refused)} if refused else {}),
        "SHA-256": removal.sha256,
    }


LONGEST_VALUE = 120
"""Characters of a value that is shown in one cell; a longer one is a text."""


@dataclass(frozen=True, slots=True)
class FieldPair:
    """
    A field of both documents: its value in the one that goes, and in the one that stays (``None``: it has none).
    *is_cut*: the plan has only the beginning of a value. *diff*: the words that differ, where white space counts as one
    space; ``None`` for short values.
    """

    name: str
    goes: str | None
    stays: str | None
    is_cut: bool = False
    diff: WordDiff | None = None

    @property
    def is_equal(self) -> bool:
        """Whether both values are the same."""
        return self.goes == self.stays


def field_text(value: Any) -> str | None:
    """Return the value of a field as text; ``None`` where there is none."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    return json.dumps(value, ensure_ascii=False)


def is_short(value: str | None) -> bool:
    return value is None or (len(value) <= LONGEST_VALUE and "\n" not in value)


def compare_fields(removal: PlannedRemoval, *, max_changes: int = 6) -> list[FieldPair]:
    """Return the fields of both documents, in the order of the one that goes; *max_changes* differences for each."""
    goes, stays = removal.document, removal.canonical
    cut = {*goes.cut, *stays.cut}
    pairs = []
    for name in dict.fromkeys([*goes.fields, *stays.fields]):
        one, other = field_text(goes.fields.get(name)), field_text(stays.fields.get(name))
        diff = None
        if not (is_short(one) and is_short(other)):
            diff = word_diff(_on_one_line(one), _on_one_line(other), max_changes=max_changes)
        pairs.append(FieldPair(name, one, other, name in cut, diff))
    return pairs


def _on_one_line(text: str | None) -> str:
    # White space is no part of a shingle: a line that was wrapped elsewhere is no difference.
    return " ".join((text or "").split())


BANDS = 20
"""Bands of similarity between 0 and 1; texts of similarity 1 have a band of their own."""

MOST_VALUES = 10
MOST_GROUPS = 10
# A field is counted by where its values repeat: a title, which differs in each document, is no source.
_MOST_DIFFERENT = 1_000
Band = float | None


def band_of(similarity: float | None) -> Band:
    """Return the lower end of the band of *similarity*; ``None`` if texts were not compared."""
    if similarity is None or isnan(similarity):
        return None
    return int(min(max(similarity, 0.0), 1.0) * BANDS + 1e-9) / BANDS


@dataclass(frozen=True, slots=True)
class Portion:
    """How many documents would go, of how many (``None``: unknown), for an index or value (``None``: without one)."""

    name: str | None
    removals: int
    documents: int | None = None

    @property
    def share(self) -> float | None:
        """The part that would go, 0 to 1; ``None`` where it is not known."""
        return self.removals / self.documents if self.documents else None

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        share = self.share
        return {
            "name": self.name,
            "removals": self.removals,
            "documents": self.documents,
            "share": None if share is None else round(share, 4),
        }


@dataclass(frozen=True, slots=True)
class Summary:
    """
    The numbers of a plan; tuples have most removals first.
    *bands* has the smallest similarity first, before it ``None`` for texts that were not compared. *groups*: index and
    id of the documents that stand for most removals, with the number. *canonicals*: how many different documents stay.
    *lowest*: the smallest similarity; ``None`` if no texts were compared. *classes*: removals by how the texts differ;
    ``None``: they were not compared. *differing*: for each field with short values how many documents have another one
    than what stays.
    """

    total: Portion
    indices: tuple[Portion, ...]
    fields: Mapping[str, tuple[Portion, ...]]
    bands: Mapping[Band, int]
    groups: tuple[tuple[str, str, int], ...]
    canonicals: int
    lowest: float | None
    classes: Mapping[Difference | None, int]
    differing: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain JSON values."""
        return {
            "total": self.total.to_dict(),
            "indices": [portion.to_dict() for portion in self.indices],
            "fields": {name: [portion.to_dict() for portion in shares] for name, shares in self.fields.items()},
            "similarity": [{"from": band, "removals": number} for band, number in self.bands.items()],
            "groups": [{"index": index, "id": id_, "removals": number} for index, id_, number in self.groups],
            "canonicals": self.canonicals,
            "lowest": self.lowest,
            "differences": {kind: number for kind, number in self.classes.items() if kind is not None},
            "differing": dict(self.differing),
        }


def summarize(removals: Iterable[PlannedRemoval], guards: Guards) -> Summary:
    """Return the numbers of a plan, also by the protected field and each field whose values are short and repeat."""
    indices: Counter[str] = Counter()
    bands: Counter[Band] = Counter()
    groups: Counter[tuple[str, str]] = Counter()
    values = _Values(guards.protect)
    lowest: float | None = None
    classes: Counter[Difference | None] = Counter()
    differing: Counter[str] = Counter()
    long: set[str] = set()
    for removal in removals:
        goes, stays = removal.document.fields, removal.canonical.fields
        for name in dict.fromkeys([*goes, *stays]):
            if not all(is_short(field_text(fields.get(name))) for fields in (goes, stays)):
                long.add(name)
            else:
                differing[name] += removal.differs(name)
        classes[removal.difference] += 1
        indices[removal.document.index] += 1
        bands[band_of(removal.similarity)] += 1
        groups[removal.canonical.index, removal.canonical.id] += 1
        values.add(removal.document.fields)
        if removal.similarity is not None:
            lowest = removal.similarity if lowest is None else min(lowest, removal.similarity)
    total = indices.total()
    protected = {guards.protect: {value: share.documents for value, share in guards.values.items()}}
    fields = {name: _shares(counts, protected.get(name, {})) for name, counts in values.counted(total).items()}
    return Summary(
        Portion(None, total, guards.documents or None),
        _shares(indices, {}),
        fields,
        dict(sorted(bands.items(), key=lambda item: -1.0 if item[0] is None else item[0])),
        tuple((index, id_, number) for (index, id_), number in groups.most_common(MOST_GROUPS) if number > 1),
        len(groups),
        lowest,
        {kind: classes[kind] for kind in (*DIFFERENCES, None) if kind in classes},
        {name: number for name, number in differing.items() if number and name not in long},
    )


class _Values:
    """Counts the values of each field, as long as they can be a source, a language or the like."""

    def __init__(self, protect: str | None) -> None:
        self._protect = protect
        self._counts: dict[str, Counter[str | None]] = {}
        self._dropped: set[str] = set()

    def add(self, fields: Mapping[str, Any]) -> None:
        for name in fields.keys() - self._dropped:
            text = field_text(fields[name])
            counts = self._counts.setdefault(name, Counter())
            counts[text] += 1
            if name != self._protect and (not is_short(text) or len(counts) > _MOST_DIFFERENT):
                self._dropped.add(name)
                del self._counts[name]

    def counted(self, total: int) -> dict[str, Counter[str | None]]:
        """Return the fields to show; the protected one first."""
        for counts in self._counts.values():
            counts[None] += total - counts.total()
        every = {name: +counts for name, counts in self._counts.items()}
        names = sorted(every, key=lambda name: (name != self._protect, name))
        return {name: every[name] for name in names if name == self._protect or 2 * len(every[name]) <= max(total, 2)}


def _shares(counts: Counter[Any], documents: Mapping[str, int]) -> tuple[Portion, ...]:
    return tuple(Portion(name, number, documents.get(name)) for name, number in counts.most_common(MOST_VALUES))
