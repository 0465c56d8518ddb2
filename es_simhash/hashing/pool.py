"""
Fingerprints and passage terms in the background: in a thread, or in processes if that pays; with the same bits.

One thread lets a caller wait for a server meanwhile. More threads would not be faster, because segmenting, counting
and much of the work on arrays keep Python's lock.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

from es_simhash.arguments import check_count
from es_simhash.errors import WorkerError
from es_simhash.hashing.scheme import Scheme

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

logger = logging.getLogger("es_simhash")


@dataclass(frozen=True, slots=True)
class PoolSizes:
    """
    When processes are started, and how much is sent to one of them at once.
    *enough*: characters from which processes are started; one takes as long for so many as starting others does, a
    second or two. *characters*, *texts*: the most of a part, enough to outweigh the sending, few enough that all
    processes end at about the same time.
    """

    enough: int = 4_000_000
    characters: int = 250_000
    texts: int = 2_000


_SIZES = PoolSizes()


class TextHashes(NamedTuple):
    """What is computed of a text: *passages* are empty where they are not asked for."""

    fingerprint: int | None
    passages: Sequence[str] = ()


def check_workers(workers: int | None) -> int:
    return 0 if workers is None else check_count("workers", workers)


def usable_workers(workers: int | None) -> int:
    """Return :func:`check_workers`, but 0 in a daemonic process: Python forbids it to start others."""
    number = check_workers(workers)
    # A process that multiprocessing started has loaded this module; the import would cost all others some time.
    module = sys.modules.get("multiprocessing.process")
    if number and module is not None and module.current_process().daemon:
        logger.warning(
            "workers=%d has no effect in a daemonic process, which may not start others: it computes alone", number
        )
        return 0
    return number


def split_texts(texts: Sequence[str], sizes: PoolSizes = _SIZES) -> Iterator[Sequence[str]]:
    """Yield *texts* in parts of limited size, in order; a longer text is a part of its own."""
    from es_simhash.hashing.characters import text_parts  # noqa: PLC0415 -- loads numpy

    return (texts[part] for part in text_parts(texts, sizes.characters, sizes.texts))


class Pending:
    """Fingerprints on their way: those of the parts of one batch."""

    def __init__(self, parts: Sequence[Future[list[TextHashes]]]) -> None:
        self._parts = parts

    def result(self) -> list[int | None]:
        """Return the fingerprint of each text, in order; raise ``WorkerError`` if a process ended too early."""
        return [each.fingerprint for each in self.hashes()]

    def hashes(self) -> list[TextHashes]:
        """Return what was computed of each text; otherwise as :meth:`result`."""
        try:
            return [each for part in self._parts for each in part.result()]
        except BrokenExecutor as error:
            raise _worker_error() from error


class FingerprintPool:
    """
    Computes fingerprints in a thread or in processes once that pays; a context manager that stops them.
    Methods may be called from several threads. A daemonic process (a worker of ``multiprocessing.Pool``) may start no
    *workers*: it computes alone, and logs a warning. *thread*: without processes, one does all batches but the first.
    """

    def __init__(
        self,
        scheme: Scheme,
        *,
        workers: int | None = None,
        thread: bool = False,
        sizes: PoolSizes = _SIZES,
        passages: bool = False,
    ) -> None:
        self._scheme = scheme
        self._passages = passages
        self._sizes = sizes
        self._has_thread = thread
        self._workers = usable_workers(workers)
        self._characters = 0
        self._executor: ProcessPoolExecutor | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._is_first = True
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def ahead(self) -> int:
        """How many batches to submit in advance, in addition to the one that is waited for; 0 without a thread."""
        return self._workers if self._executor is not None else int(self._thread is not None)

    def compute(self, texts: Sequence[str]) -> list[int | None]:
        """
        Return the fingerprint of each of *texts*, in order; ``None`` for one without features.
        Only a few parts of the work are in the processes at once. With one worker this process does the work, since the
        caller waits anyway. Raises ``WorkerError`` if a process ended too early.
        """
        return [each.fingerprint for each in self.compute_hashes(texts)]

    def compute_hashes(self, texts: Sequence[str]) -> list[TextHashes]:
        """Return what is computed of each text; otherwise as :meth:`compute`."""
        if self._workers == 1 or not self._is_enough(texts):
            return _hashes(texts, self._scheme, self._passages)
        found: list[TextHashes] = []
        waiting: deque[Pending] = deque()
        for part in split_texts(texts, self._sizes):
            waiting.append(self._send([part]))
            if len(waiting) > 2 * self._workers:
                found += waiting.popleft().hashes()
        for pending in waiting:
            found += pending.hashes()
        return found

    def submit(self, texts: Sequence[str]) -> Pending:
        """
        Begin to compute the fingerprints of *texts* in the background, and return an object for the result.
        Without a thread and processes, and for the first batch, they are computed before this returns. Raises
        ``WorkerError`` if a process ended too early; errors of the computation are raised by the result.
        """
        if self._is_enough(texts):
            return self._send(list(split_texts(texts, self._sizes)))
        if self._has_thread and not self._is_first:
            return Pending([self._own_thread().submit(_hashes, texts, self._scheme, self._passages)])
        self._is_first = False
        done: Future[list[TextHashes]] = Future()
        try:
            done.set_result(_hashes(texts, self._scheme, self._passages))
        except Exception as error:  # noqa: BLE001 -- raised by result(), like the exception of a process
            done.set_exception(error)
        return Pending([done])

    def close(self) -> None:
        """Stop the thread and the processes, and drop the work that they have not begun."""
        with self._lock:
            executors = self._executor, self._thread
            self._executor = self._thread = None
        for each in executors:
            if each is not None:
                each.shutdown(wait=True, cancel_futures=True)

    def _is_enough(self, texts: Sequence[str]) -> bool:
        """Return whether there are processes, or there was enough to do, this time included, to start them."""
        if not self._workers:
            return False
        self._characters += sum(map(len, texts))
        return self._executor is not None or self._characters >= self._sizes.enough

    def _own_thread(self) -> ThreadPoolExecutor:
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 -- see _send

        with self._lock:
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, thread_name_prefix="es_simhash_fingerprints")
            return self._thread

    def _send(self, parts: Sequence[Sequence[str]]) -> Pending:
        # These take longer to load than all that importing es_simhash loads.
        from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415
        from multiprocessing import get_context  # noqa: PLC0415

        with self._lock:
            if self._executor is None:
                # A forked copy of a process with threads may hang; a spawned one starts clean.
                self._executor = ProcessPoolExecutor(
                    self._workers,
                    mp_context=get_context("spawn"),
                    initializer=_begin,
                    initargs=(self._scheme, self._passages),
                )
            try:
                return Pending([self._executor.submit(_compute, part) for part in parts])
            except BrokenExecutor as error:
                raise _worker_error() from error


def _hashes(texts: Sequence[str], scheme: Scheme, passages: bool) -> list[TextHashes]:  # noqa: FBT001 -- for a thread
    from es_simhash.hashing.batches import fingerprint_list, stored_term_list  # noqa: PLC0415 -- loads numpy

    found = fingerprint_list(texts, scheme)
    if not passages:
        return list(map(TextHashes, found))
    return list(map(TextHashes, found, stored_term_list(texts, found)))


def _worker_error() -> WorkerError:
    return WorkerError(
        "a process that computes fingerprints ended before its work was done (killed, or out of memory?): use fewer "
        "workers; a script must begin its work below `if __name__ == '__main__':`, because each process imports it"
    )


_asked: tuple[Scheme, bool]


def _begin(scheme: Scheme, passages: bool) -> None:  # noqa: FBT001 -- for a process
    """Prepare a process: Ctrl-C is the parent's to handle, and without a parent there is nothing left to do."""
    from multiprocessing import parent_process  # noqa: PLC0415 -- see FingerprintPool

    global _asked  # noqa: PLW0603 -- sent once, not with every part
    _asked = scheme, passages
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    from multiprocessing import connection  # noqa: PLC0415

    connection.wait([sentinel])
    os._exit(1)


def _compute(texts: Sequence[str]) -> list[TextHashes]:
    return _hashes(texts, *_asked)
