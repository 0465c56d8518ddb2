"""
The numbers of texts, and which of two texts has other numbers in the same places.

A number is a run of digits of any script, after NFKC, with a point or comma between two of them: 2.5 and 2,5 are one
number and the same. A point, comma or apostrophe before exactly three digits only groups them: 1,500 is 1500. 12:30 and
2026-01-31 are two and three numbers. What is written with letters is none: 1.5 thousand is 1.5 and a word, and 二 is a
word. A number stands in a place, which is six letters before it, or six after it, without digits. If two texts have the
same place, and each has a number there that the other does not have there, a number was replaced. A number in a passage
that one text lacks was added or cut, and not replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import xxhash

from es_simhash.hashing.characters import (
    BASE,
    DROPPED,
    MARK,
    SEPARATOR,
    Codes,
    Flags,
    Hashes,
    Places,
    character_entries,
    to_codes,
)
from es_simhash.texts.letters import compared_letters, text_batches
from es_simhash.texts.shingle_sets import mix_runs

# Letters of a place, on one side of a number.
_SIDE = 6
# Digits that are looked at of a longer number.
_DIGITS = 64
# Between two texts: no letter of any text.
_END = 1
_POINTS = ".,'’\u066b\u066c\uff0c\uff0e"
_HIGH = np.uint64(32)


def text_numbers(texts: Sequence[str]) -> list[Hashes]:
    """
    Return for each text its numbers, then a hash of its other letters, then how many hashes of numbers there are.
    These are sorted, up to two for each number: the place is in the upper half of the bits, the number in the lower.
    """
    found = []
    for batch in text_batches(texts):
        codes, ends = compared_letters(batch)
        parts = np.split(codes, ends[:-1])
        found += [
            np.append(numbers, np.array([_hash_others(part), numbers.size], np.uint64))
            for numbers, part in zip(_find(batch), parts, strict=True)
        ]
    return found


def compare_numbers(first: Hashes, second: Hashes) -> Literal["only", "replaced", "same"]:
    """Return whether only numbers differ, or a number of one text stands in the other's place of another number."""
    if first[-2] == second[-2]:
        return "same" if np.array_equal(first, second) else "only"
    both = first[:-2], second[:-2]
    mine, others = (np.setdiff1d(*pair, assume_unique=True) >> _HIGH for pair in (both, both[::-1]))
    return "replaced" if np.isin(mine, others).any() else "same"


def _hash_others(codes: Codes) -> int:
    return xxhash.xxh3_64_intdigest(codes[~_is_digit(codes)].tobytes())


def _is_digit(codes: Codes) -> Flags:
    return (codes >= ord("0")) & (codes <= ord("9"))


def _find(texts: Sequence[str]) -> list[Hashes]:
    # As many ends between two texts as a place has letters, and before the first.
    end = chr(_END) * _SIDE
    codes = to_codes(end + end.join(texts) + end)
    entries = character_entries(codes)
    # One value for each character, so marks count for nothing here.
    values = np.where(entries < MARK, entries & np.uint32(BASE), np.uint32(DROPPED))
    is_digit = _is_digit(values)
    lengths = np.fromiter(map(len, texts), np.intp, len(texts)) + _SIDE
    none: list[Hashes] = [np.empty(0, np.uint64)] * len(texts)
    if not is_digit.any():
        return none
    is_point = np.isin(codes, np.frombuffer(_POINTS.encode("utf-32-le"), "<u4"))
    is_point[1:-1] &= is_digit[:-2] & is_digit[2:]
    # The sixth letter of an end is no digit, so there are four more characters behind every digit.
    before_three = np.zeros(codes.size, np.bool_)
    before_three[:-4] = is_digit[1:-3] & is_digit[2:-2] & is_digit[3:-1] & ~is_digit[4:]
    is_number = is_digit | is_point
    is_start = is_number.copy()
    is_start[1:] &= ~is_number[:-1]
    starts = np.flatnonzero(is_start)
    is_kept = is_digit | (is_point & ~before_three)
    kept = np.flatnonzero(is_kept)
    firsts = np.searchsorted(kept, starts)
    sizes = np.minimum(np.diff(firsts, append=kept.size), _DIGITS)
    digits = np.where(is_digit, values, np.uint32(ord(".")))[kept].astype(np.uint64)
    numbers = mix_runs(digits, firsts, sizes)
    is_letter = ((values > SEPARATOR) & ~is_digit) | (codes == _END)
    letters = np.where(codes == _END, _END, values)[is_letter].astype(np.uint64)
    before = np.searchsorted(np.flatnonzero(is_letter), starts)
    side = np.full(starts.size, _SIDE)
    owners = np.searchsorted(np.cumsum(lengths), starts, side="right")
    # Where a text ends within six letters that is no place: many a text ends with a number of the same unit.
    has_after = letters[before + (_SIDE - 1)] != _END
    places = np.concatenate(
        [mix_runs(letters, before - _SIDE, side), ~mix_runs(letters, before, side)[has_after]], dtype=np.uint64
    )
    numbers, owners = (np.concatenate([column, column[has_after]]) for column in (numbers, owners))
    return _split(places >> _HIGH << _HIGH | numbers >> _HIGH, owners, len(texts))


def _split(entries: Hashes, owners: Places, count: int) -> list[Hashes]:
    order = np.lexsort((entries, owners))
    entries, owners = entries[order], owners[order]
    is_new = np.ones(entries.size, np.bool_)
    is_new[1:] = (entries[1:] != entries[:-1]) | (owners[1:] != owners[:-1])
    entries, owners = entries[is_new], owners[is_new]
    return np.split(entries, np.searchsorted(owners, np.arange(1, count)))
