"""
Moving the bits of a key to the top of fingerprints, so that sorting these brings equal keys together.

Each bit of the key that is below the top changes places with a bit at the top that is not of the key. Nothing else
moves, so the same exchange moves the bits back, and the distance of two fingerprints stays what it was.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Swaps"]

BITS = 64
# Exchanged at once: two arrays of this length stay in a core's second-level cache.
WINDOW = 1 << 15


class Swaps:
    """
    The exchange of bits for one key.

    Args:
        key:
            The bits of the key, as a mask.
    """

    def __init__(self, key: int) -> None:
        self.width = key.bit_count()
        """How many bits the key has: so many are at the top after the exchange."""
        top = (1 << BITS) - (1 << (BITS - self.width))
        self._steps = [(np.uint64(low), np.uint64(shift)) for low, shift in _steps(key & ~top, top & ~key)]

    def apply(self, values: NDArray[np.uint64]) -> None:
        """Exchange the bits of *values* in place; a second time restores them."""
        if not self._steps:
            return
        spare = np.empty(min(WINDOW, len(values)), np.uint64)
        for begin in range(0, len(values), WINDOW):
            part = values[begin : begin + WINDOW]
            moved = spare[: len(part)]
            for low, shift in self._steps:
                # Where the two bits of an exchange differ, both are flipped.
                np.right_shift(part, shift, out=moved)
                np.bitwise_xor(moved, part, out=moved)
                np.bitwise_and(moved, low, out=moved)
                np.bitwise_xor(part, moved, out=part)
                np.left_shift(moved, shift, out=moved)
                np.bitwise_xor(part, moved, out=part)


def _steps(below: int, free: int) -> list[tuple[int, int]]:
    """
    Return (lower bits, shift) of exchanges that together move every bit of *below* to one of *free*.

    All bits that move by the same shift are exchanged in one step, so large steps are taken first.
    """
    steps = []
    while below:
        shift = max(range(1, BITS), key=lambda each: (below & free >> each).bit_count())
        low = below & free >> shift
        steps.append((low, shift))
        below &= ~low
        free &= ~(low << shift)
    return steps
