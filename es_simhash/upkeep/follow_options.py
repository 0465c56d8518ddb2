"""
How an index is followed: the keyword arguments of the client's method, checked. No request is made here.

Which failures pass by themselves, so that a follower waits and goes on. No request is made here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from es_simhash.arguments import check_count, check_fields, check_name, check_number
from es_simhash.errors import IncompleteSearchError, InvalidInputError, NoIndexError
from es_simhash.groups.order import LEAST_BYTES, MOST_BYTES
from es_simhash.mapping.positions_flow import PositionsError
from es_simhash.transport.protocol import error_text, status_of
from es_simhash.transport.retry_flow import is_passing
from es_simhash.writes.operations import Failure, Outcome

STATE_INDEX = "es-simhash-state"


LONGEST_LEASE = 3_600


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowOptions:
    """
    How to follow an index; the client's method describes each.

    Raises:
        TypeError: If one has the wrong type.
        InvalidInputError: If one has a value that cannot be used.
    """

    text_field: str | Sequence[str] | None = None
    state_index: str = STATE_INDEX
    wait: bool = True
    once: bool = False
    interval: float = 5.0
    lease_seconds: float = 30.0
    reconcile_seconds: float = 3600.0
    verify_share: float = 0.0
    workers: int = 1
    batch: int = 500
    memory_bytes: int = 256 << 20

    def __post_init__(self) -> None:
        check_fields("text_field", self.text_field, may_lack=True)
        check_name("state_index", self.state_index, wanted="the name of an index")
        for name in ("interval", "lease_seconds", "reconcile_seconds"):
            check_number(name, getattr(self, name), above=0, advice="a number of seconds above 0")
        if self.lease_seconds > LONGEST_LEASE:
            raise InvalidInputError(
                f"lease_seconds {self.lease_seconds:g} is too long: give at most {LONGEST_LEASE}, because until it "
                "ends nobody can take over from a follower that was killed"
            )
        check_number("verify_share", self.verify_share, advice="a share from 0 to 1")
        check_count("workers", self.workers)
        check_count("batch", self.batch, 1, 10_000)
        check_count("memory_bytes", self.memory_bytes, LEAST_BYTES, MOST_BYTES)


Outage: TypeAlias = Literal["unreachable", "busy", "blocked", "shards", "missing"]


_CLIENTS = ("elastic_transport", "elasticsearch", "opensearchpy")


_UNREACHABLE = {"ConnectionError", "ConnectionTimeout"}


# They are connection errors too, but nothing changes by itself.
_LASTING = {"TlsError", "SSLError"}


LASTING = frozenset({"illegal_argument_exception", "index_closed_exception", "security_exception"})
"""What a multi-get says of a document that cannot be read until the user changes something; all else passes."""


_BLOCK = "cluster_block_exception"


_NO_INDEX = 404


_INTERNAL = 500


_FORBIDDEN = 403


class RefusedForNowError(Exception):
    """
    The server refuses a write or a read now, and not for what is written or read.

    Attributes:
        failure:
            What became of it.
    """

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure

    def __str__(self) -> str:
        """Return the server's own words."""
        return f"index {self.failure.index}: {self.failure.reason}"


def is_refused_for_now(outcome: Outcome) -> bool:
    """
    Return whether the server refused a write because of load, or because the index is blocked.
    """
    error = outcome.error
    return error is not None and (is_passing(outcome.status) or error.type == _BLOCK)


def refuses_whole_index(failure: Failure) -> bool:
    """
    Return whether a write failed because of load, a block or missing rights, and not because of its document.
    """
    return is_passing(failure.status) or failure.status == _FORBIDDEN


def find_outage(error: Exception, *, has_begun: bool) -> Outage | None:
    """
    Return what kind of outage made a request fail; ``None`` for what only the user can change.

    Args:
        error:
            What was raised.
        has_begun:
            Whether the index could be followed before: only then one that is missing may come again.
    """
    if isinstance(error, RefusedForNowError):
        if error.failure.kind == "unreadable":
            return "shards"
        return "busy" if is_passing(error.failure.status) else "blocked"
    if isinstance(error, NoIndexError):
        return "missing" if has_begun else None
    if isinstance(error, (IncompleteSearchError, PositionsError)):
        return "shards"
    classes = [each for each in type(error).__mro__ if each.__module__.partition(".")[0] in _CLIENTS]
    names = {each.__name__ for each in classes}
    status = status_of(error)
    if status is None:
        return "unreachable" if names & _UNREACHABLE and not names & _LASTING else None
    if status == _NO_INDEX and has_begun:
        return "missing"
    if _BLOCK in error_text(error):
        return "blocked"
    return "busy" if is_passing(status) or status >= _INTERNAL else None
