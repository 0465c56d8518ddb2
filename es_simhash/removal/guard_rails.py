"""The guard rails of a plan: how many documents may go, and what makes it doubtful that they are copies. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from es_simhash.arguments import check_number
from es_simhash.errors import GuardRailError, shorten
from es_simhash.record import Record

if TYPE_CHECKING:
    from es_simhash.removal.plan_options import PlanHeader
    from es_simhash.removal.removal_file import Lines
    from es_simhash.transport.protocol import Key

Say: TypeAlias = Callable[..., str]
"""Returns a sentence, with what stands in braces filled in, in some language."""


def in_english(sentence: str, **values: object) -> str:
    return sentence.format(**values)


DEFAULT_MAX_SHARE = 0.2
SHOWN = 3
MOST_TITLES, FEWEST_TITLES, FEWEST_SAME = 0.5, 20, 2
SHORT_BYTES = 100
"""Of a text that may say nothing, such as "No description available.": in UTF-8, so that logographs count more."""
LARGE_SHARE, FEWEST_LARGE = 0.01, 1_000
"""By bits alone, within 12, the largest group of four real sets has .1 to .7 % of the documents; of 3,278 licences,
3.6 %."""


def check_max_share(share: Any) -> float:
    """Return *share* as a float; raise TypeError or InvalidInputError if it is not a number from 0 to 1."""
    return check_number("max_share", share, advice="a share from 0 to 1, such as 0.2")


@dataclass(frozen=True, slots=True)
class Share(Record):
    """How many documents of a whole would be removed: *removals* of *documents*."""

    removals: int
    documents: int

    def exceeds(self, max_share: float) -> bool:
        """Return whether more than *max_share* of the documents would be removed."""
        # By the decimal number that people gave: 0.29 * 100 is less than 29 in floating point.
        return self.removals > Fraction(str(max_share)) * self.documents


@dataclass(frozen=True, slots=True)
class Excess:
    """A share that is too large; *field* is ``None`` if the whole index is meant."""

    share: Share
    max_share: float
    field: str | None = None
    value: str | None = None

    def __str__(self) -> str:
        return self.words()

    def words(self, say: Say = in_english) -> str:
        """Return what is too large, for people."""
        which = "of the index" if self.field is None else "with {field} {value}"
        return say(
            f"{{removals}} of {{documents}} documents {which} would be removed, more than the share of {{share}}",
            removals=f"{self.share.removals:,}",
            documents=f"{self.share.documents:,}",
            share=f"{self.max_share:g}",
            field=self.field,
            value=shorten(self.value),
        )


@dataclass(frozen=True, slots=True)
class Titles(Record):
    """
    How many documents that would go have another title (*field*) than what stays for them: *differ* of *number*.
    *same_words*: only those whose texts have the same words were counted.
    """

    argument: ClassVar[str] = "other_titles"

    field: str
    differ: int
    number: int
    same_words: bool = True

    @property
    def is_suspicious(self) -> bool:
        """Whether the title is what tells these documents apart: one that is written anew now and then is none."""
        fewest = FEWEST_SAME if self.same_words else FEWEST_TITLES
        return self.differ > MOST_TITLES * self.number and self.number >= fewest

    def words(self, say: Say = in_english) -> str:
        """Return what is suspicious, for people."""
        counts = {"differ": f"{self.differ:,}", "number": f"{self.number:,}", "field": self.field}
        if self.same_words:
            return say(
                "{differ} of {number} documents that have the same words as what stays have another {field}: they may "
                "be different documents",
                **counts,
            )
        return say(
            "{differ} of {number} documents have another {field} than what stays: they may be different documents",
            **counts,
        )


@dataclass(frozen=True, slots=True)
class OneText(Record):
    """A short *text* that a document which stays has, and others that would go for it: *titles* in *documents*."""

    argument: ClassVar[str] = "other_titles"

    field: str
    text: str
    titles: int
    documents: int

    @property
    def is_suspicious(self) -> bool:
        """Whether the text says nothing, and the title tells these documents apart."""
        return self.documents > FEWEST_SAME and self.titles > MOST_TITLES * self.documents

    def words(self, say: Say = in_english) -> str:
        """Return what is suspicious, for people."""
        return say(
            "{documents} documents have the short text {text}, and {titles} different values of {field}: they may be "
            "different documents",
            documents=f"{self.documents:,}",
            text=shorten(self.text),
            titles=f"{self.titles:,}",
            field=self.field,
        )


@dataclass(frozen=True, slots=True)
class OneStays(Record):
    """How many documents would go for one, the document *id*: *removals*, where the index has so many *documents*."""

    argument: ClassVar[str] = "large_groups"

    id: str
    removals: int
    documents: int

    @property
    def is_suspicious(self) -> bool:
        """Whether these are so many that most are hardly copies."""
        return self.removals >= FEWEST_LARGE and self.removals > LARGE_SHARE * self.documents

    def words(self, say: Say = in_english) -> str:
        """Return what is suspicious, for people."""
        return say(
            "{removals} of {documents} documents would go for one, {id}: they may share template text",
            removals=f"{self.removals:,}",
            documents=f"{self.documents:,}",
            id=shorten(self.id),
        )


Doubt: TypeAlias = Titles | OneText | OneStays
"""What makes it doubtful that documents of a plan are copies; *argument* of the apply allows it."""


@dataclass(frozen=True, slots=True)
class Guards(Record):
    """
    The guard rails of a plan, with the numbers that were found when it was made.
    *max_share* (0 to 1) is for the whole index and for each value of the keyword field *protect*. *documents*: the
    number in all indices of the plan. *values*: for each value of *protect* that loses documents, how many of how many.
    """

    _NAMES = "max_share documents protect values"

    max_share: float = DEFAULT_MAX_SHARE
    protect: str | None = None
    documents: int = 0
    values: Mapping[str, Share] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_max_share(self.max_share)

    def find_excess(self, removals: int) -> list[Excess]:
        """Return the shares that are too large if *removals* documents are removed; the whole index first."""
        whole = Share(removals, self.documents)
        found = [Excess(whole, self.max_share)] if whole.exceeds(self.max_share) else []
        return found + [
            Excess(share, self.max_share, self.protect, value)
            for value, share in self.values.items()
            if share.exceeds(self.max_share)
        ]


def refusal(excess: Sequence[Excess], say: Say = in_english) -> str:
    """Return, for people, why a removal is refused, and what allows it."""
    shares = "; ".join(portion.words(say) for portion in excess[:SHOWN])
    shares += say(" (and {number} more)", number=len(excess) - SHOWN) if len(excess) > SHOWN else ""
    sentence = "{shares}: see whether these are duplicates, and allow it with {option}"
    return say(sentence, shares=shares, option=f"max_share={_needed(excess)}")


def _needed(excess: Sequence[Excess]) -> str:
    """Return the smallest share that allows *excess*, rounded up."""
    needed = max(Fraction(portion.share.removals, portion.share.documents or 1) for portion in excess)
    return f"{min(1.0, ceil(needed * 1_000) / 1_000):g}"


def allowing(excess: Sequence[Excess], doubts: Sequence[Doubt]) -> list[str]:
    """Return the options of ``apply`` without which it would refuse a plan."""
    options = [f"--{doubt.argument.replace('_', '-')}" for doubt in doubts]
    return ["--max-share", _needed(excess), *options] if excess else options


def refuse_excess(excess: Sequence[Excess]) -> None:
    """Raise GuardRailError if there is any excess."""
    if excess:
        raise GuardRailError(refusal(excess), excess=tuple(excess))


def doubt_refusal(doubt: Doubt, say: Say = in_english) -> str:
    """Return, for people, why *doubt* is refused, and what allows it."""
    sentence = "{doubt}: look at them with es-simhash review, and allow it with {option}"
    return say(sentence, doubt=doubt.words(say), option=f"{doubt.argument}=True")


def refuse_doubts(doubts: Sequence[Doubt], allowed: Mapping[str, bool]) -> None:
    """Raise GuardRailError for the first of *doubts* that is not *allowed*, by its argument."""
    for doubt in doubts:
        if not allowed[doubt.argument]:
            raise GuardRailError(doubt_refusal(doubt), doubt=doubt)


def find_titles(lines: Lines, title: str | None, kept: Collection[Key] = ()) -> Titles:
    """Return how many documents have another *title* than what stays, without those *kept*, where that is much."""
    if title is None:
        return Titles("", 0, 0)
    counts = Counter[tuple[bool, bool]]()  # by whether the words are the same, and whether the titles differ
    for line in lines.removals():
        has_title = title in line.document.fields or title in line.canonical.fields
        if has_title and line.document.key not in kept:
            is_same = line.similarity == 1 and line.reason == "similarity"
            counts[line.difference == "same" or is_same, line.differs(title)] += 1
    same = Titles(title, counts[True, True], counts[True, True] + counts[True, False])
    every = Titles(title, same.differ + counts[False, True], counts.total(), same_words=False)
    return every if every.is_suspicious and not same.is_suspicious else same


def find_doubts(lines: Lines, header: PlanHeader, kept: Collection[Key] = ()) -> list[Doubt]:
    """Return what makes it doubtful that the documents of a plan, without those *kept*, are copies."""
    titles = find_titles(lines, header.title, kept)
    found: list[Doubt] = [titles]
    if header.title is not None and not titles.is_suspicious:
        found += _find_one_text(lines, header, header.title, kept)
    if crowds := lines.count_crowds():
        if kept:
            crowds.subtract(line.canonical.key for line in lines.removals() if line.document.key in kept)
        [(key, number)] = crowds.most_common(1)
        found.append(OneStays(key.id, number, header.guards.documents))
    return [doubt for doubt in found if doubt.is_suspicious]


def _find_one_text(lines: Lines, header: PlanHeader, title: str, kept: Collection[Key]) -> list[OneText]:
    """Return the short text that most documents with other titles have, if there is one."""
    groups: dict[Key, OneText] = {}
    titles: dict[Key, list[str]] = {}
    for removal in lines.removals("same"):
        canonical = removal.canonical
        fields = canonical.fields
        text = " ".join(str(fields[name]) for name in header.decided_by[canonical.index] if name in fields)
        if removal.document.key in kept or not 0 < len(text.encode("utf-8", "replace")) <= SHORT_BYTES:
            continue
        shown = titles.setdefault(canonical.key, canonical.shown(title))
        shown += removal.document.shown(title)
        groups[canonical.key] = OneText(title, text, len({*shown}), len(shown))
    found = [group for group in groups.values() if group.is_suspicious]
    return sorted(found, key=lambda group: -group.documents)[:1]
