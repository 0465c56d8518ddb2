"""All pairs of near-duplicates, and groups as the group fields say. Nothing is written."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

from es_simhash.arguments import check_choice, check_count
from es_simhash.errors import (
    Advice,
    IncompleteSearchError,
    InvalidInputError,
    MappingError,
    Said,
    SchemeMismatchError,
    shorten,
)
from es_simhash.groups.grouping_request import GroupingRequest, Resources
from es_simhash.groups.read import read_all, read_texts
from es_simhash.groups.recorded import refuse_group_faults, refuse_regrouping
from es_simhash.hashing import from_hex
from es_simhash.lookup.content import compare_contents
from es_simhash.lookup.fetch import FETCH, fetch_hits, fetch_texts
from es_simhash.lookup.judge import Asked
from es_simhash.lookup.lookup_options import LookupOptions, Verification, Verified
from es_simhash.lookup.near_dups import NearDup, cells_of, hit_fingerprints
from es_simhash.lookup.query import Filter, check_filter, check_source
from es_simhash.lookup.rules import Rules, rules_for
from es_simhash.mapping.context import Context, Resolved
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.meta import require_text_fields
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import agree, read_present_settings, read_settings_by_index, resolve_index
from es_simhash.mapping.rule import Grouping
from es_simhash.record import Record
from es_simhash.tables.notebook import SHOWN_ROWS, Part, Sheet
from es_simhash.tables.tabular import Tabular
from es_simhash.texts.measures import Preset
from es_simhash.transport.answers import check_whole
from es_simhash.transport.buckets import BucketReader, aggregate_named
from es_simhash.transport.pages import Hits, read_each
from es_simhash.transport.protocol import Index, Key, Progress, check_index, document_key

if TYPE_CHECKING:
    from es_simhash.groups.table import Table, Texts
    from es_simhash.texts.shingle_sets import Shingles


BUCKETS = 200
# Duplicates in the groups that are read at once, of one group where it has more: 20 MB without their sources.
TOGETHER = 50_000
PAGE = 5_000
STEP = 10_000


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
            The rule by which they are near-duplicates, in words; of two rules, the one that accepts them.
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
    server: Port, index: Index, against: Index | None, options: LookupOptions, resources: Resources
) -> AsyncGenerator[Sequence[Pair], None]:
    """
    Yield a :class:`Pair` for every two near-duplicates in *index*, or one in *index*, one in *against*.
    A document that both names reach makes no pair with itself. Two documents of indices with different rules are a pair
    if one of these rules accepts them: a lookup of one of them finds the other. Memory: about 100 bytes a document, and
    where texts are compared the shingles of those that have a candidate, in a temporary file beyond 256 MiB; with
    different rules all in memory.
    """
    from es_simhash.groups.table import Table  # noqa: PLC0415 -- loads numpy

    names = [check_index(each) for each in (index, against) if each is not None]
    if callable(options.verify):
        raise InvalidInputError("pairs are compared by the texts of the index: give verify as a number, or True")
    if isinstance(options.verify, Verification):
        options.verify.check_recordable()
    settings = await read_present_settings(server, index)
    each = dict(await read_settings_by_index(server, index))
    if against is not None:
        other = await read_present_settings(server, against)
        if other.scheme != settings.scheme:
            raise SchemeMismatchError(
                f"the two indices use different schemes, {settings.scheme} and {other.scheme}: backfill one of them",
                index_scheme=str(settings.scheme),
                client_scheme=str(other.scheme),
            )
        each.update(await read_settings_by_index(server, against))
    rules = rules_for(settings, each, options, "document")
    is_one = len(rules.all) == 1
    limits = Grouping().by(rules.other) if is_one else None
    dates = [] if limits is None or limits.within is None else [limits.within.field]
    table = Table(server.prefix, limits, dates=dates, resources=resources)
    split = 0
    for name in names:
        split = len(table)
        await read_all(server, name, table)
    found = table.pairs(rules.used.max_distance, split=split if against is not None else None)
    every = [name for each_name in names for name in ([each_name] if isinstance(each_name, str) else each_name)]
    texts: Texts | None = None
    if limits is not None and limits.similarity is not None:
        places = await server.compute(table.with_candidates)
        texts = await read_texts(server, every, table, places.tolist(), rules.text_fields, limits.measure)
    asked: dict[Key, Asked | str] = {}
    while step := await server.compute(list, islice(found, STEP)):
        if limits is None:
            await _read_asked(server, every, table, step, rules, asked)
            judged = await server.compute(_judge, table, step, rules, asked)
        else:
            judged = await server.compute(_take, table, step, limits, texts, str(rules.used))
        for left, right, bits, similarity, unverified, rule in judged:
            a, b = table.row(left), table.row(right)
            if a.key != b.key:
                yield [Pair(a.id, a.index, b.id, b.index, bits, a.routing, b.routing, similarity, unverified, rule)]


_Judged = tuple[int, int, int, float | None, str | None, str]
"""Places, distance, similarity, why there is none, and the rule."""


def _take(
    table: Table, step: Sequence[tuple[int, int, int]], limits: Grouping, texts: Texts | None, rule: str
) -> list[_Judged]:
    """Return those of the pairs *step* that the one rule accepts, or whose texts were not read."""
    import numpy as np  # noqa: PLC0415

    from es_simhash.groups.assign import similar_pairs  # noqa: PLC0415

    left, right = (np.array([pair[side] for pair in step], np.int64) for side in (0, 1))
    fits = table.allows(left, right)
    if texts is None:
        return [(*step[place], None, None, rule) for place in np.flatnonzero(fits).tolist()]
    known = (texts.numbers[left] >= 0) & (texts.numbers[right] >= 0)
    similarity = np.full(len(step), np.nan)
    both = np.flatnonzero(fits & known)
    some, exact = similar_pairs((left[both], right[both]), texts.numbers, texts.sets, limits.similarity or 0.0)
    similarity[both[some]] = exact[some]
    kept = np.flatnonzero((fits & ~known) | ~np.isnan(similarity)).tolist()
    return [
        (*step[place], *((float(similarity[place]), None) if known[place] else (None, _UNREAD)), rule) for place in kept
    ]


_UNREAD = "a text could not be read"


async def _read_asked(
    server: Port,
    index: Index,
    table: Table,
    step: Sequence[tuple[int, int, int]],
    rules: Rules,
    asked: dict[Key, Asked | str],
) -> None:
    """Put what the documents of *step* are compared by into *asked*, or why it was not read."""
    keys = {table.row(place).key for pair in step for place in pair[:2]} - asked.keys()

    def take(hit: Mapping[str, Any]) -> None:
        asked[document_key(hit)] = Asked(rules, hit=hit)

    fields = rules.text_fields.all if rules.compares_texts else ()
    gone = await fetch_hits(
        server, index, sorted(keys), take, text_fields=fields, docvalue_fields=rules.docvalue_fields
    )
    asked.update(dict.fromkeys(gone, _UNREAD))


def _judge(
    table: Table, step: Sequence[tuple[int, int, int]], rules: Rules, asked: Mapping[Key, Asked | str]
) -> list[_Judged]:
    """Return those of the pairs *step* that the rule of one of the two documents accepts, or cannot compare."""
    judged: list[_Judged] = []
    for left, right, bits in step:
        keys = table.row(left).key, table.row(right).key
        accepted: list[_Judged] = []
        for rule in dict.fromkeys(rules.of(key.index) for key in keys):
            if bits > rule.max_distance:
                continue
            first, second = (each.content(rule) if isinstance(each := asked[key], Asked) else None for key in keys)
            compared = compare_contents(first, second, rule)
            if compared.are_neighbours:
                score = None if compared.similarity is None else compared.similarity.similarity
                accepted.append((left, right, bits, score, None, rule.words))
            elif compared.unread is not None:
                accepted.append((left, right, bits, None, _UNREAD, rule.words))
        judged += sorted(accepted, key=lambda each: each[4] is not None)[:1]
    return judged


@dataclass(frozen=True, slots=True)
class Group(Tabular):
    """
    Documents that belong together, as their group fields say.

    Attributes:
        id:
            Id of the canonical.
        members:
            All documents of the group, the canonical first, then by distance, index and id.
        contained:
            The documents that are tagged as contained in the canonical, by index and id; ``None`` where nobody asked
            for them.
        canonicals:
            How many documents are a canonical of that id: more than one where groups of several indices, or shards,
            have one name. These groups are shown as one.
    """

    id: str
    members: tuple[NearDup, ...]
    contained: tuple[Key, ...] | None = None
    canonicals: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return the group as plain JSON values."""
        plain = {"id": self.id, "size": len(self.members), "members": [each.to_dict() for each in self.members]}
        plain |= {"canonicals": self.canonicals} if self.canonicals > 1 else {}
        if self.contained is None:
            return plain
        return plain | {"contained": [{"id": each.id, "index": each.index} for each in self.contained]}

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a flat row for each member; the fingerprint is 16 hex digits."""
        return [{"group": self.id, "is_canonical": n == 0, **each.to_row()} for n, each in enumerate(self.members)]

    def _title(self) -> str:
        return f"group {self.id}: {len(self.members):,} documents"

    def _sheets(self) -> Sequence[Part]:
        """Return a row for the canonical, with the number of documents, and one for each other, up to a number."""
        first, *others = self.members
        name = None if first.id == self.id else self.id
        rows = [cells_of(first) | {"bits": None, "similarity": None, "numbers": None, "group": name}]
        rows += map(cells_of, others[:SHOWN_ROWS])
        contained = self.contained or ()
        rows += [{"id": each.id, "index": each.index, "how": "contained"} for each in contained[:SHOWN_ROWS]]
        rest = len(self.members) + len(contained) - len(rows)
        rows += [{"how": f"and {rest:,} more"}] if rest else []
        rows = [{"documents": None if number else len(self.members), **row} for number, row in enumerate(rows)]
        return [Sheet("", rows, {"bits": 64, "similarity": 1}, most=len(rows), keys=("id",))]


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
        preset:
            A preset: its max_distance and similarity are limits for the members, as they are now.
        verify:
            Compare the present texts of members with that of their canonical, and leave out those whose similarity
            is smaller than this (``True``: that of the preset, else .8; a :class:`Verification`: another measure),
            or whose text cannot be read. By default texts are not compared, and the groups are what the documents
            say.
        contained:
            Also return, in ``contained`` of each group, the documents that
            ``tag_contained`` has tagged as contained in its canonical.
    """

    sort: Literal["id", "size"] = "id"
    min_size: int = 2
    filter: Filter = None
    source: bool | Sequence[str] = False
    preset: str | Preset | None = None
    verify: Verified | None = None
    contained: bool = False

    def __post_init__(self) -> None:
        check_choice("sort", self.sort, ("id", "size"))
        check_count("min_size", self.min_size, 2)
        check_filter(self.filter)
        check_source(self.source)
        self.limits()

    def limits(self) -> Grouping:
        """Return the largest distance and the smallest similarity of a member to its canonical."""
        return GroupingRequest(preset=self.preset, verify=self.verify).put_on(Grouping(max_distance=64))


async def groups(server: Port, index: Index, options: GroupOptions) -> AsyncGenerator[Sequence[Group], None]:
    """
    Yield a :class:`Group` for each group of two or more documents in *index* that *options* ask for.

    Cost: a search for up to 200 groups, and for every 5,000 documents in them; to sort by size, the names of all groups
    are kept in memory.

    Raises:
        MappingError: If the index has never been grouped, or its grouping is being changed.
        IncompleteSearchError: If some documents could not be read.
    """
    check_index(index)
    resolved = await _read_grouping(server, index, options)
    reader = _Reader(server.context, index, resolved, options)
    every: list[tuple[str, int]] = []
    is_sorted = options.sort == "size"
    if is_sorted:
        while part := await reader.read_names(server):
            every += part
        # Python sorts without changing the order of equals: those stay sorted by id.
        every.sort(key=lambda each: -each[1])
    done = 0
    while part := every[done : done + BUCKETS] if is_sorted else await reader.read_names(server):
        for names in _together(part):
            yield await reader.read(server, names)
            done += len(names)
            server.tell(Progress(done, len(every) if is_sorted else None, "reading groups"))
    now = await _read_grouping(server, index, options)
    if any(Grouping.read(own) != Grouping.read(resolved.each.get(name, own)) for name, own in now.each.items()):
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


async def _read_grouping(server: Port, index: Index, options: GroupOptions) -> Resolved:
    resolved = await resolve_index(server, index)
    settings = agree(resolved, server.context)
    GroupingRequest(preset=options.preset).check_scheme(settings)
    refuse_group_faults(resolved, server.prefix)
    refuse_regrouping(resolved.each)
    if resolved.each and all(Grouping.read(own) is None for own in resolved.each.values()):
        raise MappingError(
            Said("the index was never grouped: run ", Advice("setup", command="setup INDEX --yes"), " first")
        )
    if options.limits().similarity is not None:
        require_text_fields(resolved.text_fields, "texts cannot be compared", "leave verify and preset out")
    return resolved


class _Reader:
    """Reads groups, and compares the texts of their members where that is asked for."""

    def __init__(self, context: Context, index: Index, resolved: Resolved, options: GroupOptions) -> None:
        fields = self._fields = Fields(context.prefix)
        self._index = index
        self._resolved = resolved
        self._options = options
        self._limits = options.limits()
        self._measure = self._limits.measure.after(agree(resolved, context).scheme)
        self._is_duplicate = {"exists": {"field": fields.duplicate_of}}
        clauses = check_filter(options.filter) or [self._is_duplicate]
        self._names = BucketReader(index, clauses, fields.group, page=BUCKETS, has_ranges=True)

    async def read_names(self, server: Port) -> list[tuple[str, int]]:
        """Return some more names, in order, with the number of duplicates of each; empty after the last one."""
        while page := await self._names.read(server):
            buckets = dict(page)
            if self._options.filter is not None:  # a group is whole
                duplicates = [self._is_duplicate]
                group = self._fields.group
                buckets = await aggregate_named(server, self._index, duplicates, group, list(buckets))
            found = [(name, buckets[name]["doc_count"] if name in buckets else 0) for name, _ in page]
            large = [each for each in found if 0 < each[1] >= self._options.min_size - 1]
            if large:
                return large
        return []

    async def read(self, server: Port, names: list[str]) -> list[Group]:
        """Return the groups *names*, as far as they are large enough."""
        groups = await self._read(server, names)
        if self._limits.similarity is not None:
            groups = await self._compare(server, groups, self._limits.similarity)
        ids = [group.members[0].id for group in groups]
        tagged = await self._read_contained(server, ids) if self._options.contained else None
        found = []
        for group in groups:
            canonical, *others = group.members
            kept = (canonical, *(each for each in others if each.distance <= self._limits.max_distance))
            if len(kept) >= self._options.min_size:
                contained = None if tagged is None else tagged.get(canonical.id, ())
                found.append(replace(group, members=kept, contained=contained))
        return found

    async def _read_contained(self, server: Port, ids: list[str]) -> dict[str, tuple[Key, ...]]:
        """Return the documents that are tagged as contained in those with *ids*."""
        field = self._fields.contained_in
        found: dict[str, list[Key]] = {}

        def note(hits: Hits) -> None:
            for hit in hits:
                found.setdefault(hit["fields"][field][0], []).append(document_key(hit))

        body = {"query": {"terms": {field: ids}}, "docvalue_fields": [field], "_source": False}
        check_whole(await read_each(server, self._index, body, note, page=PAGE))
        return {name: tuple(sorted(keys, key=lambda key: key[:2])) for name, keys in found.items()}

    async def _read(self, server: Port, names: list[str]) -> list[Group]:
        fields = self._fields
        # Of each group its canonicals, and the others.
        members: dict[str, tuple[list[NearDup], list[NearDup]]] = {name: ([], []) for name in names}
        source, seen = check_source(self._options.source), set[str]()

        def note(hits: Hits) -> None:
            for hit in hits:
                seen.add(hit["_index"])
                own = hit.get("fields", {})
                if digits := hit_fingerprints(hit, fields.fingerprint):
                    each = NearDup(
                        hit["_id"],
                        hit["_index"],
                        int((own.get(fields.distance) or [0])[0]),
                        from_hex(digits[0]),
                        source=None if source is False else hit.get("_source"),
                        routing=hit.get("_routing"),
                    )
                    members[own[fields.group][0]][fields.duplicate_of in own].append(each)

        body = {
            "query": {"terms": {fields.group: names}},
            "docvalue_fields": [fields.fingerprint, fields.group, fields.distance, fields.duplicate_of],
            "_source": source,
        }
        check_whole(await read_each(server, self._index, body, note, page=PAGE))
        if not seen:
            raise IncompleteSearchError(
                f"no document has the groups that {fields.group} shows, such as {shorten(names[0])}: use a login that "
                "sees the field without a mask, or read again if documents are deleted now",
                reasons=("groups without documents",),
            )
        found = []
        for name, parts in members.items():
            canonicals, others = (sorted(part, key=attrgetter("order")) for part in parts)
            if canonicals or others:
                found.append(Group(name, (*canonicals, *others), canonicals=max(1, len(canonicals))))
        return found

    async def _compare(self, server: Port, groups: list[Group], bound: float) -> list[Group]:
        """Return *groups* with the members whose texts are similar to that of the canonical."""
        measure = self._measure
        sets = await self._prepare(server, [group.members[0] for group in groups])
        compared = []
        for group in groups:
            first, *others = group.members
            kept = [replace(first, similarity=1.0)] if first.key in sets else [first]
            for begin in range(0, len(others), FETCH):
                part = others[begin : begin + FETCH]
                mine = await self._prepare(server, part)
                for each in part:
                    if first.key in sets and each.key in mine:
                        same = measure.compare(sets[first.key], mine[each.key], bound=bound)
                        if same.similarity >= bound:
                            kept.append(replace(each, similarity=same.similarity, containment=same.containment))
            compared.append(replace(group, members=tuple(kept)))
        return compared

    async def _prepare(self, server: Port, members: Sequence[NearDup]) -> dict[Key, Shingles]:
        keys = [each.key for each in members]
        found = await fetch_texts(server, self._index, keys, self._resolved.text_fields)
        found.check_read()
        prepared = await server.compute(self._measure.prepare, list(found.texts.values()))
        return dict(zip(found.texts, prepared, strict=True))
