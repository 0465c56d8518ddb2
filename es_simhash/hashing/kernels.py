"""
Array arithmetic on 64-bit hashes: fixed-point weights, weighted sums of bits, distances. Loads numpy.

Every sum is an integer sum that cannot overflow, so the order of the features, the size of a batch and the machine
cannot change a bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from es_simhash.errors import InvalidInputError, WrongTypeError, shorten

Hashes = NDArray[np.uint64]
Places = NDArray[np.intp]

WEIGHT_SCALE_BITS = 20
"""Weights are multiples of 2**-20: finer than any effect on a sign, coarse enough for 2**42 in total."""

_WEIGHT_TOTAL = 1 << 42
_ONE = 1 << WEIGHT_SCALE_BITS
_BYTE_LANES = np.uint64(0x0101_0101_0101_0101)
_HALF_LANES = np.uint64(0x0000_0001_0000_0001)
_LANE_LIMIT = 255


def as_hashes(values: ArrayLike) -> Hashes:
    """Return *values* as an array of unsigned 64-bit integers, or raise if one does not fit."""
    if isinstance(values, (list, tuple)):
        _check_integers(values)
        try:
            # Without a dtype numpy turns a list with one value above 2**63 into floats.
            return np.array(values, dtype=np.uint64) if values else np.empty(0, np.uint64)
        except OverflowError as error:
            raise InvalidInputError("a hash does not fit in 64 bits: give 0 to 2**64 - 1") from error
    array = np.asarray(values)
    if array.dtype.kind not in "ui":
        raise WrongTypeError(f"hashes must be integers, not {array.dtype}: hash the features first")
    if array.dtype.kind == "i" and array.size and int(array.min()) < 0:
        raise InvalidInputError(f"hash {int(array.min())} is negative: view signed values as numpy.uint64")
    return array.astype(np.uint64, copy=False)


def _check_integers(values: Sequence[Any]) -> None:
    for value in values:
        if isinstance(value, (list, tuple)):
            _check_integers(value)
        elif isinstance(value, np.ndarray):
            as_hashes(value)
        elif not hasattr(value, "__index__") or isinstance(value, bool):
            raise WrongTypeError("hashes must be integers: hash the features first")
        elif index(value) < 0:  # numpy 1 would wrap it around
            raise InvalidInputError("a hash is negative: give 0 to 2**64 - 1")


def fixed_weights(weights: ArrayLike, *, count: int | None = None) -> Hashes:
    """Return *weights* as integers in units of 2**-20, rounded half to even; raise if they add up to 2**42."""
    try:
        array = np.asarray(weights)
    except ValueError as error:  # ragged lists
        raise InvalidInputError("weights must have the shape of the hashes: give one for each") from error
    if array.size == 0:
        array = array.astype(np.float64)
    if array.dtype.kind == "O":  # whole numbers beyond 64 bits: the checks below refuse them with a reason
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise WrongTypeError(f"weights must be numbers: {shorten(weights)}") from error
    if array.dtype.kind not in "uif":
        raise WrongTypeError(f"weights must be numbers, not {array.dtype}: {shorten(weights)}")
    if count is not None and array.shape != (count,):
        raise InvalidInputError(f"{array.size} weights for {count} features: give one for each")
    numbers = array.astype(np.float64)
    wrong = ~(np.isfinite(numbers) & (numbers >= 0))
    if wrong.any():
        raise InvalidInputError(f"weight {numbers[wrong][0]!s} cannot be used: give finite numbers, 0 or more")
    if numbers.sum() >= _WEIGHT_TOTAL:
        raise InvalidInputError("the weights add up to 2**42 or more, too large to sum exactly: scale them down")
    # Multiplying by a power of two is exact, so this is the one rounding there is.
    return np.rint(numbers * _ONE).astype(np.uint64)


def single_start() -> Places:
    return np.zeros(1, dtype=np.intp)


def fold(hashes: Hashes, weights: Hashes, starts: Places) -> Hashes:
    """Return one SimHash for each document; *starts* must increase, so every document has a feature."""
    return signs(mixed_sums(hashes, weights, starts), np.add.reduceat(weights, starts))


def mixed_sums(hashes: Hashes, weights: Hashes, starts: Places) -> Hashes:
    """Return what :func:`bit_sums` returns; faster if most weights are exactly 1, as those of shingles are."""
    ones = weights == _ONE
    share = int(np.count_nonzero(ones))
    if 2 * share < ones.size:
        return bit_sums(hashes, weights, starts)
    if share == ones.size:
        return count_sums(hashes, starts) << np.uint64(WEIGHT_SCALE_BITS)
    sums = np.zeros((starts.size, 64), np.uint64)
    light = np.add.reduceat(ones.astype(np.intp), starts)
    heavy = np.diff(starts, append=ones.size) - light
    # A document may have features of one kind only, and the sums below want at least one each.
    some = light > 0
    sums[some] = count_sums(hashes[ones], (np.cumsum(light) - light)[some]) << np.uint64(WEIGHT_SCALE_BITS)
    some = heavy > 0
    others = ~ones
    sums[some] += bit_sums(hashes[others], weights[others], (np.cumsum(heavy) - heavy)[some])
    return sums


def bit_sums(hashes: Hashes, weights: Hashes, starts: Places) -> Hashes:
    """
    Return, for each document and bit (column 0 is the least), the sum of the weights of the hashes that have the bit.
    Two bits are summed at once, in the halves of a 64-bit word, as long as no document's weights reach 2**32.
    """
    sums = np.empty((starts.size, 64), np.uint64)
    halves = int(np.add.reduceat(weights, starts).max()) < 1 << 32
    lanes, step = (_HALF_LANES, 32) if halves else (np.uint64(1), 64)
    work = np.empty_like(hashes)
    for bit in range(step):
        np.right_shift(hashes, np.uint64(bit), out=work)
        np.bitwise_and(work, lanes, out=work)
        np.multiply(work, weights, out=work)
        both = np.add.reduceat(work, starts)
        if halves:
            sums[:, bit] = both & np.uint64(0xFFFF_FFFF)
            sums[:, bit + 32] = both >> np.uint64(32)
        else:
            sums[:, bit] = both
    return sums


def count_sums(hashes: Hashes, starts: Places) -> Hashes:
    """
    Return, for each document and bit, how many hashes have that bit: :func:`bit_sums` with weights of 1.
    Eight bits are summed at once, in the bytes of a 64-bit word, over at most 255 hashes, so that no byte overflows.
    """
    pieces, owners = _pieces(starts, hashes.size)
    counts = np.empty((pieces.size, 8, 8), np.uint8)
    work = np.empty_like(hashes)
    for bit in range(8):
        np.right_shift(hashes, np.uint64(bit), out=work)
        np.bitwise_and(work, _BYTE_LANES, out=work)
        eight = np.add.reduceat(work, pieces)
        # Byte k of a word, counted from the least significant, holds bit 8 k + `bit`, on machines of either byte order.
        counts[:, :, bit] = eight.astype("<u8", copy=False).view(np.uint8).reshape(-1, 8)
    return np.add.reduceat(counts.reshape(-1, 64), owners, axis=0, dtype=np.uint64)


def _pieces(starts: Places, size: int) -> tuple[Places, Places]:
    """Cut documents into pieces of at most 255 hashes: the starts of the pieces, and each document's first piece."""
    lengths = np.diff(starts, append=size)
    parts = -(-lengths // _LANE_LIMIT)
    owners = np.cumsum(parts) - parts
    within = np.arange(int(parts.sum()), dtype=np.intp) - np.repeat(owners, parts)
    return np.repeat(starts, parts) + within * _LANE_LIMIT, owners.astype(np.intp)


def signs(sums: Hashes, totals: Hashes) -> Hashes:
    """Return the fingerprints: a bit is 1 where the weights for it exceed those against it; a tie gives 0."""
    ones = sums > totals[:, None] - sums
    return np.packbits(ones, axis=1, bitorder="little").view("<u8").ravel().astype(np.uint64)


def distances(fingerprint: int, others: Hashes) -> NDArray[np.uint8]:
    """Return the number of bits in which each of *others* differs from *fingerprint*."""
    return count_bits(others ^ np.uint64(fingerprint))


def count_bits(values: Hashes, *, out: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
    """Return the number of set bits of each of *values*, in *out* where it is given."""
    if hasattr(np, "bitwise_count"):
        counts: NDArray[np.uint8] = np.bitwise_count(values, out=out)
        return counts
    # numpy 1.26: add neighbouring bits, then pairs, then nibbles; the multiplication adds the bytes up.
    values = values - (values >> np.uint64(1) & np.uint64(0x5555_5555_5555_5555))
    pairs = np.uint64(0x3333_3333_3333_3333)
    values = (values & pairs) + (values >> np.uint64(2) & pairs)
    values = values + (values >> np.uint64(4)) & np.uint64(0x0F0F_0F0F_0F0F_0F0F)
    counts = (values * _BYTE_LANES >> np.uint64(56)).astype(np.uint8)
    if out is None:
        return counts
    out[...] = counts
    return out
