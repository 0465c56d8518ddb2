"""
Pairs of neighbours, kept for as many rounds as the rules of grouping need: in memory, and in the caller's file beyond.

Arrays only; what the pairs mean is decided in ``assign``. No file is made here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import IO, Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["Edges"]

Places = NDArray[np.int64]

# Pairs kept in memory where there is a file for the others. A pair takes 8 bytes, and 16 where there are more than
# 2**32 places.
MOST_EDGES = 20_000_000
# Pairs read from the file at once.
STEP = 1 << 20


class Edges:
    """
    Pairs of places, which can be read again and again in the same order.

    Use it in a ``with`` statement: the file is closed at its end.

    Args:
        count:
            How many places there are.
        pairs:
            The pairs; each array is read once.
        spill:
            Opens an empty file, to be written and read, for the pairs beyond :data:`MOST_EDGES`; ``None`` keeps all
            pairs in memory.
    """

    def __init__(
        self, count: int, pairs: Iterable[tuple[Places, Places]], spill: Callable[[], IO[bytes]] | None = None
    ) -> None:
        self._spill = spill
        self._type = np.dtype(np.uint32 if count <= 1 << 32 else np.uint64)
        self._parts: list[NDArray[np.unsignedinteger]] = []
        self._file: IO[bytes] | None = None
        try:
            self._keep(pairs)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[tuple[Places, Places]]:
        """Yield the pairs as (earlier, later)."""
        for part in self._parts:
            yield part[:, 0].astype(np.int64), part[:, 1].astype(np.int64)
        if self._file is not None:
            self._file.seek(0)
            while data := self._file.read(2 * STEP * self._type.itemsize):
                part = np.frombuffer(data, self._type).reshape(-1, 2)
                yield part[:, 0].astype(np.int64), part[:, 1].astype(np.int64)

    def _keep(self, pairs: Iterable[tuple[Places, Places]]) -> None:
        kept = 0
        for left, right in pairs:
            part = np.stack((np.minimum(left, right), np.maximum(left, right)), axis=1).astype(self._type)
            kept += len(part)
            if kept <= MOST_EDGES or self._spill is None:
                self._parts.append(part)
            else:
                self._file = self._file or self._spill()
                self._file.write(part.tobytes())

    def close(self) -> None:
        """Close the file, where there is one."""
        if self._file is not None:
            self._file.close()
