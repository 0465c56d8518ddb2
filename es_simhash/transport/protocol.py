"""
What a request is, how far the work is, what a client's exception says, and by what names a caller means an index or a
document; and what servers allow a request by default: no request of this library asks for more. No operation is here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote

from es_simhash.arguments import check_name
from es_simhash.errors import InvalidInputError, WrongTypeError, count, shorten


@dataclass(frozen=True, slots=True)
class Call:
    """
    One request to the server; answered by the response as plain values.
    *api*: a name of this project; ``client/dialects.py`` knows how each client spells it. *raw_source*: a multi-get
    answers each ``_source`` as the text that the server sent; not for the first request of an operation.
    """

    api: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    raw_source: bool = False


@dataclass(frozen=True, slots=True)
class Compute:
    """Work for the processor beside requests, kept off an event loop; answered by what *function* returns."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """
    How far one step of a long call is.

    Attributes:
        done:
            How much of the step is done, in documents or what *step* names.
        total:
            All of it; ``None`` if that is not known before the end.
        step:
            What is being done, such as ``"reading documents"``. A call has one or more steps, one after another.
    """

    done: int
    total: int | None
    step: str


OnProgress: TypeAlias = Callable[[Progress], object]
"""What a caller passes as ``progress``."""


def _attribute(error: BaseException, name: str) -> Any:
    """Return an attribute of a client's exception; some compute it, and fail over their own arguments."""
    try:
        return getattr(error, name, None)
    except Exception:  # noqa: BLE001 -- the exception at hand matters, not its attribute
        return None


@contextmanager
def noting(written: Callable[[], str]) -> Iterator[None]:
    """Add a note to whatever ends the block early, an interrupt too: what was *written* by then."""
    try:
        yield
    except BaseException as error:
        error.add_note(written())
        raise


def were(number: int, done: str) -> str:
    """Return a note that *number* documents were *done*: ``1 document was deleted``, ``no document was deleted``."""
    if not number:
        return f"no document was {done}"
    return f"{count(number, 'document')} {'was' if number == 1 else 'were'} {done}"


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status that a client's exception carries, or ``None`` where it carries none."""
    status = _attribute(error, "status_code")
    return status if isinstance(status, int) else None


def cause_of(error: BaseException | Mapping[str, Any]) -> str:
    """Return the first cause that the server gives for a client's exception, or for an ``error``, in its words."""
    body: Any = {"error": error}
    if isinstance(error, BaseException):
        body = _attribute(error, "body") or _attribute(error, "info")
    cause = body.get("error") if isinstance(body, Mapping) else None
    while isinstance(cause, Mapping) and cause.get("caused_by"):
        cause = cause["caused_by"]
    return str((cause.get("reason") if isinstance(cause, Mapping) else cause) or error)


def error_text(error: BaseException) -> str:
    """Return all that a client's exception says about its cause, for looking up a word of the server."""
    said = [str(_attribute(error, name) or "") for name in ("message", "error", "body", "info")]
    with suppress(AttributeError, LookupError, TypeError):  # of a client that fails over what the server said
        said.append(str(error))
    return " ".join(said)


Index = str | Sequence[str]

LONGEST_NAMES = 3_000
"""Bytes of the names in one request."""


def index_key(index: Index) -> str:
    """Return the names in *index* as one string, separated by commas."""
    return index if isinstance(index, str) else ",".join(index)


def check_index(index: Index) -> str | list[str]:
    """
    Return *index* if it names at least one index, alias, data stream or pattern of this cluster.
    A server would take an empty name for all indices. Selectors (``::``) and other clusters (``other:name``) are
    refused.
    """
    names = [index] if isinstance(index, str) else index
    if not isinstance(names, (list, tuple)):
        raise WrongTypeError(f"index must be a name or a list of names, not {shorten(index)}")
    parts = [part for name in names for part in check_name("index", name).split(",")]
    if not parts or not all(map(str.strip, parts)):
        raise InvalidInputError(f"index {shorten(index)} names no index: give a name, a pattern or a list of them")
    for part in parts:
        if "::" in part:
            raise InvalidInputError(f"index {shorten(part)} has a selector, which is not supported: leave out '::...'")
        if ":" in part and not part.startswith("<"):  # <...> is date math
            raise InvalidInputError(f"index {shorten(part)} is on another cluster: use a client of that cluster")
    return index if isinstance(index, str) else list(names)


_NOT_IN_NAMES = frozenset(' "*,/<>?\\|#:')


def is_index_name(index: str) -> bool:
    """Return whether an index can have that name: it is no pattern, list or date math."""
    return (
        index == index.lower()
        and not _NOT_IN_NAMES.intersection(index)
        and index[:1] not in ("", "-", "_", "+")
        and index not in (".", "..")
        and len(index.encode()) <= 255
    )


def check_new_name(index: str) -> str:
    """Return *index* if the servers take it as the name of a new index, or as date math; else raise an error."""
    if not is_index_name(index) and not (index.startswith("<") and index.endswith(">")):
        raise InvalidInputError(
            f"index {shorten(index)} cannot be the name of a new index: use at most 255 lower-case letters, digits, "
            "'-', '_' and '.', and begin with a letter or digit"
        )
    return index


def names_in(index: Index) -> list[str]:
    return index_key(check_index(index)).split(",")


def in_parts(index: Index) -> list[Index]:
    """
    Return *index* in parts whose names fit into the 4,096 bytes that a server takes as the first line of a request.
    Names that have a pattern among them stay together: it may be one that leaves some of the others out.
    """
    names = index_key(index).split(",")
    if len(names) == 1 or len(quote(index_key(names))) <= LONGEST_NAMES or any("*" in name for name in names):
        return [index]
    half = len(names) // 2
    return [*in_parts(names[:half]), *in_parts(names[half:])]


class Key(NamedTuple):
    """Where a document is: no other has the same three. *index* is never an alias."""

    index: str  # type: ignore[assignment]  # hides the method of tuples
    id: str
    routing: str | None = None

    def header(self) -> dict[str, Any]:
        """Return the metadata of a request about it, as multi-gets and bulk requests have it."""
        header = {"_index": self.index, "_id": self.id}
        return header if self.routing is None else {**header, "routing": self.routing}


def document_key(hit: Mapping[str, Any]) -> Key:
    return Key(hit["_index"], hit["_id"], hit.get("_routing"))


MAX_HITS = 10_000
"""Most hits of a search, and most ids in one ``ids`` query (``index.max_result_window``)."""

MAX_CLAUSES = 1_024
"""Most clauses in one query (``indices.query.bool.max_clause_count``)."""


def ids_query(ids: Iterable[str]) -> dict[str, Any]:
    """Return the query for the documents with one of *ids*, however many; servers refuse an empty id."""
    every = list(filter(None, ids))
    parts = [{"ids": {"values": every[begin : begin + MAX_HITS]}} for begin in range(0, len(every) or 1, MAX_HITS)]
    return parts[0] if len(parts) == 1 else {"bool": {"should": parts}}
