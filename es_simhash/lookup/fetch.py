"""Fetches documents that a lookup found, or that are looked up, and says why a text is not there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from es_simhash.errors import IncompleteSearchError, InvalidInputError
from es_simhash.mapping.context import TextFields
from es_simhash.mapping.fields import read_hit
from es_simhash.mapping.port import Port
from es_simhash.transport.answers import Gap, find_gaps
from es_simhash.transport.conversation import search_texts
from es_simhash.transport.pages import Hits
from es_simhash.transport.protocol import Index, Key, document_key

# Documents fetched at once. With texts of a few thousand characters each, these are a few megabytes.
FETCH = 500


def meant_hits(hits: Hits, routing: str | None) -> Hits:
    """Return those of *hits*, documents of one id, that the caller means: those with the *routing* value, else all."""
    return [hit for hit in hits if routing is not None and hit.get("_routing") == routing] or hits


async def fetch_hits(
    server: Port,
    index: Index,
    wanted: Sequence[Key],
    take: Callable[[Mapping[str, Any]], None],
    *,
    text_fields: Sequence[str],
    source: Sequence[str] = (),
    docvalue_fields: Sequence[Any] = (),
    page: int = FETCH,
    versions: bool = False,
) -> dict[Key, Gap | None]:
    """
    Give *take* the hit of each document *wanted*; return those without one, and why.
    The reason is ``None`` for a document that is gone, a gap if shards did not answer. *take* also gets hits of other
    documents with one of the ids. *text_fields* come from ``_source``, or from stored fields of an index without it;
    they may be empty. *source* names more of it. *versions*: whether hits have ``_seq_no`` and ``_primary_term``.
    Cost: one search for every *page* of documents.
    """
    unanswered: dict[Key, Gap | None] = {}
    done, copies = 0, 1
    while done < len(wanted):
        part = wanted[done : done + page]
        # One id may stand in several of the indices, and in several shards of one.
        documents = len({key.id for key in part}) * len({key.index for key in part})
        size = copies * max(len(part), min(documents, 2 * page))
        body = _body(part, size, docvalue_fields, versions=versions)
        answer = await search_hits(server, index, body, text_fields, source)
        hits = answer["hits"]["hits"]
        for hit in hits:
            take(hit)
        missing = set(part) - set(map(document_key, hits))
        if missing and len(hits) >= size:
            copies, page = 2 * copies, max(1, page // 2)
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


async def search_hits(
    server: Port, index: Index, body: Mapping[str, Any], text_fields: Sequence[str], source: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the answer to *body*, whose hits have *text_fields*, and *source*; without these, nothing of theirs."""
    if text_fields or source:
        return await search_texts(server, index, body, text_fields, source=source)
    answer: dict[str, Any] = await server.search(index=index, body={**body, "_source": False})
    return answer


@dataclass(frozen=True, slots=True)
class NoText:
    """Why a near-duplicate has no text to compare; ``"unreadable"``: the document has none in the fields."""

    kind: Literal["not_read", "deleted", "unreadable", "changed"]
    detail: str = ""

    def __str__(self) -> str:
        match self.kind:
            case "not_read":
                return f"its text was not read: {self.detail}"
            case "deleted":
                return "the document was deleted meanwhile"
            case "changed":
                return "its text does not fit its fingerprint: it was changed, redacted, cut or masked"
            case _:
                return self.detail


@dataclass(frozen=True, slots=True)
class FoundTexts:
    """The texts of documents, why others have none, and on request the ``_seq_no`` and ``_primary_term`` of each."""

    texts: dict[Key, str] = field(default_factory=dict)
    missing: dict[Key, NoText] = field(default_factory=dict)
    versions: dict[Key, tuple[int, int]] = field(default_factory=dict)

    def add(self, hit: Mapping[str, Any], text_fields: TextFields) -> None:
        key = document_key(hit)
        if "_seq_no" in hit:
            self.versions[key] = hit["_seq_no"], hit["_primary_term"]
        try:
            self.texts[key] = read_hit(hit, text_fields[key.index])
        except InvalidInputError as error:
            self.missing[key] = NoText("unreadable", str(error))

    def check_read(self) -> None:
        """Raise IncompleteSearchError if a text was not read because shards did not answer."""
        reasons = tuple(dict.fromkeys(str(why) for why in self.missing.values() if why.kind == "not_read"))
        if reasons:
            raise IncompleteSearchError(f"texts could not be read: {reasons[0]}", reasons=reasons)


async def fetch_texts(
    server: Port, index: Index, wanted: Sequence[Key], text_fields: TextFields, *, versions: bool = False
) -> FoundTexts:
    """Return the texts of *wanted*, from ``_source`` or stored fields, and on request their *versions*."""
    found = FoundTexts()

    def take(hit: Mapping[str, Any]) -> None:
        found.add(hit, text_fields)

    unanswered = await fetch_hits(server, index, wanted, take, text_fields=text_fields.all, versions=versions)
    for key, gap in unanswered.items():
        found.missing[key] = NoText("deleted") if gap is None else NoText("not_read", str(gap))
    return found
