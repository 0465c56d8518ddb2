"""Reads the real size of an index; ``quality.sizing`` works out what it takes, or would take when it grows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from es_simhash.errors import InvalidInputError
from es_simhash.lookup.find_flow import index_stats
from es_simhash.mapping.context import Context
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.meta import DEFAULT_MAX_DISTANCE
from es_simhash.quality.sizing import IndexSize, Product, Size, estimate_growth
from es_simhash.transport.answers import check_whole
from es_simhash.transport.buckets_flow import count_documents
from es_simhash.transport.names import Index, check_index, index_key
from es_simhash.transport.protocol import Call, Compute, Flow
from es_simhash.transport.retry_flow import ask


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeOptions:
    """
    The keyword arguments of the client's method, checked: what the index will be.

    ``None`` keeps what was measured; without a *product* the figures cover both products. *max_distance*: in
    bits.
    """

    documents: int | None = None
    max_distance: int = DEFAULT_MAX_DISTANCE
    product: Product | None = None
    shards: int | None = None
    replicas: int | None = None
    scripts: bool = True

    def __post_init__(self) -> None:
        self.apply(IndexSize("", 1, 1, 1, 1, 0, 1))

    def apply(self, measured: IndexSize) -> Size:
        """Return what the index that was *measured* takes."""
        return estimate_growth(
            measured,
            self.documents,
            max_distance=self.max_distance,
            product=self.product,
            shards=self.shards,
            replicas=self.replicas,
            scripts=self.scripts,
        )


def read_size(context: Context, index: Index, options: SizeOptions) -> Flow[Size]:
    """
    Return the real size of *index*, and what it takes; it need not have the fields of this library.

    Cost: four requests. Raises InvalidInputError if no shard answers, IncompleteSearchError if some documents
    were not counted.
    """
    check_index(index)
    answer = yield from ask(Call("index_stats", {"index": index, "metric": "docs,store,segments", "level": "shards"}))
    shards = [copies for each in (answer.get("indices") or {}).values() for copies in each["shards"].values()]
    primaries = [copy for copies in shards for copy in copies if copy["routing"]["primary"]]
    if not primaries:
        raise InvalidInputError(f"index {index_key(index)} has no shard that answers: check the name")
    has_fingerprint = {"exists": {"field": Fields(context.prefix).fingerprint}}
    fingerprinted, gaps = yield from count_documents(index, has_fingerprint)
    check_whole(gaps)
    stats = (yield from index_stats(context, index, again=True)) if fingerprinted else None
    measured = IndexSize(
        index_key(index),
        _sum(primaries, "docs", "count"),
        fingerprinted,
        _sum(primaries, "store", "size_in_bytes"),
        len(shards),
        max(map(len, shards)) - 1,
        _sum(primaries, "segments", "count"),
        1.0 if stats is None else stats.density,
    )
    size: Size = yield Compute(options.apply, (measured,))
    return size


def _sum(shards: list[dict[str, Any]], part: str, name: str) -> int:
    return sum(shard[part][name] for shard in shards)
