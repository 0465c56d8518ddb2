"""
Reads from an index what documents are compared by; finds and removes stale ``contained_in`` tags.

Nothing is compared for grouping here (``content``). Tags are written by ``ingest.contained_flow`` and
``removal.tags_flow``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from es_simhash.errors import InvalidInputError
from es_simhash.groups.content import Content, Unread, moment_of, per_of
from es_simhash.groups.rule import Grouping
from es_simhash.lookup.verify_flow import fetch_hits
from es_simhash.mapping.context import Resolved, TextFields
from es_simhash.mapping.fields import CONTAINED_IN, Fields, read_hit
from es_simhash.passages.contained import SMALLEST_CONTAINED
from es_simhash.texts.shingles import shingle_sets
from es_simhash.transport.answers import check_whole
from es_simhash.transport.pages_flow import Hits, read_each
from es_simhash.transport.protocol import Compute, Flow, Index, Key, document_key
from es_simhash.transport.retry_flow import Patience, refresh, retry, text_body
from es_simhash.writes.bulk_flow import CONFLICT, MISSING, rewrite
from es_simhash.writes.operations import Failure, Outcome


def docvalue_fields_of(grouping: Grouping) -> list[Any]:
    """Return the ``docvalue_fields`` that a search needs so that :func:`read_content` can read its hits."""
    names: list[Any] = [] if grouping.per is None else [grouping.per]
    return names if grouping.within is None else [*names, {"field": grouping.within.field, "format": "epoch_millis"}]


def read_content(hit: Mapping[str, Any], grouping: Grouping, text_fields: TextFields) -> Content:
    """Return what the document of *hit* is compared by: keywords and dates as the server indexed them."""
    values = hit.get("fields") or {}
    per = () if grouping.per is None else per_of(values.get(grouping.per, ()))
    moment = None if grouping.within is None else moment_of(values.get(grouping.within.field, ()))
    if grouping.similarity is None:
        return Content(per=per, moment=moment)
    try:
        return Content(read_hit(hit, text_fields[hit["_index"]]), per=per, moment=moment)
    except InvalidInputError as error:
        return Content(per=per, moment=moment, unread=Unread("text", str(error)))


def fetch_contents(
    index: Index,
    wanted: Sequence[Key],
    *,
    grouping: Grouping,
    text_fields: TextFields,
    patience: Patience,
) -> Flow[dict[Key, Content]]:
    """
    Return what each *wanted* document is compared by, without documents that are gone.

    Cost: one search for every 500 documents, repeated while the server is busy or shards do not answer.
    """
    found: dict[Key, Content] = {}

    def take(hit: Mapping[str, Any]) -> None:
        found[document_key(hit)] = read_content(hit, grouping, text_fields)

    unanswered = yield from retry(
        lambda: fetch_hits(
            index,
            wanted,
            take,
            text_fields=text_fields.all if grouping.similarity is not None else (),
            docvalue_fields=docvalue_fields_of(grouping),
        ),
        is_done=lambda missing: not any(missing.values()),
        patience=patience,
    )
    gaps = {key: gap for key, gap in unanswered.items() if gap is not None}
    return found | {key: Content(unread=Unread("not_read", str(gap))) for key, gap in gaps.items()}


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
    Remove tags whose document is gone or no longer contains the tagged one; return count and failures.

    The share by which a tag was written is not recorded: the smallest share allowed counts. A tag stays if a text
    cannot be read. *ids*: only tags that name one of these documents. Cost: the tags are read, and for every 250
    a search of the texts of both documents.
    """
    if all(each.passages is None for each in resolved.each.values()):
        return 0, []
    tags = list((yield from read_tags(index, prefix, ids=None if ids is None else sorted(ids))).items())
    text_fields = resolved.text_fields
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
                found[key] = read_hit(hit, text_fields[key.index])
            except InvalidInputError:
                found[key] = None

    body = text_body({"query": {"ids": {"values": sorted(ids)}}}, text_fields.all)
    check_whole((yield from read_each(index, body, note, page=BATCH)))
    return found


def _stale(tags: Mapping[Key, str], texts: Mapping[Key, str | None]) -> dict[Key, str]:
    """Return those of *tags* that are true no more."""
    from es_simhash.passages.contained import find_container  # noqa: PLC0415 -- loads numpy

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
