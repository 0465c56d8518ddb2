"""
An exception as one line that says what failed, and what to do; with ``--json`` one JSON object. What the failures of
servers mean is in ``transport/server_failures.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from es_simhash.errors import IncompleteSearchError, InvalidInputError, NoIndexError, SimHashError, shorten
from es_simhash.transport.server_failures import describe_failure, is_of_client, unblocking as unblocking  # noqa: PLC0414 -- what commands know of servers

if TYPE_CHECKING:
    from es_simhash import NearDups, Scheme


def describe(error: BaseException, *, url: str = "the server") -> str:
    """
    Return *error* as one line for the user; *url* is shown, so it must have no login. A sentence is never cut; the
    values in it are.
    """
    return " ".join(_describe(error, url).split())


def kind_of(error: BaseException) -> str:
    """Return the kind of *error* for programs: the class of one of ours, else ``server``, ``file``, ``unexpected``."""
    if isinstance(error, SimHashError):
        return type(error).__name__
    if is_of_client(error):
        return "server"
    return "file" if isinstance(error, OSError) else "unexpected"


def _describe(error: BaseException, server: str) -> str:
    if isinstance(error, IncompleteSearchError) and error.reasons and not isinstance(error, NoIndexError):
        return (
            f"near-duplicates may be missing: {'; '.join(map(str, error.reasons))}: check the index name and the "
            "server's health, and try again"
        )
    if isinstance(error, SimHashError):
        return str(error)
    if is_of_client(error):
        return describe_failure(error, server)
    if isinstance(error, OSError) and error.filename is not None:
        return f"cannot use {shorten(str(error.filename))}: {error.strerror}"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot read stdin or write to stdout: {error.strerror}"  # whoever writes a file names it
    if isinstance(error, MemoryError):
        return "not enough memory: pass less text at once"
    return (
        f"unexpected {type(error).__name__}: {error} (this is a bug of es-simhash: set ES_SIMHASH_DEBUG=1 to see where "
        "it happens, and report it)"
    )


class WrongUseError(InvalidInputError):
    """The arguments of a command do not go together."""


class EndedError(Exception):
    """What ended a command, as :func:`describe` says it where the server is known; ``kind``: for programs."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


def why_unfound(text: str | None, found: NearDups) -> dict[str, str]:
    """Return why nothing was *found* for a *text*, if it has no fingerprint: a kind, a message, and the scheme."""
    if text is None or found.plan is not None or found.scheme is None:
        return {}
    return {"kind": "no_features", "message": no_features(found.scheme), "scheme": found.scheme.id}


def no_features(scheme: Scheme) -> str:
    """Return what is said of a text that has no fingerprint by *scheme*."""
    left_out = f"the text has no letters and no digits, or nothing but what the scheme {scheme.id} leaves out"
    return f"{left_out}: it has no fingerprint, and matches nothing"
