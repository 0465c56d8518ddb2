# Generated from methods/lookup.py by tools/generate_clients.py: change that file, then run `make client`.
"""Methods that look something up in an index: near-duplicates, shared passages, plans, one fingerprint."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence

from es_simhash.client.base import AsyncBase
from es_simhash.lookup.documents import read_fingerprint_of
from es_simhash.lookup.find import find, read_rule
from es_simhash.lookup.find_many import find_many, stream_many
from es_simhash.lookup.judge import LookupRule
from es_simhash.lookup.lookup_options import LookupOptions, LookupRequest, Lookups, Verify
from es_simhash.lookup.near_dups import NearDups
from es_simhash.lookup.query import Filter
from es_simhash.mapping.meta import IndexSettings
from es_simhash.mapping.resolve import read_recorded
from es_simhash.passages import find_passages as passages
from es_simhash.passages.found import Overlaps
from es_simhash.passages.lookup import PassageOptions
from es_simhash.texts.measures import Preset
from es_simhash.transport.protocol import Index


class AsyncLookupMethods(AsyncBase):
    """Lookups of near-duplicates and of passages."""

    async def find_near_dups(
        self,
        index: Index,
        text: str | None = None,
        *,
        fingerprint: int | None = None,
        size: int | None = None,
        filter: Filter = None,
        exclude_ids: Iterable[str] = (),
        source: bool | Sequence[str] = False,
        routing: str | None = None,
        max_distance: int | None = None,
        verify: Verify | None = None,
        preset: str | Preset | None = None,
    ) -> NearDups:
        """
        Return every document of *index* that is a near-duplicate of *text* by the rule that the index records.

        The rule is a distance of fingerprints and a similarity of texts; where the index records none, within 12 bits,
        and at least .8 of the 7-letter shingles are the same. ``rule`` of the answer says it. A max_distance alone,
        ``verify=False`` and a *fingerprint* are bits alone. Values of fields (``per``, ``within``) do not count, since
        a text has none. All indices need one rule: else give a preset, or a max_distance.

        The answer is exact: it has each document that the rule accepts, however many there are. A document equal to the
        text is itself a result. A text without features (blank, only punctuation) has no near-duplicates. Cost: one
        search if the candidates fit on a page, else one for each page, and one for every 500 texts of them; before the
        first lookup in an index, one request for its mapping, which is used for a minute, and two for its size, which
        is used for ten.

        Args:
            index:
                Name, list of names, pattern, alias or data stream.
            text:
                The text whose near-duplicates are wanted.
            fingerprint:
                Its fingerprint, unsigned 64 bits, instead of the text.
            size:
                Most near-duplicates returned, the nearest in bits of those that the rule accepts; ``None`` for all.
                Which of several at the same distance are cut off is not defined.
            filter:
                A query, or a list of queries, that the documents also match.
            exclude_ids:
                Ids of documents to leave out.
            source:
                ``False``, ``True`` or the ``_source`` fields that results carry.
            routing:
                Routing value that restricts the search.
            max_distance:
                Largest Hamming distance reported, in bits, inclusive, 0 to 64; by default that of the rule that the
                index records, else 12. Given alone, without verify and preset, it is bits alone: no text is compared.
            verify:
                By default the rule that the index records decides, also about the texts. ``False``: bits alone.
                ``True``: compare the texts as that rule does, else by .8 of their 7-letter shingles (exact Jaccard). A
                number: that bound instead. A :class:`Verification`: that, and whether numbers count. Needs a *text* or
                a document. A near-duplicate whose text cannot be read is kept, last and without similarity;
                ``unverified`` says why.
            preset:
                ``"identical"``, ``"near"``, ``"similar"``, ``"edited"`` or ``"noisy"``: a max_distance and a
                verification that were measured together. An explicit max_distance or verify overrides the preset.

        Returns:
            :class:`NearDups`; empty if there are none (:meth:`find_passages` finds a text that is a part of a longer
            one). By bits alone they are ordered by distance, index and id. Where
            texts are compared, the most similar come first, then by distance, index and id; those whose text could not
            be compared come last. *size* takes the nearest in bits that the rule accepts, in that order too.

        Raises:
            IncompleteSearchError: If near-duplicates may be missing: failed shards, a time-out, a pattern of no index.
            SchemeMismatchError: If the index has another scheme than this client, or several that differ.
            MappingError: If the index lacks the fields.
            TypeError: If an argument has the wrong type, or not exactly one of text and fingerprint is given.
            InvalidInputError: If an argument has a value that cannot be used.
        """
        options = LookupOptions(
            size=size,
            filter=filter,
            exclude_ids=exclude_ids,
            source=source,
            routing=routing,
            max_distance=max_distance,
            verify=verify,
            preset=preset,
        )
        return await self._run(lambda: find(self._server(), index, options, text=text, fingerprint=fingerprint))

    async def find_near_dups_of(
        self,
        index: Index,
        id: str,
        *,
        size: int | None = None,
        filter: Filter = None,
        exclude_ids: Iterable[str] = (),
        source: bool | Sequence[str] = False,
        routing: str | None = None,
        max_distance: int | None = None,
        verify: Verify | None = None,
        preset: str | Preset | None = None,
    ) -> NearDups:
        """
        Return the near-duplicates of the document *id* of *index*, without the document itself.

        The whole rule of the index decides, with ``per`` and ``within``.
        Arguments, result and errors are those of :meth:`find_near_dups`, but *routing*
        only says which document is
        meant, where several have that id: near-duplicates are found in all shards. For those of one routing value, give
        a filter on ``_routing``. Cost: one search more, for the document.

        Raises:
            InvalidInputError: If there is no such document, or it has no fingerprint.
        """
        options = LookupOptions(
            size=size,
            filter=filter,
            exclude_ids=exclude_ids,
            source=source,
            routing=routing,
            max_distance=max_distance,
            verify=verify,
            preset=preset,
        )
        return await self._run(lambda: find(self._server(), index, options, id=id))

    async def find_near_dups_many(
        self,
        index: Index,
        texts: Iterable[str] | None = None,
        *,
        fingerprints: Iterable[int | None] | None = None,
        size: int | None = None,
        filter: Filter = None,
        exclude_ids: Iterable[str] = (),
        source: bool | Sequence[str] = False,
        routing: str | None = None,
        max_distance: int | None = None,
        verify: Verify | None = None,
        preset: str | Preset | None = None,
        lookups: Lookups = "auto",
        memory_bytes: int | None = None,
    ) -> list[NearDups | Exception]:
        """
        Return for each of *texts*, or of *fingerprints*, in order, what :meth:`find_near_dups` would return.

        If a lookup fails, the list has its exception in that place; the other lookups have their answers. Cost: one
        multi-search for every 100 texts, or a few requests for each where hundreds of candidates are expected.

        With ``lookups="memory"`` all fingerprints of *index* are read in a point in time first, and only documents near
        a text are asked for, in that point in time; a plan is refused then. ``"server"`` asks about each text, and
        ``"auto"`` changes to memory where that is faster. The fingerprints take at most *memory_bytes*, by default
        1 GiB, which is enough for 40 million. See docs/lookup.md.

        Raises:
            InvalidInputError: If fingerprints are demanded in memory and cannot be there.
            IncompleteSearchError: The same, because shards do not answer.
        """
        options = LookupOptions(
            size=size,
            filter=filter,
            exclude_ids=exclude_ids,
            source=source,
            routing=routing,
            max_distance=max_distance,
            verify=verify,
            preset=preset,
        )
        request = LookupRequest(lookups=lookups, memory_bytes=memory_bytes)
        return await self._run(lambda: find_many(self._server(), index, texts, fingerprints, options, request))

    def stream_near_dups_many(
        self,
        index: Index,
        texts: Iterable[str] | None = None,
        *,
        fingerprints: Iterable[int | None] | None = None,
        size: int | None = None,
        filter: Filter = None,
        exclude_ids: Iterable[str] = (),
        source: bool | Sequence[str] = False,
        routing: str | None = None,
        max_distance: int | None = None,
        verify: Verify | None = None,
        preset: str | Preset | None = None,
        lookups: Lookups = "auto",
        memory_bytes: int | None = None,
    ) -> AsyncGenerator[NearDups | Exception, None]:
        """
        Yield what :meth:`find_near_dups_many` would return, in order and as it is found.

        *texts* are read as they are needed, up to 1,000 at once, so there may be any number of them.
        """
        options = LookupOptions(
            size=size,
            filter=filter,
            exclude_ids=exclude_ids,
            source=source,
            routing=routing,
            max_distance=max_distance,
            verify=verify,
            preset=preset,
        )
        request = LookupRequest(lookups=lookups, memory_bytes=memory_bytes)
        return self._stream(stream_many(self._server(), index, texts, fingerprints, options, request))

    async def get_fingerprint(self, index: Index, id: str, *, routing: str | None = None) -> int:
        """
        Return the fingerprint that the document *id* of *index* holds, unsigned. Cost: one search.

        *routing* says which document is meant, where several have that id.

        Raises:
            InvalidInputError: If there is no such document, it has no fingerprint, or several have that id, with
                different fingerprints.
        """
        return await self._run(lambda: read_fingerprint_of(self._server(), index, id, routing))

    async def get_settings(self, index: Index) -> Mapping[str, IndexSettings]:
        """
        Return what each index behind *index* records: its scheme, text fields, default distance and rule.

        Indices without our fields are left out. Cost: one request, none within a minute of another call.

        Raises:
            NoIndexError: If no index matches a pattern.
        """
        return await self._run(lambda: read_recorded(self._server(), index))

    async def get_rule(self, index: Index) -> LookupRule:
        """
        Return the rule by which :meth:`find_near_dups_of` finds in *index*. Cost: as :meth:`get_settings`.

        Raises:
            MappingError: If no index has our fields, or indices differ in what they record.
        """
        return await self._run(lambda: read_rule(self._server(), index))

    async def find_passages(
        self,
        index: Index,
        text: str,
        *,
        size: int | None = None,
        filter: Filter = None,
        exclude_ids: Iterable[str] = (),
        source: bool | Sequence[str] = False,
        routing: str | None = None,
        min_contained: float = 0.8,
        min_run: int = 200,
    ) -> Overlaps:
        """
        Return every document of *index* that shares a run of at least min_run letters with *text*, and such passages.

        Documents that contain most of the text, or of which the text contains most, are found too: all of those that
        share a run of 100 letters with it, and most others. The index needs passages
        (``create_index(..., passages=True)``). Letters are counted without spaces and punctuation; a Chinese character
        or a Hangul syllable counts 2.5, kana 4/3. Cost: one search that brings the texts of the candidates, a few
        more where there are more than 100; once a minute another, whether all documents have their passages.

        Args:
            index:
                Name, list of names, pattern, alias or data stream.
            text:
                The text, of any length.
            size:
                Most documents returned, those with the largest share; ``None`` for all.
            filter:
                A query, or a list of queries, that the documents also match.
            exclude_ids:
                Ids of documents to leave out.
            source:
                ``False``, ``True`` or the ``_source`` fields that results carry; costs another search.
            routing:
                Routing value that restricts the search.
            min_contained:
                Smallest share of the shingles of the text that a document has, or the reverse, for it to be returned
                without such a run; 0 to 1.
            min_run:
                Smallest number of letters of a shared run, at least 100; 80 Chinese characters at least.

        Returns:
            :class:`Overlaps`, ordered by the larger of contained and contains; empty if there are none. Documents
            whose text was changed without their passages are named in ``stale``.

        Raises:
            IncompleteSearchError: If documents may be missing: some have no passages yet, shards failed, a text could
                not be read, or more than 10,000 share parts with the text.
            MappingError: If an index has no passages.
            TypeError: If an argument has the wrong type.
            InvalidInputError: If an argument has a value that cannot be used, or the index records no text field.
        """
        options = PassageOptions(
            size=size,
            filter=filter,
            exclude_ids=exclude_ids,
            source=source,
            routing=routing,
            min_contained=min_contained,
            min_run=min_run,
        )
        return await self._run(lambda: passages.find(self._server(), index, options, text=text))

    async def find_passages_of(
        self,
        index: Index,
        id: str,
        *,
        size: int | None = None,
        filter: Filter = None,
        exclude_ids: Iterable[str] = (),
        source: bool | Sequence[str] = False,
        routing: str | None = None,
        min_contained: float = 0.8,
        min_run: int = 200,
    ) -> Overlaps:
        """
        Return what :meth:`find_passages` returns for the text of the document *id* of *index*, without itself.

        *routing* only says which document is meant, where several have that id. Cost: one search more, for that
        document.

        Raises:
            InvalidInputError: If there is no such document with a text, or several of that id have different texts.
        """
        options = PassageOptions(
            size=size,
            filter=filter,
            exclude_ids=exclude_ids,
            source=source,
            routing=routing,
            min_contained=min_contained,
            min_run=min_run,
        )
        return await self._run(lambda: passages.find(self._server(), index, options, id=id))
