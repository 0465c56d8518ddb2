"""
The counting behind lookup plans: how many clauses of which radii a fingerprint matches, for many radii at once.

Arrays in, arrays out: what is a plan, and which one is cheap, is ``plan``'s business, and queries are ``query``'s.
numpy is loaded here, so ``plan`` imports this module when it first counts.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from es_simhash.hashing import BLOCK_BITS, BLOCKS

__all__ = ["count_matches", "families", "fewest_matches", "pass_shares"]

Radii = tuple[int, ...]  # of one block


@cache
def families(largest: int) -> tuple[list[tuple[Radii, ...]], Any]:
    """
    Return the radii, up to the *largest*, that plans may use, and how they match.

    One set of radii for all blocks, or two sets that share the blocks: the radii of each block for each of them, and
    what :func:`count_matches` makes of all.
    """
    sets = [radii for count in range(1, largest + 2) for radii in combinations(range(largest + 1), count)]
    mixed = [(one,) * n + (other,) * (BLOCKS - n) for one, other in combinations(sets, 2) for n in range(1, BLOCKS)]
    found = [*((each,) * BLOCKS for each in sets), *mixed]
    return found, count_matches(found)


def count_matches(radii: list[tuple[Radii, ...]]) -> Any:
    """
    Return how many radii reach each distance, 0 to 16, of each block: ints (families of radii, blocks, distances).
    """
    distances = np.arange(BLOCK_BITS + 1)
    reached = {each: (distances <= np.array(each, int)[:, None]).sum(axis=0) for family in radii for each in family}
    return np.array([[reached[each] for each in family] for family in radii])


def fewest_matches(matches: Any, max_distance: int) -> Any:
    """
    Return, for each family, the fewest matches that block distances adding up to at most *max_distance* can have.

    A dynamic programme over the blocks: ``least[:, spent]`` is the fewest that the blocks so far can have when their
    distances add up to ``spent``.
    """
    number, blocks, distances = matches.shape
    impossible = blocks * distances
    least = np.full((number, max_distance + 1), impossible)
    least[:, 0] = 0
    for block in range(blocks):
        following = np.full_like(least, impossible)
        for distance in range(min(distances, max_distance + 1)):
            reached = least[:, : max_distance + 1 - distance] + matches[:, block, distance, None]
            np.minimum(following[:, distance:], reached, out=following[:, distance:])
        least = following
    return least.min(axis=1)


def pass_shares(matches: Any, should_match: ArrayLike) -> Any:
    """
    Return the share of uniformly random fingerprints with at least so many matches, for each family.
    """
    number, blocks, distances = matches.shape
    chance = np.array([comb(BLOCK_BITS, distance) for distance in range(distances)]) / 2**BLOCK_BITS
    most = int(matches.max())
    ways = np.zeros((number, blocks * most + 1))
    ways[:, 0] = 1
    for block in range(blocks):
        following = np.zeros_like(ways)
        for count in range(most + 1):
            share = (matches[:, block] == count) @ chance
            following[:, count:] += ways[:, : ways.shape[1] - count] * share[:, None]
        ways = following
    return (ways * (np.arange(ways.shape[1]) >= np.asarray(should_match)[:, None])).sum(axis=1)
