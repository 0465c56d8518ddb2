"""
Reads the documents of an index that a batch is decided by: those with near fingerprints, their canonicals, and what is
there under the ids of the batch.

One search shows all of a document at once, so that its facts come from one moment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from es_simhash.groups.read import canonicals_body
from es_simhash.hashing import to_hex
from es_simhash.ingest.decide import Document
from es_simhash.ingest.reading import GroupedIngest
from es_simhash.lookup.content import Content, docvalue_fields, read_content
from es_simhash.mapping.fields import Fields, read_fingerprint
from es_simhash.mapping.port import Port
from es_simhash.transport.answers import Gap, find_gaps, sentences
from es_simhash.transport.conversation import attempt, text_body
from es_simhash.transport.pages import Hits, read_each
from es_simhash.transport.protocol import MAX_HITS, Call, Key, document_key
from es_simhash.transport.refusals import is_passing

if TYPE_CHECKING:
    from es_simhash.lookup.fingerprint_table import Near

# Most documents with fingerprints of the table that one search brings; more of them are read page by page.
DOCUMENTS = 2_000
# A server takes 65,536 terms in a query.
MAX_FINGERPRINTS = 50_000


class Facts:
    """The searches of one ingest for what its documents are decided by."""

    def __init__(self, ingest: GroupedIngest) -> None:
        self._ingest = ingest
        self._index = ingest.index
        self._fields = Fields(ingest.prefix)

    def calls(self, fingerprints: Sequence[int]) -> list[Call]:
        """Return the search for the documents with *fingerprints*, unless these are none, or too many for one."""
        body = {**self._with_contents(self._body(fingerprints, copies=False)), "size": DOCUMENTS}
        is_one = 0 < len(fingerprints) <= MAX_FINGERPRINTS
        return [Call("search", {"index": self._index, "body": body})] if is_one else []

    def held_calls(self, ids: Sequence[str]) -> list[Call]:
        """Return the search for what the index has under *ids*, if there are any."""
        return [Call("search", {"index": self._index, "body": _held_body(ids)})] if ids else []

    async def read(
        self, server: Port, near: Near, answer: Any = None, *, copies: bool = False
    ) -> tuple[dict[Key, list[Document]], tuple[str, ...]]:
        """
        Return the documents that have one of the fingerprints *near*, and why some may be missing.
        *answer*: to the search of :meth:`calls`.
        """
        wanted = sorted({*chain(*near.values())})
        found: dict[Key, list[Document]] = {}
        missing: tuple[str, ...] = ()
        for begin in range(0, len(wanted), MAX_FINGERPRINTS):
            body = self._with_contents(self._body(wanted[begin : begin + MAX_FINGERPRINTS], copies=copies))
            hits, gaps = await self._hits(server, body, answer)
            found |= await server.compute(self._documents_in, hits)
            missing += sentences(gaps)
        return found, missing

    async def canonicals(
        self, server: Port, names: Collection[str]
    ) -> tuple[dict[str, list[Document]], tuple[str, ...]]:
        """Return the canonicals of the groups *names*, with what they are compared by, and why some may be missing."""
        if not names:
            return {}, ()
        body = canonicals_body(sorted(names), self._fields)
        hits, gaps = await self._hits(server, self._with_contents(body))
        found: dict[str, list[Document]] = {}
        documents = await server.compute(self._documents_in, hits)
        for document in chain(*documents.values()):
            found.setdefault(document.group, []).append(document)
        return found, sentences(gaps)

    async def held(self, server: Port, ids: Sequence[str], answer: Any) -> dict[str, list[Mapping[str, Any]]] | None:
        """Return what the index has under *ids*; ``None`` where that cannot be read now."""
        hits, gaps = await self._hits(server, _held_body(ids), answer)
        if gaps:
            return None
        held: dict[str, list[Mapping[str, Any]]] = {}
        for hit in hits.values():
            held.setdefault(hit["_id"], []).append(hit)
        return held

    async def _hits(
        self, server: Port, body: Mapping[str, Any], answer: Any = None
    ) -> tuple[dict[Key, Mapping[str, Any]], list[Gap]]:
        """
        Return the documents that the search *body* finds, and why some may be missing.
        *answer*: to this search, if it was sent; what it does not have whole is read page by page.
        """
        body = {"size": DOCUMENTS, **body}
        if answer is None:
            answer = await attempt(server.patient.search(index=self._index, body=body))
        if isinstance(answer, Exception) and not is_passing(answer):
            raise answer
        if isinstance(answer, Mapping) and not find_gaps(answer) and len(answer["hits"]["hits"]) < body["size"]:
            return {document_key(hit): hit for hit in answer["hits"]["hits"]}, []
        found: dict[Key, Mapping[str, Any]] = {}

        def note(hits: Hits) -> None:
            found.update((document_key(hit), hit) for hit in hits)

        gaps = await server.until(
            lambda: read_each(server, self._index, body, note, page=DOCUMENTS), is_done=lambda gaps: not gaps
        )
        return found, gaps

    def _body(self, fingerprints: Iterable[int], *, copies: bool) -> dict[str, Any]:
        """Return the search, without a size, for the *copies*, or all others, that have one of *fingerprints*."""
        fields = self._fields
        values = list(map(to_hex, fingerprints))
        is_copy = {"exists": {"field": fields.duplicate_of}}
        among: list[dict[str, Any]] = [{"terms": {fields.fingerprint: values}}, *([is_copy] if copies else [])]
        at = {"field": fields.at, "format": "epoch_millis"}
        return {
            "query": {"bool": {"filter": among, "must_not": [] if copies else [is_copy]}},
            "docvalue_fields": [fields.fingerprint, fields.group, fields.duplicate_of, at],
            "_source": False,
            "track_total_hits": False,
        }

    def _with_contents(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the search *body* of hits that have what documents are compared by, too."""
        rule = self._ingest.grouping
        more = {**body, "docvalue_fields": [*body["docvalue_fields"], *docvalue_fields(rule)]}
        return more if rule.similarity is None else text_body(more, self._ingest.text_fields.all)

    def _documents_in(self, hits: Mapping[Key, Mapping[str, Any]]) -> dict[Key, list[Document]]:
        """Return the documents of *hits*, one for each of their fingerprints."""
        fields, contents = self._fields, self._read_contents(hits)
        return {
            key: [
                Document(
                    key.id,
                    read_fingerprint(digits),
                    (hit["fields"].get(fields.duplicate_of) or hit["fields"].get(fields.group, (key.id,)))[0],
                    key.index,
                    routing=key.routing,
                    content=contents.get(key),
                    at=int(hit["fields"].get(fields.at, (0,))[0]),
                    is_member=fields.duplicate_of in hit["fields"],
                )
                for digits in hit["fields"].get(fields.fingerprint, (None,))
            ]
            for key, hit in hits.items()
        }

    def _read_contents(self, hits: Mapping[Key, Mapping[str, Any]]) -> dict[Key, Content]:
        """Return what the documents of *hits* are compared by; nothing where only distances count."""
        rule, text_fields = self._ingest.grouping, self._ingest.text_fields
        if rule.is_by_distance_alone:
            return {}
        return {key: read_content(hit, rule, text_fields) for key, hit in hits.items()}


def documents_near(near: Near, documents: Iterable[Iterable[Document]]) -> dict[int, list[Document]]:
    """Return the *documents* near each fingerprint, each by its nearest, the one grouped first comes first."""
    by_fingerprint: dict[int, list[Document]] = {}
    for document in chain.from_iterable(documents):
        by_fingerprint.setdefault(document.fingerprint or 0, []).append(document)
    found: dict[int, list[Document]] = {}
    for wanted, some in near.items():
        nearest: dict[tuple[str | None, str, str | None], Document] = {}
        for value in sorted(some, key=lambda value: (value ^ wanted).bit_count()):
            for document in by_fingerprint.get(value, ()):
                nearest.setdefault((document.index, document.id, document.routing), document)
        found[wanted] = in_order(nearest.values())
    return found


def in_order(documents: Iterable[Document]) -> list[Document]:
    """Return *documents*, the one grouped first comes first."""
    return sorted(documents, key=lambda document: (document.at, document.id, document.index))


def _held_body(ids: Sequence[str]) -> dict[str, Any]:
    # One more than there are ids: an answer that is not full has all of them.
    return {"query": {"ids": {"values": list(ids)}}, "size": min(len(ids) + 1, MAX_HITS), "track_total_hits": False}
