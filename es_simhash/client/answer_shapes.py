"""Whether what came is an answer of a search server: one check for each kind of request, where answers enter."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from es_simhash.errors import SimHashError, shorten
from es_simhash.transport.protocol import Call, error_text, index_key
from es_simhash.transport.refusals import CLIENTS

SHOWN_CHARACTERS = 200
"""How much of what came a message shows."""

# How elastic_transport begins to say that it cannot read an answer, or write a request.
_UNREADABLE, _UNWRITABLE = "Unable to deserialize as JSON: ", "Unable to serialize"

_ACKNOWLEDGED = {"acknowledged": bool}
# What each answer to a request has: by the kind of request, the members of an object and their types.
_MEMBERS: dict[str, Mapping[str, type]] = {
    "bulk": {"items": list},
    "create_index": _ACKNOWLEDGED,
    "field_caps": {"fields": dict},
    "get_data_stream": {"data_streams": list},
    "index_stats": {"_shards": dict},
    "mget": {"docs": list},
    "msearch": {"responses": list},
    "put_mapping": _ACKNOWLEDGED,
    "put_pipeline": _ACKNOWLEDGED,
    "put_settings": _ACKNOWLEDGED,
    "refresh": {"_shards": dict},
    "search": {"hits": dict},
    "simulate_pipeline": {"docs": list},
}
# The same of each member of an answer that is an object by name.
_MEMBERS_OF_EACH: dict[str, Mapping[str, type]] = {
    "get_alias": {"aliases": dict},
    "get_mapping": {"mappings": dict},
    "get_pipeline": {},
    "get_settings": {"settings": dict},
}
_COUNTS = {"total": int, "successful": int, "failed": int}


def _has(found: Any, members: Mapping[str, type]) -> bool:
    """Return whether *found* is an object that has *members* of these types."""
    return type(found) is dict and all(type(found.get(name)) is kind for name, kind in members.items())


def _is_search(answer: Any, body: Mapping[str, Any]) -> bool:
    """Return whether *answer* has what *body* asked for, and says whether it is whole."""
    hits = {"hits": list} | ({"total": dict} if body.get("track_total_hits") is True else {})
    is_search = _has(answer.get("hits"), hits) and all(
        type(hit["_index"]) is str and type(hit["_id"]) is str for hit in answer["hits"]["hits"]
    )
    shards = answer.get("_shards")
    if shards is not None:  # where nothing is said of them, the answer may be incomplete
        is_search = is_search and _has(shards, _COUNTS) and _has(answer, {"timed_out": bool})
    if shards is None or shards["total"]:  # where no index matches, nothing is counted
        counted = dict.fromkeys(body.get("aggs", {}), dict)
        is_search = is_search and _has(answer.get("aggregations", {}), counted)
    return is_search


def _are_searches(answer: Any, lines: Iterable[Any]) -> bool:
    pairs = zip(answer["responses"], list(lines)[1::2], strict=True)
    return all("error" in part or _is_search(part, body) for part, body in pairs)


def _are_results(answer: Any, lines: Iterable[Any]) -> bool:
    items = answer["items"]
    return (
        len(items) == count_operations(lines)
        and {*map(len, items)} <= {1}
        and all(type(result["status"]) is int for item in items for result in item.values())
    )


def count_operations(lines: Iterable[Any]) -> int:
    """Return how many operations the *lines* of a bulk request are: a deletion is one line, any other two."""
    every = list(lines)
    return (len(every) + sum(isinstance(line, dict) and line.keys() == {"delete"} for line in every)) // 2


def _are_documents(answer: Any, body: Mapping[str, Any]) -> bool:
    docs = answer["docs"]
    # As text, if that was asked for.
    sources = (doc.get("_source", {}) for doc in docs)
    return (
        [doc["_id"] for doc in docs] == [asked["_id"] for asked in body["docs"]]
        and all(("found" in doc) != ("error" in doc) for doc in docs)
        and all(isinstance(source, dict) or source.startswith("{") for source in sources)
    )


def _is_opened(answer: Any, _: Any) -> bool:
    return isinstance(answer.get("pit_id", answer.get("id")), str)


_CHECKS = {
    "bulk": _are_results,
    "mget": _are_documents,
    "msearch": _are_searches,
    "open_point_in_time": _is_opened,
    "search": _is_search,
}


def is_answer(call: Call, answer: Any) -> bool:
    """
    Return whether *answer* has what all answers to such a request have, so that it can be read.
    Not looked at is what no proxy changes: the types of what is deeper in it.
    """
    if not _has(answer, _MEMBERS.get(call.api, {})) or not isinstance(answer.get("_shards", {}), dict):
        return False
    if "error" in answer and isinstance(answer.get("status"), int):
        return False
    each = _MEMBERS_OF_EACH.get(call.api)
    if each is not None and not all(_has(part, each) for part in answer.values()):
        return False
    try:
        return call.api not in _CHECKS or _CHECKS[call.api](answer, call.arguments.get("body", {}))
    except (AttributeError, LookupError, TypeError, ValueError):
        return False


def what_came(error: BaseException) -> str | None:
    """Return what came, by a client's exception about an answer that it cannot read; ``None`` for any other."""
    if isinstance(error, RecursionError):
        return "what is nested too deeply"
    try:
        str(error)
    except (AttributeError, LookupError, TypeError):  # opensearch-py and elasticsearch-py expect a list of causes
        return error_text(error)
    kinds = {
        kind.__name__ for part in (error, *error.args, *getattr(error, "errors", ())) for kind in type(part).__mro__
    }
    if "SerializationError" in kinds:
        came = error.args[0] if error.args else None
        if not isinstance(came, str) or came.startswith(_UNWRITABLE):
            return None
        return came.removeprefix(_UNREADABLE)
    said = error_text(error)
    is_unreadable = "content-encoding" in said or "UnicodeDecodeError" in kinds or _is_of_reader(error)
    return said if is_unreadable else None


def _is_of_reader(error: BaseException) -> bool:
    """Return whether a client failed over an answer: opensearch-py reads an error that is no object as one."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = "" if trace is None else str(trace.tb_frame.f_globals.get("__name__"))
    return isinstance(error, (AttributeError, LookupError)) and module.partition(".")[0] in CLIENTS


def odd_answer(call: Call, came: object, place: str) -> SimHashError:
    """Return the error that says what *came* from *place* in answer to *call*."""
    text = came if isinstance(came, str) else json.dumps(came, default=repr)
    index = call.arguments.get("index")
    of = "" if index is None else f" of {index_key(index)}"
    shown = shorten(text, limit=SHOWN_CHARACTERS)
    return SimHashError(
        f"{place} answers, but not as a search server does: to {call.api}{of} came {shown}; check the address, and "
        "what stands between, such as a proxy"
    )
