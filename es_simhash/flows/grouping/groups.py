"""
Reading groups, and pairs of near-duplicates in an index or between two, as streams. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from es_simhash.errors import MappingError, SchemeMismatchError
from es_simhash.flows.context import Context, Index, check_index
from es_simhash.flows.grouping.read import read_all
from es_simhash.flows.protocol import Call, Compute, Emit, Flow
from es_simhash.flows.resolve import read_index_settings
from es_simhash.flows.transfer.answers import check_whole, find_gaps
from es_simhash.flows.transfer.pages import Hits, read_pages
from es_simhash.hashing import from_hex
from es_simhash.index.fields import Fields
from es_simhash.index.plan import DEFAULT_MAX_DISTANCE, check_max_distance
from es_simhash.index.rescore import NearDup

if TYPE_CHECKING:
    from es_simhash.index.grouping.table import Row

__all__ = ["Group", "Pair", "groups", "pairs"]

BUCKETS = 200
PAGE = 5_000
STEP = 10_000


@dataclass(frozen=True, slots=True)
class Group:
    """
    Documents that belong together, as their group fields say.

    Attributes:
        id:
            Id of the canonical.
        members:
            All documents of the group, the canonical first, then by distance, index and id.
    """

    id: str
    members: tuple[NearDup, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the group as plain JSON values."""
        return {"id": self.id, "size": len(self.members), "members": [each.to_dict() for each in self.members]}


@dataclass(frozen=True, slots=True)
class Pair:
    """
    Two near-duplicates.

    Attributes:
        id:
            ``_id`` of the first.
        index:
            Name of the index that contains it.
        other_id:
            ``_id`` of the second.
        other_index:
            Name of the index that contains that.
        distance:
            Their distance in bits.
        routing:
            ``_routing`` of the first, where it was indexed with one.
        other_routing:
            ``_routing`` of the second.
    """

    id: str
    index: str
    other_id: str
    other_index: str
    distance: int
    routing: str | None = None
    other_routing: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the pair as plain JSON values."""
        return {
            "id": self.id,
            "index": self.index,
            "other_id": self.other_id,
            "other_index": self.other_index,
            "distance": self.distance,
            **({} if self.routing is None else {"routing": self.routing}),
            **({} if self.other_routing is None else {"other_routing": self.other_routing}),
        }


def groups(context: Context, index: Index) -> Flow[None]:
    """
    Emit a :class:`Group` for each group of two or more documents in *index*, by id.

    Raises:
        MappingError: If the index has never been grouped.
        IncompleteSearchError: If some documents could not be read.
    """
    check_index(index)
    fields = Fields(context.prefix)
    settings = yield from read_index_settings(context, index)
    if "grouping" not in (settings.extra or {}):
        raise MappingError("the index was never grouped: ingest with on_duplicate, or run reconcile, first")
    query = {"exists": {"field": fields.duplicate_of}}
    after: Mapping[str, Any] | None = None
    while True:
        composite: dict[str, Any] = {"sources": [{"id": {"terms": {"field": fields.group}}}], "size": BUCKETS}
        composite |= {} if after is None else {"after": after}
        body = {"size": 0, "query": query, "aggs": {"groups": {"composite": composite}}, "track_total_hits": False}
        answer = yield Call("search", {"index": index, "body": body})
        # OpenSearch ends a composite aggregation early once its page is full, and says so.
        check_whole(find_gaps(answer, ignore=["terminated_early"]))
        found = answer["aggregations"]["groups"]
        names = [bucket["key"]["id"] for bucket in found["buckets"]]
        if names:
            yield from _emit_groups(index, fields, names)
        after = found.get("after_key")
        if not names or after is None:
            return


def _emit_groups(index: Index, fields: Fields, names: list[str]) -> Flow[None]:
    members: dict[str, list[NearDup]] = {name: [] for name in names}

    def note(hits: Hits) -> Flow[bool]:
        yield from ()
        for hit in hits:
            own = hit.get("fields", {})
            if fields.fingerprint in own:
                distance = int((own.get(fields.distance) or [0])[0])
                each = NearDup(
                    hit["_id"],
                    hit["_index"],
                    distance,
                    from_hex(own[fields.fingerprint][0]),
                    routing=hit.get("_routing"),
                )
                members[own[fields.group][0]].append(each)
        return False

    body = {
        "query": {"terms": {fields.group: names}},
        "docvalue_fields": [fields.fingerprint, fields.group, fields.distance],
        "_source": False,
    }
    check_whole((yield from read_pages(index, body, note, page=PAGE)))
    for name in names:
        ordered = sorted(members[name], key=lambda each: (each.id != name, *each.order))
        yield Emit(Group(name, tuple(ordered)))


def pairs(context: Context, index: Index, against: Index | None, max_distance: int | None) -> Flow[None]:
    """
    Emit a :class:`Pair` for every two near-duplicates in *index*, or for one in *index* and one in *against*.

    A document that both names reach makes no pair with itself. Memory: about 60 bytes for each document.
    """
    from es_simhash.index.grouping.table import Table  # noqa: PLC0415 -- loads numpy

    check_index(index)
    settings = yield from read_index_settings(context, index)
    recorded = DEFAULT_MAX_DISTANCE if settings.max_distance is None else settings.max_distance
    distance = check_max_distance(recorded if max_distance is None else max_distance)
    table = Table(context.prefix)
    yield from read_all(context, index, table)
    sides = None
    if against is not None:
        check_index(against)
        other = yield from read_index_settings(context, against)
        if other.scheme != settings.scheme:
            raise SchemeMismatchError(
                f"the two indices use different schemes, {settings.scheme} and {other.scheme}: backfill one of them",
                index_scheme=str(settings.scheme),
                client_scheme=str(other.scheme),
            )
        first = len(table)
        yield from read_all(context, against, table)
        sides = yield Compute(_sides, (first, len(table)))
    found = table.pairs(distance, sides=sides)
    while step := (yield Compute(_take, (found,))):
        for left, right, bits in step:
            a, b = table.row(left), table.row(right)
            if (a.index, a.id, a.routing) != (b.index, b.id, b.routing):
                yield Emit(_pair(a, b, bits))


def _pair(a: Row, b: Row, distance: int) -> Pair:
    return Pair(a.id, a.index, b.id, b.index, distance, a.routing, b.routing)


def _take(found: Iterator[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    return list(islice(found, STEP))


def _sides(first: int, count: int) -> Any:
    import numpy as np  # noqa: PLC0415

    return np.arange(count) >= first
