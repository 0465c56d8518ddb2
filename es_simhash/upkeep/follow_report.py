"""
What a follower has done so far, for callers. No request is made here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from es_simhash.writes.operations import Failure

FollowState: TypeAlias = Literal["standby", "reading", "grouping", "waiting", "retrying", "done"]

SHOWN_FAILURES = 100


@dataclass(frozen=True, slots=True)
class FollowReport:
    """
    What a follower has done since it began; all numbers but the lags are sums.

    Attributes:
        state:
            ``"standby"``: another follower has the lease; ``"reading"``: changed documents are read;
            ``"grouping"``: their groups are decided; ``"waiting"``: nothing is left to do; ``"retrying"``: a request
            failed and will be sent again; ``"done"``: the last report of a follower that runs once.
        read:
            Number of changed documents that were read.
        verified:
            Number of documents that were read again although nothing changed.
        written:
            Number of documents whose fingerprint was written or removed.
        stale:
            How many of these had a fingerprint, but not that of their text.
        conflicts:
            Number of documents that others changed before our write. They are read again as they are now.
        regrouped:
            Number of documents whose group fields were rewritten.
        failed:
            Number of documents that could not be read or written.
        failures:
            These documents, since the last report, at most 100.
        lag_operations:
            Number of operations on the index that are not read yet, as of the last look.
        lag_seconds:
            How long ago everything was done that was in the index then, groups included.
        has_lease:
            Whether this follower may write.
        errors:
            How often requests failed, by kind.
        problem:
            In the states ``"retrying"`` and ``"standby"``: what is waited for, for people.
    """

    state: FollowState
    read: int = 0
    verified: int = 0
    written: int = 0
    stale: int = 0
    conflicts: int = 0
    regrouped: int = 0
    failed: int = 0
    failures: tuple[Failure, ...] = ()
    lag_operations: int = 0
    lag_seconds: float = 0.0
    has_lease: bool = False
    errors: Mapping[str, int] = field(default_factory=dict)
    problem: str = ""

    @property
    def is_idle(self) -> bool:
        """Whether nothing is begun, so that an interrupt interrupts nothing."""
        return self.state in ("standby", "waiting", "retrying")


@dataclass(slots=True)
class Tally:
    """
    Counts what a follower does; its attributes are those of :class:`FollowReport`.
    """

    read: int = 0
    verified: int = 0
    written: int = 0
    stale: int = 0
    conflicts: int = 0
    regrouped: int = 0
    failed: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    problem: str = ""
    _failures: list[Failure] = field(default_factory=list)

    def fail(self, failure: Failure) -> None:
        """Count a document that could not be read or written."""
        self.failed += 1
        if len(self._failures) < SHOWN_FAILURES:
            self._failures.append(failure)

    def report(self, state: FollowState, *, lag_operations: int, lag_seconds: float, has_lease: bool) -> FollowReport:
        """Return the present report; the next report has only the failures after this one."""
        failures, self._failures = tuple(self._failures), []
        return FollowReport(
            state,
            self.read,
            self.verified,
            self.written,
            self.stale,
            self.conflicts,
            self.regrouped,
            self.failed,
            failures,
            lag_operations,
            lag_seconds,
            has_lease,
            dict(self.errors),
            self.problem if state in ("retrying", "standby") else "",
        )
