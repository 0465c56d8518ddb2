"""The kind of difference between two texts, in one word for a person who judges the pair. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from es_simhash.texts.measures import WORD_SHINGLES

if TYPE_CHECKING:
    from es_simhash.hashing.characters import Codes
    from es_simhash.texts.shingle_sets import Shingles

Difference = Literal["same", "numbers", "cut", "added", "rewritten"]
"""What the first of two texts is to the second one."""

DIFFERENCES: tuple[Difference, ...] = get_args(Difference)

SAID: dict[Difference, str] = {
    "same": "the same letters",
    "numbers": "only numbers differ",
    "cut": "a part is cut",
    "added": "something is added",
    "rewritten": "words are changed",
}
"""Each difference for people, the first text beside the second one."""

_MEASURE = WORD_SHINGLES.noting_numbers()

# Where a text was cut, or got a passage, two or three shingles around the place are new.
_MUCH = 5


@dataclass(frozen=True, slots=True)
class Prepared:
    """The letters of a text in their order, its shingles, and its numbers behind them."""

    letters: Codes
    shingles: Shingles


def prepare_text(text: str) -> Prepared:
    """Return *text* prepared for :func:`difference_of`."""
    from es_simhash.texts.letters import compared_letters  # noqa: PLC0415 -- loads numpy

    return Prepared(compared_letters([text])[0], _MEASURE.prepare([text])[0])


def difference_of(first: Prepared, second: Prepared) -> Difference:
    """
    Return how the first of two prepared texts differs from the second one.

    >>> text = "The office moved its counter to the second floor on Monday, and opens it at nine from now on."
    >>> difference_of(prepare_text(text), prepare_text(f"{text} (Agency)"))
    'cut'
    """
    from es_simhash.texts.edit import trim_ends  # noqa: PLC0415 -- loads numpy
    from es_simhash.texts.shingle_sets import share_shingles  # noqa: PLC0415 -- loads numpy

    # Between what both begin and end with: nothing is left of a text that lacks one passage and has all else.
    own, other = map(len, trim_ends(first.letters, second.letters))
    if not own or not other:
        return "same" if own == other else "added" if own else "cut"
    if _MEASURE.compare(first.shingles, second.shingles).numbers == "only":
        return "numbers"
    sets = [each.shingles[: _MEASURE.size(each.shingles)] for each in (first, second)]
    shares = share_shingles(*sets)[:2]
    own, other = (round(each.size * (1 - share)) for each, share in zip(sets, shares, strict=True))
    if _MUCH * own <= other:
        return "cut"
    return "added" if _MUCH * other <= own else "rewritten"
