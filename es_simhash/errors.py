"""
The errors of es_simhash, and nothing else.

    SimHashError                    what no other says: of an answer, a pipeline, a refused search of a batch
    ├── InvalidInputError           also a ValueError: an argument that cannot be used
    │   ├── WrongTypeError          also a TypeError: an argument of a wrong type
    │   ├── GuardRailError          more documents would be removed than is allowed
    │   └── SchemeError             an unknown scheme, or one whose dictionary is missing or differs
    ├── SchemeMismatchError         the index was written with another scheme than the caller's
    ├── MappingError                the index lacks our fields, or has them with the wrong type
    ├── IncompleteSearchError       near-duplicates may be missing; it carries those that were found
    │   └── NoIndexError            no index matches a pattern
    ├── IncompleteWriteError        some documents were not written
    ├── WritesRefusedError          a server takes no writes now, whichever the document
    ├── MissingDependencyError      also an ImportError: an extra is not installed
    ├── WorkerError                 a process that computes fingerprints ended before its work was done
    └── EmbeddedServerError         a local server could not be started or stopped

What a search client or server raises passes through unchanged.
Every error here can be pickled and carries its data in attributes. A message is one line: what is wrong, the
value, and what to do. It names arguments and methods as Python has them; ``cli/wording.py`` puts commands in their
places.
"""

from __future__ import annotations

from typing import Any


def shorten(value: object, *, limit: int = 80) -> str:
    """Return ``repr(value)`` on one line, cut at *limit* characters, for use in a message."""
    if isinstance(value, (str, bytes)):
        text = repr(value[: limit + 1])
    elif isinstance(value, int) and abs(value) >> 1_000:  # Python refuses to write out the longest
        text = f"of {value.bit_length():,} bits"
    else:
        text = " ".join(repr(value).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def count(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 document``, ``12,345 documents``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def has_lone_surrogate(text: str) -> bool:
    r"""
    Return whether *text* has half of a surrogate pair, which no request can hold.
    >>> has_lone_surrogate("news"), has_lone_surrogate("\ud800")
    (False, True)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


class SimHashError(Exception):
    """The base of every error that this library raises on purpose."""


class InvalidInputError(SimHashError, ValueError):
    """An argument, or a file, cannot be used."""


class WrongTypeError(InvalidInputError, TypeError):
    """An argument has a type that cannot be used."""


class GuardRailError(InvalidInputError):
    """
    A removal would take a larger share than is allowed, or too many documents for one.

    Attributes:
        excess:
            The share that is too large, with its numbers; ``None`` if that is not the reason.
        large_group:
            How many documents go for one document; ``None`` if that is not the reason.
    """

    def __init__(self, message: str, *, excess: Any = None, large_group: Any = None) -> None:
        super().__init__(message)
        self.excess = excess
        self.large_group = large_group


class SchemeError(InvalidInputError):
    """
    A scheme is unknown, its parameters do not fit, or a dictionary it needs is missing or differs.

    Attributes:
        missing_file:
            ``"dictionary"``, ``"idf"`` or ``"stop_words"`` if only the digest of that file is known, else empty.
    """

    def __init__(self, message: str, *, missing_file: str = "") -> None:
        super().__init__(message)
        self.missing_file = missing_file


class SchemeMismatchError(SimHashError):
    """
    The index and the caller use different schemes, so their fingerprints cannot be compared.

    Attributes:
        index_scheme:
            Identifier of the scheme recorded in the index's mapping.
        client_scheme:
            Identifier of the scheme that the caller asked for.
    """

    def __init__(self, message: str, *, index_scheme: str = "", client_scheme: str = "") -> None:
        super().__init__(message)
        self.index_scheme = index_scheme
        self.client_scheme = client_scheme


class MappingError(SimHashError):
    """
    The index lacks fields that are needed, or has them with the wrong type.

    Attributes:
        problems:
            One line for each fault found.
        kinds:
            The kind of each, as ``check`` names it in ``faults``; empty where that is not known.
    """

    def __init__(self, message: str, *, problems: tuple[str, ...] = (), kinds: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems
        self.kinds = kinds


class IncompleteSearchError(SimHashError):
    """
    A search did not look at every document, so near-duplicates may be missing.

    Attributes:
        results:
            What was found (a ``NearDups`` or an ``Overlaps``, marked incomplete), or ``None``.
        reasons:
            One line for each cause: failed shards, a time-out, no index matched.
    """

    def __init__(self, message: str, *, results: Any = None, reasons: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.results = results
        self.reasons = reasons


class IncompleteWriteError(SimHashError):
    """
    Some documents were not written; the others were.

    Attributes:
        changed:
            How many were changed or deleted since they were read.
        refused:
            How many the server refused.
    """

    def __init__(self, message: str, *, changed: int = 0, refused: int = 0) -> None:
        super().__init__(message)
        self.changed = changed
        self.refused = refused


class WritesRefusedError(SimHashError):
    """
    The server takes no writes now, whichever the document, so the work ended; the same call goes on later.

    Attributes:
        kind:
            ``"busy"`` (for about a minute), ``"blocked"`` (the index is read-only, or a disk is full), ``"forbidden"``
            (the login lacks a right, or sees only parts of documents) or ``"missing"`` (the index is closed, or gone).
        index:
            The index that was written to.
    """

    def __init__(self, message: str, *, kind: str = "", index: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.index = index


class NoIndexError(IncompleteSearchError):
    """A pattern matches no index, or none that the user may see, so nothing was searched."""


class MissingDependencyError(SimHashError, ImportError):
    """A function needs an extra that is not installed; the message names it."""


class WorkerError(SimHashError):
    """A process that computes fingerprints ended before its work was done: it was killed, or could not start."""


class EmbeddedServerError(SimHashError):
    """A local server could not be started, or did not stop."""
