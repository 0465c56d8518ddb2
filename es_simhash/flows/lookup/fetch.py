"""
Fetches documents that a lookup found: their texts, and the values of further fields.

What is made of them lives elsewhere: the verification of a lookup is in ``verify``, grouping in ``flows.grouping``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from es_simhash.flows.context import Index
from es_simhash.flows.protocol import Call, Flow
from es_simhash.flows.transfer.answers import Gap, find_gaps, is_window_refused
from es_simhash.flows.transfer.pages import Hits
from es_simhash.flows.transfer.texts import search_texts
from es_simhash.index.keys import Key, document_key

__all__ = ["FETCH", "fetch_hits", "meant_hits"]

# Documents fetched at once. With texts of a few thousand characters each, these are a few megabytes.
FETCH = 500


def meant_hits(hits: Hits, routing: str | None) -> Hits:
    """
    Return those of *hits*, documents of one id, that the caller means: those with the *routing* value, else all.
    """
    return [hit for hit in hits if routing is not None and hit.get("_routing") == routing] or hits


def fetch_hits(
    index: Index,
    wanted: Sequence[Key],
    take: Callable[[Mapping[str, Any]], None],
    *,
    text_fields: Sequence[str],
    docvalue_fields: Sequence[Any] = (),
    page: int = FETCH,
    versions: bool = False,
) -> Flow[dict[Key, Gap | None]]:
    """
    Give *take* the hit of each document *wanted*; return those without one, and why.

    Cost: one search for every *page* of them.

    Args:
        index:
            What to search.
        wanted:
            Which documents.
        take:
            Gets each hit; also hits of other documents with one of the ids.
        text_fields:
            Fields brought from ``_source``, or from stored fields where an index keeps no source; may be empty.
        docvalue_fields:
            Fields brought from doc values.
        page:
            Most documents of a search.
        versions:
            Whether hits are to have ``_seq_no`` and ``_primary_term``.

    Returns:
        The documents without a hit: ``None`` for one that is not there any more, a gap where shards did not answer.
    """
    unanswered: dict[Key, Gap | None] = {}
    done, copies = 0, 1
    while done < len(wanted):
        part = wanted[done : done + page]
        # One id may stand in several of the indices, and in several shards of one.
        documents = len({key.id for key in part}) * len({key.index for key in part})
        size = copies * max(len(part), min(documents, 2 * page))
        body = _body(part, size, docvalue_fields, versions=versions)
        try:
            answer = yield from _search(index, body, text_fields)
        except Exception as error:
            if not is_window_refused(error) or page == 1:
                raise
            page = max(1, page // 2)
            continue
        hits = answer["hits"]["hits"]
        for hit in hits:
            take(hit)
        missing = set(part) - set(map(document_key, hits))
        if missing and len(hits) >= size:
            copies *= 2
            continue
        done += len(part)
        gaps = find_gaps(answer)
        unanswered.update(dict.fromkeys(missing, gaps[0] if gaps else None))
    return unanswered


def _body(wanted: Sequence[Key], size: int, docvalue_fields: Sequence[Any], *, versions: bool) -> dict[str, Any]:
    """Return the body of a search for the documents *wanted*, with at most *size* hits."""
    ids = list(dict.fromkeys(key.id for key in wanted))
    names = list(dict.fromkeys(key.index for key in wanted))
    query = {"bool": {"filter": [{"ids": {"values": ids}}, {"terms": {"_index": names}}]}}
    body: dict[str, Any] = {"size": size, "query": query}
    if versions:
        body["seq_no_primary_term"] = True
    if docvalue_fields:
        body["docvalue_fields"] = list(docvalue_fields)
    return body


def _search(index: Index, body: Mapping[str, Any], text_fields: Sequence[str]) -> Flow[dict[str, Any]]:
    if text_fields:
        return (yield from search_texts(index, body, text_fields))
    answer: dict[str, Any] = yield Call("search", {"index": index, "body": {**body, "_source": False}})
    return answer
