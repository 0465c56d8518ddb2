"""
The four 16-bit blocks of a fingerprint: split, join, block terms and the neighbours of a block.

Plain integers and strings only. ``lookup/plan.py`` and ``lookup/query.py`` turn blocks into queries.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING

from es_simhash.arguments import check_integer
from es_simhash.errors import InvalidInputError
from es_simhash.hashing.charikar import check_fingerprint, to_hex

if TYPE_CHECKING:
    from collections.abc import Sequence


BLOCKS = 4
BLOCK_BITS = 16

_BLOCK_MASK = (1 << BLOCK_BITS) - 1
_BLOCK_HEX_DIGITS = BLOCK_BITS // 4


def split_blocks(fingerprint: int) -> tuple[int, int, int, int]:
    """
    Return the four blocks of *fingerprint*, block 0 being the most significant 16 bits.

    Args:
        fingerprint:
            A 64-bit fingerprint.

    Returns:
        Four integers, each from 0 to 65,535.

    Raises:
        TypeError: If *fingerprint* is not an integer.
        InvalidInputError: If it does not fit in 64 bits.

    Examples:
        >>> split_blocks(0x0123_4567_89AB_CDEF) == (0x0123, 0x4567, 0x89AB, 0xCDEF)
        True
    """
    value = check_fingerprint(fingerprint)
    return value >> 48, value >> 32 & _BLOCK_MASK, value >> 16 & _BLOCK_MASK, value & _BLOCK_MASK


def join_blocks(blocks: Sequence[int]) -> int:
    """
    Return the fingerprint whose blocks are *blocks*: the opposite of :func:`split_blocks`.

    Args:
        blocks:
            Four integers from 0 to 65,535, the most significant block first.

    Raises:
        TypeError: If a block is not an integer.
        InvalidInputError: If there are not four blocks, or one does not fit in 16 bits.

    Examples:
        >>> join_blocks([0x0123, 0x4567, 0x89AB, 0xCDEF]) == 0x0123_4567_89AB_CDEF
        True
    """
    if len(blocks) != BLOCKS:
        raise InvalidInputError(f"a fingerprint has {BLOCKS} blocks, not {len(blocks)}: give all of them, in order")
    value = 0
    for block in blocks:
        value = value << BLOCK_BITS | _check_block(block)
    return value


def block_terms(fingerprint: int) -> tuple[str, str, str, str]:
    """
    Return the four block terms of *fingerprint*: the keyword values that an index holds.

    Args:
        fingerprint:
            A 64-bit fingerprint.

    Returns:
        Four strings of four lower-case hexadecimal digits, block 0 first; joined they are ``to_hex(fingerprint)``.

    Examples:
        >>> block_terms(0x0123456789ABCDEF)
        ('0123', '4567', '89ab', 'cdef')
    """
    digits = to_hex(fingerprint)
    return digits[0:4], digits[4:8], digits[8:12], digits[12:16]


def block_neighbours(block: int, radius: int) -> list[int]:
    """
    Return every block within *radius* bits of *block*, nearest first, *block* itself at the head.

    Args:
        block:
            A block, 0 to 65,535.
        radius:
            Largest distance of a neighbour in bits, inclusive, 0 to 16.

    Returns:
        Distinct integers ordered by distance, then by the positions of the flipped bits: 1, 17, 137, 697 and 2,517
        of them for radius 0 to 4; all 65,536 for radius 16.

    Raises:
        TypeError: If an argument is not an integer.
        InvalidInputError: If *block* does not fit in 16 bits or *radius* is not 0 to 16.

    Examples:
        >>> block_neighbours(0b1010, 0)
        [10]
        >>> [len(block_neighbours(0, radius)) for radius in range(5)]
        [1, 17, 137, 697, 2517]
    """
    value = _check_block(block)
    steps = check_integer("radius", radius)
    if not 0 <= steps <= BLOCK_BITS:
        raise InvalidInputError(f"radius {steps} is out of range: give 0 to {BLOCK_BITS} bits")
    return [value ^ flips for flips in _flips(steps)]


def neighbour_terms(block: int, radius: int) -> list[str]:
    """
    Return the block terms of :func:`block_neighbours`, in the same order.

    Examples:
        >>> neighbour_terms(0xab, 1)[:3]
        ['00ab', '00aa', '00a9']
    """
    terms = _all_terms()
    return [terms[neighbour] for neighbour in block_neighbours(block, radius)]


@lru_cache(maxsize=1)
def _all_terms() -> tuple[str, ...]:
    """
    Return the term of every block; formatting thousands of them for each lookup would cost a millisecond.
    """
    return tuple(f"{block:04x}" for block in range(1 << BLOCK_BITS))


@lru_cache(maxsize=BLOCK_BITS + 1)
def _flips(radius: int) -> tuple[int, ...]:
    """
    Return the masks with at most *radius* bits set: the same for every block, so computed once.
    """
    return tuple(
        sum(1 << bit for bit in bits)
        for distance in range(radius + 1)
        for bits in combinations(range(BLOCK_BITS), distance)
    )


def _check_block(block: int) -> int:
    value = check_integer("block", block)
    if not 0 <= value <= _BLOCK_MASK:
        raise InvalidInputError(f"block {value} is out of range: give {_BLOCK_HEX_DIGITS} hex digits, 0 to 65535")
    return value
