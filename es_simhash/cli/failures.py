"""
An exception as one line that says what failed, and what to do; with ``--json`` one JSON object. What the failures of
servers mean is in ``transport/server_failures.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from es_simhash.errors import IncompleteSearchError, InvalidInputError, NoIndexError, SimHashError, shorten
from es_simhash.transport.server_failures import describe_failure, is_of_client, unblocking as unblocking  # noqa: PLC0414 -- what commands know of servers

if TYPE_CHECKING:
    from es_simhash import NearDups, Scheme


def describe(error: BaseException, *, url: str | None = None, like: Sequence[str] = ()) -> str:
    """
    Return *error* as one line for the user; *url* is shown, so it must have no login. *like*: names of indices that are
    nearly the one that does not exist. A sentence is never cut; the values in it are.
    """
    return " ".join(_describe(error, url or "the server", like).split())


def kind_of(error: BaseException) -> str:
    """Return the kind of *error* for programs: the class of one of ours, else ``server``, ``file``, ``unexpected``."""
    if isinstance(error, SimHashError):
        return type(error).__name__
    if is_of_client(error):
        return "server"
    return "file" if isinstance(error, OSError) else "unexpected"


def _describe(error: BaseException, server: str, like: Sequence[str]) -> str:
    if isinstance(error, IncompleteSearchError) and error.reasons and not isinstance(error, NoIndexError):
        return (
            f"near-duplicates may be missing: {'; '.join(map(str, error.reasons))}: check the index name and the "
            "server's health, and try again"
        )
    if isinstance(error, SimHashError):
        return str(error)
    if is_of_client(error):
        return describe_failure(error, server, like)
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


_LEFT_OUT = {
    "shingles": "characters",
    "keywords": "words: those of one character, stop words, and scripts other than Chinese and Latin without accents",
}


@dataclass(frozen=True, slots=True)
class UnfingerprintedText:
    """Why a text has no fingerprint, so that a lookup of it finds nothing; *scheme* is an id."""

    kind: str
    scheme: str

    @classmethod
    def of(cls, text: str | None, found: NearDups) -> UnfingerprintedText | None:
        """Return why nothing was *found* for a *text*, if it has no fingerprint."""
        if text is None or found.plan is not None or found.scheme is None:
            return None
        return cls.why(text, found.scheme)

    @classmethod
    def why(cls, text: str, scheme: Scheme) -> UnfingerprintedText:
        """Return why a *text* has no fingerprint by *scheme*."""
        if not text.strip():
            return cls("blank" if text else "empty", scheme.id)
        return cls("left_out" if any(map(str.isalnum, text)) else "no_letters", scheme.id)

    def __str__(self) -> str:
        left_out = _LEFT_OUT.get(self.scheme.rpartition("-")[0], "words")
        why = {
            "empty": "is empty",
            "blank": "is blank",
            "no_letters": "has no letters and no digits",
            "left_out": f"has only what the scheme {self.scheme} leaves out ({left_out})",
        }
        return f"the text {why[self.kind]}, so it has no fingerprint and matches nothing"
