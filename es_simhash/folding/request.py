"""What a distinct search is asked for, checked, and the place in it where a page ends. No requests."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import takewhile
from typing import Any, Literal

from es_simhash.arguments import Count, check_object, check_options, check_sendable, option
from es_simhash.errors import Advice, Argument, InvalidInputError, Said, WrongTypeError, shorten
from es_simhash.hashing import from_hex, to_hex
from es_simhash.hashing.charikar import FINGERPRINT_BITS
from es_simhash.mapping.fields import Fields
from es_simhash.transport.protocol import Index, index_key

LARGEST_PAGE = 10_000
MOST_SHOWN = 10_000
"""Fingerprints that a place holds at most, where distances decide."""

# Of a body; what else a search may have cannot be folded exactly.
_QUERY = ("query", "post_filter", "runtime_mappings")
_SHOWN = ("_source", "fields", "highlight", "track_scores")
_AGGREGATIONS = ("aggs", "aggregations")
_NO_ORDER = ("_doc", "_shard_doc")


class _Similar(Count):
    """A number, or ``None``."""

    def __call__(self, name: str, value: Any) -> Any:
        return value if value is None else super().__call__(name, value)


def _check_by(name: str, value: Any) -> Any:
    if isinstance(value, str) and value != "group":
        raise InvalidInputError(
            Said(Argument(name), f" {shorten(value)} is not known: give 'group' or a number of bits")
        )
    return value if value == "group" else Count(0, FINGERPRINT_BITS)(name, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class DistinctOptions:
    """
    How hits are folded, and what is counted. Aggregations of the search count documents, as the server does.

    Args:
        by:
            ``"group"``: hits of one recorded group are one. A number of bits, 0 to 64: a hit within this distance
            of one that was shown before is folded.
        size:
            Hits of a page, 1 to 10,000.
        total:
            Count all distinct hits, exactly, with ``by="group"``. Every matching document is looked at.
        similar:
            How many of the documents that were folded into a hit are returned with it, best first, 0 to 99. With
            ``None`` they are not counted either, which saves a first page a request, mostly the second of two.
    """

    by: Literal["group"] | int = option("group", _check_by)
    size: int = option(10, Count(1, LARGEST_PAGE), "N", "Show at most N hits.")
    total: bool = False
    similar: int | None = option(0, _Similar(0, 99), "N", "Show N of the documents that each hit stands for.")

    def __post_init__(self) -> None:
        check_options(self)
        if self.by != "group" and (given := [name for name in ("total", "similar") if getattr(self, name)]):
            raise InvalidInputError(f"{given[0]} counts groups: leave it out, or leave by out")


@dataclass(frozen=True, slots=True)
class Place:
    """
    How far a search was read.
    *key*: the sort values of the last hit that was read; ``None`` at the beginning. *run*: the hits with these sort
    values that were read. *shown*: the fingerprints of the hits that were shown, where distances decide.
    """

    key: tuple[Any, ...] | None = None
    run: tuple[tuple[str, str, str | None], ...] = ()
    shown: tuple[str, ...] = ()

    @property
    def before(self) -> list[Any] | None:
        """Sort values after which the run begins: the last of them is a sequence number."""
        return None if self.key is None else [*self.key[:-1], self.key[-1] - 1]


def identity(hit: Mapping[str, Any]) -> tuple[str, str, str | None]:
    return hit["_index"], hit["_id"], hit.get("_routing")


@dataclass(frozen=True)
class DistinctSearch:
    """A search whose hits are folded: the caller's *body*, checked, and what is sent for it."""

    index: Index
    body: Mapping[str, Any]
    fields: Fields
    by: Literal["group"] | int

    def __post_init__(self) -> None:
        if not isinstance(self.body, Mapping):
            raise WrongTypeError(f"body must be a search as a mapping, not {type(self.body).__name__}")
        check_sendable("body", self.body)
        for name in self.body:
            if name == "size":
                raise InvalidInputError("body has size: give the argument size")
            if name not in ("sort", *_QUERY, *_SHOWN, *_AGGREGATIONS):
                raise InvalidInputError(
                    f"body has {shorten(name)}, with which hits cannot be folded exactly: leave it out"
                )
        if len([name for name in _AGGREGATIONS if name in self.body]) > 1:
            raise InvalidInputError("body has aggs and aggregations: leave one of them out")
        check_object("aggs", self.aggregations)
        if _has_unseeded(self.body.get("query")):
            raise InvalidInputError(
                "random_score without a seed is another order in each search: give it seed and field"
            )
        for each in self._sort:
            [(name, how)] = each.items()
            if isinstance(how, Mapping) and "format" in how:
                raise InvalidInputError(f"sort by {name} has a format, with which no page can go on: leave format out")
            if name in _NO_ORDER:
                raise InvalidInputError(
                    f"sort by {name} is another order in each search: sort by a field, or by _score"
                )

    @property
    def sort_fields(self) -> list[str]:
        """Fields whose values are compared as the mapping of each index has them."""
        named = [next(iter(each.items())) for each in self._sort]
        return [name for name, how in named if name[:1] != "_" and "numeric_type" not in (how or ())]

    @cached_property
    def _sort(self) -> list[Mapping[str, Any]]:
        """The caller's order, an object for each field."""
        sort = self.body.get("sort") or [{"_score": "desc"}]
        plain = {"_score": "desc"}
        found: list[Mapping[str, Any]] = []
        for each in sort if isinstance(sort, (list, tuple)) else [sort]:
            if isinstance(each, str):
                found.append({each: plain.get(each, "asc")})
            else:
                found += [{name: how} for name, how in check_object("sort", each).items()]
        return found or [plain]

    @property
    def sort(self) -> list[Any]:
        """
        The caller's order, and then one that stays the same from view to view.
        What still ties is in different shards, or in one of an index that was shrunk: see :class:`Place`.
        """
        return [*self._sort, {"_seq_no": "asc"}]

    def key(self, hit: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the sort values of *hit*, without what Elasticsearch adds in a view."""
        return tuple(hit["sort"][: len(self._sort) + 1])

    def behind(self, place: Place, hits: Sequence[Mapping[str, Any]]) -> Place:
        """Return the place behind *hits*, which were read from *place* on."""
        if not hits:
            return place
        key = self.key(hits[-1])
        run = [identity(hit) for hit in takewhile(lambda hit: self.key(hit) == key, reversed(hits))]
        before = place.run if place.key == key and len(run) == len(hits) else ()
        return Place(key, (*before, *reversed(run)), place.shown)

    @property
    def query(self) -> Mapping[str, Any]:
        return self.body.get("query") or {"match_all": {}}

    @property
    def _filters(self) -> list[Mapping[str, Any]]:
        return [self.body["post_filter"]] if self.body.get("post_filter") else []

    @property
    def common(self) -> dict[str, Any]:
        """What every request for this search has."""
        return {name: self.body[name] for name in ("runtime_mappings",) if name in self.body}

    @property
    def aggregations(self) -> Mapping[str, Any]:
        return next((self.body[name] for name in _AGGREGATIONS if self.body.get(name)), {})

    def hits_body(self, place: Place, size: int, left_out: list[str], values: list[str]) -> dict[str, Any]:
        """Return the request for *size* hits behind *place*, without the groups *left_out*, with our *values*."""
        shown = {name: self.body[name] for name in _SHOWN if name in self.body}
        if "query" in self.body:
            shown["query"] = self.body["query"]
        leave = {"must_not": [{"terms": {self.fields.group: left_out}}]} if left_out else {}
        if self._filters or leave:
            shown["post_filter"] = {"bool": {"filter": self._filters, **leave}}
        if place.before is not None:
            shown["search_after"] = place.before
        # Without a count OpenSearch leaves shards out by their least and largest values, and so loses hits.
        counts = {} if next(iter(self._sort[0])) != "_score" else {"track_total_hits": False}
        return {**self.common, **shown, "docvalue_fields": values, "sort": self.sort, "size": size, **counts}

    def matching(self, *filters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the query for the hits that match *filters* too, with their scores."""
        return {"bool": {"must": [self.query], "filter": [*self._filters, *filters]}}

    def clean(self, hit: Mapping[str, Any]) -> dict[str, Any]:
        """Return *hit* as the caller's own search would have it."""
        fields = {name: values for name, values in (hit.get("fields") or {}).items() if name not in self._ours}
        cleaned = {name: value for name, value in hit.items() if name not in ("fields", "sort")}
        if fields:
            cleaned["fields"] = fields
        if self.body.get("sort"):
            cleaned["sort"] = hit["sort"][: len(self._sort)]
        return cleaned

    @cached_property
    def _ours(self) -> set[str]:
        """Fields that the caller did not ask for."""
        wanted = self.body.get("fields") or ()
        names = [each.get("field") if isinstance(each, Mapping) else each for each in wanted]
        return {each for each in (self.fields.group, self.fields.fingerprint) if not _is_among(each, names)}

    @property
    def _digest(self) -> str:
        asked = [index_key(self.index), self.by, self.fields.prefix, self._sort, *map(self.body.get, _QUERY)]
        return _digest(json.dumps(asked, sort_keys=True, default=str))

    def encode(self, place: Place) -> str:
        """Return *place* as a string from which :meth:`decode` of the same search reads it."""
        if len(place.shown) > MOST_SHOWN:
            raise InvalidInputError(
                Said(
                    f"a page by distance remembers at most {MOST_SHOWN:,} hits, and more were shown: narrow the query",
                    Advice(", or use search_distinct_pages"),
                )
            )
        plain = json.dumps([self._digest, place.key, place.run, place.shown])
        return base64.urlsafe_b64encode(f"{_digest(plain)}{plain}".encode()).decode()

    def decode(self, after: Any) -> Place:
        """Return the place that *after* has; raise InvalidInputError if it was changed, or is of another search."""
        if not isinstance(after, str):
            raise WrongTypeError(f"after must be the string that page.after is, not {type(after).__name__}")
        try:
            text = base64.b64decode(after.encode("ascii"), altchars=b"-_", validate=True).decode()
            digest, plain = text[:_DIGITS], text[_DIGITS:]
            if digest != _digest(plain):
                raise ValueError("another digest")
            asked, *parts = json.loads(plain)
            place = _read_place(len(self.sort), *parts)
        except (binascii.Error, ValueError, TypeError, LookupError, RecursionError) as error:
            raise InvalidInputError(
                Said(
                    Argument("after"),
                    f" {shorten(after)} was cut or changed: give ",
                    Advice("page.after as it is", typed="--after as it was printed"),
                )
            ) from error
        if asked != self._digest:
            raise InvalidInputError(
                Said(
                    Argument("after"),
                    " is of another search: give the ",
                    Advice("index, the body and by", typed="INDEX, WORDS (or --query) and --by"),
                    " that it came from",
                )
            )
        return place


def _read_place(length: int, key: Any, run: Any, shown: Any) -> Place:
    """Return the place with a key of this *length*; raise ValueError or TypeError: anyone can make a digest."""
    plain = (str, int, float, type(None))
    are_lists = all(isinstance(each, list) for each in (key or [], run, shown))
    is_key = key is None or (len(key) == length and all(isinstance(each, plain) for each in key))
    is_number = key is None or (type(key[-1]) is int and key[-1] >= 0)
    is_run = all(isinstance(each, (str, type(None))) for index, id_, routing in run for each in (index, id_, routing))
    is_shown = len(shown) <= MOST_SHOWN and all(to_hex(from_hex(each)) == each for each in shown)
    if not (are_lists and is_key and is_number and is_run and is_shown):
        raise ValueError("another place")
    return Place(None if key is None else tuple(key), tuple(map(tuple, run)), tuple(shown))


def _has_unseeded(query: Any) -> bool:
    """Return whether a part of *query* draws its scores anew in each search."""
    if isinstance(query, Mapping):
        scored = query.get("function_score")
        functions = [scored, *(scored.get("functions") or ())] if isinstance(scored, Mapping) else []
        drawn = [each["random_score"] for each in functions if isinstance(each, Mapping) and "random_score" in each]
        return any("seed" not in (each or ()) for each in drawn) or any(map(_has_unseeded, query.values()))
    return isinstance(query, (list, tuple)) and any(map(_has_unseeded, query))


def _is_among(field: str, patterns: Iterable[Any]) -> bool:
    return any(isinstance(each, str) and fnmatchcase(field, each) for each in patterns)


_DIGITS = 16


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
