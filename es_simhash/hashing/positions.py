"""
Normalised characters with their places in the original text, for passages that are shown in the original.

The normalised characters are those of ``characters.normalise_batch``, without separators. numpy only; callers import
this module lazily.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from es_simhash.hashing.characters import (
    COMBINES,
    SEPARATOR,
    UNASSIGNED,
    character_entries,
    normalise_codes,
    to_codes,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["normalise_with_positions"]


def normalise_with_positions(text: str) -> tuple[NDArray[np.uint32], NDArray[np.intp], NDArray[np.intp]]:
    """
    Return the normalised characters of *text*, and where the part of the text starts and ends that each comes from.

    A character and the marks after it are one part where they are normalised together. Memory is some 30 bytes for
    each character.
    """
    codes = to_codes(text)
    entries = character_entries(codes)
    places = np.flatnonzero(entries != UNASSIGNED)
    codes, entries = codes[places], entries[places]
    if not codes.size:
        return codes, places, places
    # A character that combines belongs to the one before it; nothing else depends on what stands beside it.
    firsts = np.flatnonzero(np.append(True, entries[1:] != COMBINES))
    stops = np.append(firsts[1:], codes.size)
    is_plain = (stops - firsts == 1) & (entries[firsts] < UNASSIGNED)
    counts = (is_plain & (entries[firsts] > SEPARATOR)).astype(np.intp)
    slow: list[tuple[int, NDArray[np.uint32]]] = []
    for part in np.flatnonzero(~is_plain).tolist():
        normal = _normalise_part(codes[firsts[part] : stops[part]].tobytes())
        counts[part] = normal.size
        slow.append((part, normal))
    result = np.repeat(entries[firsts], counts)
    targets = np.cumsum(counts) - counts
    for part, normal in slow:
        result[targets[part] : targets[part] + normal.size] = normal
    return result, np.repeat(places[firsts], counts), np.repeat(places[stops - 1] + 1, counts)


@functools.lru_cache(maxsize=1 << 14)
def _normalise_part(data: bytes) -> NDArray[np.uint32]:
    normal = normalise_codes(np.frombuffer(data, np.uint32))
    kept: NDArray[np.uint32] = normal[normal != SEPARATOR]
    return kept
