"""What a distinct search is asked for, checked, and the place in it where a page ends. No requests."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import takewhile
from typing import Any

from es_simhash.arguments import Count, check_object, check_options, check_sendable, option
from es_simhash.errors import InvalidInputError, WrongTypeError, shorten
from es_simhash.mapping.fields import Fields
from es_simhash.transport.protocol import Index, Key, document_key, index_key

LARGEST_PAGE = 10_000
# Of a body; what else a search may have cannot be folded exactly.
_QUERY = ("query", "post_filter", "runtime_mappings")
_SHOWN = ("_source", "fields", "highlight", "track_scores")
_AGGREGATIONS = ("aggs", "aggregations")
_NO_ORDER = ("_doc", "_shard_doc")


@dataclass(frozen=True, slots=True, kw_only=True)
class DistinctOptions:
    """
    How many hits a page has, and what is counted. Aggregations of the search count documents, as the server does.

    Args:
        size:
            Hits of a page, 1 to 10,000.
        total:
            Count all distinct hits, exactly. Every matching document is looked at.
    """

    size: int = option(10, Count(1, LARGEST_PAGE))
    total: bool = False

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True, slots=True)
class SearchPlace:
    """
    How far a search was read.
    *key*: the sort values of the last hit that was read; ``None`` at the beginning. *run*: the hits with these sort
    values that were read.
    """

    key: tuple[Any, ...] | None = None
    run: tuple[Key, ...] = ()

    @property
    def before(self) -> list[Any] | None:
        """Sort values after which the run begins: the last of them is a sequence number."""
        return None if self.key is None else [*self.key[:-1], self.key[-1] - 1]


@dataclass(frozen=True)
class DistinctSearch:
    """A search whose hits are folded: the caller's *body*, checked, and what is sent for it."""

    index: Index
    body: Mapping[str, Any]
    fields: Fields

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
        for order in self._sort:
            [(name, details)] = order.items()
            if isinstance(details, Mapping) and "format" in details:
                raise InvalidInputError(f"sort by {name} has a format, with which no page can go on: leave format out")
            if name in _NO_ORDER:
                raise InvalidInputError(
                    f"sort by {name} is another order in each search: sort by a field, or by _score"
                )

    @property
    def sort_fields(self) -> list[str]:
        """Fields whose values are compared as the mapping of each index has them."""
        named = [next(iter(order.items())) for order in self._sort]
        return [name for name, details in named if name[:1] != "_" and "numeric_type" not in (details or ())]

    @cached_property
    def _sort(self) -> list[Mapping[str, Any]]:
        """The caller's order, an object for each field."""
        sort = self.body.get("sort") or [{"_score": "desc"}]
        plain = {"_score": "desc"}
        found: list[Mapping[str, Any]] = []
        for key in sort if isinstance(sort, (list, tuple)) else [sort]:
            if isinstance(key, str):
                found.append({key: plain.get(key, "asc")})
            else:
                found += [{name: details} for name, details in check_object("sort", key).items()]
        return found or [plain]

    @property
    def sort(self) -> list[Any]:
        """
        The caller's order, and then one that stays the same from view to view.
        What still ties is in different shards, or in one of an index that was shrunk: see :class:`SearchPlace`.
        """
        return [*self._sort, {"_seq_no": "asc"}]

    def key(self, hit: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the sort values of *hit*, without what Elasticsearch adds in a view."""
        return tuple(hit["sort"][: len(self._sort) + 1])

    def behind(self, place: SearchPlace, hits: Sequence[Mapping[str, Any]]) -> SearchPlace:
        """Return the place behind *hits*, which were read from *place* on."""
        if not hits:
            return place
        key = self.key(hits[-1])
        run = [document_key(hit) for hit in takewhile(lambda hit: self.key(hit) == key, reversed(hits))]
        before = place.run if place.key == key and len(run) == len(hits) else ()
        return SearchPlace(key, (*before, *reversed(run)))

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

    def hits_body(self, place: SearchPlace, size: int, left_out: list[str]) -> dict[str, Any]:
        """Return the request for *size* hits behind *place*, without the groups *left_out*."""
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
        ours = {"docvalue_fields": [self.fields.group], "sort": self.sort, "size": size}
        return {**self.common, **shown, **ours, **counts}

    def matching(self, *filters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the query for the hits that match *filters* too, with their scores."""
        return {"bool": {"must": [self.query], "filter": [*self._filters, *filters]}}

    def clean(self, hit: Mapping[str, Any]) -> dict[str, Any]:
        """Return *hit* as the caller's own search would have it."""
        fields = dict(hit.get("fields") or {})
        if not self._wants_group:
            fields.pop(self.fields.group, None)
        cleaned = {name: value for name, value in hit.items() if name not in ("fields", "sort")}
        if fields:
            cleaned["fields"] = fields
        if self.body.get("sort"):
            cleaned["sort"] = hit["sort"][: len(self._sort)]
        return cleaned

    @cached_property
    def _wants_group(self) -> bool:
        """Whether the caller asked for the field of groups too."""
        wanted = self.body.get("fields") or ()
        names = [field.get("field") if isinstance(field, Mapping) else field for field in wanted]
        return any(isinstance(name, str) and fnmatchcase(self.fields.group, name) for name in names)

    @property
    def _digest(self) -> str:
        asked = [index_key(self.index), self.fields.prefix, self._sort, *map(self.body.get, _QUERY)]
        return hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()[:16]

    def encode(self, place: SearchPlace) -> str:
        """Return *place* as a string from which :meth:`decode` of the same search reads it."""
        return base64.urlsafe_b64encode(json.dumps([self._digest, place.key, place.run]).encode()).decode()

    def decode(self, after: Any) -> SearchPlace:
        """Return the place that *after* has; raise InvalidInputError if it is none, or one of another search."""
        if not isinstance(after, str):
            raise WrongTypeError(f"after must be the string that page.after is, not {type(after).__name__}")
        try:
            text = base64.b64decode(after.encode("ascii"), altchars=b"-_", validate=True)
            asked, key, run = json.loads(text)
            place = SearchPlace(tuple(key), tuple(Key(index, id_, routing) for index, id_, routing in run))
        except (ValueError, TypeError, RecursionError) as error:
            raise InvalidInputError(f"after {shorten(after)} was cut or changed: give page.after as it is") from error
        if asked != self._digest:
            raise InvalidInputError("after is of another search: give the index and the body that it came from")
        return place


def _has_unseeded(query: Any) -> bool:
    """Return whether a part of *query* draws its scores anew in each search."""
    if isinstance(query, Mapping):
        scored = query.get("function_score")
        functions = [scored, *(scored.get("functions") or ())] if isinstance(scored, Mapping) else []
        drawn = [one["random_score"] for one in functions if isinstance(one, Mapping) and "random_score" in one]
        return any("seed" not in (random or ()) for random in drawn) or any(map(_has_unseeded, query.values()))
    return isinstance(query, (list, tuple)) and any(map(_has_unseeded, query))
