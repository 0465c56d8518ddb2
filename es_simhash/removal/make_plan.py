"""
Plans a removal into a file: the present text of each duplicate that ``groups`` decided is compared with that of its
canonical, and a digest of what decided is noted. Nothing is written into the index.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from es_simhash.arguments import FilePath, check_output
from es_simhash.errors import IncompleteSearchError, InvalidInputError, count
from es_simhash.groups.read import count_lacking
from es_simhash.groups.reconcile import read_groups
from es_simhash.groups.recorded import settle_grouping, warn_of_regrouping
from es_simhash.lookup.query import check_filter
from es_simhash.mapping.context import Context, Resolved
from es_simhash.mapping.fields import Fields, now, read_values
from es_simhash.mapping.meta import require_text_fields
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import resolve_index
from es_simhash.mapping.rule import Grouping, parse_key
from es_simhash.mapping.shards import reading_primaries
from es_simhash.mapping.user_fields import MappedField, copy_targets, walk_fields
from es_simhash.removal.find_shown import find_shown, names_of
from es_simhash.removal.guard_rails import Guards
from es_simhash.removal.may_delete import Candidate, Compared, Comparer, Version, version_of
from es_simhash.removal.plan_options import PlanHeader, PlanOptions, allowed_with
from es_simhash.removal.records import RemovalPlan
from es_simhash.removal.removal_file import PlanWriter
from es_simhash.removal.review import summarize
from es_simhash.removal.take_decisions import Kept, read_kept
from es_simhash.texts.measures import DEFAULT_SIMILARITY
from es_simhash.transport.answers import check_whole
from es_simhash.transport.buckets import count_whole
from es_simhash.transport.conversation import unless_refused
from es_simhash.transport.pages import Hits, read_each
from es_simhash.transport.protocol import Index, Key, Progress, document_key, index_key, names_in
from es_simhash.writes.targets import refuse_updates

if TYPE_CHECKING:
    from es_simhash.groups.table import Groups


logger = logging.getLogger("es_simhash")

BATCH, FIRST = 500, 25
"""Most documents that are compared at once, and how many at first."""
CHARACTERS = 8_000_000
PAGE = 1_000
IN_FILE, ASIDE = 10_000, 200
"""Characters of a value in a plan, and in one that is in no file."""
EXAMPLES = 3
"""Lines that are shown of each class that is held back."""


async def plan_removal(server: Port, index: Index, path: FilePath | None, options: PlanOptions) -> RemovalPlan:
    """
    Write a plan of removal for the duplicates of *index* to the new file *path*, and return what it contains.
    Without *path* the lines are returned as well, in no file, and with little of each field. Raises
    IncompleteSearchError if not every document could be read, or an index was replaced meanwhile; then no file is made.
    """
    if path is not None:
        check_output("path", path)
    kept = await server.compute(read_kept, options.after)
    with await server.compute(PlanWriter, path) as writer:
        longest = ASIDE if path is None else IN_FILE
        made = await make_plan(server, index, writer, options, kept, longest)
        lines = tuple(await server.compute(list, writer.removals())) if path is None else ()
    return replace(made, path="" if path is None else str(path), removals=lines)


async def make_plan(
    server: Port, index: Index, writer: PlanWriter, options: PlanOptions, earlier: Sequence[Kept], longest: int
) -> RemovalPlan:
    """
    Let *writer* have the plan for the duplicates of *index*, and return what it contains. Cost: a dry run of reconcile;
    for every 500 duplicates a multi-get, and with a filter or a protected field also a search; three counts, and a
    search.
    """
    server = await reading_primaries(server, index)
    resolved = await resolve_index(server, index)
    if resolved.assumed is not None:
        raise InvalidInputError("the mapping may not be read: plan with a login that may read it")
    warn_of_regrouping(resolved)
    grouping = await settle_grouping(server, resolved, options.grouping, record=False, may_differ=True)
    await refuse_updates(server, index, resolved.mappings)  # nor could what is deleted be written again
    names = list(resolved.settings_of)
    # Date math means other indices tomorrow.
    view = () if "<" in index_key(index) else tuple(names_in(index))
    shown = await find_shown(server, index, resolved, options.show)
    comparer = _comparer(server.context, resolved, grouping, shown, longest)
    uuids = await read_setting(server, names, "uuid")
    planning = _Planning(options, comparer, writer, earlier, view or names)
    table, groups = await read_groups(server, index, resolved, grouping)
    if lost := await server.compute(table.count_lost):
        logger.warning(
            "%s of %s name a canonical that is not there, or not for this login: the plan is about what it sees",
            count(lost, "document"),
            index_key(index),
        )
    left_out = await planning.add_all(server, groups)
    writer.allowed = allowed_with(options.also)
    guards = Guards(options.max_share, await count_shown(server, index, names))
    without_fingerprint, ungrouped = await count_lacking(
        server.patient, index, resolved.settings_of, mappings=resolved.mappings
    )
    if await read_setting(server, names, "uuid") != uuids:
        raise IncompleteSearchError("an index was replaced while it was read: plan again")
    recorded = replace(grouping, similarity=comparer.bound).to_dict()
    at = await server.compute(now)
    decided_by = {name: tuple(fields) for name, fields in comparer.decided_by.items()}
    decided = left_out["decided"]
    header = PlanHeader(
        index_uuids=uuids,
        prefix=server.prefix,
        grouping=recorded,
        count=await server.compute(writer.count_lines),
        guards=guards,
        at=at,
        view=view,
        decided_by=decided_by,
        text_fields={name: tuple(fields) for name, fields in comparer.text_fields.items()},
        also=tuple(options.also),
        filter=tuple(check_filter(options.filter)),
        decided=decided or None,
        shown=shown,
        asked={"index": index_key(index), **options.asked()},
    )
    sha256 = await server.compute(writer.finish, header)
    summary = await server.compute(summarize, writer, header)
    held = [loss for loss in summary.losses if loss not in header.allowed]
    examples = [line for loss in held for line in islice(writer.removals(loss), EXAMPLES)]
    before = frozenset[Key]().union(*(removal.keys for removal in earlier))
    excess, large_group = writer.find_refusals(guards)
    return RemovalPlan(
        path="",
        sha256=sha256,
        count=summary.removals,
        held=summary.held,
        losses=summary.losses,
        also=header.also,
        documents=guards.documents,
        duplicates=len(groups.duplicates),
        left_out={kind: number for kind, number in left_out.items() if number},
        without_fingerprint=without_fingerprint,
        ungrouped=ungrouped,
        unmet=max(0, len(before) - decided),
        rule=header.rule,
        examples=tuple(examples),
        kept_is_shorter=writer.count_kept_shorter(),
        newer=summary.newer,
        date=header.date or "",
        excess=excess,
        large_group=large_group,
    )


def _comparer(
    context: Context, resolved: Resolved, grouping: Grouping, shown: Mapping[str, str], longest: int
) -> Comparer:
    text_fields = {name: tuple(resolved.text_fields.get(name, ())) for name in resolved.settings_of}
    require_text_fields(resolved.text_fields, "texts cannot be compared")
    used = used_fields(grouping.to_dict())
    titles = names_of("title", shown)
    decided_by = {}
    for name in resolved.settings_of:
        mapping = resolved.mappings[name]
        # A moment of ours is no part of a document: a reconcile after the plan may give the first one.
        theirs = (field for field in used if field != Fields(context.prefix).at)
        names = [*text_fields[name], *(MappedField.find(mapping, field).path for field in theirs)]
        decided_by[name] = decisive_fields(mapping, [*names, *titles], used)
    bound = DEFAULT_SIMILARITY if grouping.similarity is None else grouping.similarity
    measure = grouping.measure.for_bound(bound or DEFAULT_SIMILARITY)  # what is too short is removed for no other text
    return Comparer(text_fields, bound, decided_by, tuple(shown), titles, longest, measure)


def used_fields(grouping: Mapping[str, Any]) -> list[str]:
    """Return the fields whose values a plan with the recorded *grouping* goes by, texts left out."""
    fields = [parse_key(key).field for key in grouping.get("canonical") or ()]
    fields += [grouping.get("per") or "", *(grouping.get("within") or ())[:1]]
    return [name for name in dict.fromkeys(fields) if name]


def decisive_fields(mapping: Mapping[str, Any], names: Sequence[str], used: Sequence[str]) -> dict[str, bool]:
    """Return *names*, and what is copied to those of them that are *used*; for each, whether a null is a value."""
    found = dict.fromkeys(names, False)
    for mapped, name in ((MappedField.find(mapping, path), path) for path in used):
        if mapped.path in found:
            into = {name, mapped.path}
            # What is copied is not in _source under the name that it is read by.
            sources = [(path, node) for path, node in walk_fields(mapping) if into & copy_targets(node)]
            for path, node in [(mapped.path, mapped.node), *sources]:
                has_null = any(place.get("null_value") is not None for place in (mapped.node, node))
                found[path] = has_null or found.get(path, False)
    return found


@dataclass(slots=True)
class _Planning:
    """
    Adds duplicates of an index to a plan, a batch at a time.
    *view*: under which names they are searched. *left_out*: how many are not added, by kind. *characters*: how many
    were read lately.
    """

    options: PlanOptions
    comparer: Comparer
    writer: PlanWriter
    earlier: Sequence[Kept]
    view: Sequence[str]
    left_out: Counter[str] = field(default_factory=Counter)
    characters: int = 0

    async def add_all(self, server: Port, groups: Groups) -> Counter[str]:
        places = await server.compute(_by_canonical, groups)
        self.left_out.update(unreadable=groups.unread, no_fingerprint=groups.table.unreadable)
        done, size = 0, FIRST
        while part := places[done : done + size]:
            self.characters = 0
            await self.add(server, list(candidates(groups, part)))
            done += len(part)
            # How long texts are is known when some were read: as many as fit in memory.
            size = max(1, min(BATCH, 4 * size, size * CHARACTERS // max(1, self.characters)))
            server.tell(Progress(done, len(places), "comparing texts"))
        return self.left_out

    async def add(self, server: Port, candidates: Sequence[Candidate]) -> None:
        going = [pair for pair in candidates if not any(kept.holds(pair[0].key) for kept in self.earlier)]
        self.left_out["decided"] += len(candidates) - len(going)
        if going and self.options.filter is not None:
            keys = {row.key for row, *_ in going}
            matching = await find_matching(server, self.view, keys, check_filter(self.options.filter))
            self.left_out["filtered"] += len(keys) - len(matching)
            going = [pair for pair in going if pair[0].key in matching]
        if going:
            items = await self._read(server, going)
            await server.compute(self._write, await server.compute(self.comparer.compare, going, items))

    def _write(self, judged: Sequence[Compared]) -> None:
        for found in judged:
            if isinstance(found, str):
                self.left_out[found] += 1
            else:
                self.writer.add(found)

    async def _read(self, server: Port, candidates: Sequence[Candidate]) -> dict[Key, Mapping[str, Any]]:
        keys = list(dict.fromkeys(row.key for pair in candidates for row in pair[:2]))
        fields = self.comparer.source_fields
        docs = [{**key.header(), "_source": fields} for key in keys]
        answer = await server.patient.mget(body={"docs": docs})
        sources = [document.get("_source") or {} for document in answer["docs"]]
        values = (value for source in sources for name in fields for value in read_values(source, name))
        self.characters += sum(len(value) for value in values if isinstance(value, str))
        return dict(zip(keys, answer["docs"], strict=True))


def _by_canonical(groups: Groups) -> list[int]:
    """Return the places of the duplicates; those of one canonical stand together, so that it is read once."""
    import numpy as np  # noqa: PLC0415 -- loaded by now

    duplicates = groups.duplicates
    ordered: list[int] = duplicates[np.argsort(groups.canonical[duplicates], kind="stable")].tolist()
    return ordered


def candidates(groups: Groups, places: Sequence[int]) -> Iterator[Candidate]:
    """Yield the duplicates of *groups* at *places*, each with its canonical and their distance."""
    for place in places:
        canonical = groups.table.row(int(groups.canonical[place]))
        yield groups.table.row(place), canonical, int(groups.distance[place])


async def read_setting(server: Port, names: Sequence[str], setting: str) -> dict[str, str]:
    """Return a *setting* of each concrete index of *names*; one that does not exist, or is an alias now, has none."""
    if not names:
        return {}
    asked = server.patient.get_settings(index=list(names), name=f"index.{setting}")
    answer = await unless_refused(asked, 404)
    if answer is None and len(names) > 1:  # nobody says which of them is not there
        return {key: value for name in names for key, value in (await read_setting(server, [name], setting)).items()}
    held = {name: ((answer or {}).get(name) or {}).get("settings") or {} for name in names}
    return {name: value for name, settings in held.items() if (value := (settings.get("index") or {}).get(setting))}


async def find_matching(
    server: Port, index: Index, keys: Collection[Key], clauses: Sequence[Mapping[str, Any]]
) -> dict[Key, Version]:
    """Return the versions of those documents that *index* shows, and that match *clauses*."""
    found: dict[Key, Version] = {}

    def note(hits: Hits) -> None:
        found.update({key: version_of(hit) for hit in hits if (key := document_key(hit)) in keys})

    ids = sorted({key.id for key in keys})
    query = {"bool": {"filter": [{"ids": {"values": ids}}, *clauses]}}
    body = {"query": query, "_source": False, "seq_no_primary_term": True}
    check_whole(await read_each(await reading_primaries(server, index), index, body, note, page=PAGE))
    return found


async def count_shown(server: Port, index: Index, names: Sequence[str]) -> int:
    """Return how many documents *index* shows of the indices *names*; what an alias does not show is not counted."""
    query = {"match_all": {}} if names_in(index) == list(names) else {"terms": {"_index": list(names)}}
    return await count_whole(server.patient, index, query)
