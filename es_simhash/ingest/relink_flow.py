"""
Making replaced canonicals, and the members of their groups, duplicates of the document that took their place.

Each is rewritten only as it is at that moment. What cannot be rewritten becomes a problem in the report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from es_simhash.groups.content import compare_contents
from es_simhash.groups.rule import Grouping
from es_simhash.hashing import from_hex, hamming_distance
from es_simhash.ingest.decide import Draft
from es_simhash.ingest.item import Item
from es_simhash.ingest.read_content import ContentReader
from es_simhash.mapping.fields import Fields, group_fields
from es_simhash.transport.answers import Gap, sentences
from es_simhash.transport.keys import Key, document_key
from es_simhash.transport.pages_flow import read_each
from es_simhash.transport.protocol import Flow
from es_simhash.transport.refresh_flow import refresh
from es_simhash.transport.retry_flow import retry
from es_simhash.transport.view import Hits
from es_simhash.writes.conditional_write_flow import MISSING, rewrite
from es_simhash.writes.operations import Outcome

BATCH = 500
PAGE = 1_000


def relink(
    index: str, items: Sequence[Item], grouping: Grouping, *, prefix: str, reader: ContentReader | None = None
) -> Flow[list[Item]]:
    """
    Return *items* after the groups of the canonicals that they replaced were rewritten.

    Under the rule ``star`` a member that is no neighbour of the new canonical stays as it is.

    Args:
        index:
            Where the items were written.
        items:
            A batch, with decisions and outcomes.
        grouping:
            Which documents are neighbours, and the rule.
        prefix:
            Name of the object that holds the fields.
        reader:
            Reads what documents are compared by; ``None`` where only distances count.
    """
    successors = _successors(items)
    if not successors:
        return list(items)
    places, gaps = yield from _find_members(index, items, successors, prefix)
    failed: dict[int, str] = {}  # by position of the document that took over
    taken: dict[Key, Draft] = {}

    def change(place: Key, found: Mapping[str, Any]) -> tuple[str, Any] | None:
        own = found.get("_source", {}).get(prefix) or {}
        successor = _follow(successors, own.get("group") or place.id)
        if successor is None or successor.fingerprint is None or not own.get("fingerprint"):
            return None
        distance = hamming_distance(from_hex(own["fingerprint"]), successor.fingerprint)
        if place.id == successor.id or (grouping.rule == "star" and distance > grouping.max_distance):
            return None
        if grouping.rule == "star":
            content = None if reader is None else reader.read(found["_source"])
            comparison = compare_contents(successor.content, content, grouping)
            if comparison.unread is not None:
                failed[successor.position] = f"{place.id}: {comparison.unread}"
            if not comparison.are_neighbours:
                return None
        taken[place] = successor
        fields = group_fields(successor.id, canonical=successor.id, distance=distance, at=own.get("at"))
        if fields["at"] is None:
            del fields["at"]  # a moment of now would be later than that of the document that replaced it
        return "update", {"doc": {prefix: fields}}

    for begin in range(0, len(places), BATCH):
        part = places[begin : begin + BATCH]
        outcomes = yield from rewrite(part, change, source=[prefix, *(reader.fields if reader else ())])
        for place, outcome in zip(part, outcomes, strict=True):
            if place in taken and (reason := _reason(place, outcome)):
                failed[taken[place].position] = reason
            elif place not in taken and (reason := _reason(place, outcome)):
                failed |= {draft.position: reason for draft in successors.values()}
    if gaps:
        failed |= {draft.position: "; ".join(sentences(gaps)) for draft in successors.values()}
    return [_with_problem(item, failed.get(item.position)) for item in items]


def _successors(items: Sequence[Item]) -> dict[str, Draft]:
    """Return, by id of a replaced canonical, the document that took its place."""
    return {
        old.id: item.draft
        for item in items
        if item.draft is not None and item.decision is not None and item.outcome is not None and item.outcome.is_done
        for old in item.decision.replaced
    }


def _follow(successors: Mapping[str, Draft], group: str) -> Draft | None:
    """Return the present name of *group*: a successor may have been replaced itself."""
    successor = successors.get(group)
    seen = {group}
    while successor is not None and successor.id in successors and successor.id not in seen:
        seen.add(successor.id)
        successor = successors[successor.id]
    return successor


def _find_members(
    index: str, items: Sequence[Item], successors: Mapping[str, Draft], prefix: str
) -> Flow[tuple[list[Key], list[Gap]]]:
    """Return where the replaced canonicals and the members of their groups are, and why some may be missing."""
    fields = Fields(prefix)
    places: dict[Key, None] = {}
    for item in items:
        outcome, draft, decision = item.outcome, item.draft, item.decision
        if draft is None or decision is None or outcome is None or not outcome.is_done:
            continue
        if outcome.id and outcome.index and decision.group in successors:
            places[Key(outcome.index, outcome.id, draft.routing)] = None
    old = sorted(successors)
    query = {"bool": {"should": [{"terms": {fields.group: old}}, {"ids": {"values": old}}]}}

    def note(hits: Hits) -> None:
        places.update(dict.fromkeys(map(document_key, hits)))

    yield from refresh(index)
    gaps = yield from retry(lambda: read_each(index, {"query": query, "_source": False}, note, page=PAGE))
    return list(places), gaps


def _reason(place: Key, outcome: Outcome | None) -> str | None:
    if outcome is None or outcome.is_done or outcome.status == MISSING:
        return None
    return f"{place.id}: {outcome.error}"


def _with_problem(item: Item, reason: str | None) -> Item:
    if reason is None:
        return item
    return replace(item, problem=f"documents of the group it took over may not name it ({reason}): run reconcile")
