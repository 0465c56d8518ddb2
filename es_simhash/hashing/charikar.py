"""
Hashed features to fingerprint: Charikar's weighted sum; the hexadecimal form, the distance and the four blocks.

``kernels.py`` sums arrays; it is imported on first use, so that who only handles fingerprints does not load numpy.
"""

from __future__ import annotations

import math
import string
from functools import lru_cache
from itertools import combinations
from numbers import Real
from typing import TYPE_CHECKING, Any

from es_simhash.arguments import check_count, check_integer, check_items
from es_simhash.errors import InvalidInputError, WrongTypeError, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable

FINGERPRINT_BITS = 64

_HEX_LENGTH = FINGERPRINT_BITS // 4
_HEX_DIGITS = frozenset(string.digits + "abcdef")

_WEIGHT_TOTAL = 1 << 42


def simhash(hashes: Iterable[int], weights: Iterable[float] | None = None) -> int:
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
            One integer of 64 bits for each feature. A hash that comes twice counts twice.
        weights:
            One finite weight, 0 or more, for each hash; ``None`` means 1 each. One below 2**-21 rounds to 0.

    Returns:
        An integer of 64 bits; 0 when there are no features. (:func:`fingerprint` returns ``None`` for a text
        without features, because 0 would make all empty texts alike.)

    Raises:
        TypeError: If a hash is not an integer or a weight is not a number.
        InvalidInputError: If a hash does not fit in 64 bits; a weight is negative, NaN or infinite; there are
            not as many weights as hashes; or the weights add up to 2**42 or more.

    Examples:
        >>> format(simhash([0b100101, 0b101011], [4, 5]), "06b")
        '101011'
        >>> simhash([0b01, 0b10])  # two ties
        0
    """
    import numpy as np  # noqa: PLC0415 - takes longer to load than all the rest

    from es_simhash.hashing import kernels  # noqa: PLC0415 - loads numpy

    values = [check_fingerprint(value, "hash") for value in check_items("hashes", hashes, of="ints")]
    given = [1] * len(values) if weights is None else list(map(_check_weight, weights))
    fixed = [round(weight * kernels.ONE) for weight in given]  # exact, then rounded half to even
    if len(fixed) != len(values):
        raise InvalidInputError(f"{len(fixed)} weights for {len(values)} features: give one for each")
    if sum(fixed) >= _WEIGHT_TOTAL * kernels.ONE:
        raise InvalidInputError("the weights add up to 2**42 or more, too large to sum exactly: scale them down")
    if not values:
        return 0
    hashed, weighed = np.array(values, np.uint64), np.array(fixed, np.uint64)
    return int(kernels.fold(hashed, weighed, np.zeros(1, np.intp))[0])


def _check_weight(weight: Any) -> float:
    is_number = isinstance(weight, Real) and not isinstance(weight, bool)
    if not is_number:
        raise WrongTypeError(f"weights must be numbers: {shorten(weight)}")
    if not 0 <= weight < _WEIGHT_TOTAL:
        raise InvalidInputError(
            f"weight {shorten(weight)} cannot be used: give finite numbers of 0 or more, below 2**42"
        )
    return float(weight)


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


def check_fingerprint(value: Any, name: str = "fingerprint") -> int:
    """Return *value* as an ``int``, or raise if it is not an unsigned integer of 64 bits."""
    number = check_integer(name, value)
    if number < 0 or number >> FINGERPRINT_BITS:
        raise InvalidInputError(
            f"{name} {shorten(number)} does not fit in 64 bits: give 0 to 2**64 - 1 (add 2**64 to a signed value)"
        )
    return number


BLOCKS = 4
BLOCK_BITS = 16


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


def neighbour_terms(term: str, radius: int) -> list[str]:
    """
    Return the block terms within *radius* bits, 0 to 16, of *term*, nearest first, itself at the head.
    By distance, then by the positions of the flipped bits: 1, 17, 137, 697 and 2,517 terms for radius 0 to 4.

    Examples:
        >>> neighbour_terms("00ab", 1)[:3]
        ['00ab', '00aa', '00a9']
    """
    terms, block = _all_terms(), int(term, 16)
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
