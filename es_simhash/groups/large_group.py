"""
The warning about a group that takes in so many documents that most are hardly copies. No requests.

By bits alone, within 12, the largest group of four real sets has .1 to .7 % of the documents; of 3,278 licences, 3.6 %.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from es_simhash.errors import REGROUP, Advice, Said, shorten
from es_simhash.mapping.context import Context
from es_simhash.mapping.rule import Grouping

logger = logging.getLogger("es_simhash")

SHARE, FEWEST, TEXTS = 0.01, 1_000, 3
# Shorter texts say little.
_SHORT = 60

FIND_TEMPLATES = Advice("check_sample", command="check INDEX --sample 1000")


def is_large(members: int, documents: int) -> bool:
    """Return whether a group with so many duplicates is large, in an index of so many documents."""
    return members >= FEWEST and members > SHARE * documents


@dataclass(frozen=True, slots=True)
class LargeGroup:
    """A group *name* with so many *members*, duplicates of one document, and *texts* of some."""

    name: str
    members: int
    documents: int
    texts: Sequence[str] = ()

    def warn(self, context: Context, grouping: Grouping) -> None:
        """Log what it is, once for each group that a client object meets."""
        if context.meets(f"large group {self.name}"):
            return
        share = f"{100 * self.members / max(1, self.documents):.1f} %"
        said = [f"{self.members:,} of {self.documents:,} documents ({share}) repeat document {shorten(self.name)}"]
        said += [": " + ", ".join(map(shorten, self.texts))] if self.texts else []
        logger.warning(Said(*said, ". Look whether they are copies: ", *self._cause(grouping)))

    def _cause(self, grouping: Grouping) -> tuple[str | Advice, ...]:
        """Return what most likely made such a group of other documents than copies."""
        if grouping.rule == "connected":
            return ("the rule 'connected' joins step by step, and 'star' does not: ", REGROUP)
        if self.texts and median(map(len, self.texts)) < _SHORT:
            return ("the texts are short, or nearly empty: leave these out, or record another text field",)
        if grouping.similarity is None:
            return ("their texts were not compared: record a similarity, with ", REGROUP)
        return ("they may share template text, such as a licence: ", FIND_TEMPLATES, " finds it")


class Intake:
    """
    Counts the duplicates of each group among many, in little memory.
    A group with more than one of 256 duplicates is always known: its count is at most that share too small (Misra and
    Gries, Science of Computer Programming 1982).
    """

    _MOST = 255

    def __init__(self) -> None:
        self._counts = Counter[str]()

    def add(self, names: Sequence[str]) -> dict[str, int]:
        """Count *names*, and return how often those of them came that may be large."""
        for name, number in Counter(names).items():
            self._counts[name] += number
            if len(self._counts) > self._MOST:
                least = min(self._counts.values())
                self._counts = Counter({key: value - least for key, value in self._counts.items() if value > least})
        return {name: number for name in {*names} if (number := self._counts[name]) >= FEWEST}
