"""
Array arithmetic on 64-bit hashes: weighted sums of bits, and numbers of bits. Loads numpy.

Every sum is an integer sum that cannot overflow, so the order of the features, the size of a batch and the machine
cannot change a bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
Places = NDArray[np.intp]

ONE = 1 << 20
"""The weight 1: weights are multiples of 2**-20, finer than any effect on a sign, coarse enough for 2**42 in total."""

_BYTE_LANES = np.uint64(0x0101_0101_0101_0101)
_HALF_LANES = np.uint64(0x0000_0001_0000_0001)
_LANE_LIMIT = 255


def fold(hashes: Hashes, weights: Hashes, starts: Places) -> Hashes:
    """Return one SimHash for each document; *starts* must increase, so every document has a feature."""
    return signs(mixed_sums(hashes, weights, starts), np.add.reduceat(weights, starts))


def mixed_sums(hashes: Hashes, weights: Hashes, starts: Places) -> Hashes:
    """Return what :func:`bit_sums` returns; faster if most weights are exactly 1, as those of shingles are."""
    ones = weights == ONE
    share = int(np.count_nonzero(ones))
    if 2 * share < ones.size:
        return bit_sums(hashes, weights, starts)
    if share == ones.size:
        return count_sums(hashes, starts) * np.uint64(ONE)
    sums = np.zeros((starts.size, 64), np.uint64)
    light = np.add.reduceat(ones.astype(np.intp), starts)
    heavy = np.diff(starts, append=ones.size) - light
    # A document may have features of one kind only, and the sums below want at least one each.
    some = light > 0
    sums[some] = count_sums(hashes[ones], (np.cumsum(light) - light)[some]) * np.uint64(ONE)
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
