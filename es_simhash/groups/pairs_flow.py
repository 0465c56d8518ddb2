"""All pairs of near-duplicates in an index or between two, as a stream. Nothing is written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from es_simhash.errors import SchemeMismatchError
from es_simhash.groups.order import Resources
from es_simhash.groups.read_flow import read_all, read_texts
from es_simhash.groups.rule import Grouping, GroupingRequest
from es_simhash.mapping.context import Context, TextFields
from es_simhash.mapping.meta import DEFAULT_MAX_DISTANCE, require_text_fields
from es_simhash.mapping.resolve_flow import read_index_settings, read_settings_by_index
from es_simhash.transport.names import Index, check_index
from es_simhash.transport.protocol import Compute, Emit, Flow

if TYPE_CHECKING:
    from es_simhash.groups.assign import Texts
    from es_simhash.groups.table import Table


STEP = 10_000


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
        similarity:
            Similarity of their texts by the measure asked for; ``None`` where texts were not compared.
    """

    id: str
    index: str
    other_id: str
    other_index: str
    distance: int
    routing: str | None = None
    other_routing: str | None = None
    similarity: float | None = None

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
            **({} if self.similarity is None else {"similarity": self.similarity}),
        }


def pairs(
    context: Context, index: Index, against: Index | None, request: GroupingRequest, resources: Resources
) -> Flow[None]:
    """
    Emit a :class:`Pair` for every two near-duplicates in *index*, or one in *index*, one in *against*.

    A document that both names reach makes no pair with itself. By default texts are not compared; where they are,
    a document whose text cannot be read makes no pair. Of *request* only max_distance, preset and verify count.
    Memory: about 100 bytes a document, and where texts are compared the shingles of those that have a candidate,
    in a temporary file beyond 256 MiB.
    """
    from es_simhash.groups.table import Table  # noqa: PLC0415 -- loads numpy

    check_index(index)
    if against is not None:
        check_index(against)
    settings = yield from read_index_settings(context, index)
    request.check_scheme(settings)
    recorded = DEFAULT_MAX_DISTANCE if settings.max_distance is None else settings.max_distance
    limits = request.put_on(Grouping(max_distance=recorded))
    limits = replace(limits, measure=limits.measure.after(settings.scheme))
    table = Table(context.prefix, resources=resources)
    yield from read_all(context, index, table)
    sides = None
    if against is not None:
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
    texts: Texts | None = None
    if limits.similarity is not None:
        texts = yield from _read_texts(context, index, against, table, limits)
    found = table.pairs(limits.max_distance, sides=sides)
    while step := (yield Compute(_take, (found, texts, limits.similarity))):
        for left, right, bits, similarity in step:
            a, b = table.row(left), table.row(right)
            if (a.index, a.id, a.routing) != (b.index, b.id, b.routing):
                yield Emit(Pair(a.id, a.index, b.id, b.index, bits, a.routing, b.routing, similarity))


def _read_texts(context: Context, index: Index, against: Index | None, table: Table, limits: Grouping) -> Flow[Texts]:
    names = [
        name for each in (index, against) if each is not None for name in ([each] if isinstance(each, str) else each)
    ]
    text_fields = TextFields()
    for name in names:
        each = yield from read_settings_by_index(context, name)
        text_fields.update({concrete: own.text_fields for concrete, own in each.items()})
    require_text_fields(text_fields, "texts cannot be compared", "leave verify and preset out")
    places = yield Compute(table.with_candidates, (limits.max_distance,))
    return (yield from read_texts(names, table, places.tolist(), text_fields, limits.measure))


def _take(
    found: Iterator[tuple[int, int, int]], texts: Texts | None, bound: float | None
) -> list[tuple[int, int, int, float | None]]:
    """Return the next pairs; empty after the last one."""
    while step := list(islice(found, STEP)):
        if texts is None or bound is None:
            return [(*pair, None) for pair in step]
        kept = _similar(step, texts, bound)
        if kept:
            return kept
    return []


def _similar(step: list[tuple[int, int, int]], texts: Texts, bound: float) -> list[tuple[int, int, int, float | None]]:
    import numpy as np  # noqa: PLC0415

    from es_simhash.groups.nodes import similar_pairs  # noqa: PLC0415

    read = [pair for pair in step if texts.numbers[pair[0]] >= 0 and texts.numbers[pair[1]] >= 0]
    sides = tuple(np.array([pair[side] for pair in read], np.int64) for side in (0, 1))
    some, similarity = similar_pairs((sides[0], sides[1]), texts.numbers, texts.sets, bound)
    return [(*read[place], float(similarity[place])) for place in np.flatnonzero(some).tolist()]


def _sides(first: int, count: int) -> Any:
    import numpy as np  # noqa: PLC0415

    return np.arange(count) >= first
