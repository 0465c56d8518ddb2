"""
Counts groups exactly: the distinct hits of a search, and those in each bucket of its aggregations.

A cardinality aggregation estimates; so every pair of a bucket and a group is read, 10,000 in a request, each of which
looks at all documents that match.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from es_simhash.arguments import check_count, check_object
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.folding.request import DistinctSearch
from es_simhash.mapping.port import Port
from es_simhash.transport.answers import check_whole, find_gaps
from es_simhash.transport.limits import LARGEST, Fitting, is_beyond, smaller
from es_simhash.transport.pages import View
from es_simhash.transport.protocol import Call, Index
from es_simhash.transport.retry import retry

_PAGE = 10_000
_MOST_VALUES = 10_000

# What may be said of each kind of aggregation; a missing value, a script or what is below it cannot be counted.
_HISTOGRAM = {"field", "format", "keyed", "min_doc_count", "extended_bounds", "hard_bounds"}
_COUNTABLE: dict[str, set[str]] = {
    "terms": {"field", "size", "order", "include", "exclude", "format", "min_doc_count"},
    "histogram": _HISTOGRAM | {"interval"},
    "date_histogram": _HISTOGRAM | {"calendar_interval", "fixed_interval", "time_zone", "offset"},
    "range": {"field", "ranges", "keyed"},
    "date_range": {"field", "ranges", "keyed", "format", "time_zone"},
    "filter": set(),
    "filters": {"filters"},
}
_SOURCE = {"field", "interval", "calendar_interval", "fixed_interval", "offset", "time_zone"}
_TERMS_ORDERS = ({"_count": "desc"}, {"_count": "asc"}, {"_key": "asc"}, {"_key": "desc"})


async def read_answer(server: Port, index: Index, view: View | None, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the whole answer in the *view*, or without one of *index* as it is; repeated while the server is busy."""
    call = Call("search", {"index": index, "body": body}) if view is None else view.call(body)
    try:
        answer = await retry(server, lambda: server.send(call))
    except Exception as error:
        if not is_beyond(error, "clauses"):
            raise
        most = smaller(LARGEST, error, "clauses")
        raise InvalidInputError(
            f"the query has more parts, such as words, than the {most:,} that the server allows: give fewer words"
        ) from error
    if view is not None:
        view.note(answer)
    check_whole(find_gaps(answer, ignore=["terminated_early"]))
    return answer


def check_countable(aggregations: Mapping[str, Any]) -> None:
    """Raise InvalidInputError if one of *aggregations* cannot be counted by group."""
    for name, each in aggregations.items():
        kinds = [kind for kind in each if kind != "meta"] if isinstance(each, Mapping) else []
        if len(kinds) != 1 or kinds[0] not in _COUNTABLE:
            raise InvalidInputError(
                f"aggregation {shorten(name)} cannot count groups: give one of {', '.join(_COUNTABLE)}, with nothing "
                "below it, or leave counts out"
            )
        [kind] = kinds
        asked = check_object(f"aggregation {shorten(name)}", each[kind])
        allowed = _COUNTABLE[kind]
        if kind != "filter" and (others := [word for word in asked if word not in allowed]):
            raise InvalidInputError(
                f"aggregation {shorten(name)} has {shorten(others[0])}, with which groups cannot be counted: leave it "
                "out, or counts"
            )
        if kind == "terms":
            check_count(f"size of aggregation {shorten(name)}", asked.get("size", 10))
        if kind != "filter" and asked.get("min_doc_count", 1) not in (0, 1):
            raise InvalidInputError(f"min_doc_count of aggregation {shorten(name)} counts documents: leave it out")
        if kind == "terms" and asked.get("order", _TERMS_ORDERS[0]) not in _TERMS_ORDERS:
            raise InvalidInputError(
                f"aggregation {shorten(name)} can be ordered by _count or by _key: give one of them"
            )


def with_all_values(aggregations: Mapping[str, Any]) -> dict[str, Any]:
    """Return *aggregations* so that terms have all their values, by key: counting shows which are the largest."""
    wanted = {}
    for name, each in aggregations.items():
        terms = each.get("terms")
        every = {"size": _MOST_VALUES, "order": {"_key": "asc"}}
        wanted[name] = each if terms is None else {**each, "terms": {**terms, **every}}
    return wanted


async def count_hits(server: Port, view: View | None, search: DistinctSearch) -> int:
    """Return the number of distinct hits of *search*, by group."""
    ungrouped = search.matching(_without_group(search))
    body = {**search.common, "size": 0, "query": ungrouped, "track_total_hits": True}
    alone = await read_answer(server, search.index, view, body)
    groups = await _count(server, view, search, search.matching(), {})
    return groups[()] + int(alone["hits"]["total"]["value"])


async def count_groups(
    server: Port, view: View | None, search: DistinctSearch, found: Mapping[str, Any]
) -> dict[str, Any]:
    """
    Return the answers *found* to the aggregations, with groups instead of documents as their counts.
    Documents without a group are counted by the server's own aggregations, over them alone.
    """
    body = {**search.common, "size": 0, "query": _both(search.query, _without_group(search)), "track_total_hits": False}
    alone = await read_answer(server, search.index, view, {**body, "aggs": with_all_values(search.aggregations)})
    counted: dict[str, Any] = {}
    for name, each in search.aggregations.items():
        [kind] = [kind for kind in each if kind != "meta"]
        answer, rest = dict(found[name]), alone["aggregations"][name]
        if kind in ("terms", "histogram", "date_histogram"):
            source = {word: value for word, value in each[kind].items() if word in _SOURCE}
            groups = await _count(server, view, search, search.query, {"value": {kind: source}})
            others = {bucket["key"]: bucket["doc_count"] for bucket in _buckets(rest)}
            for bucket in _buckets(answer):
                bucket["doc_count"] = _of_bucket(groups, bucket) + others.get(bucket["key"], 0)
            if kind == "terms":
                _order(name, answer, each[kind])
        elif kind == "filter":
            groups = await _count(server, view, search, _both(search.query, each[kind]), {})
            answer["doc_count"] = groups[()] + rest["doc_count"]
        else:
            clauses = _clauses(kind, each[kind], answer)
            for bucket, other, clause in zip(_buckets(answer), _buckets(rest), clauses, strict=True):
                groups = await _count(server, view, search, _both(search.query, clause), {})
                bucket["doc_count"] = groups[()] + other["doc_count"]
        counted[name] = answer
    return counted


def _without_group(search: DistinctSearch) -> dict[str, Any]:
    return {"bool": {"must_not": [{"exists": {"field": search.fields.group}}]}}


async def _count(
    server: Port, view: View | None, search: DistinctSearch, query: Mapping[str, Any], source: Mapping[str, Any]
) -> Counter[tuple[Any, ...]]:
    """Return how many groups each value of *source* has among the documents of *query*."""
    sources = [*({name: each} for name, each in source.items())]
    composite: dict[str, Any] = {"sources": [*sources, {"group": {"terms": {"field": search.fields.group}}}]}
    counts: Counter[tuple[Any, ...]] = Counter()
    page = Fitting(_PAGE, "buckets")
    while True:
        with page as size:
            every = {"every": {"composite": {**composite, "size": size}}}
            body = {**search.common, "size": 0, "query": query, "aggs": every, "track_total_hits": False}
            answer = (await read_answer(server, search.index, view, body))["aggregations"]["every"]
            counts.update(tuple(bucket["key"][name] for name in source) for bucket in answer["buckets"])
            if len(answer["buckets"]) < size:
                return counts
            composite["after"] = answer["after_key"]


def _both(query: Mapping[str, Any], clause: Mapping[str, Any]) -> dict[str, Any]:
    return {"bool": {"filter": [query, clause]}}


def _buckets(answer: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    buckets = answer["buckets"]
    yield from buckets.values() if isinstance(buckets, Mapping) else buckets


def _of_bucket(groups: Mapping[tuple[Any, ...], int], bucket: Mapping[str, Any]) -> int:
    """Return the number of *groups* in a *bucket*: composite aggregations give booleans and some dates otherwise."""
    word = bucket.get("key_as_string")
    keys = (bucket["key"], word, {"true": True, "false": False}.get(str(word)))
    # True is 1 to Python, and so is its key: all three are of the same value.
    return next((groups[key,] for key in keys if (key,) in groups), 0)


def _order(name: str, answer: dict[str, Any], asked: Mapping[str, Any]) -> None:
    """Keep as many values as were *asked* for, in the order asked for."""
    if answer.get("sum_other_doc_count"):
        raise InvalidInputError(
            f"aggregation {shorten(name)} has more than {_MOST_VALUES:,} values: narrow the query, or leave counts out"
        )
    [(by, direction)] = asked.get("order", _TERMS_ORDERS[0]).items()
    buckets = [each for each in answer["buckets"] if each["doc_count"]]
    if by == "_count":  # ties stay in the order of their keys
        buckets.sort(key=lambda each: each["doc_count"] if direction == "asc" else -each["doc_count"])
    elif direction == "desc":
        buckets.reverse()
    size = asked.get("size", 10)
    answer["buckets"], rest = buckets[:size], buckets[size:]
    answer["sum_other_doc_count"] = sum(each["doc_count"] for each in rest)


def _clauses(kind: str, asked: Mapping[str, Any], answer: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the query of each bucket of *answer*, in their order."""
    if kind == "filters":
        filters = asked["filters"]
        named = answer["buckets"]
        return [filters[name] for name in named] if isinstance(filters, Mapping) else list(filters)
    dates = {"format": "epoch_millis"} if kind == "date_range" else {}
    clauses = []
    for bucket in _buckets(answer):
        ends = {word: bucket[end] for word, end in (("gte", "from"), ("lt", "to")) if end in bucket}
        if kind == "date_range":
            ends = {word: int(value) for word, value in ends.items()}
        clauses.append({"range": {asked["field"]: {**ends, **dates}}})
    return clauses
