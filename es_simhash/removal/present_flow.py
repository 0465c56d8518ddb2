"""
What became of the documents of a plan: read as they are now, judged, and searched where the plan had a filter or an
alias. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_simhash.mapping.shards_flow import reading_primaries
from es_simhash.removal.archive import ArchivedKeys
from es_simhash.removal.delete_flow import Version, read_planned
from es_simhash.removal.may_delete import is_written, judge_removal, version_of
from es_simhash.removal.plan_file import Plan
from es_simhash.removal.plan_flow import read_uuids
from es_simhash.removal.records import DuplicateResult, PlannedRemoval
from es_simhash.transport.answers import check_whole
from es_simhash.transport.pages_flow import Hits, read_each
from es_simhash.transport.protocol import Flow, Index, Key, document_key
from es_simhash.transport.retry_flow import refresh

Items = Mapping[Key, Mapping[str, Any]]
PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Present:
    """
    Lines of a plan by number, without those whose indices are not those that were planned.
    *items*: the present multi-get item of each document and canonical of these lines.
    """

    lines: Mapping[int, PlannedRemoval]
    items: Items

    def written(self, numbers: Sequence[int], *, is_canonical: bool) -> dict[Key, Version]:
        """Return the versions of those documents, or canonicals, of lines that were written since the plan."""
        lines = [self.lines[number] for number in numbers]
        documents = [each.canonical if is_canonical else each.document for each in lines]
        return {
            each.key: version_of(self.items[each.key]) for each in documents if is_written(each, self.items[each.key])
        }


def read_present(
    plan: Plan, lines: Mapping[int, PlannedRemoval], records: dict[int, DuplicateResult], *, with_source: bool
) -> Flow[Present]:
    """Read the documents of the lines whose indices are those of the plan; note the other lines."""
    uuids = yield from read_uuids(sorted({name for each in lines.values() for name in _indices(each)}))
    fitting: dict[int, PlannedRemoval] = {}
    for number, each in lines.items():
        if all(uuids.get(name) == plan.header.index_uuids.get(name) for name in _indices(each)):
            fitting[number] = each
        else:
            records[number] = DuplicateResult.of(each, "kept", "index_replaced")
    documents = [each.document for each in fitting.values()]
    source = [each.key for each in documents] if with_source else []
    items = yield from read_planned([*documents, *(each.canonical for each in fitting.values())], source=source)
    return Present(fitting, items)


def judge_present(
    plan: Plan, found: Present, held: ArchivedKeys, records: dict[int, DuplicateResult]
) -> tuple[list[int], list[int]]:
    """Note what is kept; return the lines deleted by an earlier run, and those to delete."""
    before, to_delete = [], []
    by = ", ".join(filter(None, plan.approved or ()))
    for number, each in found.lines.items():
        item, canonical = found.items[each.document.key], found.items[each.canonical.key]
        is_archived = held.holds(each.document.key)
        verdict = judge_removal(each, item, canonical, plan.header.decided_by, is_archived=is_archived)
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


def match_present(
    plan: Plan, view: Sequence[str], found: Present, numbers: Sequence[int], records: dict[int, DuplicateResult]
) -> Flow[tuple[list[int], list[int]]]:
    """
    Note the lines that the names or the filter of the plan do not show any more; only a document that was written since
    the plan can be one. Return the other lines, and those of which a search has not shown the version that was read.
    """
    header = plan.header
    stays = found.written(numbers, is_canonical=True) if header.has_view else {}
    goes = found.written(numbers, is_canonical=False) if header.has_view or header.filter else {}
    shown = (yield from _search(view, list(goes), header.filter)) if goes else {}
    shown_canonicals = (yield from _search(view, list(stays), ())) if stays else {}
    fitting, unsure = [], []
    for number in numbers:
        each = found.lines[number]
        key, canonical = each.document.key, each.canonical.key
        if key in goes and key not in shown:
            records[number] = DuplicateResult.of(each, "kept", "changed")
        elif canonical in stays and canonical not in shown_canonicals:
            records[number] = DuplicateResult.of(each, "kept", "canonical_changed")
        elif goes.get(key) != shown.get(key) or stays.get(canonical) != shown_canonicals.get(canonical):
            unsure.append(number)
        else:
            fitting.append(number)
    return fitting, unsure


def _search(index: Index, keys: Sequence[Key], clauses: Sequence[Mapping[str, Any]]) -> Flow[dict[Key, Version]]:
    """Return the versions of those documents that *index* shows, and that match *clauses*."""
    yield from refresh(index)
    found: dict[Key, Version] = {}
    wanted = set(keys)

    def note(hits: Hits) -> None:
        found.update({key: version_of(hit) for hit in hits if (key := document_key(hit)) in wanted})

    ids = sorted({key.id for key in keys})
    query = {"bool": {"filter": [{"ids": {"values": ids}}, *clauses]}}
    body = {"query": query, "_source": False, "seq_no_primary_term": True}
    check_whole((yield from reading_primaries(index, read_each(index, body, note, page=PAGE))))
    return found


def _indices(removal: PlannedRemoval) -> tuple[str, str]:
    return removal.document.index, removal.canonical.index
