"""
Hashes of all runs of code points of a text at once: XXH3 in arrays, other hashes one by one.

The bytes of a run are its code points in UTF-32, little-endian, four bytes each. For XXH3 a run of ``size``
characters is hashed by the published formulas for inputs of 4 to 8, 9 to 16, 17 to 128 bytes, written here for whole
arrays; a property test compares them with the ``xxhash`` library for every size and seed. numpy only; callers import
this module lazily.

Source: Y. Collet, "xxHash fast digest algorithm", version 0.2.0, section XXH3 (inputs of 1 to 128 bytes).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from es_simhash.hashing.hashes import bytes_hasher
from es_simhash.hashing.xxh3 import MIX_PRIME_1, MIX_PRIME_2, PRIME_1, SECRET, short_flip

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Words = NDArray[np.uint64]

__all__ = ["hash_runs"]

_MASK = (1 << 64) - 1
_LOW = np.uint64(0xFFFF_FFFF)
_COUNTED = np.array([0, 0xFFFF_FFFF, (1 << 64) - 1], np.uint64)
_MIX_1 = np.uint64(MIX_PRIME_1)
_MIX_2 = np.uint64(MIX_PRIME_2)


def hash_runs(
    codes: NDArray[np.uint32], size: int, name: str, *, seed: int = 0, lengths: NDArray[np.uint8] | None = None
) -> Words:
    """
    Return the hash of every run of *size* neighbouring code points, in order.

    Args:
        codes:
            Code points, at least *size* of them.
        size:
            Run size in characters, 1 to 16.
        name:
            Name of the hash; see ``hashes.py``.
        seed:
            Seed of the hash, 0 to 2**64 - 1.
        lengths:
            How many characters of each run count, 1 to *size*; the others are taken as U+0000. ``None``: all.

    Returns:
        Array of ``codes.size - size + 1`` unsigned 64-bit integers.
    """
    if name == "xxh3_64":
        return _xxh3(codes, size, seed, None if lengths is None or int(lengths.min()) == size else lengths)
    # Few texts need these hashes; equal runs are hashed once, since a call costs far more than a look-up.
    hash_bytes = bytes_hasher(name, seed)
    data = codes.astype("<u4", copy=False).tobytes()
    known: dict[bytes, int] = {}
    spans = [4 * size] * (codes.size - size + 1) if lengths is None else (4 * lengths.astype(np.intp)).tolist()
    runs = (data[4 * at : 4 * at + span].ljust(4 * size, b"\0") for at, span in enumerate(spans))
    return np.fromiter((_remember(known, run, hash_bytes) for run in runs), np.uint64, codes.size - size + 1)


def _remember(known: dict[bytes, int], run: bytes, hash_bytes: Callable[[bytes], int]) -> int:
    value = known.get(run)
    if value is None:
        value = known[run] = hash_bytes(run)
    return value


def _xxh3(codes: NDArray[np.uint32], size: int, seed: int, lengths: NDArray[np.uint8] | None) -> Words:
    length = 4 * size
    count = codes.size - size + 1
    if size <= 2:
        last = codes[codes.size - count :]
        return _xxh3_to_8_bytes(codes[:count], last if lengths is None else last * (lengths >= size), length, seed)
    # pairs[i] is code points i and i + 1 as one little-endian word: every read of 8 bytes is a slice of it.
    pairs = codes[:-1].astype(np.uint64)
    pairs |= codes[1:].astype(np.uint64) << np.uint64(32)

    def read(byte: int) -> Words:
        first = byte // 4
        words = pairs[first : first + count]
        if lengths is None:
            return words
        # Whole, the lower character alone, or nothing, as the run reaches beyond, into or up to these two.
        return words & _COUNTED.take(np.clip(lengths, first, first + 2) - np.uint8(first))

    if length <= 16:
        low = read(0) ^ np.uint64(((SECRET[3] ^ SECRET[4]) + seed) & _MASK)
        high = read(length - 8) ^ np.uint64(((SECRET[5] ^ SECRET[6]) - seed) & _MASK)
        result = low.byteswap()
        result += high
        result += np.uint64(length)
        result += _multiply_fold(low, high)
        return _avalanche(result)
    result = np.full(count, length * PRIME_1 & _MASK, np.uint64)
    # 16 bytes from the front and 16 from the back, each with its own 16 bytes of the secret, moving inwards.
    for step in range((length - 1) // 32 + 1):
        for byte, word in ((16 * step, 4 * step), (length - 16 * (step + 1), 4 * step + 2)):
            low = read(byte) ^ np.uint64((SECRET[word] + seed) & _MASK)
            high = read(byte + 8) ^ np.uint64((SECRET[word + 1] - seed) & _MASK)
            result += _multiply_fold(low, high)
    return _avalanche(result)


def _xxh3_to_8_bytes(first: NDArray[np.uint32], last: NDArray[np.uint32], length: int, seed: int) -> Words:
    value = (last.astype(np.uint64) + (first.astype(np.uint64) << np.uint64(32))) ^ np.uint64(short_flip(seed))
    value ^= _rotate(value, 49) ^ _rotate(value, 24)
    value *= _MIX_2
    value ^= (value >> np.uint64(35)) + np.uint64(length)
    value *= _MIX_2
    return value ^ value >> np.uint64(28)


def _multiply_fold(left: Words, right: Words) -> Words:
    """
    Return the exclusive or of the two halves of each 128-bit product, by multiplication in 32-bit halves.
    """
    shift = np.uint64(32)
    left_low, left_high = left & _LOW, left >> shift
    right_low, right_high = right & _LOW, right >> shift
    low = left_low * right_low
    cross = left_high * right_low
    cross += low >> shift
    # cross < 2**64 still: (2**32 - 1)**2 + (2**32 - 1) fits; the same holds for the sum below.
    left_low *= right_high
    left_low += cross & _LOW
    left_high *= right_high
    left_high += cross >> shift
    left_high += left_low >> shift
    left_low <<= shift
    low &= _LOW
    left_low |= low
    left_high ^= left_low
    return left_high


def _avalanche(value: Words) -> Words:
    value ^= value >> np.uint64(37)
    value *= _MIX_1
    value ^= value >> np.uint64(32)
    return value


def _rotate(value: Words, bits: int) -> Words:
    return value << np.uint64(bits) | value >> np.uint64(64 - bits)
