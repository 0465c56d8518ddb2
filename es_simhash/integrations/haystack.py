"""For Haystack: a filter, and a guard before the embedder; components of a pipeline."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from es_simhash.integrations import missing

try:
    from haystack import Document, component
except ImportError as error:
    raise missing(__name__, error) from error

from es_simhash import SimHashClient, Written
from es_simhash.folding.texts import Keep
from es_simhash.integrations.filters import Item, Options
from es_simhash.integrations.guard import Chunk, Guard
from es_simhash.texts.measures import DEFAULT_PRESET, Preset


@component
class NearDupFilter:
    """
    Drop documents that are near-duplicates of one that stays; no server, no model.

    Connect it behind a retriever or a joiner. Documents that stay keep their order, scores, ids and meta; one that
    stands for others is a copy with ``similar_count`` and ``similar_ids`` in its meta. A document with a blob stays,
    since only texts are compared. Its options are those of :func:`es_simhash.distinct_texts`; a
    pipeline with a function, or a preset of your own, cannot be written to a file.

    Examples:
        >>> from haystack import Document
        >>> text = "The council approved the new bridge over the river on Tuesday after a long debate."
        >>> documents = [Document(id="a", content=text), Document(id="b", content=text.upper())]
        >>> NearDupFilter().run(documents)["documents"][0].meta
        {'similar_count': 1, 'similar_ids': ['b']}
    """

    def __init__(self, preset: str | Preset = DEFAULT_PRESET.name, keep: Keep = "first") -> None:
        self.preset, self.keep = preset, keep  # by these names Haystack writes it to a file
        # Without pydantic's checks: an error is one line, as everywhere.
        self._options = Options.model_construct(preset=preset, keep=keep)
        self._options.check()

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """Return the documents that stay, as ``documents``."""
        found = self._options.filtered(documents, _item)
        return {"documents": [document if meta is None else replace(document, meta=meta) for document, meta in found]}

    @component.output_types(documents=list[Document])
    async def run_async(self, documents: list[Document]) -> dict[str, list[Document]]:
        """Return the documents that stay, as ``documents``; they are compared in a thread."""
        return await asyncio.to_thread(self.run, documents)


def _item(document: Document) -> Item:
    return Item(document.content if document.blob is None else None, document.id, document.meta)


@component
class NearDupGuard:
    """
    Let only documents through that are no near-duplicates of what the store has: before the embedder and the writer.

    The store is an index of Elasticsearch or OpenSearch that has our fields (``setup``). A document that nobody can
    judge, or with a blob, goes through; with *force* all do. ``duplicates`` are copies of the others, with
    ``similar_to`` in their meta: the id of what each is near. Once the store has the documents, :meth:`tag` them,
    unless an ingest pipeline of the server adds the fingerprints. A pipeline with it cannot be written to a file,
    because it has a client.
    """

    def __init__(self, simhash: SimHashClient, index: str, text_field: str = "content", *, force: bool = False) -> None:
        self._guard = Guard(simhash, index, text_field)
        self._force = force

    @component.output_types(documents=list[Document], duplicates=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """Return the documents to store, and the others."""
        # By their places: one document may be given twice, and only its second place is near something.
        asked = [] if self._force else [n for n, document in enumerate(documents) if document.blob is None]
        near = self._guard.near({n: _chunk(documents[n]) for n in asked})
        winners = {
            n: outcome.id if outcome.place is None else documents[asked[outcome.place]].id
            for n, outcome in near.items()
        }
        others = [
            replace(documents[n], meta={**documents[n].meta, "similar_to": winner}) for n, winner in winners.items()
        ]
        return {"documents": [document for n, document in enumerate(documents) if n not in near], "duplicates": others}

    def tag(self, ids: Sequence[str]) -> list[Written]:
        """
        Give the documents *ids*, which the store has, their fingerprints and groups; return a report on each.
        Raises IncompleteWriteError if some of them are not there: the others have theirs.
        """
        return self._guard.tag(ids)


def _chunk(document: Document) -> Chunk:
    # An id that is made of the content says nothing more than that: where the store has it, it has the text.
    is_of_content = document.id == document._create_id()  # noqa: SLF001 -- no other way tells it
    return Chunk(document.content, None if is_of_content else document.id, document.meta)
