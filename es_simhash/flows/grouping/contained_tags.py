"""
Tags in ``contained_in``: which documents have one, which of them are true no more, and taking them out.

Which document is given a tag is decided elsewhere: ``contained_lookups`` as it is written, ``flows.removal.tags`` by a
plan.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from es_simhash.errors import InvalidInputError
from es_simhash.flows.context import Index, Resolved
from es_simhash.flows.grouping.contents import TextFields
from es_simhash.flows.protocol import Compute, Flow
from es_simhash.flows.transfer.answers import check_whole
from es_simhash.flows.transfer.conditional_write import CONFLICT, MISSING, rewrite
from es_simhash.flows.transfer.pages import Hits, read_each
from es_simhash.flows.transfer.refresh import refresh
from es_simhash.flows.transfer.texts import read_hit, text_body
from es_simhash.index.fields import CONTAINED_IN, Fields
from es_simhash.index.keys import Key, document_key
from es_simhash.index.operations import Failure, Outcome
from es_simhash.index.similarity import shingle_sets
from es_simhash.removal.guards import SMALLEST_CONTAINED

__all__ = ["read_tags", "untag", "untag_stale"]

PAGE = 5_000
# Documents whose texts are in memory at once are twice as many.
BATCH = 250


def read_tags(
    index: Index, prefix: str, *, ids: Sequence[str] | None = None, names: Sequence[str] | None = None
) -> Flow[dict[Key, str]]:
    """Return the tags of documents of *index*: all, or those that name one of *ids*, in the indices *names* alone."""
    field = Fields(prefix).contained_in
    found: dict[Key, str] = {}

    def note(hits: Hits) -> None:
        found.update((document_key(hit), str(hit["fields"][field][0])) for hit in hits)

    yield from refresh(index)
    clauses: list[Any] = [{"exists": {"field": field}} if ids is None else {"terms": {field: list(ids)}}]
    clauses += [] if names is None else [{"terms": {"_index": list(names)}}]
    body = {"query": {"bool": {"filter": clauses}}, "docvalue_fields": [field], "_source": False}
    check_whole((yield from read_each(index, body, note, page=PAGE)))
    return found


def untag(tags: Mapping[Key, str], prefix: str) -> Flow[dict[Key, Outcome]]:
    """Remove *tags*, and return what became of each; without documents that are tagged otherwise by now."""

    def change(key: Key, found: Mapping[str, Any]) -> tuple[str, Any] | None:
        own = found.get("_source", {}).get(prefix) or {}
        is_same = own.get(CONTAINED_IN) == tags[key]
        return ("update", {"doc": {prefix: {CONTAINED_IN: None}}}) if is_same else None

    outcomes = yield from rewrite(list(tags), change, source=[prefix])
    return {key: each for key, each in zip(tags, outcomes, strict=True) if each is not None}


def untag_stale(
    index: Index, resolved: Resolved, prefix: str, *, ids: Collection[str] | None = None, dry_run: bool = False
) -> Flow[tuple[int, list[Failure]]]:
    """
    Remove the tags that name a document which is gone, or contains the tagged one no longer.

    The share by which a tag was written is not recorded: the smallest that may be asked for counts. A text that cannot
    be read says nothing. Cost: the tags are read, and for every 250 a search of the texts of both documents.

    Args:
        index:
            What is searched.
        resolved:
            The concrete indices behind it.
        prefix:
            Name of the object that holds the fields.
        ids:
            Only tags that name one of these documents; ``None`` for all.
        dry_run:
            Whether tags are only counted.

    Returns:
        How many tags were removed, and the failures of others.
    """
    if all(each.passages is None for each in resolved.each.values()):
        return 0, []
    tags = list((yield from read_tags(index, prefix, ids=None if ids is None else sorted(ids))).items())
    text_fields = TextFields({name: own.text_fields for name, own in resolved.each.items()})
    removed, failures = 0, []
    for begin in range(0, len(tags), BATCH):
        part = dict(tags[begin : begin + BATCH])
        texts = yield from _read_texts(index, {*part.values(), *(key.id for key in part)}, text_fields)
        stale: dict[Key, str] = yield Compute(_stale, (part, texts))
        if dry_run:
            removed += len(stale)
            continue
        for outcome in (yield from untag(stale, prefix)).values():
            if outcome.is_done:
                removed += 1
            elif outcome.status not in (CONFLICT, MISSING):
                failures.append(outcome.to_failure())
    return removed, failures


def _read_texts(index: Index, ids: Collection[str], text_fields: TextFields) -> Flow[dict[Key, str | None]]:
    """Return the texts of the documents with these *ids* that are there; ``None`` for one that cannot be read."""
    found: dict[Key, str | None] = {}

    def note(hits: Hits) -> None:
        for hit in hits:
            key = document_key(hit)
            try:
                found[key] = read_hit(hit, text_fields.of(key.index))
            except InvalidInputError:
                found[key] = None

    body = text_body({"query": {"ids": {"values": sorted(ids)}}}, text_fields.all)
    check_whole((yield from read_each(index, body, note, page=BATCH)))
    return found


def _stale(tags: Mapping[Key, str], texts: Mapping[Key, str | None]) -> dict[Key, str]:
    """Return those of *tags* that are true no more."""
    from es_simhash.index.passages.contained import find_container  # noqa: PLC0415 -- loads numpy

    different = [text for text in dict.fromkeys(texts.values()) if text is not None]
    shingles = dict(zip(different, shingle_sets(different), strict=True))
    by_id: dict[str, list[str | None]] = {}
    for key, text in texts.items():
        by_id.setdefault(key.id, []).append(text)
    stale = {}
    for key, tag in tags.items():
        own, others = texts.get(key), by_id.get(tag, [])
        if others and (own is None or None in others):
            continue
        known = [each for each in others if each is not None]
        if own is None or find_container(own, known, shingles, SMALLEST_CONTAINED) is None:
            stale[key] = tag
    return stale
