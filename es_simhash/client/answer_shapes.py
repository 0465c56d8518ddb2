"""Whether what came is an answer of a search server: one check for each kind of request, where answers enter."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import chain, repeat, starmap
from typing import Any

from es_simhash.errors import SimHashError, shorten
from es_simhash.transport.protocol import Call, error_text, index_key

SHOWN_CHARACTERS = 200
"""How much of what came a message shows."""

# How elastic_transport begins to say that it cannot read an answer, or write a request.
_UNREADABLE, _UNWRITABLE = "Unable to deserialize as JSON: ", "Unable to serialize"
_LIBRARIES = ("elastic_transport", "elasticsearch", "opensearchpy")


# A shape is a set of types; a list with the shape of each item; or a dict with the shape of each member that is read.
# A name that ends in "?" may be absent or null; "*" is every member.
_TEXT, _INT, _OBJECT = {str}, {int}, {dict}
_NUMBER = {int, float}
_ERROR = {dict, str}
_VERSION = {"_seq_no?": _INT, "_primary_term?": _INT}
_DOCUMENT = {
    **_VERSION,
    "_index": _TEXT,
    "_routing?": _TEXT,
    "_source?": _OBJECT,
    "fields?": {"*": {list}},
    "_ignored?": [_TEXT],
}
_HITS = {
    "hits": {"hits": [{**_DOCUMENT, "_id": _TEXT, "_score?": _NUMBER, "sort?": {list}}], "total?": {"value": _INT}}
}
_COUNTS = {f"{name}?": _INT for name in ("total", "successful", "skipped", "failed")}
_SHARDS = {**_COUNTS, "failures?": [{"reason?": _OBJECT}]}
_NODE: dict[str, Any] = {"type?": _TEXT}
_NODE |= {"properties?": {"*": _NODE}, "fields?": {"*": _NODE}}
_MAPPING = {"_meta?": _OBJECT, "_source?": _OBJECT, "properties?": {"*": _NODE}, "runtime?": {"*": _NODE}}
_SIMULATED = {"template?": {"mappings?": _MAPPING}}
_COMMIT = {"user_data?": {"history_uuid?": _TEXT}}
_COPY = {"routing": {"primary": {bool}}, "seq_no?": {"global_checkpoint": _INT, "max_seq_no": _INT}, "commit?": _COMMIT}


def _fits(shape: Any, found: Iterable[Any], *, or_null: bool = False) -> bool:
    """Return whether each value of *found*, all in one place of an answer, has *shape*; so hits cost few calls."""
    if isinstance(shape, set):
        return set(map(type, found)) - {type(None) if or_null else None} <= shape
    values = [value for value in found if value is not None] if or_null else list(found)
    kinds = {kind.__name__ for kind in set(map(type, values))}
    if isinstance(shape, list):
        return kinds <= {"list"} and (not values or _fits(shape[0], chain.from_iterable(values)))
    if kinds != {"dict"}:
        return not kinds
    there = set().union(*values)
    for name, below in shape.items():
        key = name.removesuffix("?")
        column = chain.from_iterable(map(dict.values, values)) if name == "*" else map(dict.get, values, repeat(key))
        is_needed = name == key or key in there
        if is_needed and not _fits(below, column, or_null=name != key):
            return False
    return True


def _has_asked(answer: Any, body: Mapping[str, Any]) -> bool:
    """Return whether *answer* has what *body* asked for beside the hits, and says whether it is whole."""
    shards, aggs = answer.get("_shards"), body.get("aggs", {})
    needed: dict[str, Any] = {"hits": {"total": _OBJECT}} if body.get("track_total_hits") is True else {}
    if shards is not None:  # where nothing is said of them, the answer may be incomplete
        needed |= {"_shards": dict.fromkeys(("total", "successful", "failed"), _INT), "timed_out": {bool}}
    if aggs and (shards is None or shards["total"]):  # where no index matches, nothing is counted
        needed["aggregations"] = dict.fromkeys(aggs, _OBJECT)
    return _fits(needed, [answer])


def _are_searches(pairs: list[tuple[Any, Any]]) -> bool:
    parts = {"_shards?": _SHARDS, "pit_id?": _TEXT, **_HITS}
    return _fits(parts, [answer for answer, _ in pairs]) and all(starmap(_has_asked, pairs))


def _is_search(answer: Any, body: Mapping[str, Any]) -> bool:
    return _are_searches([(answer, body)])


def _is_msearch(answer: Any, lines: Iterable[Any]) -> bool:
    pairs = list(zip(answer["responses"], list(lines)[1::2], strict=True))
    refused = [part for part, _ in pairs if "error" in part]
    found = [pair for pair in pairs if "error" not in pair[0]]
    return _fits({"error": _ERROR, "status": _INT}, refused) and _are_searches(found)


def _is_bulk(answer: Any, lines: Iterable[Any]) -> bool:
    result = {**_VERSION, "_id?": _TEXT, "_index?": _TEXT, "status": _INT, "error?": _ERROR, "result?": _TEXT}
    items = answer["items"]
    return (
        len(items) == count_operations(lines)
        and _fits({"items": [{"*": result}]}, [answer])
        and set(map(len, items)) <= {1}
    )


def count_operations(lines: Iterable[Any]) -> int:
    """Return how many operations the *lines* of a bulk request are: a deletion is one line, any other two."""
    every = list(lines)
    return (len(every) + sum(isinstance(line, dict) and line.keys() == {"delete"} for line in every)) // 2


def _is_mget(answer: Any, body: Mapping[str, Any]) -> bool:
    docs = answer["docs"]
    # As text, if that was asked for.
    document = {**_DOCUMENT, "_id": _TEXT, "_source?": _ERROR, "found?": {bool}, "error?": _ERROR}
    sources = (doc.get("_source", {}) for doc in docs)
    return (
        _fits([document], [docs])
        and [doc["_id"] for doc in docs] == [asked["_id"] for asked in body["docs"]]
        and all(("found" in doc) != ("error" in doc) for doc in docs)
        and all(isinstance(source, dict) or source.startswith("{") for source in sources)
    )


def _is_opened(answer: Any, _: Any) -> bool:
    return _fits(_TEXT, [answer.get("pit_id", answer.get("id"))])


_ACKNOWLEDGED = {"acknowledged": {bool}}
_CHECKS: dict[str, Any] = {
    "bulk": _is_bulk,
    "cluster_health": {"indices?": {"*": {"shards?": {"*": {"active_shards?": _INT}}}}},
    "create_index": _ACKNOWLEDGED,
    "field_caps": {"fields": {"*": _OBJECT}},
    "get_alias": {"*": {"aliases": {"*": _OBJECT}}},
    "get_data_stream": {
        "data_streams": [{"name": _TEXT, "template?": _TEXT, "indices": [{"index_name": _TEXT}]}],
    },
    "get_mapping": {"*": {"mappings": _MAPPING}},
    "get_pipeline": {"*": {"processors?": [_OBJECT]}},
    "get_settings": {"*": {"settings": {"index?": {"*": {str, list, dict}}}}},
    "index_stats": {"_shards": _SHARDS, "indices?": {"*": {"uuid?": _TEXT, "shards?": {"*": [_COPY]}}}},
    "mget": _is_mget,
    "msearch": _is_msearch,
    "open_point_in_time": _is_opened,
    "put_mapping": _ACKNOWLEDGED,
    "put_pipeline": _ACKNOWLEDGED,
    "put_settings": _ACKNOWLEDGED,
    "refresh": {"_shards": _SHARDS},
    "search": _is_search,
    "simulate_index": _SIMULATED,
    "simulate_pipeline": {"docs": [{"doc?": {"_source?": _OBJECT}}]},
    "simulate_template": _SIMULATED,
}


def is_answer(call: Call, answer: Any) -> bool:
    """Return whether *answer* has what all answers to such a request have, so that it can be read."""
    if not _fits({"_shards?": _SHARDS}, [answer]):
        return False
    if "error" in answer and isinstance(answer.get("status"), int):
        return False
    check = _CHECKS.get(call.api, {})
    try:
        return check(answer, call.arguments.get("body", {})) if callable(check) else _fits(check, [answer])
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
