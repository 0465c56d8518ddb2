"""What became of the documents of a plan: read and searched as they are now, and judged by ``may_delete``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_simhash.mapping.port import Port
from es_simhash.removal.classes import Document, find_loss
from es_simhash.removal.decisions import in_words
from es_simhash.removal.delete import read_documents
from es_simhash.removal.make_plan import decisive_fields, find_matching, read_setting, used_fields
from es_simhash.removal.may_delete import (
    Decisive,
    Fate,
    is_written,
    may_delete,
    read_document,
    source_of,
)
from es_simhash.removal.plan_options import PlanHeader
from es_simhash.removal.records import DuplicateResult, PlannedDocument, PlannedRemoval
from es_simhash.removal.removal_file import RemovalFile
from es_simhash.transport.conversation import refresh
from es_simhash.transport.protocol import Key

Items = Mapping[Key, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Judged:
    """
    What is to be done with lines of a plan, by number; *records* has those that are kept.
    *items*: the present multi-get item of each document and canonical, where the indices are those of the plan.
    """

    fates: Mapping[int, Fate]
    records: Mapping[int, DuplicateResult]
    items: Items

    def that(self, *fates: Fate) -> list[int]:
        """Return the lines with one of *fates*."""
        return [number for number, fate in self.fates.items() if fate in fates]


async def judge(server: Port, removal: RemovalFile, lines: Mapping[int, PlannedRemoval], view: Sequence[str]) -> Judged:
    """
    Return what is to be done with *lines*. *view*: the names under which their documents are searched.
    Where the plan was made for names that may show a part, such as an alias, all lines are searched, because it may
    have another filter now; the filter of the plan is asked about what was written since.
    """
    header = removal.header
    names = sorted({name for planned in lines.values() for name in _indices(planned)})
    uuids = await read_setting(server, names, "uuid")
    standing = {name for name, uuid in uuids.items() if header.index_uuids.get(name) == uuid}
    fitting = {number: planned for number, planned in lines.items() if standing.issuperset(_indices(planned))}
    documents = [row for line in fitting.values() for row in (line.document, line.canonical)]
    items = await read_documents(server, [row.key for row in documents], with_source=True)
    decided_by = await read_decisive(server, header, documents)
    written = {row.key for row in documents if is_written(row, items[row.key])}
    filtered = written.intersection(line.document.key for line in fitting.values()) if header.filter else set()
    if written and (header.has_view or filtered):
        await refresh(server, view)
    shown = await find_matching(server, view, items.keys(), ()) if header.has_view and items else None
    matched = await find_matching(server, view, filtered, header.filter) if filtered else {}

    def decide() -> dict[int, Fate]:
        texts = {row.key: _read_text(header, row, items[row.key]) for row in documents}
        fates: dict[int, Fate] = dict.fromkeys(lines, "index_replaced")
        for number, line in fitting.items():
            key, canonical = line.document.key, line.canonical.key
            fates[number] = may_delete(
                line,
                items[key],
                items[canonical],
                decided_by,
                loss=find_loss(texts[key], texts[canonical]),
                allowed=removal.allowed,
                is_decided=number in removal.decided,
                is_kept=key in removal.kept,
                was_tried=removal.may_have_deleted(number),
                shown=shown,
                matched=matched if key in filtered else None,
            )
        return fates

    fates = await server.compute(decide)  # each text that goes is parsed
    records: dict[int, DuplicateResult] = {}
    for number, fate in fates.items():
        match fate:
            case "delete" | "deleted_before" | "unsure":
                pass
            case kind:
                detail = str(items[lines[number].document.key].get("error", "")) if kind == "unreadable" else ""
                detail = in_words(removal.approved) if kind == "decided" else detail
                records[number] = DuplicateResult.of(lines[number], "kept", kind, detail)
    return Judged(fates, records, items)


def _read_text(header: PlanHeader, planned: PlannedDocument, item: Mapping[str, Any]) -> Document | None:
    if not item.get("found"):
        return None
    return read_document(source_of(item), header.text_fields.get(planned.index, ()), header.titles)


async def read_decisive(server: Port, header: PlanHeader, documents: Sequence[PlannedDocument]) -> dict[str, Decisive]:
    """
    Return by which fields *documents* are judged, by index.
    The mapping must be read after them: what a document has is mapped before it is written.
    """
    names = sorted({document.index for document in documents})
    if not names:
        return {}
    mappings = await server.patient.get_mapping(index=names, ignore_unavailable=True)
    used = used_fields(header.grouping)
    return {
        name: decisive_fields((mappings.get(name) or {}).get("mappings") or {}, header.decided_by[name], used)
        for name in names
    }


def _indices(removal: PlannedRemoval) -> tuple[str, str]:
    return removal.document.index, removal.canonical.index
