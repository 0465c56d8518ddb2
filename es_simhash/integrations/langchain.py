"""For LangChain: a filter (a compressor of documents, and a step of a chain), and a guard before a vector store."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from es_simhash.integrations import missing

try:
    from langchain_core.documents import BaseDocumentCompressor, Document
    from langchain_core.vectorstores import VectorStore
    from pydantic import ConfigDict
except ImportError as error:
    raise missing(__name__, error) from error

from es_simhash import SimHashClient
from es_simhash.integrations.filters import Item, Options
from es_simhash.integrations.guard import Chunk, Guard, is_stored


class NearDupFilter(Options, BaseDocumentCompressor):
    """
    Drop retrieved documents that are near-duplicates of one that stays; no server, no model.

    Give it to a ``ContextualCompressionRetriever`` as ``base_compressor``, or write ``retriever | NearDupFilter()``.
    Documents that stay keep their order and metadata; one that stands for others is a copy with ``similar_count`` and,
    where these have ids, ``similar_ids`` in its metadata. Its options are those of :func:`es_simhash.distinct_texts`.

    Examples:
        >>> from langchain_core.documents import Document
        >>> text = "The council approved the new bridge over the river on Tuesday after a long debate."
        >>> [found] = NearDupFilter()([Document(text, id="a"), Document(text.upper(), id="b")])
        >>> found.id, found.metadata
        ('a', {'similar_count': 1, 'similar_ids': ['b']})
    """

    model_config = ConfigDict(frozen=True)  # a step of a chain must have a hash

    def __call__(self, documents: Iterable[Document]) -> list[Document]:
        """Return the documents that stay."""
        return [
            document if metadata is None else document.model_copy(update={"metadata": metadata})
            for document, metadata in self.filtered(documents, _item)
        ]

    def compress_documents(self, documents: Sequence[Document], query: str, callbacks: Any = None) -> list[Document]:
        """Return the documents that stay, whatever the query; ``acompress_documents`` does so in a thread."""
        del query, callbacks
        return self(documents)


def _item(document: Document) -> Item:
    # Retrievers that map a hit to metadata leave its id there.
    id_ = document.id or document.metadata.get("_id")
    return Item(document.page_content, id_ if isinstance(id_, str) else None, document.metadata)


def add_documents(
    store: VectorStore,
    documents: Iterable[Document],
    simhash: SimHashClient,
    index: str,
    *,
    text_field: str = "text",
    metadata_field: str | None = "metadata",
    tags: bool = True,
    force: bool = False,
    **kwargs: Any,
) -> list[str]:
    """
    Store those of *documents* that are near-duplicates of nothing in *store*; return the id of each.

    One that was not stored gets the id of the document that it is near. *store* writes to *index* of Elasticsearch or
    OpenSearch, which has our fields already (``setup``); it is asked before a text is embedded. A text that nobody can
    judge is stored; with *force* all are. Then the documents get their fingerprints and groups, also those that were
    written before the store raised; unless *tags* leaves that to an ingest pipeline. *text_field* and *metadata_field*
    are what the store calls these in a document; ``None`` for metadata at the top. *kwargs* are for ``add_texts``.
    """
    documents = list(documents)
    guard = Guard(simhash, index, text_field)
    screened = guard.screen(_chunk(document, metadata_field) for document in documents)
    kept = {n: documents[n].id or str(uuid.uuid4()) for n, found in enumerate(screened) if force or is_stored(found)}
    if kept:
        ids, texts = list(kept.values()), [documents[n].page_content for n in kept]
        try:
            store.add_texts(texts, [documents[n].metadata for n in kept], ids=ids, **kwargs)
        finally:
            if tags:
                guard.tag(ids)
    return [kept.get(n) or str(found.id or kept[found.place or 0]) for n, found in enumerate(screened)]


def _chunk(document: Document, metadata_field: str | None) -> Chunk:
    metadata = document.metadata
    return Chunk(document.page_content, document.id, {metadata_field: metadata} if metadata_field else metadata)
