"""
An exception as one line that says what failed, and what to do; with ``--json`` one JSON object. Exceptions of both
search clients are known by the names of their classes, so that neither has to be imported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import click

from es_simhash import IncompleteSearchError, NoIndexError, Scheme, SimHashError
from es_simhash.cli.output import error, to_json
from es_simhash.errors import shorten
from es_simhash.transport.protocol import error_text, status_of

_CLIENT_MODULES = ("elastic_transport", "elasticsearch", "opensearchpy")
# What a server quotes, such as the query of a user, is cut as any value of a user; its own sentences are shorter.
_QUOTED = re.compile(r"\[([^\[\]]{300,})\]")

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
    if _is_of_client(error):
        return "server"
    return "file" if isinstance(error, OSError) else "unexpected"


def _is_of_client(error: BaseException) -> bool:
    return any(cls.__module__.partition(".")[0] in _CLIENT_MODULES for cls in type(error).__mro__)


def _describe(error: BaseException, server: str, like: Sequence[str]) -> str:
    if isinstance(error, IncompleteSearchError) and error.reasons and not isinstance(error, NoIndexError):
        return (
            f"near-duplicates may be missing: {'; '.join(map(str, error.reasons))}: check the index name and the "
            "server's health, and try again"
        )
    if isinstance(error, SimHashError):
        return str(error)
    if _is_of_client(error):
        notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
        return _describe_client_error(error, server, like) + notes
    if isinstance(error, OSError) and error.filename is not None:
        return f"cannot use {shorten(str(error.filename))}: {error.strerror}"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot read the input or write the output: {error.strerror}"
    if isinstance(error, MemoryError):
        return "not enough memory: pass less text at once"
    return (
        f"unexpected {type(error).__name__}: {error} (this is a bug of es-simhash: set ES_SIMHASH_DEBUG=1 to see where "
        "it happens, and report it)"
    )


def _describe_client_error(error: BaseException, server: str, like: Sequence[str]) -> str:
    names = {cls.__name__ for cls in type(error).__mro__}
    status = status_of(error)
    if "UnsupportedProductError" in names:
        return f"{server} is not an Elasticsearch: leave --product out, or pass --product opensearch"
    if names & {"TlsError", "SSLError"}:
        if "WRONG_VERSION_NUMBER" in (cause := _cause(error)):
            return f"{server} does not speak TLS: pass a URL that begins with http://, or check its port"
        if "CERTIFICATE_VERIFY_FAILED" not in str(error):
            return f"{server} makes no TLS connection: {cause}; check the URL and its port"
        return (
            f"the TLS certificate of {server} could not be verified: {_cause(error)}; set ES_SIMHASH_CA_FILE to the "
            "certificate of its authority, or check whether the URL should begin with http://"
        )
    if "ConnectionTimeout" in names:
        return f"{server} did not answer in time: check whether it is overloaded, or pass a larger --timeout"
    if status in (301, 302, 303, 307, 308):
        return f"{server} sends to another address ({status}): pass that address by --url or ES_SIMHASH_URL"
    if status is None:
        return (
            f"cannot reach {server}: {_cause(error)}; start the server, or pass its address by --url or ES_SIMHASH_URL "
            "(es-simhash serve starts a local one)"
        )
    return _describe_status(error, status, server, like)


def _describe_status(error: BaseException, status: int, server: str, like: Sequence[str]) -> str:
    text = error_text(error)
    reason = _reason(error)
    if status == 400 and ("media_type_header" in text or "compatible-with" in text):
        return (
            f"{server} is an Elasticsearch 8, and the Python client here is for 9: pip install 'elasticsearch>=8.12,<9'"
        )
    if "no handler found for uri" in text and (path := urlsplit(server).path):
        return f"{server} has the path {path}, which the server does not know: leave it out of the URL"
    if "index_closed_exception" in text:
        return f"{reason}: open the index (POST INDEX/_open) and try again"
    if "resource_already_exists_exception" in text:
        return f"{reason}: choose another name, or add the fields to it with es-simhash create --existing --yes"
    if "cluster_block_exception" in text:
        return f"{reason}: the index is blocked (read-only, or the disk is full); remove the block and try again"
    if status == 401:
        return (
            f"{server} refuses the login (401): set ES_SIMHASH_USER and ES_SIMHASH_PASSWORD, or ES_SIMHASH_API_KEY, "
            "to a login that is valid"
        )
    if status == 403:
        # Both products name the right that is missing.
        return f"{server} does not allow this (403): {reason}; use a login with rights on the index"
    if "index_not_found_exception" in text:
        close = f"did you mean {' or '.join(like)}" if like else "check the name"
        return f"{reason}: {close}, or create the index with es-simhash create"
    if "all shards failed" in text and status != 400:  # which names what each shard refuses, such as a limit
        return f"{reason}: see which shards have no copy (GET _cat/shards/INDEX) and the log of {server}"
    if status == 429 or status >= 500:
        return f"{server} cannot serve this now ({status}): {reason}; try again when it is less busy, or see its log"
    return f"{server} refused the request ({status}): {reason}"


def _reason(error: BaseException) -> str:
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
    reason, index = str(cause["reason"]), str(cause.get("index", ""))
    return reason if index in reason else f"index {index}: {reason}"


def _shard_failure(body: Mapping[str, Any]) -> Any:
    """Return the first failure of a shard; a refresh reports a refusal there."""
    match body.get("_shards"):
        case {"failures": [{"reason": reason}, *_]}:
            return reason
    return None


def _cause(error: BaseException) -> str:
    message = getattr(error, "message", None)
    # opensearch-py: (status, message, the exception behind it).
    if not isinstance(message, str) or message == "N/A":
        message = str(error.args[1] if len(error.args) > 1 else error)
    return next((plain for word, plain in _CAUSES.items() if word in message), message)


def asks_for_json(arguments: Sequence[str]) -> bool:
    """Return whether *arguments* of a command line have ``--json``; known also where they cannot be parsed."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def say_failure(kind: str, message: str, *, as_json: bool) -> None:
    """Print what ended a command on stderr, as one line or as ``{"error": {"kind": ..., "message": ...}}``."""
    if as_json:
        click.echo(to_json({"error": {"kind": kind, "message": message}}), err=True)
    else:
        error(message, kind=kind)


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
    def of(cls, text: str, scheme: Scheme) -> UnfingerprintedText:
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
