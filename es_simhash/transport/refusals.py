"""
Why a request is sent again: each refusal that a server may give, how it looks on both products, and what is done then.

The table is data. ``conversation.py`` and ``pages.py`` act on it. What a lookup or a write makes of a refusal, it
says by the row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from es_simhash.errors import InvalidInputError
from es_simhash.transport.answers import NO_COPY, Gap
from es_simhash.transport.protocol import error_text, status_of

Refusal: TypeAlias = BaseException | Mapping[str, Any] | Iterable[Gap]
"""The client's exception, the ``error`` of one search of several, or the gaps of an answer."""

BLOCK = "cluster_block_exception"
"""What a server says of a block: with 403 or 429 of one that somebody must remove, with 503 while it starts."""

UNBLOCK = "remove the block, or make room on the disk, and run it again"
"""What to do about a block that somebody must remove, whoever is told of it."""

ATTEMPTS = 9
"""How often a request is sent before its refusal counts: once, and eight times more, within about a minute."""


class Look(NamedTuple):
    """How a refusal looks; *statuses*: of a request that is refused as a whole, *words*: one of them is said."""

    statuses: tuple[int, ...] = ()
    words: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def fits(self, status: int | None, text: str) -> bool:
        """Return whether *text* came with *status*; ``None`` for a part of an answer, which only words tell."""
        if status is None and not self.words:
            return False
        is_said = not self.words or any(word in text for word in self.words)
        is_status = status is None or not self.statuses or status in self.statuses
        return is_status and is_said and not any(word in text for word in self.without)


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """
    A refusal that is not the last word. *change*: what is sent then, for readers; *attempts*: how often a request is
    sent in all, unless it is changed: each change is made once;
    *at_last*: what the caller is told.
    """

    looks: tuple[Look, ...]
    change: str
    attempts: int = 2
    at_last: str = "the client's exception"
    first_wait_seconds: float = 0.0

    def fits(self, status: int | None, text: str) -> bool:
        return any(look.fits(status, text) for look in self.looks)

    def meets(self, refusal: Refusal) -> bool:
        """Return whether *refusal* is this one; an exception without a status is none."""
        if not isinstance(refusal, BaseException):
            return self.fits(None, refusal_text(refusal))
        status = status_of(refusal)
        return status is not None and self.fits(status, error_text(refusal))


# OpenSearch has a 503 for a search with more buckets than it allows; a disk that is full (429) takes longer.
BUSY = Row(
    (Look((429,), without=(BLOCK, "too_many_buckets")), Look((502, 503, 504), without=("too_many_buckets",))),
    change="the same, after a wait: too many requests, or a node that restarts",
    attempts=ATTEMPTS,
    first_wait_seconds=0.25,
)
NO_SHARD = Row(
    (Look((503,), ("missing shards", NO_COPY, "'failed_shards': []")),),
    change="the same, after a wait, within about 4 seconds: a shard has no active copy",
    attempts=5,
    first_wait_seconds=0.25,
)
CHANGED_MEANWHILE = Row(
    (Look((409,)),),
    change="the document is read again, and written if that is still to be done: others change it at the same time",
    attempts=8,
    at_last="an outcome with status 409",
    first_wait_seconds=0.05,
)
# For an index made anew, Elasticsearch looks for the shards of the former one, and answers as for a missing shard.
VIEW_ENDED = Row(
    (Look((404,)), Look(words=("search_context_missing_exception", NO_COPY))),
    change="all pages once more: a point in time is too old, or an index was made anew",
)
# OpenSearch: an index without any mapping does not know the field by which documents are shared out to slices.
NO_SLICE = Row((Look(words=("field _id not found",)),), change="all pages in one slice")
NO_ORDER = Row(
    (Look(words=("_shard_doc",)),),
    change="the same page by the number of the last operation: OpenSearch before 3.3",
)
# Elasticsearch answers 503 where one shard refuses a request and another is missing; a script that fails is a 500.
_BY_SHARDS = (400, 500, 503)
NO_SOURCE = Row(
    (Look(_BY_SHARDS, ("unable to fetch fields from _source",)),),
    change="hits with all of their source, or without texts: an index keeps no _source",
)
NO_SCRIPT = Row(
    (Look(_BY_SHARDS, ("script", "painless", "allow_expensive_queries")),),
    change="a plan without scripts, for ten minutes for this index and client",
)
CLOSED = Row((Look(words=("index_closed_exception",)),), change="nothing: somebody must open the index", attempts=1)


TOO_LARGE = Row(
    (Look((413,)),),
    change="halves of a bulk request or of a multi-search, until one part is alone",
    at_last="the request is larger than the server allows (http.max_content_length) or a proxy before it (such as "
    "client_max_body_size of nginx): raise that limit, or give less at once",
)
SPOILT = Row(
    (Look((400,), ("action_request_validation_exception",)),),
    change="halves of a bulk request: one operation that breaks a rule, as by an id of more than 512 bytes, spoils it",
    at_last="an outcome of that operation",
)


# A status such as 404 or 500, and no word about a document: the shard failed, as on a full disk, or moved away.
SHARD_GONE = Row(
    (
        Look(
            words=(
                "already_closed_exception",
                "engine_closed_exception",
                "i_o_exception",
                "illegal_index_shard_state_exception",
                "index_shard_closed_exception",
                "shard_not_found_exception",
            )
        ),
    ),
    change="the operation as where the server is busy",
    attempts=ATTEMPTS,
    at_last="an outcome with status 503",
    first_wait_seconds=0.25,
)
NOT_MARKED = Row(
    (Look(words=(".settings_", ".retired]")),),
    change="the search without the marker of settings, if the mapping shows the settings: an index lacks or hides it",
)
MAPPING_FULL = Row(
    (Look((400,), ("total fields",)),),
    change="nothing: somebody must raise the limit",
    attempts=1,
    at_last="the client's exception, with a note of the fields that are new",
)
# OpenSearch knows the first from 2.18 on, Elasticsearch the second from 9.2 on.
NO_OPTION = Row(
    (Look((400,), ("search_pipeline", "_source_exclude_vectors")),),
    change="the same without the options that keep defaults of a server away, for ten minutes for this client",
)


# OpenSearch, of a number that it masks: by its doc values it would be as expected.
_MASKED = re.compile(r"docvalues type (\w+) for field '([^']+)' \(expected one of \[[^\]]*\b\1\b")


def masked_field(error: BaseException) -> str | None:
    """Return the number field that a server cannot read because this login sees it masked; ``None`` for all else."""
    masked = _MASKED.search(error_text(error))
    return None if masked is None else masked[2]


def is_unwritable(error: BaseException) -> bool:
    """
    Return whether the client could not turn an operation into JSON, and so has sent nothing.
    Both clients raise the same class for an answer that is no JSON; only a value of a wrong type comes as a TypeError.
    """
    if all(kind.__name__ != "SerializationError" for kind in type(error).__mro__):
        return False
    causes = (error.__cause__, error.__context__, *error.args, *getattr(error, "errors", ()))
    return any(isinstance(cause, TypeError) for cause in causes)


def is_of_one(error: BaseException) -> bool:
    """Return whether one operation may have spoilt a bulk request, so that its halves are sent."""
    return TOO_LARGE.meets(error) or SPOILT.meets(error) or is_unwritable(error)


def is_passing(refusal: BaseException | int | None, kind: str = "") -> bool:
    """Return whether a refusal (an exception, or a status and the *kind* of the error) passes by itself, and soon."""
    if isinstance(refusal, BaseException):
        return BUSY.meets(refusal)
    return refusal is not None and BUSY.fits(refusal, kind)


CLIENTS = ("elastic_transport", "elasticsearch", "opensearchpy")
"""The modules of the exceptions of both clients."""


def is_unreachable(error: BaseException) -> bool:
    """Return whether no server answered. One whose certificate is not trusted did, and that does not pass."""
    names = {kind.__name__ for kind in type(error).__mro__ if kind.__module__.partition(".")[0] in CLIENTS}
    return bool(names & {"ConnectionError", "ConnectionTimeout"}) and not names & {"TlsError", "SSLError"}


def is_lasting(kind: str) -> bool:
    """Return whether a document of a multi-get cannot be read, by the *kind* of the error, until somebody helps."""
    return kind in ("illegal_argument_exception", "index_closed_exception", "security_exception")


def is_blocked(error: BaseException) -> bool:
    return BLOCK in error_text(error)


def is_no_index(error: BaseException) -> bool:
    return "index_not_found_exception" in error_text(error)


def is_there_already(error: BaseException) -> bool:
    """Return whether an index cannot be made because there is one of that name."""
    return "resource_already_exists_exception" in error_text(error)


def may_be_lost(error: Exception) -> bool:
    """Return whether perhaps only the answer is lost: there is none, or the server is busy."""
    is_sent = not isinstance(error, InvalidInputError)
    return is_sent and (status_of(error) is None or BUSY.meets(error))


def refusal_text(refusal: Refusal) -> str:
    """Return the server's text of a refusal, to search it for documented words; it has no sentence of ours."""
    if isinstance(refusal, BaseException):
        return error_text(refusal)
    if isinstance(refusal, Mapping):
        return str(refusal)
    return " ".join(gap.cause for gap in refusal)
