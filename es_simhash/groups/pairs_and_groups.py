"""All pairs of near-duplicates, and groups as the group fields say. Nothing is written."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Literal

from es_simhash.arguments import check_choice, check_count
from es_simhash.errors import IncompleteSearchError, MappingError, count
from es_simhash.groups.read import read_all, read_texts
from es_simhash.groups.recorded import refuse_group_faults, warn_of_regrouping
from es_simhash.hashing import from_hex
from es_simhash.lookup.judge import choose_rule
from es_simhash.lookup.lookup_options import LookupOptions
from es_simhash.lookup.near_dups import NearDup, cells_of, hit_fingerprints, no_fingerprint_shown
from es_simhash.lookup.query import Filter, check_filter, check_source
from es_simhash.mapping.context import Resolved
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import agree, read_known, read_present_settings, refuse_closed, resolve_index
from es_simhash.mapping.rule import Grouping
from es_simhash.record import Record
from es_simhash.tables.notebook import SHOWN_ROWS, Part, Sheet
from es_simhash.tables.tabular import Tabular
from es_simhash.transport.answers import check_whole
from es_simhash.transport.buckets import BucketReader, aggregate_named
from es_simhash.transport.pages import Hits, read_each
from es_simhash.transport.protocol import Index, Progress, check_index, names_in
from es_simhash.writes.targets import refuse_masked_values

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from es_simhash.groups.table import Texts

logger = logging.getLogger("es_simhash")

BUCKETS = 200
# Duplicates in the groups that are read at once, of one group where it has more: 20 MB without their sources.
TOGETHER = 50_000
PAGE = 5_000


@dataclass(frozen=True, slots=True)
class Pair(Record):
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
            Similarity of their texts by the measure of the rule; ``None`` where texts were not compared.
        unverified:
            Why the texts could not be compared, though the rule compares texts.
        rule:
            The rule by which they are near-duplicates, in words.
    """

    _OPTIONAL = "routing other_routing similarity unverified"

    id: str
    index: str
    other_id: str
    other_index: str
    distance: int
    routing: str | None = None
    other_routing: str | None = None
    similarity: float | None = None
    unverified: str | None = None
    rule: str = ""


async def pairs(
    server: Port, index: Index, against: Index | None, options: LookupOptions
) -> AsyncGenerator[Sequence[Pair], None]:
    """
    Yield a :class:`Pair` for every two near-duplicates in *index*, or one in *index*, one in *against*.
    A document that both names reach makes no pair with itself. Memory: about 170 bytes a document, and where texts are
    compared the shingles of those that have a candidate, in a temporary file beyond 256 MiB. Raises InvalidInputError
    where the indices have different rules.
    """
    from es_simhash.groups.table import Table  # noqa: PLC0415 -- loads numpy

    names = [check_index(name) for name in (index, against) if name is not None]
    every = [name for given in names for name in names_in(given)]
    settings = await read_present_settings(server, every)
    settings_of = (await read_known(server, every))[1].settings_of
    rule, text_fields = choose_rule(settings, settings_of, options, "document")
    limits = Grouping(rule.max_distance, rule.similarity, rule.measure, rule.per, rule.within)
    dates = [] if limits.within is None else [limits.within.field]
    table = Table(server.prefix, limits, dates=dates)
    split = 0
    for name in names:
        split = len(table)
        await read_all(server, name, table)
    if table.first_unreadable is not None:
        missing = (
            f"{count(table.unreadable, 'document')} left out: no readable fingerprint, as {table.first_unreadable}"
        )
        logger.warning("%s: run setup(index)", missing)
    found = table.pairs(split=split if against is not None else None)
    texts: Texts | None = None
    if limits.similarity is not None:
        places = await server.compute(table.with_candidates)
        texts = await read_texts(server, every, table, places.tolist(), text_fields, limits.measure, settings.scheme)
    while (step := await server.compute(next, found, None)) is not None:
        for left, right, bits, similarity, unverified in await server.compute(_judge, step, limits, texts):
            a, b = table.row(left), table.row(right)
            if a.key != b.key:
                said = str(rule)
                yield [Pair(a.id, a.index, b.id, b.index, bits, a.routing, b.routing, similarity, unverified, said)]


_Judged = tuple[int, int, int, float | None, str | None]
"""Places, distance, similarity, and why there is none."""


def _judge(step: Sequence[NDArray[Any]], limits: Grouping, texts: Texts | None) -> list[_Judged]:
    """Return those of the pairs *step* whose texts *limits* accept, or were not read."""
    import numpy as np  # noqa: PLC0415

    from es_simhash.groups.assign import similar_pairs  # noqa: PLC0415

    if texts is None:
        return [(*row, None, None) for row in zip(*(column.tolist() for column in step), strict=True)]
    left, right = (texts.numbers[places] for places in step[:2])
    known = (left >= 0) & (right >= 0)
    accepted, similarity = ~known, np.full(len(left), np.nan)
    accepted[known], similarity[known] = similar_pairs(left[known], right[known], texts.sets, limits.similarity or 0.0)
    rows = zip(*(column[accepted].tolist() for column in (*step, similarity, known)), strict=True)
    return [(*row, found, None) if is_known else (*row, None, _UNREAD) for *row, found, is_known in rows]


_UNREAD = "a text could not be read, or is masked for this login"


@dataclass(frozen=True, slots=True)
class Group(Tabular):
    """
    Documents that belong together, as their group fields say.

    Attributes:
        id:
            Id of the canonical.
        members:
            All documents of the group, the canonical first, then by distance, index and id.
        canonicals:
            How many documents are a canonical of that id: more than one where groups of several indices, or shards,
            have one name. These groups are shown as one.
        unreadable:
            Ids of its documents that are no members here, because what they have as fingerprint is none: ``setup``
            mends them.
    """

    id: str
    members: tuple[NearDup, ...]
    canonicals: int = 1
    unreadable: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the group as plain JSON values."""
        plain = {"id": self.id, "size": len(self.members), "members": [member.to_dict() for member in self.members]}
        plain |= {"unreadable": list(self.unreadable)} if self.unreadable else {}
        return plain | ({"canonicals": self.canonicals} if self.canonicals > 1 else {})

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a flat row for each member; the fingerprint is 16 hex digits."""
        return [{"group": self.id, "is_canonical": n == 0, **member.to_row()} for n, member in enumerate(self.members)]

    def _title(self) -> str:
        return f"group {self.id}: {len(self.members):,} documents"

    def _sheets(self) -> Sequence[Part]:
        """Return a row for the canonical, with the number of documents, and one for each other, up to a number."""
        first, *others = self.members
        name = None if first.id == self.id else self.id
        rows = [cells_of(first) | {"bits": None, "similarity": None, "numbers": None, "group": name}]
        rows += map(cells_of, others[:SHOWN_ROWS])
        rest = len(self.members) - len(rows)
        rows += [{"how": f"and {rest:,} more"}] if rest else []
        rows += [{"how": f"{id_}: no readable fingerprint, run setup"} for id_ in self.unreadable[:1]]
        rows = [{"documents": None if number else len(self.members), **row} for number, row in enumerate(rows)]
        return [Sheet("", rows, {"bits": 64, "similarity": 1}, most=len(rows))]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOptions:
    """
    Which groups are shown, and how, checked.

    Args:
        sort:
            ``"id"``, or ``"size"``: the groups with the most duplicates first; then the names of all groups are
            kept in memory.
        min_size:
            Fewest documents of a group.
        filter:
            A query, or several; only groups of which a document matches all of them. Such a group is whole.
        source:
            Fields of the documents to return, or ``True`` for all.
    """

    sort: Literal["id", "size"] = "id"
    min_size: int = 2
    filter: Filter = None
    source: bool | Sequence[str] = False

    def __post_init__(self) -> None:
        check_choice("sort", self.sort, ("id", "size"))
        check_count("min_size", self.min_size, 2)
        check_filter(self.filter)
        check_source(self.source)


async def groups(server: Port, index: Index, options: GroupOptions) -> AsyncGenerator[Sequence[Group], None]:
    """
    Yield a :class:`Group` for each group of two or more documents in *index* that *options* ask for.
    A warning says where a change of the grouping was stopped: groups may be those of the rule before.

    Cost: a search for up to 200 groups, and for every 5,000 documents in them; to sort by size, the names of all groups
    are kept in memory.

    Raises:
        MappingError: If the index has never been grouped, or its grouping is being changed.
        IncompleteSearchError: If some documents could not be read.
    """
    check_index(index)
    resolved = await _read_grouping(server, index)
    warn_of_regrouping(resolved)
    reader = _Reader(server.prefix, index, options)
    every: list[tuple[str, int]] = []
    is_sorted = options.sort == "size"
    if is_sorted:
        while part := await reader.read_names(server):
            every += part
        # Python sorts without changing the order of equals: those stay sorted by id.
        every.sort(key=itemgetter(1), reverse=True)
    done = 0
    while part := every[done : done + BUCKETS] if is_sorted else await reader.read_names(server):
        for names in _together(part):
            yield await reader.read(server, names)
            done += len(names)
            server.tell(Progress(done, len(every) if is_sorted else None, "reading groups"))
    now = await _read_grouping(server, index)
    if any(
        Grouping.read(own) != Grouping.read(resolved.settings_of.get(name, own))
        for name, own in now.settings_of.items()
    ):
        raise MappingError("the grouping of the index was changed while its groups were read: read them again")


def _together(named: Sequence[tuple[str, int]]) -> Iterator[list[str]]:
    """Yield the names of groups in parts, by their numbers of duplicates."""
    names: list[str] = []
    total = 0
    for name, number in named:
        if names and total + number > TOGETHER:
            yield names
            names, total = [], 0
        names.append(name)
        total += number
    yield names


async def _read_grouping(server: Port, index: Index) -> Resolved:
    resolved = await resolve_index(server, index)
    agree(resolved, server.context)
    refuse_group_faults(resolved, server.prefix)
    if resolved.settings_of and not any(own.is_grouped for own in resolved.settings_of.values()):
        await refuse_closed(server, index)
        raise MappingError("the index was never grouped: run setup(index) first")
    return resolved


class _Reader:
    def __init__(self, prefix: str, index: Index, options: GroupOptions) -> None:
        fields = self._fields = Fields(prefix)
        self._index = index
        self._options = options
        self._is_duplicate = {"exists": {"field": fields.duplicate_of}}
        clauses = check_filter(options.filter) or [self._is_duplicate]
        self._names = BucketReader(index, clauses, fields.group, page=BUCKETS)

    async def read_names(self, server: Port) -> list[tuple[str, int]]:
        """Return some more names, in order, with the number of duplicates of each; empty after the last one."""
        while page := await self._names.read(server):
            buckets = dict(page)
            if self._options.filter is not None:  # a group is whole
                duplicates = [self._is_duplicate]
                group = self._fields.group
                buckets = await aggregate_named(server, self._index, duplicates, group, list(buckets))
            found = [(name, buckets[name]["doc_count"] if name in buckets else 0) for name, _ in page]
            large = [(name, number) for name, number in found if 0 < number >= self._options.min_size - 1]
            if large:
                return large
        return []

    async def read(self, server: Port, names: list[str]) -> list[Group]:
        """Return the groups *names*, as far as they are large enough."""
        fields = self._fields
        # Of each group its canonicals, and the others.
        members: dict[str, tuple[list[NearDup], list[NearDup]]] = {name: ([], []) for name in names}
        unreadable: dict[str, list[str]] = {name: [] for name in names}
        source, seen = check_source(self._options.source), set[str]()

        def note(hits: Hits) -> None:
            for hit in hits:
                seen.add(hit["_index"])
                own = hit.get("fields", {})
                if digits := hit_fingerprints(hit, fields.fingerprint):
                    member = NearDup(
                        hit["_id"],
                        hit["_index"],
                        int((own.get(fields.distance) or [0])[0]),
                        from_hex(digits[0]),
                        source=None if source is False else hit.get("_source"),
                        routing=hit.get("_routing"),
                    )
                    members[own[fields.group][0]][fields.duplicate_of in own].append(member)
                else:
                    unreadable[own[fields.group][0]].append(hit["_id"])

        body = {
            "query": {"terms": {fields.group: names}},
            "docvalue_fields": [fields.fingerprint, fields.group, fields.distance, fields.duplicate_of],
            "_source": source,
        }
        check_whole(await read_each(server, self._index, body, note, page=PAGE))
        if not seen:  # they are gone, or not there by the names that are shown
            await refuse_masked_values(server, self._index, fields.group, is_read=True)
        found = []
        for name, parts in members.items():
            canonicals, others = (sorted(part, key=attrgetter("order")) for part in parts)
            if canonicals or others:
                broken = tuple(sorted(unreadable[name]))
                found.append(Group(name, (*canonicals, *others), max(1, len(canonicals)), broken))
        if seen and not found:
            reason = no_fingerprint_shown(self._index, fields.fingerprint)
            raise IncompleteSearchError(reason, reasons=(reason,))
        return [group for group in found if len(group.members) + len(group.unreadable) >= self._options.min_size]
