"""A page of search results without near-duplicates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from es_simhash.errors import count
from es_simhash.tables.notebook import Part, Sheet, flat_source
from es_simhash.tables.tabular import Tabular


@dataclass(frozen=True, slots=True)
class DistinctHit:
    """
    A hit that stands for all near-duplicates that match.

    Attributes:
        hit:
            The hit as the server answered it, with ``_index``, ``_id``, ``_source`` and what else was asked for.
        group:
            Its group; ``None`` if it never was grouped.
        similar_count:
            How many more matching documents its group has.
    """

    hit: Mapping[str, Any]
    group: str | None = None
    similar_count: int = 0

    @property
    def id(self) -> str:
        """``_id`` of the hit."""
        return self.hit["_id"]  # type: ignore[no-any-return]

    @property
    def index(self) -> str:
        """Its concrete index."""
        return self.hit["_index"]  # type: ignore[no-any-return]

    @property
    def source(self) -> Mapping[str, Any] | None:
        """``_source`` of the hit, as far as it was asked for."""
        return self.hit.get("_source")

    def to_dict(self) -> dict[str, Any]:
        """Return the hit with ``group`` and ``similar_count`` beside its own keys."""
        return {**self.hit, "group": self.group, "similar_count": self.similar_count}


@dataclass(frozen=True, slots=True)
class DistinctPage(Tabular):
    """
    A page of hits of which no two are near-duplicates; a sequence of :class:`DistinctHit`.

    Attributes:
        hits:
            The hits, in the order of the search.
        after:
            Where the next page begins, for ``after=``; ``None`` if there is none.
        total:
            Number of distinct hits of the whole search, where that was asked for.
        aggregations:
            The aggregations of the search.
    """

    _COLUMNS = ("id", "index", "score", "group", "similar_count")

    hits: tuple[DistinctHit, ...]
    after: str | None = None
    total: int | None = None
    aggregations: Mapping[str, Any] = field(default_factory=dict)

    def __iter__(self) -> Iterator[DistinctHit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, number: int) -> DistinctHit:
        return self.hits[number]

    def to_dict(self) -> dict[str, Any]:
        """Return the page as plain JSON values."""
        hits: Sequence[Any] = [hit.to_dict() for hit in self.hits]
        return {"hits": hits, "after": self.after, "total": self.total, "aggregations": dict(self.aggregations)}

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the hits as flat dicts."""
        return [
            {
                "id": hit.id,
                "index": hit.index,
                "score": hit.hit.get("_score"),
                "group": hit.group,
                "similar_count": hit.similar_count,
            }
            for hit in self.hits
        ]

    def _title(self) -> str:
        of_all = " on this page" if self.total is None else f" of {self.total:,}"
        return f"{count(len(self), 'distinct hit')}{of_all}"

    def _sheets(self) -> Sequence[Part]:
        rows = [
            {"score": hit.hit.get("_score"), "similar": hit.similar_count, "id": hit.id, "index": hit.index}
            | flat_source(hit.source)
            for hit in self.hits
        ]
        return [Sheet("", rows)]
