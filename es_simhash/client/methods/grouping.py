"""Methods that write documents with fingerprints, and make and read groups; operations load on first call."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from es_simhash.arguments import check_fields
from es_simhash.client.base import SyncBase
from es_simhash.mapping.meta import text_fields_of
from es_simhash.mapping.resolve import read_index_settings
from es_simhash.transport.protocol import Index, OnProgress

if TYPE_CHECKING:
    from es_simhash.groups.grouping_request import GroupingRequest
    from es_simhash.groups.pairs_and_groups import Group, GroupOptions, Pair
    from es_simhash.groups.reconcile import Reconciled
    from es_simhash.ingest.actions import IdFrom, Problem
    from es_simhash.ingest.ingest_options import IngestOptions, ScreenOptions
    from es_simhash.ingest.screen import Screened
    from es_simhash.ingest.written import Written
    from es_simhash.lookup.lookup_options import LookupOptions


class GroupingMethods(SyncBase):
    """Ingest and groups."""

    def with_fingerprints(
        self,
        index: Index,
        actions: Iterable[Any],
        *,
        text_field: str | Sequence[str] | None = None,
        on_problem: Callable[[Problem], object] | None = None,
        workers: int | None = None,
        id_from: IdFrom = None,
    ) -> Iterator[Any]:
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
        documents: Iterable[Any],
        *,
        options: IngestOptions,
        progress: OnProgress | None = None,
    ) -> Generator[Written, None, None]:
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
            ...

        Raises:
            The client's own NotFoundError: If there is no such index; :meth:`create_index` makes it.
            SchemeMismatchError, MappingError, InvalidInputError: Before anything is written. InvalidInputError also
                if the index is grouped by another rule or distance, or its fingerprints cannot be kept in memory and
                ``lookups="memory"``.
        """
        from es_simhash.ingest.ingest import ingest

        return self._feed(
            documents,
            lambda items: ingest(self._server(progress), index, items, options),
        )

    def screen(
        self, index: str, documents: Iterable[Any], *, options: ScreenOptions, progress: OnProgress | None = None
    ) -> Generator[Screened, None, None]:
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
            ...

        Raises:
            The client's own NotFoundError: If there is no such index.
            SchemeMismatchError, MappingError, InvalidInputError: As for :meth:`ingest`. InvalidInputError also if
                another rule is given than the index records.
        """
        from es_simhash.ingest.screen import screen

        return self._feed(documents, lambda items: screen(self._server(progress), index, items, options))

    def tag_written(
        self, index: str, ids: Iterable[str], *, request: GroupingRequest, progress: OnProgress | None = None
    ) -> Generator[Written, None, None]:
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
            request:
                As for :meth:`ingest`.
            ...

        Raises:
            The errors of :meth:`backfill` and :meth:`reconcile`.
        """
        from es_simhash.upkeep.tag_written import tag_written

        return self._stream(tag_written(self._server(progress), index, ids, request))

    def reconcile(
        self,
        index: Index,
        *,
        since: str | datetime | None = None,
        request: GroupingRequest,
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
            request:
                As for :meth:`ingest`.
            dry_run:
                Only count what would be changed; allowed for every grouping, whatever is recorded.
            regroup:
                Change the recorded grouping to the one that is asked for; what is not given stays. A writer that goes
                by the former one ends with an error. Run ``reconcile`` again if it was stopped:
                ``check`` says so until then.
            ...

        Raises:
            InvalidInputError: If the index has another grouping, and *regroup* and *dry_run* are false.
            IncompleteSearchError: If not every document could be looked at.
        """
        from es_simhash.groups.reconcile import check_moment, reconcile

        moment = check_moment(since)
        return self._run(
            lambda: reconcile(
                self._server(progress, is_dry=dry_run),
                index,
                request,
                since=moment,
                dry_run=dry_run,
                regroup=regroup,
            ),
        )

    def groups(
        self, index: Index, *, options: GroupOptions, progress: OnProgress | None = None
    ) -> Generator[Group, None, None]:
        """
        Yield each group of two or more documents of *index*, as the documents say.

        Args:
            ...

        Raises:
            MappingError: If the index was never grouped, or its grouping is changed while this is read.
            IncompleteSearchError: If not every document could be looked at.
        """
        from es_simhash.groups.pairs_and_groups import groups

        return self._stream(groups(self._server(progress), index, options))

    def pairs(
        self,
        index: Index,
        against: Index | None = None,
        *,
        options: Annotated[LookupOptions, "only preset verify max_distance"],
        progress: OnProgress | None = None,
    ) -> Generator[Pair, None, None]:
        """
        Yield every pair of near-duplicates within *index*, or with one in *index* and one in *against*, each once.

        The rule that the index records decides, as for :meth:`find_near_dups`; a max_distance alone is bits alone.
        All fingerprints are read first; they take some 100 bytes a document. Copies of one text make as many pairs as
        there are pairs of them.

        Args:
            against:
                Another; ``None`` for pairs within *index*.
            verify:
                Smallest similarity of the two texts; ``True`` for that of the rule; ``False`` for bits alone; a
                :class:`Verification` for another measure. The texts of documents that are near another are read
                first. A pair whose texts cannot be read is kept, without a similarity, and says so.
            ...

        Raises:
            SchemeMismatchError: If the two have different schemes.
            IncompleteSearchError: If not every document could be looked at.
        """
        from es_simhash.groups.pairs_and_groups import pairs

        return self._stream(pairs(self._server(progress), index, against, options))
