"""The three frameworks behind one form: make documents, filter them, read them."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any, NamedTuple

import pytest

PACKAGES = {"langchain": "langchain_core", "llama_index": "llama_index.core", "haystack": "haystack"}


class Found(NamedTuple):
    """A document of any framework; LangChain has no scores."""

    id: str | None
    text: str | None
    metadata: dict[str, Any]
    score: float | None = None


class LangChain:
    cls = "NearDupFilter"

    def document(self, found):
        from langchain_core.documents import Document

        return Document(found.text, id=found.id, metadata=found.metadata)

    def read(self, document):
        return Found(document.id, document.page_content, document.metadata)

    def run(self, made, documents):
        return made.compress_documents(documents, "a query")

    async def arun(self, made, documents):
        return await made.acompress_documents(documents, "a query")


class LlamaIndex:
    cls = "NearDupPostprocessor"

    def document(self, found):
        from llama_index.core.schema import NodeWithScore, TextNode

        node = TextNode(text=found.text, id_=found.id, metadata=found.metadata)
        return NodeWithScore(node=node, score=found.score)

    def read(self, document):
        return Found(document.node.node_id, document.node.get_content(), document.node.metadata, document.score)

    def run(self, made, documents):
        return made.postprocess_nodes(documents, query_str="a query")

    async def arun(self, made, documents):
        return await made.apostprocess_nodes(documents, query_str="a query")


class Haystack:
    cls = "NearDupFilter"

    def document(self, found):
        from haystack import Document

        return Document(id=found.id, content=found.text, meta=found.metadata, score=found.score)

    def read(self, document):
        return Found(document.id, document.content, document.meta, document.score)

    def run(self, made, documents):
        return made.run(documents=documents)["documents"]

    async def arun(self, made, documents):
        return (await made.run_async(documents=documents))["documents"]


class Framework:
    """One of the frameworks, and our filter for it."""

    def __init__(self, name):
        pytest.importorskip(PACKAGES[name], reason=f"needs the extra {name.replace('_', '-')}: run make integrations")
        self.name = name
        self._kind = {"langchain": LangChain, "llama_index": LlamaIndex, "haystack": Haystack}[name]()
        self.filter = getattr(import_module(f"es_simhash.integrations.{name}"), self._kind.cls)
        self.document, self.read = self._kind.document, self._kind.read

    def run(self, documents, **options):
        """Return the documents that stay, and assert that the async method returns the same."""
        made = self.filter(**options)
        before = [document.__class__.__repr__(document) for document in documents]
        found = self._kind.run(made, documents)
        again = asyncio.run(self._kind.arun(made, documents))
        assert list(map(self.read, again)) == list(map(self.read, found))
        assert [document.__class__.__repr__(document) for document in documents] == before
        return found

    def filtered(self, found, **options):
        """Return what stays of *found*, as it is read."""
        return [self.read(each) for each in self.run([self.document(each) for each in found], **options)]
