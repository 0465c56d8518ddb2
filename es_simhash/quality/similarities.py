"""
Exact shingle similarity of many pairs of texts at once, in arrays of bounded size.

The shingles and what similarity means are those of ``index.verify``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from es_simhash.index.similarity import shingle_set

__all__ = ["pair_similarities"]

Numbers = NDArray[np.uint64]

# Shingles compared at once: a few arrays of this length are alive, 8 bytes an element.
_CHUNK = 1 << 22


def pair_similarities(
    texts: Sequence[str], left: NDArray[np.int64], right: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """
    Return Jaccard similarity and containment of the texts at *left* with those at *right*, pair by pair.

    Memory: 4 bytes for each distinct shingle of the texts that occur, 12 while they are numbered.
    """
    used, places = np.unique(np.concatenate([left, right]), return_inverse=True)
    sets = [shingle_set(texts[text]) for text in used.tolist()]
    sizes = np.array([each.size for each in sets], np.int64)
    starts = np.cumsum(sizes) - sizes
    # Small numbers for the shingles, so that a pair's number and a shingle fit in one word.
    every = np.concatenate(sets) if sets else np.empty(0, np.uint64)
    numbers: Numbers = np.unique(every, return_inverse=True)[1].astype(np.uint64)
    del sets, every
    first, second = places[: left.size], places[left.size :]
    shared = np.zeros(left.size, np.int64)
    costs = np.cumsum(sizes[first] + sizes[second])
    start = 0
    while start < left.size:
        spent = int(costs[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(costs, spent + _CHUNK, side="right")))
        part = slice(start, end)
        keys = np.concatenate([_keys(side[part], sizes, starts, numbers) for side in (first, second)])
        keys.sort()
        twice = keys[1:][keys[1:] == keys[:-1]] >> np.uint64(32)
        shared[part] = np.bincount(twice.astype(np.int64), minlength=end - start)
        start = end
    either = sizes[first] + sizes[second] - shared
    fewer = np.minimum(sizes[first], sizes[second])
    # A text without shingles is similar to none: 0 of 1.
    return shared / np.maximum(either, 1), shared / np.maximum(fewer, 1)


def _keys(side: NDArray[np.int64], sizes: NDArray[np.int64], starts: NDArray[np.int64], numbers: Numbers) -> Numbers:
    """
    Return the shingles of the texts at *side*, each with its pair's number in the upper half of the word.
    """
    counts = sizes[side]
    owners = np.repeat(np.arange(side.size), counts)
    within = np.arange(owners.size) - np.repeat(np.cumsum(counts) - counts, counts)
    keys: Numbers = owners.astype(np.uint64) << np.uint64(32) | numbers[starts[side][owners] + within]
    return keys
