"""Groups as the group fields of the documents say, as a stream. Nothing is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from es_simhash.arguments import check_choice, check_count
from es_simhash.errors import MappingError
from es_simhash.groups.rule import Grouping, GroupingRequest
from es_simhash.groups.settings_flow import refuse_regrouping
from es_simhash.hashing import from_hex
from es_simhash.lookup.near_dups import NearDup
from es_simhash.lookup.options import Verified
from es_simhash.lookup.query import check_filter, check_source
from es_simhash.lookup.verify_flow import FETCH, fetch_texts
from es_simhash.mapping.context import Context, Resolved
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.meta import require_text_fields
from es_simhash.mapping.resolve_flow import agree, resolve_index
from es_simhash.tables.notebook import Sheet
from es_simhash.tables.tabular import Tabular
from es_simhash.texts.measures import Preset
from es_simhash.transport.answers import check_whole
from es_simhash.transport.buckets_flow import BucketReader, aggregate
from es_simhash.transport.names import Index, Key, check_index, document_key
from es_simhash.transport.pages_flow import Hits, read_each
from es_simhash.transport.protocol import Compute, Emit, Flow, Progress, Tell

if TYPE_CHECKING:
    from es_simhash.texts.measures import TextMeasure
    from es_simhash.texts.shingles import Shingles


BUCKETS = 200
PAGE = 5_000


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

    def _sheets(self) -> Sequence[Sheet]:
        rows = [{name: value for name, value in row.items() if name != "group"} for row in self.to_dicts()]
        return [Sheet("", rows, {"distance": 64, "similarity": 1})]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOptions:
    """Which groups are shown, and how: the keyword arguments of the client's method, checked."""

    sort: Literal["id", "size"] = "id"
    min_size: int = 2
    filter: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None
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


def groups(context: Context, index: Index, options: GroupOptions) -> Flow[None]:
    """
    Emit a :class:`Group` for each group of two or more documents in *index* that *options* ask for.

    Cost: a search for every 200 groups, and for every 5,000 documents in them; to sort by size, the names of all groups
    are kept in memory.

    Raises:
        MappingError: If the index has never been grouped, or its grouping is being changed.
        IncompleteSearchError: If some documents could not be read.
    """
    check_index(index)
    resolved = yield from _read_grouping(context, index, options)
    names = _Names(index, Fields(context.prefix), options)
    reader = _Reader(context, index, resolved, options)
    if options.sort == "size":
        # Python sorts without changing the order of equals: those stay sorted by id.
        every: list[tuple[str, int]] = []
        while part := (yield from names.read()):
            every += part
        every.sort(key=lambda each: -each[1])
        for begin in range(0, len(every), BUCKETS):
            part = every[begin : begin + BUCKETS]
            yield from reader.emit([name for name, _ in part])
            yield Tell(Progress(begin + len(part), len(every), "reading groups"))
    else:
        done = 0
        while part := (yield from names.read()):
            yield from reader.emit([name for name, _ in part])
            done += len(part)
            yield Tell(Progress(done, None, "reading groups"))
    now = yield from _read_grouping(context, index, options)
    if any(Grouping.read(own) != Grouping.read(resolved.each.get(name, own)) for name, own in now.each.items()):
        raise MappingError("the grouping of the index was changed while its groups were read: read them again")


def _read_grouping(context: Context, index: Index, options: GroupOptions) -> Flow[Resolved]:
    resolved = yield from resolve_index(context, index)
    settings = agree(resolved, context)
    GroupingRequest(preset=options.preset).check_scheme(settings)
    refuse_regrouping(resolved.each)
    if resolved.each and all(Grouping.read(own) is None for own in resolved.each.values()):
        raise MappingError("the index was never grouped: ingest with on_duplicate, or run reconcile, first")
    if options.limits().similarity is not None:
        require_text_fields(resolved.text_fields, "texts cannot be compared", "leave verify and preset out")
    return resolved


class _Names:
    """Reads the names of groups, by name, with the number of their duplicates."""

    def __init__(self, index: Index, fields: Fields, options: GroupOptions) -> None:
        self._index = index
        self._fields = fields
        self._options = options
        self._is_duplicate = {"exists": {"field": fields.duplicate_of}}
        clauses = check_filter(options.filter) or [self._is_duplicate]
        self._reader = BucketReader(index, clauses, fields.group, page=BUCKETS, has_ranges=True)

    def read(self) -> Flow[list[tuple[str, int]]]:
        """Return some more; empty after the last one."""
        while page := (yield from self._reader.read()):
            found = [(name, bucket["doc_count"]) for name, bucket in page]
            if self._options.filter is not None:
                found = yield from self._count([name for name, _ in found])
            # The canonical of a group may be missing, so it is a little smaller than it seems, but never larger.
            large = [each for each in found if 0 < each[1] >= self._options.min_size - 1]
            if large:
                return large
        return []

    def _count(self, names: list[str]) -> Flow[list[tuple[str, int]]]:
        """Return the groups *names* with the number of all their duplicates, also of those that do not match."""
        group = self._fields.group
        terms = {"terms": {"field": group, "size": len(names)}}
        found = yield from aggregate(self._index, [{"terms": {group: names}}, self._is_duplicate], {"groups": terms})
        counts = {bucket["key"]: bucket["doc_count"] for bucket in found["groups"]["buckets"]}
        return [(name, counts.get(name, 0)) for name in names]


class _Reader:
    """Reads the members of groups, and compares their texts where that is asked for."""

    def __init__(self, context: Context, index: Index, resolved: Resolved, options: GroupOptions) -> None:
        self._fields = Fields(context.prefix)
        self._index = index
        self._resolved = resolved
        self._options = options
        self._limits = options.limits()
        self._canonicals: Counter[str] = Counter()
        self._measure = self._limits.measure.after(agree(resolved, context).scheme)

    def emit(self, names: list[str]) -> Flow[None]:
        """Emit the groups *names*, as far as they are large enough."""
        found = yield from self._read(names)
        groups = [Group(name, tuple(sorted(members, key=_order(name)))) for name, members in found.items() if members]
        if self._limits.similarity is not None:
            groups = yield from self._compare(groups, self._limits.similarity)
        contained = (yield from self._read_contained(names)) if self._options.contained else {}
        for group in groups:
            canonical, *others = group.members
            kept = (canonical, *(each for each in others if each.distance <= self._limits.max_distance))
            if len(kept) >= self._options.min_size:
                others_there = contained.get(group.id, ()) if self._options.contained else None
                yield Emit(Group(group.id, kept, others_there, max(1, self._canonicals[group.id])))

    def _read_contained(self, names: list[str]) -> Flow[dict[str, tuple[Key, ...]]]:
        """Return the documents that are tagged as contained in those whose ids are *names*."""
        field = self._fields.contained_in
        found: dict[str, list[Key]] = {}

        def note(hits: Hits) -> None:
            for hit in hits:
                found.setdefault(hit["fields"][field][0], []).append(document_key(hit))

        body = {"query": {"terms": {field: names}}, "docvalue_fields": [field], "_source": False}
        check_whole((yield from read_each(self._index, body, note, page=PAGE)))
        return {name: tuple(sorted(keys, key=lambda key: key[:2])) for name, keys in found.items()}

    def _read(self, names: list[str]) -> Flow[dict[str, list[NearDup]]]:
        fields = self._fields
        members: dict[str, list[NearDup]] = {name: [] for name in names}
        self._canonicals.clear()
        source = check_source(self._options.source)

        def note(hits: Hits) -> None:
            for hit in hits:
                own = hit.get("fields", {})
                if fields.fingerprint in own:
                    each = NearDup(
                        hit["_id"],
                        hit["_index"],
                        int((own.get(fields.distance) or [0])[0]),
                        from_hex(own[fields.fingerprint][0]),
                        source=None if source is False else hit.get("_source"),
                        routing=hit.get("_routing"),
                    )
                    members[own[fields.group][0]].append(each)
                    self._canonicals[own[fields.group][0]] += fields.duplicate_of not in own

        body = {
            "query": {"terms": {fields.group: names}},
            "docvalue_fields": [fields.fingerprint, fields.group, fields.distance, fields.duplicate_of],
            "_source": source,
        }
        check_whole((yield from read_each(self._index, body, note, page=PAGE)))
        return members

    def _compare(self, groups: list[Group], bound: float) -> Flow[list[Group]]:
        """Return *groups* with the members whose texts are similar to that of the canonical."""
        measure = self._measure
        sets = yield from self._prepare([group.members[0] for group in groups])
        compared = []
        for group in groups:
            first, *others = group.members
            kept = [replace(first, similarity=1.0)] if first.key in sets else [first]
            for begin in range(0, len(others), FETCH):
                part = others[begin : begin + FETCH]
                mine = yield from self._prepare(part)
                for each in part:
                    if first.key in sets and each.key in mine:
                        same = measure.compare(sets[first.key], mine[each.key], bound=bound)
                        if same.similarity >= bound:
                            kept.append(replace(each, similarity=same.similarity, containment=same.containment))
            compared.append(Group(group.id, tuple(kept)))
        return compared

    def _prepare(self, members: Sequence[NearDup]) -> Flow[dict[Key, Shingles]]:
        fields_of = self._resolved.text_fields
        sets: dict[Key, Shingles] = {}
        for fields in sorted({fields_of[each.index] for each in members}):
            part = [each.key for each in members if fields_of[each.index] == fields]
            found = yield from fetch_texts(self._index, part, fields)
            found.check_read()
            sets |= yield Compute(_prepare, (found.texts, self._measure))
        return sets


def _prepare(texts: Mapping[Key, str], measure: TextMeasure) -> dict[Key, Shingles]:
    return dict(zip(texts, measure.prepare(list(texts.values())), strict=True))


def _order(name: str) -> Callable[[NearDup], Any]:
    return lambda each: (each.id != name, *each.order)
