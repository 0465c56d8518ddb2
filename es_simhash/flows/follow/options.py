"""
How an index is followed: the keyword arguments of the client's method, checked. No request is made here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from es_simhash.arguments import check_count, check_fields, check_name, check_number
from es_simhash.errors import InvalidInputError
from es_simhash.index.grouping.resources import LEAST_BYTES, MOST_BYTES

__all__ = ["STATE_INDEX", "FollowOptions"]

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
