"""
Tags in ``contained_in``: which documents have one, and taking them out.

Which document is given a tag is decided elsewhere: ``contained_lookups`` as it is written, ``flows.removal.tags`` by a
plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from es_simhash.flows.context import Index
from es_simhash.flows.protocol import Flow
from es_simhash.flows.transfer.answers import check_whole
from es_simhash.flows.transfer.conditional_write import rewrite
from es_simhash.flows.transfer.pages import Hits, read_each
from es_simhash.flows.transfer.refresh import refresh
from es_simhash.index.fields import CONTAINED_IN, Fields
from es_simhash.index.keys import Key, document_key
from es_simhash.index.operations import Outcome

__all__ = ["read_tags", "untag"]

PAGE = 5_000


def read_tags(index: Index, prefix: str, *, ids: Sequence[str] | None = None) -> Flow[dict[Key, str]]:
    """Return the tags of documents of *index*: all of them, or those that name one of *ids*."""
    field = Fields(prefix).contained_in
    found: dict[Key, str] = {}

    def note(hits: Hits) -> None:
        found.update((document_key(hit), str(hit["fields"][field][0])) for hit in hits)

    yield from refresh(index)
    query: dict[str, Any] = {"exists": {"field": field}} if ids is None else {"terms": {field: list(ids)}}
    body = {"query": query, "docvalue_fields": [field], "_source": False}
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
