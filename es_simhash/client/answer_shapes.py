"""Whether what came is an answer of a search server: one check for each kind of request, where answers enter."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from es_simhash.errors import AnswerError, shorten
from es_simhash.transport.protocol import Call, error_text, index_key

SHOWN_CHARACTERS = 200
"""How much of what came a message shows."""

# How elastic_transport begins to say that it cannot read an answer, or write a request.
_UNREADABLE, _UNWRITABLE = "Unable to deserialize as JSON: ", "Unable to serialize"
_LIBRARIES = ("elastic_transport", "elasticsearch", "opensearchpy")


def _is_search(answer: Any, body: Mapping[str, Any]) -> bool:
    shards, hits = answer.get("_shards"), answer["hits"]["hits"]
    if shards is not None:  # where nothing is said of them, the answer may be incomplete
        counts = [shards[name] for name in ("total", "successful", "failed")]
        if set(map(type, counts)) != {int} or type(answer["timed_out"]) is not bool:
            return False
    if body.get("track_total_hits") is True and type(answer["hits"]["total"]["value"]) is not int:
        return False
    # Where no index matches, nothing is counted.
    asked = body.get("aggs", {}).keys() if shards is None or shards["total"] else set()
    return asked <= answer.get("aggregations", {}).keys() and _is_list(hits, lambda hit: "_index" in hit)


def _is_list(items: Any, is_item: Callable[[Any], object]) -> bool:
    return type(items) is list and all(type(item) is dict and is_item(item) for item in items)


def _is_msearch(answer: Any, lines: Iterable[Any]) -> bool:
    bodies, responses = list(lines)[1::2], answer["responses"]
    return len(responses) == len(bodies) and all(
        type(response.get("status")) is int if "error" in response else _is_search(response, body)
        for response, body in zip(responses, bodies, strict=True)
    )


def _is_bulk(answer: Any, lines: Iterable[Any]) -> bool:
    items = answer["items"]
    return len(items) == count_operations(lines) and all(
        type(result["status"]) is int for item in items for [result] in [item.values()]
    )


def count_operations(lines: Iterable[Any]) -> int:
    """Return how many operations the *lines* of a bulk request are: a deletion is one line, any other two."""
    every = list(lines)
    return (len(every) + sum(isinstance(line, dict) and line.keys() == {"delete"} for line in every)) // 2


def _is_mget(answer: Any, body: Mapping[str, Any]) -> bool:
    docs = answer["docs"]
    return len(docs) == len(body["docs"]) and _is_list(
        docs, lambda doc: "_id" in doc and ("found" in doc) != ("error" in doc)
    )


def _has(name: str, kind: type) -> Callable[[Any, Any], bool]:
    return lambda answer, _: isinstance(answer[name], kind)


def _has_each(name: str) -> Callable[[Any, Any], bool]:
    return lambda answer, _: all(type(part[name]) is dict for part in answer.values())


def _is_opened(answer: Any, _: Any) -> bool:
    return isinstance(answer.get("pit_id", answer.get("id")), str)


_CHECKS: dict[str, Callable[[Any, Any], bool]] = {
    "bulk": _is_bulk,
    "create_index": _has("acknowledged", bool),
    "field_caps": _has("fields", dict),
    "get_alias": _has_each("aliases"),
    "get_data_stream": _has("data_streams", list),
    "get_mapping": _has_each("mappings"),
    "get_pipeline": lambda answer, _: all(type(pipeline) is dict for pipeline in answer.values()),
    "get_settings": _has_each("settings"),
    "index_stats": _has("_shards", dict),
    "mget": _is_mget,
    "msearch": _is_msearch,
    "open_point_in_time": _is_opened,
    "put_mapping": _has("acknowledged", bool),
    "put_pipeline": _has("acknowledged", bool),
    "put_settings": _has("acknowledged", bool),
    "refresh": _has("_shards", dict),
    "scroll": _is_search,
    "search": _is_search,
    "simulate_pipeline": _has("docs", list),
}


def is_answer(call: Call, answer: Any) -> bool:
    """Return whether *answer* has what all answers to such a request have, so that it can be read."""
    if type(answer) is not dict or type(answer.get("_shards", {})) is not dict:
        return False
    if "error" in answer and isinstance(answer.get("status"), int):
        return False
    check = _CHECKS.get(call.api)
    try:
        return check is None or check(answer, call.arguments.get("body", {}))
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
    return isinstance(error, (AttributeError, LookupError)) and module.partition(".")[0] in _LIBRARIES


def odd_answer(call: Call, came: object, place: str) -> AnswerError:
    """Return the error that says what *came* from *place* in answer to *call*."""
    text = came if isinstance(came, str) else json.dumps(came, default=repr)
    index = call.arguments.get("index")
    of = "" if index is None else f" of {index_key(index)}"
    shown = shorten(text, limit=SHOWN_CHARACTERS)
    return AnswerError(
        f"{place} answers, but not as a search server does: to {call.api}{of} came {shown}; check the address, and "
        "what stands between, such as a proxy",
        api=call.api,
        came=text[:SHOWN_CHARACTERS],
    )
