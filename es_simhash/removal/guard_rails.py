"""The guard rails of a plan: what share of the documents may go, and how many may go for one that stays. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, TypeAlias

from es_simhash.arguments import check_number
from es_simhash.errors import shorten
from es_simhash.record import Record
from es_simhash.tables.words import Words

Say: TypeAlias = Callable[..., str]
"""Returns a sentence, with what stands in braces filled in, in some language."""


in_english = Words("en", "")


DEFAULT_MAX_SHARE = 0.2
LARGE_SHARE, FEWEST_LARGE = 0.01, 1_000
"""By bits alone, within 12, the largest group of four real sets has .1 to .7 % of the documents; of 3,278 licences,
3.6 %."""


def check_max_share(share: Any) -> float:
    """Return *share* as a float; raise TypeError or InvalidInputError if it is not a number from 0 to 1."""
    return check_number("max_share", share, advice="a share from 0 to 1, such as 0.2")


@dataclass(frozen=True, slots=True)
class Excess(Record):
    """A share that is too large: *removals* of *documents*, more than *max_share*."""

    removals: int
    documents: int
    max_share: float

    def said(self, say: Say = in_english) -> str:
        """Return, for people, why a removal is refused."""
        sentence = "{removals} of {documents} documents would be removed, more than the share of {share}"
        return say(sentence, removals=self.removals, documents=self.documents, share=f"{self.max_share:g}")

    def refusal(self) -> str:
        """Return, for people, why a removal is refused, and what allows it."""
        needed = min(1.0, ceil(Fraction(self.removals, self.documents or 1) * 1_000) / 1_000)
        return f"{self.said()}: see whether these are duplicates, and allow it with max_share={needed:g}"


@dataclass(frozen=True, slots=True)
class OneStays(Record):
    """How many documents would go for one, the document *id*: *removals*, where the index has so many *documents*."""

    id: str
    removals: int
    documents: int

    @property
    def is_suspicious(self) -> bool:
        """Whether these are so many that most are hardly copies."""
        return self.removals >= FEWEST_LARGE and self.removals > LARGE_SHARE * self.documents

    def said(self, say: Say = in_english) -> str:
        """Return, for people, why a removal is refused."""
        sentence = "{removals} of {documents} documents would go for one, {id}: they may share template text"
        return say(sentence, removals=self.removals, documents=self.documents, id=shorten(self.id))

    def refusal(self) -> str:
        """Return, for people, why a removal is refused, and what allows it."""
        return f"{self.said()}: look at them with es-simhash review, and allow it with large_groups=True"


@dataclass(frozen=True, slots=True)
class Guards(Record):
    """The largest share of all *documents*, those in the indices of the plan, that may go: *max_share*, 0 to 1."""

    max_share: float = DEFAULT_MAX_SHARE
    documents: int = 0

    def __post_init__(self) -> None:
        check_max_share(self.max_share)

    def find_excess(self, removals: int) -> Excess | None:
        """Return what is too large if *removals* documents are removed."""
        # By the decimal number that people gave: 0.29 * 100 is less than 29 in floating point.
        is_excess = removals > Fraction(str(self.max_share)) * self.documents
        return Excess(removals, self.documents, self.max_share) if is_excess else None
