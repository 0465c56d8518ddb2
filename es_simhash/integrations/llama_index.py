"""A filter of near-duplicates for LlamaIndex: a postprocessor of nodes."""

from __future__ import annotations

from es_simhash.integrations import missing

try:
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import BaseNode, ImageNode, IndexNode, Node, NodeWithScore, QueryBundle
except ImportError as error:
    raise missing(__name__, error) from error

from es_simhash.integrations.filters import COUNT, IDS, Item, Options


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
