"""
Fingerprints in several processes: started when there is enough to do, and shared by all batches of one job.

The bits are those of :func:`fingerprints`. Which texts, and when, is the caller's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from types import TracebackType
from typing import Self

from es_simhash.errors import InvalidInputError
from es_simhash.hashing.compute import fingerprints
from es_simhash.hashing.scheme import Scheme

__all__ = ["FingerprintPool"]

# Starting processes costs a second or two: as much as this many characters take one process.
ENOUGH_CHARACTERS = 4_000_000


class FingerprintPool:
    """
    Computes fingerprints, in processes of its own once that pays; a context manager.

    Args:
        scheme:
            The scheme.
        workers:
            Number of processes; with 1, none is started.

    Raises:
        InvalidInputError: If *workers* is less than 1.
    """

    def __init__(self, scheme: Scheme, *, workers: int = 1) -> None:
        if workers < 1:
            raise InvalidInputError(f"workers {workers} is too small: give 1 or more")
        self._scheme = scheme
        self._workers = workers
        self._characters = 0
        self._executor: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def compute(self, texts: Sequence[str]) -> list[int | None]:
        """
        Return the fingerprint of each of *texts*, in order; ``None`` for one without features.

        Raises:
            concurrent.futures.process.BrokenProcessPool: If a worker process died.
        """
        self._characters += sum(map(len, texts))
        if self._workers == 1 or (self._executor is None and self._characters < ENOUGH_CHARACTERS):
            return fingerprints(texts, scheme=self._scheme)
        if self._executor is None:
            # A forked copy of a process with threads may hang; a spawned one starts clean.
            self._executor = ProcessPoolExecutor(self._workers, mp_context=get_context("spawn"))
        share = -(-len(texts) // self._workers)
        parts = [texts[begin : begin + share] for begin in range(0, len(texts), share)]
        futures = [self._executor.submit(_compute, part, self._scheme) for part in parts]
        return [each for future in futures for each in future.result()]

    def close(self) -> None:
        """Stop the processes."""
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)
            self._executor = None


def _compute(texts: Sequence[str], scheme: Scheme) -> list[int | None]:
    return fingerprints(texts, scheme=scheme)
