"""
The progress report of a backfill, for callers. No request is made here.
"""

from __future__ import annotations

from dataclasses import dataclass

from es_simhash.index.operations import Failure

__all__ = ["BackfillProgress"]


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
