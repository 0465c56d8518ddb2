# Generated from sync_methods/passages.py by tools/generate_async_client.py: change that file, then run `make client`.
"""Methods that look passages up: documents that share runs of text with a text."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable

from es_simhash.client.base import AsyncBase, Filter
from es_simhash.lookup.options import OnIncomplete
from es_simhash.passages import find_flow as passages
from es_simhash.passages.found import Overlap, Overlaps
from es_simhash.passages.lookup import PassageOptions
from es_simhash.transport.names import Index


class AsyncPassageMethods(AsyncBase):
    """Lookups of passages."""

    async def find_passages(
        self,
        index: Index,
        text: str,
        *,
        min_contained: float = 0.8,
        min_run: int = 200,
        size: int | None = None,
        filter: Filter = None,
        exclude_ids: Iterable[str] = (),
        routing: str | None = None,
        on_incomplete: OnIncomplete = "raise",
    ) -> Overlaps:
        """
        Return every document of *index* that shares a run of at least min_run letters with *text*, and such passages.

        Documents that contain most of the text, or of which the text contains most, are found too: all of those that
        share a run of 100 letters with it, and most others. The index needs passages
        (``create_index(..., passages=True)``). Letters are counted without spaces and punctuation; a Chinese character
        or a Hangul syllable counts 2.5, kana 4/3. Cost: one search that brings the texts of the candidates, a second
        one for a text of up to 48 words or 80 Chinese characters, a few more where there are more than 100; once a
        minute another, whether all documents have their passages.

        Args:
            index:
                Name, list of names, wildcard, alias or data stream.
            text:
                The text, of any length.
            min_contained:
                Smallest share of the shingles of the text that a document has, or the reverse, for it to be returned
                without such a run; 0 to 1.
            min_run:
                Smallest number of letters of a shared run, at least 100; 80 Chinese characters at least.
            size:
                Most documents returned, those with the largest share; ``None`` for all.
            filter:
                A query, or a list of queries, that the documents also match.
            exclude_ids:
                Ids of documents to leave out.
            routing:
                Routing value that restricts the search.
            on_incomplete:
                ``"raise"``, or ``"return"`` to get what was found, marked incomplete.

        Returns:
            :class:`Overlaps`, ordered by the larger of contained and contains; empty if there are none. Documents
            whose text was changed without their passages are named in ``stale``.

        Raises:
            IncompleteSearchError: If documents may be missing: some have no passages yet, shards failed, a text could
                not be read, or more than 10,000 share only passages that very many have (:meth:`stream_passages`
                reads them).
            MappingError: If an index has no passages.
            TypeError: If an argument has the wrong type.
            InvalidInputError: If an argument has a value that cannot be used, or the index records no text field.
        """
        options = PassageOptions(
            min_contained=min_contained,
            min_run=min_run,
            size=size,
            filter=filter,
            exclude_ids=exclude_ids,
            routing=routing,
            on_incomplete=on_incomplete,
        )
        return await self._run(passages.find(self._context, index, text, options))

    async def find_passages_of(
        self,
        index: Index,
        id: str,
        *,
        min_contained: float = 0.8,
        min_run: int = 200,
        size: int | None = None,
        filter: Filter = None,
        exclude_ids: Iterable[str] = (),
        routing: str | None = None,
        on_incomplete: OnIncomplete = "raise",
    ) -> Overlaps:
        """
        Return what :meth:`find_passages` returns for the text of the document *id* of *index*, without itself.

        *routing* only says which document is meant, where several have that id. Cost: one search more, for that
        document.

        Raises:
            InvalidInputError: If there is no such document with a text, or several of that id have different texts.
        """
        options = PassageOptions(
            min_contained=min_contained,
            min_run=min_run,
            size=size,
            filter=filter,
            exclude_ids=exclude_ids,
            routing=routing,
            on_incomplete=on_incomplete,
        )
        return await self._run(passages.find_of(self._context, index, id, options))

    async def find_passages_many(
        self,
        index: Index,
        texts: Iterable[str],
        *,
        min_contained: float = 0.8,
        min_run: int = 200,
        size: int | None = None,
        filter: Filter = None,
        exclude_ids: Iterable[str] = (),
        routing: str | None = None,
        on_incomplete: OnIncomplete = "raise",
    ) -> list[Overlaps | Exception]:
        """
        Return for each of *texts*, in order, what :meth:`find_passages` would return, or the exception of the lookup.

        Cost: one lookup after another.
        """
        options = PassageOptions(
            min_contained=min_contained,
            min_run=min_run,
            size=size,
            filter=filter,
            exclude_ids=exclude_ids,
            routing=routing,
            on_incomplete=on_incomplete,
        )
        return await self._run(passages.find_many(self._context, index, texts, options))

    def stream_passages(
        self,
        index: Index,
        text: str,
        *,
        min_contained: float = 0.8,
        min_run: int = 200,
        filter: Filter = None,
        exclude_ids: Iterable[str] = (),
        routing: str | None = None,
    ) -> AsyncGenerator[Overlap, None]:
        """
        Yield the documents that :meth:`find_passages` would return, as they are read and in no order, however many.

        Raises:
            IncompleteSearchError: Before the first one, if documents have no passages yet; after the last one, if
                others may be missing.
        """
        options = PassageOptions(
            min_contained=min_contained, min_run=min_run, filter=filter, exclude_ids=exclude_ids, routing=routing
        )
        return self._stream(passages.stream(self._context, index, text, options))
