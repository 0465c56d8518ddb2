# Generated from methods/grouping.py by tools/generate_clients.py: change that file, then run `make client`.
"""Methods that write documents with fingerprints, and make and read groups; operations load on first call."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from es_simhash.arguments import check_fields
from es_simhash.client.base import AsyncBase
from es_simhash.mapping.meta import text_fields_of
from es_simhash.mapping.resolve import read_index_settings
from es_simhash.transport.protocol import Index, OnProgress

if TYPE_CHECKING:
    from typing import Literal

    from es_simhash.groups.pairs_and_groups import Group, Pair
    from es_simhash.groups.reconcile import Reconciled
    from es_simhash.ingest.actions import IdFrom, Problem
    from es_simhash.ingest.decide import OnDuplicate
    from es_simhash.ingest.ingest_options import IngestIdFrom, OpType
    from es_simhash.ingest.screen import Screened
    from es_simhash.ingest.written import Written
    from es_simhash.lookup.lookup_options import Lookups, Verify
    from es_simhash.lookup.query import Filter
    from es_simhash.mapping.rule import Canonical
    from es_simhash.texts.measures import Preset


class AsyncGroupingMethods(AsyncBase):
    """Ingest and groups."""

    def with_fingerprints(
        self,
        index: Index,
        actions: Iterable[Any] | AsyncIterable[Any],
        *,
        text_field: str | Sequence[str] | None = None,
        on_problem: Callable[[Problem], object] | None = None,
        workers: int | None = None,
        id_from: IdFrom = None,
    ) -> AsyncIterator[Any]:
        """
        Iterate over *actions* with the fingerprints that *index* wants, for a bulk helper of the client.

        This is the function of the same name, with the scheme, text fields and fields that the index's mapping records.
        An async client reads the mapping when the first action is read. No duplicates are looked for: :meth:`ingest`
        does that as it writes, :meth:`reconcile` afterwards.

        Both clients send a bulk request again, by themselves, after a broken connection or a 502, 503 or 504, and
        elasticsearch's also after a 429. The server may have done the work of the first one; then a document without
        ``_id`` is written twice. ``id_from="random"`` prevents that: each such document gets an ``_id`` before it is
        sent. With ``_op_type`` ``create`` the second request then reports a conflict (409) for a document that is
        written. :meth:`ingest` always gives ids.
        """
        from es_simhash.ingest.with_fingerprints import check_options, with_fingerprints

        check_options(actions, on_problem=on_problem, workers=workers, id_from=id_from)
        check_fields("text_field", text_field, may_lack=True)
        return self._convert(
            actions,
            lambda: read_index_settings(self._server(), index),
            lambda items, settings: with_fingerprints(
                items,
                text_field=text_fields_of(settings, text_field),
                scheme=settings.scheme,
                prefix=self._context.prefix,
                value=settings.value,
                passages=settings.passages is not None,
                on_problem=on_problem,
                workers=workers,
                id_from=id_from,
            ),
        )

    def ingest(
        self,
        index: str,
        documents: Iterable[Any] | AsyncIterable[Any],
        *,
        text_field: str | Sequence[str] | None = None,
        on_duplicate: OnDuplicate | None = "tag",
        preset: str | Preset | None = None,
        verify: Verify | None = None,
        max_distance: int | None = None,
        canonical: Canonical | None = None,
        per: str | Literal[False] | None = None,
        within: tuple[str, str] | Literal[False] | None = None,
        id_from: IngestIdFrom = None,
        workers: int | None = None,
        op_type: OpType = "index",
        batch: int | None = None,
        lookups: Lookups = "auto",
        memory_bytes: int | None = None,
        progress: OnProgress | None = None,
    ) -> AsyncGenerator[Written, None]:
        """
        Write *documents* to *index* with their fingerprints and groups, and yield a report on each, in order.

        A document is a duplicate if it is within max_distance of one that was written before, in the same batch or not
        yet visible to searches included. Documents are written only as the reports are read. What the server refuses
        because it is busy is sent again; any other refusal is reported, and the other documents are still written.
        Before an error all outcomes that are known are reported, so positions may be missing. Several writers at once
        may miss each other's latest documents; :meth:`reconcile` corrects that. See docs/dedup.md.

        What was written is found after the next refresh of the index, by the server or by
        ``client.indices.refresh(index=...)``; the command line does that at its end.

        Args:
            index:
                Name of an index, alias or data stream.
            documents:
                Documents or bulk actions, as :func:`with_fingerprints` takes them. The id of each is its ``_id``, no
                other field; one without gets a random id, so that a second run adds it again (*id_from*).
            text_field:
                Field or fields of the text; by default those that the index records.
            on_duplicate:
                ``"tag"``: write a duplicate with the id of its canonical. ``"skip"``: do not write it, but tag it if
                the index has its id, because the old text would stay; costs a search for each batch with ids.
                ``None``: do not look for duplicates, write no groups.
            preset:
                ``"identical"``, ``"near"``, ``"similar"``, ``"edited"`` or ``"noisy"``: a max_distance and a similarity
                that were measured together. An explicit max_distance or verify overrides the preset.
            verify:
                Smallest similarity of the texts of duplicates (shingle Jaccard, 0 to 1); ``True`` for that of the
                preset, else that recorded, else .8; ``False`` to go by distance alone. A :class:`Verification` for
                another measure, such as the edit similarity of characters. By default what the index records.
            max_distance:
                Largest distance of a duplicate in bits, inclusive, 0 to 64; by default what the index records, else
                12. The first ingest that groups records these settings in the mapping.
            canonical:
                Which document :meth:`reconcile` prefers as canonical; a list of keys, or one: a date or number field
                (the earliest or smallest; ``"-field"`` for the latest), ``"longest"``, ``"field:a>b>*"``, values of a
                keyword field, the preferred one first, or ``"id"`` (the smallest, which decides last). By default
                ``"simhash.at"``: the document that was grouped first, as ``ingest`` decides.
            per:
                A keyword field; only documents with the same value are duplicates of each other. ``False`` for none.
            within:
                A date field and a span, as in ``("published", "7d")``; only documents whose dates differ by at most
                that are duplicates of each other. ``False`` for none.
            id_from:
                ``"content"`` makes the id of a document that has none from its content, so that the same document
                written again adds nothing; by default the id is random.
            workers:
                Number of processes that compute fingerprints; by default none. As for :func:`with_fingerprints`.
            op_type:
                ``"create"`` only creates documents, as data streams demand; one whose id is taken is reported as
                ``"refused"`` with the kind ``"exists"``, or as ``"unchanged"`` if the index has the same content under
                it. By default a document replaces the one with its id.
            batch:
                Most documents in one request, 1 to 10,000; by default 2,000, and 500 where the server is asked about
                each of them. The first two requests have 50 at most.
            lookups:
                ``"server"``: ask the server about each document. ``"memory"``: read the fingerprints of the index
                first, keep them current, and ask only about documents that have one near them; an error where that is
                not possible. ``"auto"``: ask the server, and change to memory once enough documents have come for it
                to be faster. The decisions are the same. See docs/dedup.md.
            memory_bytes:
                Most memory for these fingerprints, 20 to 60 bytes each, the fewer the more there are; by default 1 GiB.
                If they need more, ``"auto"`` asks the server, and ``"memory"`` is an error that says how much.
            progress:
                Is called with a :class:`Progress` after each part of the work.

        Raises:
            The client's own NotFoundError: If there is no such index; :meth:`create_index` makes it.
            SchemeMismatchError, MappingError, InvalidInputError: Before anything is written. InvalidInputError also
                if the index is grouped by another rule or distance, or its fingerprints cannot be kept in memory and
                ``lookups="memory"``.
        """
        from es_simhash.groups.grouping_request import GroupingRequest
        from es_simhash.ingest.ingest import ingest
        from es_simhash.ingest.ingest_options import IngestOptions
        from es_simhash.lookup.lookup_options import LookupRequest

        options = IngestOptions(
            text_field=text_field,
            on_duplicate=on_duplicate,
            grouping=GroupingRequest(
                preset=preset, verify=verify, max_distance=max_distance, canonical=canonical, per=per, within=within
            ),
            id_from=id_from,
            workers=workers,
            op_type=op_type,
            batch=batch,
            lookup=LookupRequest(lookups=lookups, memory_bytes=memory_bytes),
        )
        return self._feed(documents, lambda items: ingest(self._server(progress), index, items, options))

    def screen(
        self,
        index: str,
        documents: Iterable[Any] | AsyncIterable[Any],
        *,
        text_field: str | Sequence[str] | None = None,
        source: bool | Sequence[str] = False,
        preset: str | Preset | None = None,
        verify: Verify | None = None,
        max_distance: int | None = None,
        canonical: Canonical | None = None,
        per: str | Literal[False] | None = None,
        within: tuple[str, str] | Literal[False] | None = None,
        progress: OnProgress | None = None,
    ) -> AsyncGenerator[Screened, None]:
        """
        Yield for each of *documents*, in order, whether a near-duplicate of it is there already, before it is stored.

        The answer is ``"new"``, ``"near"``, with the winner, or ``"unsure"``, with the reason. It is the decision of
        :meth:`ingest` with ``on_duplicate="skip"``, by the rule that the index records, with its ``per`` and
        ``within``: a document may be near one of the index, or a new one before it in the same call. Nothing is
        written, so a login that may only read is enough; the index is not refreshed, so it knows what searches showed
        when it began, or later.

        It cannot know what others write meanwhile, or what the server, or a pipeline of it, will refuse or change: two
        writers who screen the same text at once are both told that it is new, and :meth:`reconcile` finds that. A
        document whose ``_id`` the index has is compared with the others. All that is new is kept in memory to the end
        of the call, 8 bytes for each letter of a text at most. Cost: a multi-search for every 500 documents, and a few
        small requests; where there are so many that it is cheaper, all fingerprints of a point in time are read first.

        Args:
            index:
                Name of an index, alias or data stream.
            documents:
                Plain texts, or documents as :meth:`ingest` takes them; one in JSON is given as bytes. An action that
                updates or deletes is ``"unsure"``. A plain text is ``"unsure"`` where the rule has ``per`` or
                ``within``.
            text_field:
                Field or fields of the text; by default those that the index records.
            source:
                ``False``, ``True`` or the ``_source`` fields of the winner that the answer carries.
            preset:
                ``"identical"``, ``"near"``, ``"similar"``, ``"edited"`` or ``"noisy"``: a max_distance and a similarity
                that were measured together. An explicit max_distance or verify overrides the preset.
            verify:
                Smallest similarity of the texts of duplicates (shingle Jaccard, 0 to 1); ``True`` for that of the
                preset, else that recorded, else .8; ``False`` to go by distance alone. A :class:`Verification` for
                another measure, such as the edit similarity of characters. By default what the index records.
            max_distance:
                Largest distance of a duplicate in bits, inclusive, 0 to 64; by default what the index records, else
                12. The first ingest that groups records these settings in the mapping.
            canonical:
                Which document :meth:`reconcile` prefers as canonical; a list of keys, or one: a date or number field
                (the earliest or smallest; ``"-field"`` for the latest), ``"longest"``, ``"field:a>b>*"``, values of a
                keyword field, the preferred one first, or ``"id"`` (the smallest, which decides last). By default
                ``"simhash.at"``: the document that was grouped first, as ``ingest`` decides.
            per:
                A keyword field; only documents with the same value are duplicates of each other. ``False`` for none.
            within:
                A date field and a span, as in ``("published", "7d")``; only documents whose dates differ by at most
                that are duplicates of each other. ``False`` for none.
            progress:
                Is called with a :class:`Progress` after each part of the work.

        Raises:
            The client's own NotFoundError: If there is no such index.
            SchemeMismatchError, MappingError, InvalidInputError: As for :meth:`ingest`. InvalidInputError also if
                another rule is given than the index records.
        """
        from es_simhash.groups.grouping_request import GroupingRequest
        from es_simhash.ingest.ingest_options import ScreenOptions
        from es_simhash.ingest.screen import screen

        options = ScreenOptions(
            text_field=text_field,
            source=source,
            grouping=GroupingRequest(
                preset=preset, verify=verify, max_distance=max_distance, canonical=canonical, per=per, within=within
            ),
        )
        return self._feed(documents, lambda items: screen(self._server(progress), index, items, options))

    def tag_written(
        self,
        index: str,
        ids: Iterable[str],
        *,
        preset: str | Preset | None = None,
        verify: Verify | None = None,
        max_distance: int | None = None,
        canonical: Canonical | None = None,
        per: str | Literal[False] | None = None,
        within: tuple[str, str] | Literal[False] | None = None,
        progress: OnProgress | None = None,
    ) -> AsyncGenerator[Written, None]:
        """
        Give documents that another program has just written their fingerprints and groups, and report on each.

        They are read again, in the order of *ids*, get the fingerprints of their texts, and are grouped as
        :meth:`reconcile` does. Each is updated only if it still is the version that was read. Cost: for every 1,000 two
        searches, a bulk request, and a :meth:`reconcile` of these ids.

        Args:
            index:
                Name of an index, alias or data stream.
            ids:
                Ids of documents; one that is not there is reported as ``"refused"``.
            preset, verify, max_distance, canonical, per, within:
                As for :meth:`ingest`.
            progress:
                Is called with a :class:`Progress` after each part of the work.

        Raises:
            The errors of :meth:`backfill` and :meth:`reconcile`.
        """
        from es_simhash.groups.grouping_request import GroupingRequest
        from es_simhash.upkeep.tag_written import tag_written

        request = GroupingRequest(
            preset=preset, verify=verify, max_distance=max_distance, canonical=canonical, per=per, within=within
        )
        return self._stream(tag_written(self._server(progress), index, ids, request))

    async def reconcile(
        self,
        index: Index,
        *,
        since: str | datetime | None = None,
        preset: str | Preset | None = None,
        verify: Verify | None = None,
        max_distance: int | None = None,
        canonical: Canonical | None = None,
        per: str | Literal[False] | None = None,
        within: tuple[str, str] | Literal[False] | None = None,
        dry_run: bool = False,
        regroup: bool = False,
        progress: OnProgress | None = None,
    ) -> Reconciled:
        """
        Rewrite the group fields of *index* that disagree with the rule.

        Each document is rewritten only if nobody changes it meanwhile; a second run writes nothing. Distance, rule and
        order are those that the index records; where it records none, those given are recorded, as by :meth:`ingest`.
        It refreshes *index* at the end, so
        searches show what it wrote.

        Args:
            index:
                Name of an index, alias or data stream, or several that are grouped together.
            since:
                Look only at documents grouped at this moment or later, and at those whose groups they, or canonicals
                deleted meanwhile, may change: a datetime with time zone, or ISO 8601. By default all documents.
            preset, verify, max_distance, canonical, per, within:
                As for :meth:`ingest`.
            dry_run:
                Only count what would be changed; allowed for every grouping, whatever is recorded.
            regroup:
                Change the recorded grouping to the one that is asked for; what is not given stays. A writer that goes
                by the former one ends with an error. Run ``reconcile`` again if it was stopped:
                ``check`` says so until then.
            progress:
                Is called with a :class:`Progress` after each part of the work.

        Raises:
            InvalidInputError: If the index has another grouping, and *regroup* and *dry_run* are false.
            IncompleteSearchError: If not every document could be looked at.
        """
        from es_simhash.groups.grouping_request import GroupingRequest
        from es_simhash.groups.reconcile import check_moment, reconcile

        self._check_flags(dry_run=dry_run, regroup=regroup)
        request = GroupingRequest(
            preset=preset, verify=verify, max_distance=max_distance, canonical=canonical, per=per, within=within
        )
        moment = check_moment(since)
        return await self._run(
            lambda: reconcile(
                self._server(progress, is_dry=dry_run), index, request, since=moment, dry_run=dry_run, regroup=regroup
            )
        )

    def groups(
        self,
        index: Index,
        *,
        sort: Literal["id", "size"] = "id",
        min_size: int = 2,
        filter: Filter = None,
        source: bool | Sequence[str] = False,
        progress: OnProgress | None = None,
    ) -> AsyncGenerator[Group, None]:
        """
        Yield each group of two or more documents of *index*, as the documents say.

        Args:
            index:
                Name, list of names, pattern, alias or data stream.
            sort:
                ``"id"``, or ``"size"``: the groups with the most duplicates first; then the names of all groups are
                kept in memory.
            min_size:
                Fewest documents of a group.
            filter:
                A query, or several; only groups of which a document matches all of them. Such a group is whole.
            source:
                Fields of the documents to return, or ``True`` for all.
            progress:
                Is called with a :class:`Progress` after each part of the work.

        Raises:
            MappingError: If the index was never grouped, or its grouping is changed while this is read.
            IncompleteSearchError: If not every document could be looked at.
        """
        from es_simhash.groups.pairs_and_groups import GroupOptions, groups

        options = GroupOptions(sort=sort, min_size=min_size, filter=filter, source=source)
        return self._stream(groups(self._server(progress), index, options))

    def pairs(
        self,
        index: Index,
        against: Index | None = None,
        *,
        max_distance: int | None = None,
        verify: Verify | None = None,
        preset: str | Preset | None = None,
        progress: OnProgress | None = None,
    ) -> AsyncGenerator[Pair, None]:
        """
        Yield every pair of near-duplicates within *index*, or with one in *index* and one in *against*, each once.

        The rule that the index records decides, as for :meth:`find_near_dups`; a max_distance alone is bits alone.
        All fingerprints are read first; they take some 100 bytes a document. Copies of one text make as many pairs as
        there are pairs of them.

        Args:
            index:
                Name, list of names, pattern, alias or data stream.
            against:
                Another; ``None`` for pairs within *index*.
            max_distance:
                Largest Hamming distance reported, in bits, inclusive, 0 to 64; by default that of the rule that the
                index records, else 12. Given alone, without verify and preset, it is bits alone: no text is compared.
            verify:
                Smallest similarity of the two texts; ``True`` for that of the rule; ``False`` for bits alone; a
                :class:`Verification` for another measure. The texts of documents that are near another are read
                first. A pair whose texts cannot be read is kept, without a similarity, and says so.
            preset:
                ``"identical"``, ``"near"``, ``"similar"``, ``"edited"`` or ``"noisy"``: a max_distance and a
                verification that were measured together. An explicit max_distance or verify overrides the preset.
            progress:
                Is called with a :class:`Progress` after each part of the work.

        Raises:
            SchemeMismatchError: If the two have different schemes.
            IncompleteSearchError: If not every document could be looked at.
        """
        from es_simhash.groups.pairs_and_groups import pairs
        from es_simhash.lookup.lookup_options import LookupOptions

        options = LookupOptions(max_distance=max_distance, verify=verify, preset=preset)
        return self._stream(pairs(self._server(progress), index, against, options))
