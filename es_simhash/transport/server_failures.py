"""
What a failure of a search client means, and what to do: a table, with one sentence for each failure.

The exceptions themselves pass through unchanged. Both clients' are known by the names of their classes, so that neither
has to be imported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from es_simhash.errors import shorten
from es_simhash.transport.protocol import error_text, status_of
from es_simhash.transport.refusals import BLOCK, CLIENTS, UNBLOCK, Look

# The names of the exception's classes are words too. The first row that fits counts.
_NO_ANSWER = (
    (
        Look(words=("WRONG_VERSION_NUMBER",)),
        "{server} does not speak TLS: give a URL that begins with http://, or check its port",
    ),
    (
        Look(words=("CERTIFICATE_VERIFY_FAILED",)),
        (
            "the TLS certificate of {server} could not be verified: {cause}; set ES_SIMHASH_CA_FILE to the certificate "
            "of its authority, or check whether the URL should begin with http://"
        ),
    ),
    (
        Look(words=("TlsError", "SSLError")),
        "{server} makes no TLS connection: {cause}; check the URL and its port",
    ),
    (
        Look(words=("ConnectionTimeout",)),
        "{server} did not answer in time: see whether it is overloaded, or set ES_SIMHASH_TIMEOUT to more seconds",
    ),
    (
        Look(words=("",)),
        (
            "cannot reach {server}: {cause}; start the server, or give its address by ES_SIMHASH_URL (es-simhash serve "
            "starts a local one)"
        ),
    ),
)
_REFUSED = "{server} refused the request ({status}): {reason}"
_ANSWERED = (
    (
        Look(words=("UnsupportedProductError",)),
        "{server} is not an Elasticsearch: leave ES_SIMHASH_PRODUCT out, or set it to opensearch",
    ),
    (
        Look((301, 302, 303, 307, 308)),
        "{server} sends to another address ({status}): give that address by ES_SIMHASH_URL",
    ),
    (
        Look((400,), ("media_type_header", "compatible-with")),
        "{server} is an Elasticsearch 8, and the Python client here is for 9: pip install 'elasticsearch>=8.12,<9'",
    ),
    (
        Look(words=("no handler found for uri",)),
        "{server} does not know this path: {reason}; leave out what follows its port in the URL",
    ),
    (
        Look(words=("index_closed_exception",)),
        "{reason}: open the index (POST INDEX/_open), and run it again",
    ),
    (
        Look(words=("resource_already_exists_exception",)),
        "{reason}: choose another name, or add the fields to what is there with setup(index)",
    ),
    (
        Look(words=(BLOCK,)),
        f"{{reason}}: {UNBLOCK}",
    ),
    (
        Look((401,)),
        (
            "{server} refuses the login (401): set ES_SIMHASH_USER and ES_SIMHASH_PASSWORD, or ES_SIMHASH_API_KEY, to "
            "a login that is valid"
        ),
    ),
    # Both products name the right that is missing.
    (Look((403,)), "{server} does not allow this (403): {reason}; use a login with rights on the index"),
    (Look(words=("index_not_found_exception",)), "{reason}: check the name, or create the index"),
    (Look((409,)), "{reason}: another program changed it at the same time; run it again"),
    # With 400 each shard says what it refuses, such as a limit.
    (Look((400,)), _REFUSED),
    (
        Look(words=("all shards failed",)),
        "{reason}: see which shards have no copy (GET _cat/shards/INDEX) and the log of {server}",
    ),
    (
        Look((429, *range(500, 600))),
        "{server} cannot serve this now ({status}): {reason}; try again when it is less busy, or see its log",
    ),
    (Look(), _REFUSED),
)

# A word of a client's message about a connection, and what it means in plain words.
_CAUSES = {
    "refused": "connection refused",
    "Name or service not known": "no such host",
    "Failed to resolve": "no such host",
    "Temporary failure in name resolution": "the name of the host cannot be resolved",
    "CERTIFICATE_VERIFY_FAILED": "nobody it trusts signed it, or it is for another host",
    **dict.fromkeys(
        ("RemoteDisconnected", "BadStatusLine", "Connection aborted", "ServerDisconnected"),
        "what listens there closed the connection without an answer: it is no search server, or wants https://",
    ),
    "IncompleteRead": "the connection ended in the middle of an answer",
}
# What a server quotes, such as the query of a user, is cut as any value of a user; its own sentences are shorter.
_QUOTED = re.compile(r"\[([^\[\]]{300,})\]")


def is_of_client(error: BaseException) -> bool:
    return any(cls.__module__.partition(".")[0] in CLIENTS for cls in type(error).__mro__)


def unblocking(reasons: Iterable[str]) -> str | None:
    """Return what to do if one of *reasons*, why documents were refused, is a block of the index."""
    return UNBLOCK if any(BLOCK in reason for reason in reasons) else None


def describe_failure(error: BaseException, server: str) -> str:
    """
    Return what the exception of a client means, with its notes; no sentence is cut, but the values in it are.
    *server* is its URL, without a login.
    """
    status = status_of(error)
    said = " ".join((error_text(error), *(cls.__name__ for cls in type(error).__mro__)))
    rows = _NO_ANSWER if status is None else _ANSWERED
    sentence = next(sentence for look, sentence in rows if look.fits(status, said))
    notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    return sentence.format(server=server, status=status, cause=_cause(error), reason=_reason(error)) + notes


def _reason(error: BaseException) -> str:
    """Return what the server says, in its words."""
    body: Any = getattr(error, "body", None)
    body = getattr(error, "info", None) if body is None else body
    details = body.get("error") or _shard_failure(body) if isinstance(body, Mapping) else body
    if isinstance(details, Mapping):
        causes = [details, *(details.get("root_cause") or [])[:1]]
        said = [_said(cause) for cause in causes if isinstance(cause, Mapping) and cause.get("reason")]
        said = [_QUOTED.sub(lambda found: f"[{found[1][:79]}…]", sentence) for sentence in said]
        return "; ".join(dict.fromkeys(said)) or str(details.get("type"))
    # A text is no answer of a search server, but perhaps a whole page of what stands before it.
    return shorten(body, limit=300) if body and isinstance(body, str) else str(details or error)


def _said(cause: Mapping[str, Any]) -> str:
    """Return the reason of one cause; OpenSearch says only "closed" of an index, and names it elsewhere."""
    reason, index = str(cause["reason"]).rstrip(";"), str(cause.get("index", ""))
    return reason if index in reason else f"index {index}: {reason}"


def _shard_failure(body: Mapping[str, Any]) -> Any:
    """Return the first failure of a shard; a refresh reports a refusal there."""
    match body.get("_shards"):
        case {"failures": [{"reason": reason}, *_]}:
            return reason
    return None


def _cause(error: BaseException) -> str:
    """Return why there was no answer."""
    message = getattr(error, "message", None)
    # opensearch-py: (status, message, the exception behind it).
    if not isinstance(message, str) or message == "N/A":
        message = str(error.args[1] if len(error.args) > 1 else error)
    return next((plain for word, plain in _CAUSES.items() if word in message), message)
