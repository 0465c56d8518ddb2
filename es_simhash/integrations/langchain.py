"""A filter of near-duplicates for LangChain: a compressor of documents, and a step of a chain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from es_simhash.integrations import missing

try:
    from langchain_core.documents import BaseDocumentCompressor, Document
    from pydantic import ConfigDict
except ImportError as error:
    raise missing(__name__, error) from error

from es_simhash.integrations.filters import Item, Options


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
