"""For LangChain: a filter (a compressor of documents, and a step of a chain), and a guard around a vector store."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NoReturn

from es_simhash.integrations import missing

try:
    from langchain_core.documents import BaseDocumentCompressor, Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import VectorStore, VectorStoreRetriever
    from pydantic import ConfigDict
except ImportError as error:
    raise missing(__name__, error) from error

from es_simhash import InvalidInputError, SimHashClient
from es_simhash.errors import count
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


class GuardedStore(VectorStore):
    """
    A vector store of Elasticsearch or OpenSearch that stores no near-duplicate of a text that it has.

    ``add_texts`` and ``add_documents`` ask *index*, which has our fields already (``setup``), before a text is
    embedded, and return an id for each: that of the document that it is near, where it was not stored. A text that
    nobody can judge is stored. ``force=True`` stores all, and tags. Then the documents get their fingerprints, unless
    *tags* leaves that to an ingest pipeline; where the store raises, what it has written gets them too. Searches are
    those of *store*, and async methods run in a thread. *text_field* and *metadata_field* are what the store calls
    these in a document; ``None`` for metadata at the top.
    """

    def __init__(
        self,
        store: VectorStore,
        simhash: SimHashClient,
        index: str,
        *,
        text_field: str = "text",
        metadata_field: str | None = "metadata",
        tags: bool = True,
    ) -> None:
        self.store = store
        self._guard = Guard(simhash, index, text_field)
        self._metadata_field = metadata_field
        self._tags = tags

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        force: bool = False,
        **kwargs: Any,
    ) -> list[str]:
        """Store those of *texts* that are not there; return the id of each, or of the document that it is near."""
        texts = list(texts)
        given, own = list(ids or [None] * len(texts)), list(metadatas or [{}] * len(texts))
        for name, some in (("ids", given), ("metadatas", own)):
            if len(some) != len(texts):
                said = f"{name} has {len(some):,} for {count(len(texts), 'text')}"
                raise InvalidInputError(f"{said}: give one for each, or leave {name} out")
        above = self._metadata_field
        chunks = zip(texts, given, own if above is None else [{above: each} for each in own], strict=True)
        screened = self._guard.screen(Chunk(*each) for each in chunks)
        kept = {n: given[n] or str(uuid.uuid4()) for n, each in enumerate(screened) if force or is_stored(each)}
        if kept:
            stored = list(kept.values())
            write = partial(
                self.store.add_texts, [texts[n] for n in kept], [own[n] for n in kept], ids=stored, **kwargs
            )
            if self._tags:
                self._guard.store(stored, write)
            else:
                write()
        return [kept.get(n) or str(each.id or kept[each.place or 0]) for n, each in enumerate(screened)]

    @property
    def embeddings(self) -> Embeddings | None:
        """The embeddings of the store."""
        return self.store.embeddings

    def as_retriever(self, **kwargs: Any) -> VectorStoreRetriever:
        """Return the retriever of the store."""
        return self.store.as_retriever(**kwargs)

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Return what the store finds."""
        return self.store.similarity_search(query, k, **kwargs)

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        """Delete documents of the store."""
        return self.store.delete(ids, **kwargs)

    @classmethod
    def from_texts(cls, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise: a store is made first."""
        raise NotImplementedError("make the store first, then GuardedStore(store, simhash, index)")


def add_documents(
    store: VectorStore,
    documents: list[Document],
    simhash: SimHashClient,
    index: str,
    *,
    text_field: str = "text",
    metadata_field: str | None = "metadata",
    tags: bool = True,
    **kwargs: Any,
) -> list[str]:
    """
    Store those of *documents* that are not there in *store*, once; return what :class:`GuardedStore` returns.

    That is an id for each: its own, or that of the document that it is near and that was stored in its place.
    Arguments are those of ``GuardedStore`` and of its ``add_documents``.
    """
    guarded = GuardedStore(store, simhash, index, text_field=text_field, metadata_field=metadata_field, tags=tags)
    return guarded.add_documents(documents, **kwargs)
