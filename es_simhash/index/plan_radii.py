"""
The radii of lookup plans, and how many clauses of them a fingerprint matches at least.

Arithmetic only. ``plan`` defines plans, ``plan_cost`` estimates their cost, and ``query`` makes queries. The first
function that counts loads numpy.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations
from math import comb
from typing import Any, TypeAlias

from es_simhash.errors import InvalidInputError, shorten
from es_simhash.hashing import BLOCK_BITS, BLOCKS

__all__ = [
    "MAX_RADIUS",
    "BlockRadii",
    "Radii",
    "blocks_needed",
    "count_clauses",
    "count_matches",
    "count_terms",
    "fewest_matches",
    "for_each_block",
    "least_matches",
    "neighbour_count",
    "pass_share",
    "pass_shares",
    "radii_to_try",
]

Radii: TypeAlias = tuple[int, ...]
"""The radii of one block."""

BlockRadii: TypeAlias = tuple[Radii, ...]
"""The radii of each of the four blocks; empty for a plan without block terms."""

MAX_RADIUS = 4  # 2,517 terms a block; radius 5 would be 6,885


@cache
def neighbour_count(radius: int) -> int:
    """
    Return how many 16-bit blocks are within *radius* bits of one: 1, 17, 137, 697, 2517 for 0 to 4.
    """
    return sum(comb(BLOCK_BITS, flips) for flips in range(radius + 1))


def for_each_block(radii: Radii | BlockRadii) -> BlockRadii:
    """
    Return the radii of the four blocks: *radii* itself, or, if it has ints, the same ints for each block.

    Raises:
        InvalidInputError: If they are neither ints nor a tuple of ints for each of the four blocks.
    """
    ints = tuple(each for each in radii if isinstance(each, int))
    tuples = tuple(each for each in radii if isinstance(each, tuple))
    if len(ints) == len(radii):
        return (ints,) * BLOCKS if ints else ()
    if len(tuples) != len(radii) or len(tuples) != BLOCKS:
        raise InvalidInputError(
            f"radii {shorten(radii)} fit no plan: give ints, or a tuple of ints for each of 4 blocks"
        )
    return tuples


def count_terms(radii: BlockRadii) -> int:
    """
    Return how many block terms a query with *radii* has.
    """
    return sum(neighbour_count(radius) for each in radii for radius in each)


def count_clauses(radii: BlockRadii, max_terms: int) -> int:
    """
    Return how many ``terms`` clauses a query with *radii* has, if a clause has at most *max_terms* values.
    """
    return sum(-(-neighbour_count(radius) // max_terms) for each in radii for radius in each)


def blocks_needed(radii: BlockRadii, should_match: int) -> int:
    """
    Return the least number of blocks in which a document is near, if it matches *should_match* clauses.
    """
    counts = sorted(map(len, radii), reverse=True)
    return next((n for n in range(len(counts) + 1) if sum(counts[:n]) >= should_match), len(counts))


@cache
def fewest_matches(max_distance: int, radii: BlockRadii) -> int:
    """
    Return the least number of clauses of *radii* that a fingerprint within *max_distance* matches; 0 without radii.
    """
    return int(least_matches(count_matches([radii]), max_distance)[0]) if radii else 0


@cache
def pass_share(radii: BlockRadii, should_match: int) -> float:
    """
    Return the share, 0 to 1, of uniformly random fingerprints that match at least *should_match* clauses.
    """
    return float(pass_shares(count_matches([radii]), [should_match])[0]) if radii else 1.0


@cache
def radii_to_try(largest: int) -> tuple[list[BlockRadii], Any]:
    """
    Return the radii that plans may use, none above *largest*, and their :func:`count_matches`.

    They are one set of radii for all blocks, or two sets that share the blocks.
    """
    sets = [radii for count in range(1, largest + 2) for radii in combinations(range(largest + 1), count)]
    mixed = [(one,) * n + (other,) * (BLOCKS - n) for one, other in combinations(sets, 2) for n in range(1, BLOCKS)]
    found = [*((each,) * BLOCKS for each in sets), *mixed]
    return found, count_matches(found)


def count_matches(radii: list[BlockRadii]) -> Any:
    """
    Return how many radii reach each distance, 0 to 16, of each block: ints by (element of *radii*, block, distance).
    """
    import numpy as np  # noqa: PLC0415 -- numpy is slow to load

    distances = np.arange(BLOCK_BITS + 1)
    reached = {each: (distances <= np.array(each, int)[:, None]).sum(axis=0) for blocks in radii for each in blocks}
    return np.array([[reached[each] for each in blocks] for blocks in radii])


def least_matches(matches: Any, max_distance: int) -> Any:
    """
    Return, for each element, the fewest matches of block distances that add up to at most *max_distance*.

    This is a dynamic programme over the blocks: ``least[:, spent]`` is the fewest matches of the blocks so far when
    their distances add up to ``spent``.

    Args:
        matches:
            Counts of :func:`count_matches`.
        max_distance:
            Largest distance in bits, inclusive.
    """
    import numpy as np  # noqa: PLC0415 -- numpy is slow to load

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


def pass_shares(matches: Any, should_match: Any) -> Any:
    """
    Return, for each element, the share of uniformly random fingerprints with at least *should_match* matches.

    Args:
        matches:
            Counts of :func:`count_matches`.
        should_match:
            A number for each element.
    """
    import numpy as np  # noqa: PLC0415 -- numpy is slow to load

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
