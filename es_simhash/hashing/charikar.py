"""
Hashed features to fingerprint: Charikar's weighted sum; the hexadecimal form, the distance and the four blocks.

``kernels.py`` sums arrays; it is imported on first use, so that who only handles fingerprints does not load numpy.
"""

from __future__ import annotations

import math
import string
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any

from es_simhash.arguments import check_count, check_integer, check_items
from es_simhash.errors import InvalidInputError, WrongTypeError, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

FINGERPRINT_BITS = 64
MAX_BITS = 4096

_HEX_LENGTH = FINGERPRINT_BITS // 4
_HEX_DIGITS = frozenset(string.digits + "abcdef")
_LIMB_MASK = (1 << 64) - 1


def simhash(hashes: Iterable[int], weights: Iterable[float] | None = None, *, bits: int = FINGERPRINT_BITS) -> int:
    """
    Return the SimHash of weighted, hashed features.

    For each bit, the weights of the features whose hash has it set are added and the others are subtracted; the bit
    of the result is 1 where the sum is positive. A sum of exactly 0, a tie, gives 0. Weights are first rounded to
    multiples of 2**-20 (half to even) and then summed as integers, so neither the order of the features nor the
    machine can change a bit.

    Source: M. Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002, section 3; for
    documents: Manku, Jain, Das Sarma, "Detecting near-duplicates for web crawling", WWW 2007, section 2.

    Args:
        hashes:
            One integer of *bits* bits for each feature. A hash that comes twice counts twice.
        weights:
            One finite weight, 0 or more, for each hash; ``None`` means 1 each. One below 2**-21 rounds to 0.
        bits:
            Length of the hashes and of the result, 1 to 4,096.

    Returns:
        An integer of *bits* bits; 0 when there are no features. (:func:`fingerprint` returns ``None`` for a text
        without features, because 0 would make all empty texts alike.)

    Raises:
        TypeError: If a hash is not an integer or a weight is not a number.
        InvalidInputError: If a hash does not fit in *bits* bits; a weight is negative, NaN or infinite; there are
            not as many weights as hashes; or the weights add up to 2**42 or more.

    Examples:
        >>> format(simhash([0b100101, 0b101011], [4, 5], bits=6), "06b")
        '101011'
        >>> simhash([0b01, 0b10], bits=2)  # two ties
        0
    """
    from es_simhash.hashing import kernels  # noqa: PLC0415 - numpy takes longer to load than all the rest

    length = check_count("bits", bits, 1, MAX_BITS)
    values = [check_integer("hash", value) for value in check_items("hashes", hashes, of="ints")]
    for value in values:
        if value < 0 or value >> length:
            raise InvalidInputError(f"hash {shorten(value)} does not fit in {length} bits: mask it, or raise bits")
    fixed = kernels.fixed_weights([1] * len(values) if weights is None else list(weights), count=len(values))
    if not values:
        return 0
    result = 0
    # A longer hash is cut into words of 64 bits: bits do not touch each other, so each word is a SimHash of its own.
    for shift in range(0, length, 64):
        words = kernels.as_hashes([value >> shift & _LIMB_MASK for value in values])
        result |= int(kernels.fold(words, fixed, kernels.single_start())[0]) << shift
    return result


def simhashes(hashes: ArrayLike, weights: ArrayLike | None = None) -> NDArray[np.uint64]:
    """
    Return the 64-bit SimHash of each row of hashed features: :func:`simhash` for many documents at once.

    Args:
        hashes:
            Array-like of unsigned 64-bit integers, shape (documents, features).
        weights:
            Array-like of the same shape with finite weights, 0 or more; ``None`` means 1 each. A document with fewer
            features is padded with any hash and weight 0.

    Returns:
        ``numpy.uint64`` array of shape (documents,), in order. A row whose weights are all 0 gives 0.

    Raises:
        TypeError: If *hashes* are not integers or *weights* are not numbers.
        InvalidInputError: If the shapes differ or are not two-dimensional, a hash is negative, or a weight cannot be
            used (see :func:`simhash`).

    Examples:
        >>> simhashes([[1, 3], [4, 8]], [[1, 2], [5, 0]]).tolist()
        [3, 4]
    """
    from es_simhash.hashing import kernels  # noqa: PLC0415 - see simhash

    return kernels.fold_rows(hashes, weights)


def hamming_distance(a: int, b: int) -> int:
    """
    Return the number of bits in which *a* and *b* differ.

    Args:
        a:
            A fingerprint, or any integer of 0 or more.
        b:
            Another.

    Raises:
        TypeError: If an argument is not an integer (``from_hex`` turns hex digits into one).
        InvalidInputError: If an argument is negative.

    Examples:
        >>> hamming_distance(0b00101110, 0b00001111)
        2
    """
    left, right = check_integer("a", a), check_integer("b", b)
    if left < 0 or right < 0:
        raise InvalidInputError(f"fingerprint {min(left, right)} is negative: add 2**64 to a signed 64-bit value")
    return (left ^ right).bit_count()


def hamming_distances(fingerprint: int, others: ArrayLike) -> NDArray[np.uint8]:
    """
    Return the distance of *fingerprint* to each of *others*: for rescoring many candidates.

    Args:
        fingerprint:
            A 64-bit fingerprint.
        others:
            Array-like of unsigned 64-bit fingerprints, any shape.

    Returns:
        ``numpy.uint8`` array of the shape of *others*, in bits, 0 to 64.

    Examples:
        >>> hamming_distances(0b111, [0b111, 0b100, 0]).tolist()
        [0, 2, 3]
    """
    from es_simhash.hashing import kernels  # noqa: PLC0415 - see simhash

    return kernels.distances(check_fingerprint(fingerprint), kernels.as_hashes(others))


def estimated_cosine(distance: int, *, bits: int = FINGERPRINT_BITS) -> float:
    """
    Return the cosine similarity of two feature vectors that their distance suggests: ``cos(pi * distance / bits)``.

    Each bit differs with probability angle / pi (random hyperplanes), so this is an estimate with a wide error: at 64
    bits its standard error is about 0.1 to 0.2 in the middle of the range.

    Args:
        distance:
            Hamming distance in bits, 0 to *bits*.
        bits:
            Length of the fingerprints.

    Returns:
        A number from 1.0 (distance 0) through 0.0 (half of the bits) to -1.0.

    Raises:
        InvalidInputError: If *distance* is not 0 to *bits*.

    Examples:
        >>> estimated_cosine(0), round(estimated_cosine(3), 3), round(estimated_cosine(32), 3)
        (1.0, 0.989, 0.0)
    """
    length = check_count("bits", bits, 1, MAX_BITS)
    steps = check_count("distance", distance, 0, length)
    return math.cos(math.pi * steps / length)


def to_hex(fingerprint: int) -> str:
    """
    Return *fingerprint* as 16 lower-case hexadecimal digits: its form in an index, in JSON and on the command line.

    Raises:
        TypeError: If *fingerprint* is not an integer.
        InvalidInputError: If it does not fit in 64 bits.

    Examples:
        >>> to_hex(0xBEEF)
        '000000000000beef'
    """
    return format(check_fingerprint(fingerprint), "016x")


def from_hex(digits: str) -> int:
    """
    Return the fingerprint that *digits* spell: the opposite of :func:`to_hex`, and equally strict.

    Args:
        digits:
            Exactly 16 lower-case hexadecimal digits. Upper case is refused because keyword terms are case-sensitive:
            a fingerprint in upper case would never match.

    Raises:
        TypeError: If *digits* is not a string.
        InvalidInputError: If it is anything but 16 lower-case hexadecimal digits.

    Examples:
        >>> from_hex("000000000000beef")
        48879
    """
    if not isinstance(digits, str):
        raise WrongTypeError(f"digits must be a str of 16 hexadecimal digits, not {type(digits).__name__}")
    if len(digits) != _HEX_LENGTH or not _HEX_DIGITS.issuperset(digits):
        raise InvalidInputError(f"{shorten(digits)} is not a fingerprint: give 16 lower-case hexadecimal digits")
    return int(digits, 16)


def check_fingerprint(value: Any) -> int:
    """Return *value* as an ``int``, or raise if it is not an unsigned integer of 64 bits."""
    number = check_integer("fingerprint", value)
    if number < 0 or number >> FINGERPRINT_BITS:
        raise InvalidInputError(
            f"fingerprint {shorten(number)} does not fit in 64 bits: give 0 to 2**64 - 1 (add 2**64 to a signed value)"
        )
    return number


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
    """Return the term of every block; formatting thousands of them for each lookup would cost a millisecond."""
    return tuple(f"{block:04x}" for block in range(1 << BLOCK_BITS))


@lru_cache(maxsize=BLOCK_BITS + 1)
def _flips(radius: int) -> tuple[int, ...]:
    """Return the masks with at most *radius* bits set: the same for every block, so computed once."""
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
