"""
The scheme ``shingles``: character shingles of many texts, hashed, counted and weighted in arrays.

A shingle begins at every character where it fits, and is the fewest characters worth ``size`` letters
(``characters.py``), hashed as if padded with U+0000 to ``size``; a shorter text is one shingle. Shingles with equal
hashes are one feature. Runs are hashed as UTF-32, little-endian; XXH3 by the formulas for 9 to 64 bytes, which a
property test compares with ``xxhash``. Memory: some 30 bytes for each character of a long text.
numpy is loaded here, so callers import this module lazily.
Source: Y. Collet, "xxHash fast digest algorithm", version 0.2.0, section XXH3.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from es_simhash.hashing import kernels
from es_simhash.hashing.characters import (
    PART_CHARACTERS,
    Codes,
    Flags,
    Hashes,
    Places,
    are_new,
    hashed_letters,
    shingle_lengths,
)
from es_simhash.hashing.features import logarithms
from es_simhash.hashing.scheme import HASHES, MIX_PRIME_1, PRIME_1, SECRET, Scheme

_MASK = (1 << 64) - 1
_LOW = np.uint64(0xFFFF_FFFF)
_COUNTED = np.array([0, 0xFFFF_FFFF, (1 << 64) - 1], np.uint64)
_MIX_1 = np.uint64(MIX_PRIME_1)


def hash_runs(codes: Codes, size: int, name: str, *, lengths: NDArray[np.uint8] | None = None) -> Hashes:
    """
    Return the hash of every run of *size* (1 to 16) neighbouring code points, in order; *codes* has *size* or more.
    *lengths*: how many characters of each run count, 1 to *size* (all by default); the others are taken as U+0000.
    """
    if name == "xxh3_64" and size > 2:
        hashes = np.empty(codes.size - size + 1, np.uint64)
        # In parts, so that what is computed on the way stays in a core's cache.
        for start in range(0, hashes.size, PART_CHARACTERS):
            part = slice(start, start + PART_CHARACTERS)
            counted = None if lengths is None or int(lengths[part].min()) == size else lengths[part]
            hashes[part] = _xxh3(codes[start : part.stop + size - 1], size, counted)
        return hashes
    # Few texts need these hashes and sizes; equal runs are hashed once, since a call costs far more than a look-up.
    hash_bytes = functools.cache(HASHES[name])
    data = codes.astype("<u4", copy=False).tobytes()
    spans = [4 * size] * (codes.size - size + 1) if lengths is None else (4 * lengths.astype(np.intp)).tolist()
    runs = (data[4 * at : 4 * at + span].ljust(4 * size, b"\0") for at, span in enumerate(spans))
    return np.fromiter(map(hash_bytes, runs), np.uint64, codes.size - size + 1)


def _xxh3(codes: Codes, size: int, lengths: NDArray[np.uint8] | None) -> Hashes:
    length = 4 * size
    count = codes.size - size + 1
    # pairs[i] is code points i and i + 1 as one little-endian word: every read of 8 bytes is a slice of it.
    pairs = codes[:-1].astype(np.uint64)
    pairs |= codes[1:].astype(np.uint64) << np.uint64(32)

    def read(byte: int) -> Hashes:
        first = byte // 4
        words = pairs[first : first + count]
        if lengths is None:
            return words
        # Whole, the lower character alone, or nothing, as the run reaches beyond, into or up to these two.
        return words & _COUNTED.take(np.clip(lengths, first, first + 2) - np.uint8(first))

    if length <= 16:
        low = read(0) ^ np.uint64(SECRET[3] ^ SECRET[4])
        high = read(length - 8) ^ np.uint64(SECRET[5] ^ SECRET[6])
        result = low.byteswap()
        result += high
        result += np.uint64(length)
        result += _multiply_fold(low, high)
        return _avalanche(result)
    result = np.full(count, length * PRIME_1 & _MASK, np.uint64)
    # 16 bytes from the front and 16 from the back, each with its own 16 bytes of the secret, moving inwards.
    for step in range((length - 1) // 32 + 1):
        for byte, word in ((16 * step, 4 * step), (length - 16 * (step + 1), 4 * step + 2)):
            low = read(byte) ^ np.uint64(SECRET[word])
            high = read(byte + 8) ^ np.uint64(SECRET[word + 1])
            result += _multiply_fold(low, high)
    return _avalanche(result)


def _multiply_fold(left: Hashes, right: Hashes) -> Hashes:
    """Return the exclusive or of the two halves of each 128-bit product, by multiplication in 32-bit halves."""
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


def _avalanche(value: Hashes) -> Hashes:
    value ^= value >> np.uint64(37)
    value *= _MIX_1
    value ^= value >> np.uint64(32)
    return value


def fold_texts(texts: Sequence[str], scheme: Scheme) -> tuple[Hashes, Flags]:
    fingerprints = np.zeros(len(texts), np.uint64)
    codes, lengths = hashed_letters(texts)
    known = lengths > 0
    if not known.any():
        return fingerprints, known
    hashes, counts = _hash_batch(codes, lengths, scheme)
    starts = (np.cumsum(counts) - counts)[known]
    for start, end in zip(starts.tolist(), np.append(starts[1:], hashes.size).tolist(), strict=True):
        hashes[start:end].sort()
    hashes, repeats, starts = _count_equal(hashes, starts)
    fingerprints[known] = kernels.fold(hashes, _weights(repeats, scheme.parameters["weighting"]), starts)
    return fingerprints, known


def _hash_batch(codes: Codes, lengths: Places, scheme: Scheme) -> tuple[Hashes, Places]:
    """Return the hashes of all shingles of a batch, text after text, and how many each text has."""
    size = scheme.parameters["size"]
    spans = shingle_lengths(codes, size)
    ends, counts = np.cumsum(lengths), lengths.copy()
    fits = np.ones(codes.size, np.bool_)
    for room in range(1, size):  # of the others, each fits
        has_room = lengths >= room
        places = ends[has_room] - room
        fits[places] = spans[places] <= room
        counts[has_room] -= ~fits[places]
    # A text in which no shingle fits is one shingle.
    short = (lengths > 0) & (counts == 0)
    starts = (ends - lengths)[short]
    fits[starts], counts[short] = True, 1
    spans[starts] = lengths[short]
    padded = np.concatenate([codes, np.zeros(size - 1, np.uint32)])
    return hash_runs(padded, size, scheme.parameters["hash"], lengths=spans)[fits], counts


def _count_equal(hashes: Hashes, starts: Places) -> tuple[Hashes, Hashes, Places]:
    """Return each document's distinct hashes, their counts and the new starts; *hashes* are sorted in each."""
    heads = are_new(hashes)
    heads[starts] = True
    places = np.flatnonzero(heads)
    repeats = np.diff(places, append=hashes.size).astype(np.uint64)
    return hashes[places], repeats, np.searchsorted(places, starts)


def _weights(repeats: Hashes, weighting: str) -> Hashes:
    if weighting == "linear":
        return repeats * np.uint64(kernels.ONE)
    if weighting == "set":
        return np.full(repeats.size, kernels.ONE, np.uint64)
    table = _logarithms()
    return table.take(np.minimum(repeats, np.uint64(table.size - 1)).astype(np.intp))


@functools.cache
def _logarithms() -> Hashes:
    return np.array(logarithms(), np.uint64)
