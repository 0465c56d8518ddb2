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
    from collections.abc import Iterable

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


def estimated_cosine(distance: int) -> float:
    """
    Return the cosine similarity of two feature vectors that their distance suggests: ``cos(pi * distance / 64)``.

    Each bit differs with probability angle / pi (random hyperplanes), so this is an estimate with a wide error: its
    standard error is about 0.1 to 0.2 in the middle of the range.

    Args:
        distance:
            Hamming distance in bits, 0 to 64.

    Returns:
        A number from 1.0 (distance 0) through 0.0 (half of the bits) to -1.0.

    Raises:
        InvalidInputError: If *distance* is not 0 to 64.

    Examples:
        >>> estimated_cosine(0), round(estimated_cosine(3), 3), round(estimated_cosine(32), 3)
        (1.0, 0.989, 0.0)
    """
    return math.cos(math.pi * check_count("distance", distance, 0, FINGERPRINT_BITS) / FINGERPRINT_BITS)


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


def neighbour_terms(block: int, radius: int) -> list[str]:
    """
    Return the term of every block within *radius* bits, 0 to 16, of *block*, nearest first, its own at the head.
    By distance, then by the positions of the flipped bits: 1, 17, 137, 697 and 2,517 terms for radius 0 to 4.

    Examples:
        >>> neighbour_terms(0xab, 1)[:3]
        ['00ab', '00aa', '00a9']
    """
    terms = _all_terms()
    return [terms[block ^ flips] for flips in _flips(radius)]


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
