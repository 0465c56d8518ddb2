"""
What became of the documents of a plan: read as they are now, judged, and searched where the plan had a filter or an
alias. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_simhash.mapping.port import Port
from es_simhash.mapping.shards import reading_primaries
from es_simhash.removal.archive_writer import ArchivedKeys
from es_simhash.removal.delete import Version, read_planned
from es_simhash.removal.make_plan import decisive_fields, read_uuids, used_fields
from es_simhash.removal.may_delete import Decisive, is_written, judge_removal, version_of
from es_simhash.removal.plan_file import Plan, PlanHeader
from es_simhash.removal.records import DuplicateResult, PlannedDocument, PlannedRemoval
from es_simhash.transport.answers import check_whole
from es_simhash.transport.pages import Hits, read_each
from es_simhash.transport.protocol import Index, Key, document_key
from es_simhash.transport.retry import refresh, retry

Items = Mapping[Key, Mapping[str, Any]]
PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Present:
    """
    Lines of a plan by number, without those whose indices are not those that were planned.
    *items*: the present multi-get item of each document and canonical of these lines.
    *decided_by*: of each index where documents were written since the plan.
    """

    lines: Mapping[int, PlannedRemoval]
    items: Items
    decided_by: Mapping[str, Decisive]


async def read_present(
    server: Port,
    plan: Plan,
    lines: Mapping[int, PlannedRemoval],
    records: dict[int, DuplicateResult],
    *,
    with_source: bool,
) -> Present:
    """Read the documents of the lines whose indices are those of the plan; note the other lines."""
    uuids = await read_uuids(server, sorted({name for each in lines.values() for name in _indices(each)}))
    fitting: dict[int, PlannedRemoval] = {}
    for number, each in lines.items():
        if all(uuids.get(name) == plan.header.index_uuids.get(name) for name in _indices(each)):
            fitting[number] = each
        else:
            records[number] = DuplicateResult.of(each, "kept", "index_replaced")
    goes, stays = ([getattr(each, name) for each in fitting.values()] for name in ("document", "canonical"))
    source = [each.key for each in goes] if with_source else []
    items = await read_planned(server, [*goes, *stays], source=source)
    return Present(fitting, items, await read_decisive(server, plan.header, [*goes, *stays], items))


async def read_decisive(
    server: Port, header: PlanHeader, documents: Sequence[PlannedDocument], items: Items | None = None
) -> dict[str, Decisive]:
    """
    Return by which fields *documents* are judged, by index; with *items*, only where one was written since the plan.
    It is what was planned, and the fields that are copied to these by now. The mapping must be read after *items*: what
    a document has is mapped before it is written.
    """
    names = sorted({each.index for each in documents if items is None or is_written(each, items[each.key])})
    if not names:
        return {}
    mappings = await retry(server, lambda: server.get_mapping(index=names, ignore_unavailable=True))
    used = used_fields(header.grouping, header.guards.protect)
    return {
        name: decisive_fields((mappings.get(name) or {}).get("mappings") or {}, header.decided_by[name], used)
        for name in names
    }


def judge_present(
    plan: Plan, found: Present, held: ArchivedKeys, records: dict[int, DuplicateResult]
) -> tuple[list[int], list[int]]:
    """Note what is kept; return the lines deleted by an earlier run, and those to delete."""
    before, to_delete = [], []
    by = ", ".join(filter(None, plan.approved or ()))
    for number, each in found.lines.items():
        item, canonical = found.items[each.document.key], found.items[each.canonical.key]
        may_be_deleted = held.may_have_deleted(each.document.key)
        verdict = judge_removal(each, item, canonical, found.decided_by, may_be_deleted=may_be_deleted)
        if verdict == "deleted_before":  # whatever is decided now: step 4 is due
            before.append(number)
        elif each.document.key in plan.kept:
            records[number] = DuplicateResult.of(each, "kept", "decided", by)
        elif verdict == "delete":
            to_delete.append(number)
        else:
            detail = str(item.get("error", "")) if verdict == "unreadable" else ""
            records[number] = DuplicateResult.of(each, "kept", verdict, detail)
    return before, to_delete


async def match_present(
    server: Port,
    plan: Plan,
    view: Sequence[str],
    found: Present,
    numbers: Sequence[int],
    records: dict[int, DuplicateResult],
) -> tuple[list[int], list[int]]:
    """
    Note the lines that the names of the plan do not show any more, or whose documents the filter does not match: of
    these, only one that was written since the plan. Return the other lines, and those of which a search has not shown
    the version that was read. All lines are searched by the names, because an alias may have another filter now.
    """
    items, lines = found.items, [found.lines[number] for number in numbers]
    pairs = [(each.document, each.canonical) for each in lines]
    written = {each.key for pair in pairs for each in pair if is_written(each, items[each.key])}
    in_view = {each.key for pair in pairs for each in pair} if plan.header.has_view else set()
    filtered = written & {each.document.key for each in lines} if plan.header.filter else set()
    if written and (in_view or filtered):
        await refresh(server, view)
    shown = await _search(server, view, in_view, ()) if in_view else {}
    matched = await _search(server, view, filtered, plan.header.filter) if filtered else {}
    fitting, unsure = [], []
    for number, each in zip(numbers, lines, strict=True):
        key, canonical = each.document.key, each.canonical.key
        searched = [(key, shown), (canonical, shown), (key, matched)]
        if (in_view and key not in shown) or (key in filtered and key not in matched):
            records[number] = DuplicateResult.of(each, "kept", "changed")
        elif in_view and canonical not in shown:
            records[number] = DuplicateResult.of(each, "kept", "canonical_changed")
        elif any(one in versions and versions[one] != version_of(items[one]) for one, versions in searched):
            unsure.append(number)
        else:
            fitting.append(number)
    return fitting, unsure


async def _search(
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


def _indices(removal: PlannedRemoval) -> tuple[str, str]:
    return removal.document.index, removal.canonical.index
