"""
Hashed features to fingerprint: Charikar's weighted sum; the hexadecimal form; Hamming distance.

Works on integers only and knows nothing of text. Arrays are summed in ``kernels.py``, which is imported on first use
so that callers who only handle fingerprints do not load numpy.
"""

from __future__ import annotations

import math
import string
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
    """
    Return *value* as an ``int`` of 64 bits.

    Raises:
        TypeError: If *value* is not an integer.
        InvalidInputError: If it is negative or longer than 64 bits.
    """
    number = check_integer("fingerprint", value)
    if number < 0 or number >> FINGERPRINT_BITS:
        raise InvalidInputError(
            f"fingerprint {shorten(number)} does not fit in 64 bits: give 0 to 2**64 - 1 (add 2**64 to a signed value)"
        )
    return number
