"""For LlamaIndex: a filter (a postprocessor of nodes), a guard before the embedding, and a store that tags."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from typing import Any

from es_simhash.integrations import missing

try:
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import (
        BaseNode,
        ImageNode,
        IndexNode,
        MetadataMode,
        Node,
        NodeWithScore,
        QueryBundle,
        TransformComponent,
    )
    from llama_index.core.vector_stores.types import (
        BasePydanticVectorStore,
        MetadataFilters,
        VectorStoreQuery,
        VectorStoreQueryResult,
    )
    from pydantic import Field, PrivateAttr
except ImportError as error:
    raise missing(__name__, error) from error

from es_simhash.integrations.filters import COUNT, IDS, Item, Options
from es_simhash.integrations.guard import Chunk, Guard, is_stored


class NearDupPostprocessor(Options, BaseNodePostprocessor):
    """
    Drop retrieved nodes that are near-duplicates of one that stays; no server, no model.

    Nodes that stay keep their order, scores and metadata; one that stands for others is a copy with ``similar_count``
    and ``similar_ids`` in its metadata, which are kept out of the prompt and of embeddings. A node with an image, sound
    or video, or that points to another one, stays, since only texts are compared.

    Its options are those of :func:`es_simhash.distinct_texts`.

    Examples:
        >>> from llama_index.core.schema import NodeWithScore, TextNode
        >>> text = "The council approved the new bridge over the river on Tuesday after a long debate."
        >>> nodes = [NodeWithScore(node=TextNode(text=each, id_=each[4:7])) for each in (text, text.upper())]
        >>> [found] = NearDupPostprocessor().postprocess_nodes(nodes)
        >>> found.node.metadata
        {'similar_count': 1, 'similar_ids': ['COU']}
    """

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex writes it down."""
        return cls.__name__

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        del query_bundle
        found = self.filtered(nodes, lambda each: _item(each.node))
        return [
            each if told is None else each.model_copy(update={"node": _copy(each.node, told)}) for each, told in found
        ]


def _item(node: BaseNode) -> Item:
    return Item(node.get_content() if _is_text(node) else None, node.node_id, node.metadata)


def _is_text(node: BaseNode) -> bool:
    if isinstance(node, Node):
        return not (node.image_resource or node.audio_resource or node.video_resource)
    return not isinstance(node, (ImageNode, IndexNode))


def _copy(node: BaseNode, metadata: dict[str, object]) -> BaseNode:
    hidden = {
        name: list(dict.fromkeys([*getattr(node, name), COUNT, IDS]))
        for name in ("excluded_llm_metadata_keys", "excluded_embed_metadata_keys")
    }
    return node.model_copy(update={"metadata": metadata, **hidden})


class NearDupGuard(TransformComponent):
    """
    Drop nodes that are near-duplicates of what the store has, before they are embedded.

    Put it before the embedding in an ``IngestionPipeline`` whose store is an index of Elasticsearch or OpenSearch with
    our fields (``setup``), in a :class:`TaggingStore`, unless an ingest pipeline of the server adds the fingerprints. A
    node that nobody can judge stays, and so does one that is not only text. With *force* all stay, and those that are
    near another one are tagged. *text_field* and *metadata_field* are what the store calls these in a document.
    """

    simhash: Any = Field(exclude=True, repr=False)
    index: str
    text_field: str = "content"
    metadata_field: str = "metadata"
    force: bool = False
    _guard: Guard = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Check the options."""
        del context
        self._guard = Guard(self.simhash, self.index, self.text_field)

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex writes it down."""
        return cls.__name__

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """Return another value each time: a pipeline caches by it, and the index may have changed since."""
        return {**super().to_dict(**kwargs), "asked": uuid.uuid4().hex}

    def __call__(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[BaseNode]:
        """Return the nodes that are to be stored, in order."""
        del kwargs
        asked = [] if self.force else [n for n, each in enumerate(nodes) if _is_text(each)]
        screened = self._guard.screen(self._chunk(nodes[n]) for n in asked) if asked else []
        dropped = {n for n, each in zip(asked, screened, strict=True) if not is_stored(each)}
        return [each for n, each in enumerate(nodes) if n not in dropped]

    async def acall(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[BaseNode]:
        """Return the nodes that are to be stored; the index is asked in a thread."""
        return await asyncio.to_thread(self.__call__, nodes, **kwargs)

    def _chunk(self, node: BaseNode) -> Chunk:
        return Chunk(node.get_content(MetadataMode.NONE), node.node_id, {self.metadata_field: node.metadata})


class TaggingStore(BasePydanticVectorStore):
    """
    A vector store that gives nodes their fingerprints and groups in the call that stores them.

    Give it to an ``IngestionPipeline``, or an index, in place of *store*; *guard* knows where that writes. ``add``
    raises if a node is not there afterwards. Where *store* raises, what it has written gets its fingerprints too.
    Everything else is that of *store*.
    """

    store: BasePydanticVectorStore
    guard: NearDupGuard
    stores_text: bool = True
    _guard: Guard = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Be used as *store* is."""
        del context
        self._guard = Guard(self.guard.simhash, self.guard.index, self.guard.text_field)
        self.stores_text, self.is_embedding_query = self.store.stores_text, self.store.is_embedding_query

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex writes it down."""
        return cls.__name__

    @property
    def client(self) -> Any:
        """The client of the store."""
        return self.store.client

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Store *nodes*, and tag them; return their ids."""
        ids = [each.node_id for each in nodes]
        return self._guard.store(ids, lambda: self.store.add(nodes, **kwargs))[0]

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Store *nodes*, and tag them in a thread; return their ids."""
        ids = [each.node_id for each in nodes]
        try:
            stored = await self.store.async_add(nodes, **kwargs)
        except Exception as error:
            error.add_note(await asyncio.to_thread(self._guard.tag_what_is_there, ids))
            raise
        await asyncio.to_thread(self._guard.tag, ids)
        return stored

    def get_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None) -> list[BaseNode]:
        """Return nodes of the store."""
        return self.store.get_nodes(node_ids, filters)

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """Return nodes of the store."""
        return await self.store.aget_nodes(node_ids, filters)

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete the nodes of a document."""
        self.store.delete(ref_doc_id, **delete_kwargs)

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete the nodes of a document."""
        await self.store.adelete(ref_doc_id, **delete_kwargs)

    def delete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """Delete nodes of the store."""
        self.store.delete_nodes(node_ids, filters, **delete_kwargs)

    async def adelete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """Delete nodes of the store."""
        await self.store.adelete_nodes(node_ids, filters, **delete_kwargs)

    def clear(self) -> None:
        """Delete all nodes of the store."""
        self.store.clear()

    async def aclear(self) -> None:
        """Delete all nodes of the store."""
        await self.store.aclear()

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Return what the store finds."""
        return self.store.query(query, **kwargs)

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Return what the store finds."""
        return await self.store.aquery(query, **kwargs)
