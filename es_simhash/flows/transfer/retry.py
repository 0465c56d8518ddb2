"""
The one retry: which refusals pass, how long to wait, and when to give up. Nothing is sent here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from es_simhash.flows.protocol import Call, Flow, Wait, status_of

__all__ = ["ATTEMPTS", "ask", "is_passing", "retry", "wait_seconds"]

_T = TypeVar("_T")

ATTEMPTS = 9
"""How often a request is sent before its refusal counts: once, and eight times more, within about two minutes."""

LONGEST_WAIT_SECONDS = 30.0
# Too many requests, and what proxies and clusters answer while a node restarts.
_PASSING = frozenset({429, 502, 503, 504})


def is_passing(refusal: BaseException | int | None) -> bool:
    """
    Return whether a refusal, an exception or a status, says only that the server is busy or on its way back.
    """
    status = status_of(refusal) if isinstance(refusal, BaseException) else refusal
    return status in _PASSING


def wait_seconds(attempt: int) -> float:
    """
    Return how many seconds to wait after *attempt* (from 0) was refused.
    """
    return float(min(0.25 * 2**attempt, LONGEST_WAIT_SECONDS))


def retry(
    work: Callable[[], Flow[_T]], *, is_done: Callable[[_T], bool] = lambda _: True, attempts: int = ATTEMPTS
) -> Flow[_T]:
    """
    Return what *work* returns, doing it again while the server is busy.

    Args:
        work:
            Makes the flow to carry out, anew for each attempt.
        is_done:
            Whether a result is good enough; the last one is returned whatever it is.
        attempts:
            How often to try.

    Raises:
        Exception: The client's own, if it is no passing refusal, or of the last attempt.
    """
    attempt = 0
    while True:
        attempt += 1
        try:
            result = yield from work()
        except Exception as error:
            if attempt >= attempts or not is_passing(error):
                raise
        else:
            if attempt >= attempts or is_done(result):
                return result
        yield Wait(wait_seconds(attempt - 1))


def ask(call: Call, *, attempts: int = ATTEMPTS) -> Flow[object]:
    """
    Return the answer to *call*, sent again while the server is busy.
    """

    def send() -> Flow[object]:
        return (yield call)

    return retry(send, attempts=attempts)
