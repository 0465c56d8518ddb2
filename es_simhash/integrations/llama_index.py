"""For LlamaIndex: a filter (a postprocessor of nodes), and a guard before the embedding."""

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
    from pydantic import Field, PrivateAttr
except ImportError as error:
    raise missing(__name__, error) from error

from es_simhash import Written
from es_simhash.integrations.filters import COUNT, IDS, Item, Options
from es_simhash.integrations.guard import Chunk, Guard


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
        >>> nodes = [NodeWithScore(node=TextNode(text=copy, id_=copy[4:7])) for copy in (text, text.upper())]
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
        found = self.filtered(nodes, lambda scored: _item(scored.node))
        return [
            node if told is None else node.model_copy(update={"node": _copy(node.node, told)}) for node, told in found
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

    Put it before the embedding in an ``IngestionPipeline``. The store is an index of Elasticsearch or OpenSearch with
    our fields (``setup``); once the nodes are there, :meth:`tag` them, unless an ingest pipeline of the server adds the
    fingerprints. A node that nobody can judge stays, and so does one that is not only text; with *force* all stay.
    *text_field* and *metadata_field* are what the store calls these in a document.
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
        asked = {} if self.force else {n: self._chunk(node) for n, node in enumerate(nodes) if _is_text(node)}
        dropped = self._guard.near(asked)
        return [node for n, node in enumerate(nodes) if n not in dropped]

    async def acall(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[BaseNode]:
        """Return the nodes that are to be stored; the index is asked in a thread."""
        return await asyncio.to_thread(self.__call__, nodes, **kwargs)

    def tag(self, ids: Sequence[str]) -> list[Written]:
        """
        Give the nodes *ids*, which the store has, their fingerprints and groups; return a report on each.
        Raises IncompleteWriteError if some of them are not there: the others have theirs.
        """
        return self._guard.tag(ids)

    def _chunk(self, node: BaseNode) -> Chunk:
        return Chunk(node.get_content(MetadataMode.NONE), node.node_id, {self.metadata_field: node.metadata})
