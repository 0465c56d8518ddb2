"""
Repeats requests: which refusals are temporary, how long to wait, and when to give up. No other module does that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from es_simhash.flows.protocol import Call, Flow, Wait, status_of
from es_simhash.flows.transfer.answers import is_shard_missing

__all__ = ["ATTEMPTS", "SHARD_ATTEMPTS", "Patience", "ask", "attempt", "is_passing", "retry"]

_T = TypeVar("_T")

ATTEMPTS = 9
"""How often a request is sent before its refusal counts: once, and eight times more, within about a minute."""

SHARD_ATTEMPTS = 5
"""How often a request is sent that fails because a shard has no active copy: within about 4 seconds."""

FIRST_WAIT_SECONDS = 0.25
LONGEST_WAIT_SECONDS = 30.0
MOST_DOUBLINGS = 20
# Too many requests, and what proxies and clusters answer while a node restarts.
_PASSING = frozenset({429, 502, 503, 504})


def is_passing(refusal: BaseException | int | None) -> bool:
    """
    Return whether a refusal (an exception or a status) is temporary: the server is busy or starting.
    """
    status = status_of(refusal) if isinstance(refusal, BaseException) else refusal
    return status in _PASSING


@dataclass(slots=True)
class Patience:
    """
    How many failures in a row are waited for, and how long.

    Attributes:
        attempts:
            How often something is tried before it is given up.
        first_wait_seconds:
            The first wait; each wait after it is twice as long, up to 30 seconds.
        failures:
            How many attempts have failed since the last success.
    """

    attempts: int = ATTEMPTS
    first_wait_seconds: float = FIRST_WAIT_SECONDS
    failures: int = 0

    @property
    def is_spent(self) -> bool:
        """Whether the attempt that fails now is the last one."""
        return self.failures >= self.attempts - 1

    def wait(self) -> Wait:
        """Count a failure, and return the wait before the next attempt."""
        doublings = min(self.failures, MOST_DOUBLINGS)
        seconds = min(self.first_wait_seconds * 2**doublings, LONGEST_WAIT_SECONDS)
        self.failures += 1
        return Wait(seconds)

    def renew(self) -> None:
        """Forget the failures: something succeeded."""
        self.failures = 0


def retry(
    work: Callable[[], Flow[_T]], *, is_done: Callable[[_T], bool] = lambda _: True, patience: Patience | None = None
) -> Flow[_T]:
    """
    Return what *work* returns; repeat it while the server is busy.

    Args:
        work:
            Makes a new flow for each attempt.
        is_done:
            Whether a result is good enough; the last result is returned in any case.
        patience:
            How often to try; by default nine times, five where a shard has no active copy.

    Raises:
        Exception: The client's own exception, if it says more than that the server is busy, or of the last attempt.
    """
    patience = patience or Patience()
    while True:
        try:
            result = yield from work()
        except Exception as error:
            is_lasting = is_shard_missing(error) and patience.failures >= SHARD_ATTEMPTS - 1
            if patience.is_spent or is_lasting or not is_passing(error):
                raise
        else:
            if is_done(result):
                patience.renew()
                return result
            if patience.is_spent:
                return result
        yield patience.wait()


def attempt(call: Call) -> Flow[Any]:
    """
    Return the answer to *call*, sent once, or the exception that it failed with.
    """
    try:
        return (yield call)
    except Exception as error:  # noqa: BLE001 -- judged by the caller
        return error


def ask(call: Call, *, patience: Patience | None = None) -> Flow[Any]:
    """
    Return the answer to *call*, sent again while the server is busy.
    """

    def send() -> Flow[Any]:
        return (yield call)

    return retry(send, patience=patience)
