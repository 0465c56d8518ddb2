"""
Scripts with special rules for words and shingles: their code points and the lengths of shingles.

Released schemes depend on these ranges, so they never change. Only code points are read here, no text.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


Ranges = tuple[tuple[int, int], ...]

UNSPACED: Ranges = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),
    (0x3021, 0x3029),
    (0x3031, 0x3035),
    (0x3038, 0x30FF),  # kana
    (0x3105, 0x312F),  # bopomofo
    (0x31A0, 0x31BF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xA9E0, 0xA9FF),
    (0xAA60, 0xAA7F),
    (0xF900, 0xFAFF),
    (0x1AFF0, 0x1B16F),
    (0x20000, 0x3FFFD),
)
"""Scripts written without spaces. Tibetan is none of them: it separates its syllables."""

LOGOGRAPHS: Ranges = (
    (0x3005, 0x3007),  # iteration and closing marks, zero
    (0x3021, 0x3029),
    (0x3038, 0x303B),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xA000, 0xA48C),  # Yi
    (0xAC00, 0xD7A3),  # Hangul syllables
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFD),
)
"""Scripts with thousands of characters, each of which carries about as much information as two or three letters."""

KANA: Ranges = ((0x3041, 0x30FF), (0x3105, 0x312F), (0x31A0, 0x31BF), (0x31F0, 0x31FF), (0x1AFF0, 0x1B16F))
"""Kana and bopomofo: between letters and logographs."""


def is_within(codes: NDArray[np.uint32], ranges: Ranges) -> NDArray[np.bool_]:
    """Return for each of *codes* whether it is in one of *ranges*, ends included."""
    edges = np.array([edge for first, last in ranges for edge in (first, last + 1)], np.uint32)
    inside: NDArray[np.bool_] = np.searchsorted(edges, codes, side="right") % 2 == 1
    return inside


@functools.cache
def _unspaced() -> NDArray[np.bool_]:
    return is_within(np.arange(0x11_0000, dtype=np.uint32), UNSPACED)


def is_unspaced(codes: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return for each of *codes* whether it belongs to a script written without spaces."""
    found: NDArray[np.bool_] = _unspaced().take(codes)
    return found


def letter_counts(codes: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Return what each of *codes* counts in shingles of characters: a letter 3, a kana 4, a logograph 6."""
    counts: NDArray[np.uint8] = _letter_counts().take(codes)
    return counts


@functools.cache
def _letter_counts() -> NDArray[np.uint8]:
    every = np.arange(0x11_0000, dtype=np.uint32)
    counts = np.full(every.size, 3, np.uint8)
    counts[is_within(every, KANA)] = 4
    counts[is_within(every, LOGOGRAPHS)] = 6
    return counts


def shingle_lengths(codes: NDArray[np.uint32], size: int) -> NDArray[np.uint8]:
    """
    Return the length of the shingle from each of *codes* on: the fewest characters worth *size* letters.

    A logograph is worth two letters, and three kana are worth four. *codes* have no separators. Letters are
    assumed to follow the last character, so the last shingles may reach beyond the end.
    """
    counts = np.concatenate([letter_counts(codes), np.full(size, 3, np.uint8)])
    worth = counts[: codes.size].copy()
    lengths = np.ones(codes.size, np.uint8)
    for step in range(1, size):
        lengths += worth < 3 * size
        worth += counts[step : step + codes.size]
    return lengths
