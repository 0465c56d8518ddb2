"""
Fingerprints and passage terms of many texts: at once, in a thread, or in processes; with the same bits.

One thread lets a caller wait for a server meanwhile. More threads would not be faster, because segmenting, counting
and much of the work on arrays keep Python's lock.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple, Self

from es_simhash.arguments import check_count
from es_simhash.errors import WorkerError
from es_simhash.hashing.scheme import Scheme

# The most that is sent to a process at once: enough to outweigh the sending, few enough that all end about together.
PROCESS_CHARACTERS, PROCESS_TEXTS = 250_000, 2_000


class TextHashes(NamedTuple):
    """What is computed of a text: *passages* are empty where they are not asked for."""

    fingerprint: int | None
    passages: Sequence[str] = ()


Pending = Callable[[], list[TextHashes]]
"""Waits for what was computed of each text of a batch, in order, and returns it, or raises what went wrong."""


class FingerprintPool:
    """
    Computes in *workers* processes, which start at once, else in one thread (*thread*), else in the caller.
    *ahead*: how many batches to submit in advance, in addition to the one that is waited for.
    """

    def __init__(
        self, scheme: Scheme, *, workers: int | None = None, thread: bool = False, passages: bool = False
    ) -> None:
        self._work = partial(_hashes, scheme=scheme, passages=passages)
        self._workers = 0 if workers is None else check_count("workers", workers)
        self.ahead = self._workers or int(thread)
        self._executor: Executor | None = None
        if self._workers:
            self._executor = _processes(self._workers)
        elif thread:
            self._executor = ThreadPoolExecutor(1, thread_name_prefix="es_simhash_fingerprints")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the thread or the processes, and drop the work that they have not begun."""
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)

    def compute(self, texts: Sequence[str]) -> list[TextHashes]:
        """Return what is computed of each of *texts*, in order."""
        return self.submit(texts)()

    def submit(self, texts: Sequence[str]) -> Pending:
        """Begin to compute what there is of each of *texts*; without a thread and processes, the result does it."""
        if self._executor is None:
            return partial(self._work, texts)
        with _broken_executors_told():
            futures = [self._executor.submit(self._work, part) for part in self._parts(texts)]

        def results() -> list[TextHashes]:
            with _broken_executors_told():
                return [hashes for future in futures for hashes in future.result()]

        return results

    def _parts(self, texts: Sequence[str]) -> list[Sequence[str]]:
        from es_simhash.hashing.characters import text_parts  # noqa: PLC0415 -- loads numpy

        if not self._workers:
            return [texts]
        return [texts[part] for part in text_parts(texts, PROCESS_CHARACTERS, PROCESS_TEXTS)]


def _hashes(texts: Sequence[str], scheme: Scheme, *, passages: bool) -> list[TextHashes]:
    from es_simhash.hashing.batches import fingerprint_list, stored_term_list  # noqa: PLC0415 -- loads numpy

    found = fingerprint_list(texts, scheme)
    if not passages:
        return list(map(TextHashes, found))
    return list(map(TextHashes, found, stored_term_list(texts, found)))


@contextmanager
def _broken_executors_told() -> Iterator[None]:
    try:
        yield
    except BrokenExecutor as error:
        raise WorkerError(
            "a process that computes fingerprints ended before its work was done (killed, or out of memory?): use "
            "fewer workers; a script must begin its work below `if __name__ == '__main__':`, because each process "
            "imports it"
        ) from error


def _processes(workers: int) -> Executor:
    # These take longer to load than all that importing es_simhash loads.
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 -- as the comment says
    from multiprocessing import get_context  # noqa: PLC0415 -- as the comment says

    # A forked copy of a process with threads may hang; a spawned one starts clean.
    executor = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_begin)
    # All start now: one that Python starts for later work, just after another was killed, would never be ended.
    for _ in range(workers):
        executor.submit(os.getpid)
    return executor


def _begin() -> None:
    """Prepare a process: Ctrl-C is the parent's to handle, and without a parent there is nothing left to do."""
    from multiprocessing import parent_process  # noqa: PLC0415 -- see _processes

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    from multiprocessing import connection  # noqa: PLC0415 -- see _processes

    connection.wait([sentinel])
    os._exit(1)
