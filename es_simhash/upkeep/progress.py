"""
The progress report of a backfill, for callers. No request is made here.

Remembers which versions of which documents a backfill has processed, so that a later run can continue.

The memory takes eight bytes for each document. The file has one line of JSON with its purpose, and then these bytes. If
a killed run left an incomplete entry at the end, it is ignored. Flows use the checkpoint through ``Compute``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import xxhash
from numpy.typing import NDArray

from es_simhash.errors import InvalidInputError
from es_simhash.writes.operations import Failure


@dataclass(frozen=True, slots=True)
class BackfillProgress:
    """
    The progress of a backfill; all numbers except *total* are sums since its beginning.

    Attributes:
        total:
            Number of documents to look at, as counted at the beginning.
        seen:
            Number of documents looked at in the first pass.
        changed:
            Number of documents whose fields were written; in a dry run, that would be.
        stale:
            How many of these had a fingerprint, but not that of their text.
        empty:
            Number of documents whose text has no features; they carry no fingerprint.
        failures:
            The documents that could not be read or written, since the last report.
        failed:
            Number of these in all.
        seconds_left:
            In a dry run, roughly how long the work would take; else ``None``.
        is_done:
            Whether this is the last report.
    """

    total: int
    seen: int
    changed: int
    stale: int
    empty: int
    failures: tuple[Failure, ...]
    failed: int
    seconds_left: float | None = None
    is_done: bool = False


_FRESH = 200_000


def version_key(index_uuid: str, id_: str, sequence: int, term: int) -> int:
    """
    Return a 64-bit key for one version of one document.

    Among 10 million versions, the chance that any two have the same key is 3 in a million. One of these two documents
    would then be skipped.
    """
    return xxhash.xxh64_intdigest(f"{index_uuid}\0{id_}\0{sequence}\0{term}".encode())


class Checkpoint:
    """
    The keys of the versions that were processed; keys are never removed.

    Args:
        path:
            File to continue from and to write to; ``None`` keeps the keys in memory only.
        purpose:
            What the backfill does. A file with another purpose is refused.

    Raises:
        InvalidInputError: If the file is not a checkpoint, or belongs to another backfill.
    """

    def __init__(self, path: str | os.PathLike[str] | None, purpose: Mapping[str, Any]) -> None:
        self._sorted: NDArray[np.uint64] = np.empty(0, np.uint64)
        self._fresh: set[int] = set()
        self._file: BinaryIO | None = None
        if path is None:
            return
        file = Path(path)
        header = json.dumps({"es_simhash": "backfill", **purpose}, sort_keys=True).encode() + b"\n"
        held = file.read_bytes() if file.exists() else b""
        if held and not held.startswith(header):
            raise InvalidInputError(f"{file} is not a checkpoint of this backfill: name another file")
        whole = held[len(header) :]
        whole = whole[: len(whole) // 8 * 8]
        self._sorted = np.unique(np.frombuffer(whole, "<u8").astype(np.uint64))
        self._file = file.open("r+b" if held else "w+b")
        self._file.write(header if not held else b"")
        self._file.seek(len(header) + len(whole))
        self._file.truncate()

    def __len__(self) -> int:
        return len(self._sorted) + len(self._fresh)

    def holds(self, keys: Sequence[int]) -> list[bool]:
        """Return for each of *keys* whether it is known."""
        wanted = np.array(keys, np.uint64)
        places = np.searchsorted(self._sorted, wanted)
        found = np.zeros(len(wanted), np.bool_)
        inside = places < len(self._sorted)
        found[inside] = self._sorted[places[inside]] == wanted[inside]
        return [known or key in self._fresh for known, key in zip(found.tolist(), keys, strict=True)]

    def add(self, keys: Sequence[int], *, keep: bool = True) -> None:
        """Add *keys*; with *keep*, also to the file, for a later run."""
        if keep and self._file is not None:
            self._file.write(np.array(keys, "<u8").tobytes())
            self._file.flush()
        self._fresh.update(keys)
        if len(self._fresh) > _FRESH:
            fresh = np.fromiter(self._fresh, np.uint64, len(self._fresh))
            self._sorted = np.unique(np.concatenate([self._sorted, fresh]))
            self._fresh.clear()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
