"""
What a server allows a request: by which words a refusal names a limit, and how a request becomes smaller until it fits.

No other file knows these words. ``mapping/within_limits.py`` is the port that cuts every search; an operation says
only what it does at a limit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from operator import attrgetter
from types import TracebackType
from typing import Any, Literal

from es_simhash.transport.answers import Refusal, refusal_text
from es_simhash.transport.protocol import status_of

DEFAULT_MAX_TERMS = 65_536  # of index.max_terms_count, on both products
LARGEST = 2**31 - 1
"""The largest number of hits that a server can be asked for."""

LimitKind = Literal["hits", "ids", "terms", "clauses", "seconds", "buckets", "expensive", "scripts", "skims"]

# Of each limit the words of a refusal, and those before the number that the server allows.
_WORDS: dict[LimitKind, tuple[str, str]] = {
    "hits": ("max_result_window|Result window is too large", r"size must be less than or equal to: \["),
    "ids": ("Too many ids specified", r"allowed max result window is \["),
    "terms": (r"max_terms_count|number of terms \[", r"allowed maximum of \["),
    "clauses": ("(?i:too_many_(nested_)?clauses|max_?clause_?count)", r"(?:is set to|limit of) \[?"),
    "seconds": ("Keep alive for request", r"It must be less than \("),
    "buckets": ("too_many_buckets|too many buckets", r"buckets\. Must be less than or equal to: \["),
    "expensive": ("allow_expensive_queries", "$^"),
    "scripts": ("script|painless|allow_expensive_queries", "$^"),
    # Of our fields, only the fingerprint may be mapped so.
    "skims": ("Cannot search on field", "$^"),
}
_NAMED: tuple[LimitKind, ...] = ("hits", "ids", "terms", "clauses", "seconds")
_SECONDS = {"ms": 0.001, "m": 60, "h": 3_600, "d": 86_400}
# Elasticsearch answers 503 where one shard refuses a request and another is missing; OpenSearch, if buckets are too
# many. A script that fails is a 500.
_REFUSED = (400, 500, 503)


def is_beyond(refusal: Refusal, *kinds: LimitKind) -> bool:
    """Return whether the server refused a request because it asks for more than one of these limits allows."""
    if isinstance(refusal, BaseException) and status_of(refusal) not in _REFUSED:
        return False
    return any(re.search(_WORDS[kind][0], refusal_text(refusal)) for kind in kinds)


def smaller(size: int, refusal: Refusal, *kinds: LimitKind) -> int:
    """Return what the server allows instead of *size*, or half of it; *size* if it is 1 or not what was refused."""
    for kind in kinds:
        if size > 1 and is_beyond(refusal, kind):
            return next((each for each in _named(refusal, kind) if each < size), size // 2)
    return size


def _named(refusal: Refusal, kind: LimitKind) -> list[int]:
    """Return what the server says that it allows; several indices may allow differently."""
    if not is_beyond(refusal, kind):
        return []
    found = re.findall(_WORDS[kind][1] + r"([\d.]+)(ms|s|m|h|d)?", refusal_text(refusal))
    return sorted({max(1, int(float(number) * _SECONDS.get(unit, 1))) for number, unit in found})


class Fitting:
    """
    The *size* that a request asks for, which becomes smaller while the server refuses it by one of *kinds*.
    ``while True:`` ``with fitting:`` is such a request; its refusal ends the block, and the loop begins anew.
    """

    def __init__(self, size: int, *kinds: LimitKind) -> None:
        self.size = size
        self._kinds = kinds

    def __enter__(self) -> int:
        return self.size

    def __exit__(self, _: object, error: BaseException | None, __: TracebackType | None) -> bool:
        return error is not None and self.shrink(error)

    def shrink(self, refusal: Refusal) -> bool:
        """Return whether *refusal* is of the size, which is smaller then."""
        before, self.size = self.size, smaller(self.size, refusal, *self._kinds)
        return self.size < before


@dataclass(frozen=True, slots=True)
class Limits:
    """
    What a server allows a query.

    Attributes:
        scripts:
            Whether a script may filter.
        max_terms:
            Most values in one ``terms`` query (``index.max_terms_count``); longer lists are split.
        max_clauses:
            Most clauses in one query (``indices.query.bool.max_clause_count``).
        skims:
            Whether documents can be searched by their fingerprints, so that many candidates need not be read whole.
        max_hits:
            Most hits of one search (``index.max_result_window``), as far as a server has named it.
        max_ids:
            Most ids in one ``ids`` query, as far as a server has named it: Elasticsearch allows as many as hits.
        max_seconds:
            How long a point in time or a scroll may stay open (``search.max_keep_alive``), as far as a server has named
            it.
    """

    scripts: bool = True
    max_terms: int = DEFAULT_MAX_TERMS
    max_clauses: int = 1_024
    skims: bool = True
    max_hits: int = LARGEST
    max_ids: int = LARGEST
    max_seconds: int = LARGEST

    def within(self, other: Limits) -> Limits:
        """Return the limits that allow what both these and the *other* allow."""
        return Limits(*map(min, _values(self), _values(other)))

    def after(self, refusal: Refusal, *, scripted: bool) -> Limits:
        """Return smaller limits, learnt from a *refusal* of a lookup; these if it names none."""
        if scripted and self.scripts and is_beyond(refusal, "scripts"):
            return replace(self, scripts=False)
        if self.skims and is_beyond(refusal, "skims"):
            return replace(self, skims=False)
        terms, clauses = smaller(self.max_terms, refusal, "terms"), smaller(self.max_clauses, refusal, "clauses")
        return replace(self, max_terms=terms, max_clauses=clauses)


_values = attrgetter(*Limits.__slots__)


def limits_named(refusal: Refusal) -> Limits:
    """Return the limits whose numbers a *refusal* names, for all searches of what was searched."""
    named: dict[str, Any] = {f"max_{kind}": least for kind in _NAMED for least in _named(refusal, kind)[:1]}
    return Limits(**named)
