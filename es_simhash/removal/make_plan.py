"""
Plans a removal into a file: the present text of each duplicate that ``groups`` decided is compared with that of its
canonical, and a digest of what decided is noted. Nothing is written into the index.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from es_simhash.arguments import FilePath, check_output
from es_simhash.errors import IncompleteSearchError, InvalidInputError, count
from es_simhash.groups.read import count_lacking
from es_simhash.groups.reconcile import read_groups
from es_simhash.groups.recorded import settle_grouping
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
from es_simhash.removal.losses import RISKY_FIRST
from es_simhash.removal.may_delete import Candidate, Compared, Comparer
from es_simhash.removal.plan_options import PlanHeader, PlanOptions, allowed_with
from es_simhash.removal.records import PlannedRemoval, RemovalPlan
from es_simhash.removal.removal_file import PlanWriter
from es_simhash.removal.take_decisions import Kept, read_kept
from es_simhash.texts.measures import DEFAULT_SIMILARITY
from es_simhash.transport.answers import check_whole
from es_simhash.transport.buckets import count_whole
from es_simhash.transport.conversation import unless_refused
from es_simhash.transport.pages import Hits, read_each
from es_simhash.transport.protocol import Index, Key, Progress, document_key, index_key, names_in
from es_simhash.writes.targets import refuse_updates

if TYPE_CHECKING:
    from es_simhash.groups.table import Groups, Row


logger = logging.getLogger("es_simhash")

BATCH, FIRST = 500, 25
"""Most documents that are compared at once, and how many at first."""
CHARACTERS = 8_000_000
PAGE = 1_000
ASIDE = 200
"""Characters of a value in a plan that is in no file."""
EXAMPLES = 3
"""Lines that are shown of each class that is held back."""


@dataclass(frozen=True, slots=True)
class RemovalSizes:
    """
    How much a removal or a restore does at once.
    *removed*: most documents archived and deleted together. *restored*: most documents put back together. *characters*:
    about how many either may have. *few*: up to so many restored documents, only the groups that these may
    have changed are judged.
    """

    removed: int = 200
    restored: int = 500
    characters: int = 8_000_000
    few: int = 1_000


SIZES = RemovalSizes()


async def plan_removal(server: Port, index: Index, path: FilePath | None, options: PlanOptions) -> RemovalPlan:
    """
    Write a plan of removal for the duplicates of *index* to the new file *path*, and return what it contains.
    Without *path* the lines are returned as well, in no file, and with little of each field. Raises
    IncompleteSearchError if not every document could be read, or an index was replaced meanwhile; then no file is made.
    """
    if path is not None:
        check_output("path", path)
    else:
        options = replace(options, max_field_chars=min(options.max_field_chars, ASIDE))
    kept = await server.compute(read_kept, options.after)
    with await server.compute(PlanWriter, path) as writer:
        made, _ = await make_plan(server, index, writer, options, kept)
        lines = tuple(await server.compute(list, writer.removals())) if path is None else ()
    return replace(made, path="" if path is None else str(path), removals=lines)


async def make_plan(
    server: Port,
    index: Index,
    writer: PlanWriter,
    options: PlanOptions,
    earlier: Sequence[Kept] = (),
) -> tuple[RemovalPlan, PlanHeader]:
    """
    Let *writer* have the plan for the duplicates of *index*, and return what it contains. Cost: a dry run of reconcile;
    for every 500 duplicates a multi-get, and with a filter or a protected field also a search; three counts, and a
    search.
    """
    server = await reading_primaries(server, index)
    resolved = await resolve_index(server, index)
    if resolved.assumed is not None:
        raise InvalidInputError("the mapping may not be read: plan with a login that may read it")
    grouping = await settle_grouping(server, resolved, options.grouping, record=False, may_differ=True)
    await refuse_updates(server, index, resolved.mappings)  # nor could what is deleted be written again
    names = list(resolved.settings_of)
    # Date math means other indices tomorrow.
    view = () if "<" in index_key(index) else tuple(names_in(index))
    shown = await find_shown(server, index, resolved, options.show)
    comparer = _comparer(server.context, resolved, options, grouping, shown)
    uuids = await read_uuids(server, names)
    planning = _Planning(options, comparer, writer, earlier, view)
    table, groups = await read_groups(server, index, resolved, grouping)
    if lost := await server.compute(table.count_lost):
        logger.warning(
            "%s of %s name a canonical that is not there, or not for this login: the plan is about what it sees",
            count(lost, "document"),
            index_key(index),
        )
    found = await planning.add_all(server, groups)
    writer.allowed = allowed_with(options.also)
    cut = await server.compute(writer.keep_only, found.lines, options.limit)
    guards = Guards(options.max_share, await count_shown(server, index, names))
    without_fingerprint, ungrouped = await count_lacking(
        server.patient, index, resolved.settings_of, mappings=resolved.mappings
    )
    if await read_uuids(server, names) != uuids:
        raise IncompleteSearchError("an index was replaced while it was read: plan again")
    recorded = replace(grouping, similarity=comparer.bound).to_dict()
    at = await server.compute(now)
    decided_by = {name: tuple(fields) for name, fields in comparer.decided_by.items()}
    decided = found.left_out["decided"]
    header = PlanHeader(
        index_uuids=uuids,
        prefix=server.prefix,
        grouping=recorded,
        count=len(found.lines) - cut,
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
    losses = await server.compute(writer.count_losses)
    looked_at = await server.compute(_look_at, writer, header)
    left_out = {kind: number for kind, number in found.left_out.items() if number}
    left_out |= {"limit": cut} if cut else {}
    before = frozenset[Key]().union(*(removal.keys for removal in earlier))
    made = RemovalPlan(
        path="",
        sha256=sha256,
        count=sum(number for loss, number in losses.items() if loss in header.allowed),
        held=sum(number for loss, number in losses.items() if loss not in header.allowed),
        losses=losses,
        also=header.also,
        documents=guards.documents,
        duplicates=found.found,
        left_out=left_out,
        without_fingerprint=without_fingerprint,
        ungrouped=ungrouped,
        unmet=max(0, len(before) - decided),
        rule=header.rule,
        **looked_at,
    )
    return made, header


def _look_at(writer: PlanWriter, header: PlanHeader) -> dict[str, Any]:
    """Return what a plan says of its lines beside their numbers."""
    held = [loss for loss in RISKY_FIRST if loss not in header.allowed]
    return {
        "examples": tuple(line for loss in held for line in islice(writer.removals(loss), EXAMPLES)),
        "kept_is_shorter": writer.count_kept_shorter(),
        "newer": writer.count_newer(header.date) if header.date else 0,
        "date": header.date or "",
        "excess": header.guards.find_excess(writer.count_going()),
        "large_group": writer.find_large_group(header.guards.documents),
    }


def _comparer(
    context: Context, resolved: Resolved, options: PlanOptions, grouping: Grouping, shown: Mapping[str, str]
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
    bound, longest = options.bound(grouping), options.max_field_chars
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


@dataclass(frozen=True, slots=True)
class Found:
    """What a plan is made of: the numbers of its *lines*, how many duplicates were *found*, and what is left out."""

    lines: Sequence[int]
    found: int
    left_out: Counter[str]


@dataclass(slots=True)
class _Planning:
    """
    Adds duplicates of an index to a plan, a batch at a time.
    *characters*: how many were read lately.
    """

    options: PlanOptions
    comparer: Comparer
    writer: PlanWriter
    earlier: Sequence[Kept]
    view: Sequence[str]
    characters: int = 0

    async def add_all(self, server: Port, groups: Groups) -> Found:
        places = await server.compute(_by_canonical, groups)
        lines: list[int] = []
        left_out: Counter[str] = Counter(unreadable=groups.unread, no_fingerprint=groups.table.unreadable)
        done, size = 0, FIRST
        while part := places[done : done + size]:
            self.characters = 0
            results = await self.add(server, list(candidates(groups, part)))
            lines += [result for result in results if isinstance(result, int)]
            left_out.update(result for result in results if isinstance(result, str))
            done += len(part)
            # How long texts are is known when some were read: as many as fit in memory.
            size = max(1, min(BATCH, 4 * size, size * CHARACTERS // max(1, self.characters)))
            server.tell(Progress(done, len(places), "comparing texts"))
        return Found(lines, len(places), left_out)

    async def add(self, server: Port, candidates: Sequence[Candidate]) -> list[int | str]:
        """Return of each candidate the number of its line, or why it is left out."""
        stay = {row.key: "decided" for row, *_ in candidates if any(kept.holds(row.key) for kept in self.earlier)}
        shown = [candidate for candidate in candidates if candidate[0].key not in stay]
        if shown and self.options.filter is not None:
            matching = await self._search(server, [document for document, _, _ in shown])
            stay |= {candidate[0].key: "filtered" for candidate in shown if candidate[0].key not in matching}
            shown = [candidate for candidate in shown if candidate[0].key in matching]
        results: Iterator[int | str] = iter(())
        if shown:
            items = await self._read(server, shown)
            judged = await server.compute(self.comparer.compare, shown, items)
            results = iter(await server.compute(self._write, judged))
        return [stay[candidate[0].key] if candidate[0].key in stay else next(results) for candidate in candidates]

    def _write(self, judged: Sequence[Compared]) -> list[int | str]:
        return [self.writer.add(found) if isinstance(found, PlannedRemoval) else found for found in judged]

    async def _search(self, server: Port, rows: Sequence[Row]) -> set[Key]:
        """Return those of *rows* that match the filter."""
        found: set[Key] = set()

        def note(hits: Hits) -> None:
            found.update(map(document_key, hits))

        ids, names = (sorted({getattr(row, name) for row in rows}) for name in ("id", "index"))
        clauses: list[Any] = [{"ids": {"values": ids}}, {"terms": {"_index": names}}]
        clauses += check_filter(self.options.filter)
        body: dict[str, Any] = {"query": {"bool": {"filter": clauses}}, "_source": False}
        check_whole(await read_each(server, list(self.view) or names, body, note, page=PAGE))
        return found

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


async def read_uuids(server: Port, names: Sequence[str]) -> dict[str, str]:
    """Return the UUID of each concrete index of *names*; an index that does not exist, or is an alias now, has none."""
    if not names:
        return {}
    asked = server.patient.get_settings(index=list(names), name="index.uuid")
    answer = await unless_refused(asked, 404)
    if answer is None and len(names) > 1:  # nobody says which of them is not there
        return {key: uuid for name in names for key, uuid in (await read_uuids(server, [name])).items()}
    held = {name: ((answer or {}).get(name) or {}).get("settings") or {} for name in names}
    return {name: uuid for name, settings in held.items() if (uuid := (settings.get("index") or {}).get("uuid"))}


async def count_shown(server: Port, index: Index, names: Sequence[str]) -> int:
    """Return how many documents *index* shows of the indices *names*; what an alias does not show is not counted."""
    query = {"match_all": {}} if names_in(index) == list(names) else {"terms": {"_index": list(names)}}
    return await count_whole(server.patient, index, query)
