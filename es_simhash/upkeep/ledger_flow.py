"""
Counts what a backfill has done so far, and remembers failures and the versions that are processed.

No request is made here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from es_simhash.transport.keys import Key
from es_simhash.upkeep.judge_flow import Document, Judge, Judgement
from es_simhash.upkeep.progress import BackfillProgress
from es_simhash.writes.conditional_write_flow import CONFLICT, MISSING, UNREADABLE
from es_simhash.writes.operations import Failure, Outcome

if TYPE_CHECKING:
    from es_simhash.upkeep.progress import Checkpoint


# Time to write one document, for the forecast of a dry run; measured by bench/backfill.py.
WRITE_SECONDS = 1 / 5_000


class Ledger:
    """
    Counts judgements and outcomes, and remembers them in a checkpoint.

    Attributes:
        total, seen, changed:
            As in :class:`BackfillProgress`.
        seen_by_index:
            Number of documents looked at in the first pass, for each concrete index.
        failed_indices:
            Indices with documents that could not be read or written.
        unwritten_indices:
            Those of them where a document has a text and lacks what was computed of it.
    """

    def __init__(self, judge: Judge, checkpoint: Checkpoint) -> None:
        self.total = self.seen = self.changed = 0
        self.seen_by_index: Counter[str] = Counter()
        self._judge = judge
        self._checkpoint = checkpoint
        self._stale = self._empty = self._failed = 0
        self._failures: list[Failure] = []
        self.failed_indices: set[str] = set()
        self.unwritten_indices: set[str] = set()
        # Documents of this pass that other programs kept changing, or that the server could not read.
        self._left: list[Failure] = []

    @property
    def work(self) -> int:
        """Number of documents written or failed; while it grows, another pass may find more."""
        return self.changed + self._failed

    def find_fresh(self, documents: Sequence[Document]) -> list[Document]:
        """Return the documents whose present version was not processed yet."""
        known = self._checkpoint.holds([self._judge.key_of(each) for each in documents])
        return [each for each, is_known in zip(documents, known, strict=True) if not is_known]

    def compare(self, documents: Sequence[Document], at: str) -> list[Judgement]:
        """Return the judgements of new *documents* that need an update; count all new ones."""
        judged = self._judge.judge(self.find_fresh(documents), at=at)
        self._count(judged)
        self._checkpoint.add([each.key for each in judged if each.is_right])
        return [each for each in judged if each.operation is not None]

    def settle(self, judged: Sequence[Judgement], outcomes: Sequence[Outcome]) -> list[Key]:
        """Count and remember the outcomes of updates; return the documents that other programs changed first."""
        pairs = list(zip(judged, outcomes, strict=True))
        self._note([(each, outcome) for each, outcome in pairs if outcome.status != CONFLICT])
        return [each.place for each, outcome in pairs if outcome.status == CONFLICT]

    def settle_latest(
        self, places: Sequence[Key], outcomes: Sequence[Outcome | None], latest: Mapping[Key, Judgement]
    ) -> None:
        """Count and remember the outcomes of documents that were read again; *latest* has their last judgements."""
        written: list[tuple[Judgement, Outcome]] = []
        right: list[int] = []
        for place, outcome in zip(places, outcomes, strict=True):
            judged = latest.get(place)
            if outcome is not None and outcome.status in (CONFLICT, UNREADABLE):
                self._left.append(outcome.to_failure())
            elif judged is not None:
                self._count([judged])
                written += [] if outcome is None else [(judged, outcome)]
                right += [judged.key] if outcome is None and judged.is_right else []
        self._checkpoint.add(right)
        self._note(written)

    def begin_pass(self) -> None:
        """Forget the documents that the pass before this one left over."""
        self._left.clear()

    def end(self) -> None:
        """Count the documents that no pass could process as failed."""
        for failure in self._left:
            self._fail(failure)

    def report(self, *, elapsed: float | None = None, is_done: bool = False) -> BackfillProgress:
        """
        Return the present report; the next report has only the failures after this one.

        Args:
            elapsed:
                Seconds since the beginning of a dry run, for its forecast; else ``None``.
            is_done:
                Whether this is the last report.
        """
        failures, self._failures = tuple(self._failures), []
        return BackfillProgress(
            total=self.total,
            seen=self.seen,
            changed=self.changed,
            stale=self._stale,
            empty=self._empty,
            failures=failures,
            failed=self._failed,
            seconds_left=None if elapsed is None else elapsed + self.changed * WRITE_SECONDS,
            is_done=is_done,
        )

    def _count(self, judged: Sequence[Judgement]) -> None:
        for each in judged:
            self._empty += each.is_empty
            self._stale += each.is_stale
            if each.failure is not None:
                self._fail(each.failure, each.key)

    def _note(self, written: Sequence[tuple[Judgement, Outcome]]) -> None:
        keys = []
        for each, outcome in written:
            if outcome.is_done and outcome.version is not None:
                self.changed += 1
                keys.append(self._judge.key(each.place.index, each.place.id, *outcome.version))
            elif outcome.status != MISSING:
                self._fail(outcome.to_failure(), each.key)
        self._checkpoint.add(keys)

    def _fail(self, failure: Failure, key: int | None = None) -> None:
        self._failed += 1
        self._failures.append(failure)
        self.failed_indices.add(failure.index)
        if failure.kind != "unusable":
            self.unwritten_indices.add(failure.index)
        if key is not None:
            # Not kept in the file: a later run tries this version again.
            self._checkpoint.add([key], keep=False)
