"""What a follower is asked for, checked, and what it reports: plain values. No request is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeAlias

from es_simhash.arguments import check_fields, check_name, check_number, check_options, option
from es_simhash.errors import IncompleteSearchError, NoIndexError, WritesRefusedError
from es_simhash.mapping.shards import PositionsError
from es_simhash.transport.protocol import status_of
from es_simhash.transport.refusals import is_blocked, is_passing, is_unreachable
from es_simhash.writes.operations import Failure

FollowState: TypeAlias = Literal["reading", "grouping", "waiting", "retrying", "done"]
SHOWN_FAILURES = 100


@dataclass(frozen=True, slots=True)
class FollowReport:
    """
    What a follower has done since it began; all numbers but the lags are sums.

    Attributes:
        state:
            ``"reading"``: changed documents are read; ``"grouping"``: their groups are decided; ``"waiting"``: nothing
            is left to do; ``"retrying"``: a request failed and will be sent again; ``"done"``: the last report of a
            follower that runs once.
        read:
            Number of changed documents that were read, without what the follower wrote itself.
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
        errors:
            How often requests failed, by kind.
        problem:
            In the state ``"retrying"``: what is waited for, for people.
    """

    state: FollowState
    read: int = 0
    written: int = 0
    stale: int = 0
    conflicts: int = 0
    regrouped: int = 0
    failed: int = 0
    failures: tuple[Failure, ...] = ()
    lag_operations: int = 0
    lag_seconds: float = 0.0
    errors: Mapping[str, int] = field(default_factory=dict)
    problem: str = ""

    @property
    def is_idle(self) -> bool:
        """Whether an interrupt interrupts nothing; groups that were not decided are decided by the next follower."""
        return self.state in ("grouping", "waiting", "retrying")


class Tally:
    """Counts what a follower does; *sums* has the names of the sums of :class:`FollowReport`."""

    def __init__(self) -> None:
        self.sums: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.problem = ""
        self._failures: list[Failure] = []

    @property
    def writes(self) -> int:
        return self.sums["written"] + self.sums["regrouped"]

    def fail(self, failure: Failure) -> None:
        self.sums["failed"] += 1
        if len(self._failures) < SHOWN_FAILURES:
            self._failures.append(failure)

    def report(self, state: FollowState, **now: Any) -> FollowReport:
        """Return the present report, of values *now* too; the next report has only the failures after this one."""
        now |= {**self.sums, "failures": tuple(self._failures), "errors": dict(self.errors)}
        self._failures = []
        return FollowReport(state, problem=self.problem if state == "retrying" else "", **now)


_check_seconds = partial(check_number, above=0, advice="a number of seconds above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowOptions:
    """
    How to follow an index, checked.

    Args:
        text_field:
            Field or fields of the text; by default those that the index records.
        once:
            End when everything is done that was written before the call; a block of the index is an error then.
        interval:
            Seconds between two looks while nothing changes.
        state_index:
            Index that holds the positions; it is created if it is missing.
    """

    text_field: str | Sequence[str] | None = None
    once: bool = False
    interval: float = option(5.0, _check_seconds)
    state_index: str = option("es-simhash-state", partial(check_name, wanted="the name of an index"))

    def __post_init__(self) -> None:
        check_fields("text_field", self.text_field, may_lack=True)
        check_options(self)


Outage: TypeAlias = Literal["unreachable", "busy", "blocked", "shards", "missing"]


def find_outage(error: Exception, *, has_begun: bool) -> Outage | None:
    """
    Return what kind of outage made a request fail; ``None`` for what only the user can change.
    *has_begun*: the index could be followed before: only then a missing index may come again.
    """
    if isinstance(error, WritesRefusedError) and error.kind in ("busy", "blocked"):
        return "busy" if error.kind == "busy" else "blocked"
    if isinstance(error, NoIndexError) or (isinstance(error, WritesRefusedError) and error.kind == "missing"):
        return "missing" if has_begun else None
    if isinstance(error, (IncompleteSearchError, PositionsError)):
        return "shards"
    if (status := status_of(error)) is None:
        return "unreachable" if is_unreachable(error) else None
    if status == 404 and has_begun:
        return "missing"
    if is_blocked(error):
        return "blocked"
    return "busy" if is_passing(error) or status >= 500 else None
