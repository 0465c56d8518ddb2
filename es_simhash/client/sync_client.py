"""
The sync client: each method names a flow and hands it to a driver. No request is spelt here, nothing decided here.
"""

from __future__ import annotations

import os
from collections.abc import (
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from es_simhash.client.base import BaseClient, Filter
from es_simhash.client.drivers import run, stream
from es_simhash.flows.context import Index, read_index_settings
from es_simhash.flows.grouping import (
    dedupe as deduping,
    groups as grouping,
    ingest as ingesting,
    reconcile as reconciling,
)
from es_simhash.flows.lookup import find as finding
from es_simhash.flows.lookup.find_many import find_many
from es_simhash.flows.lookup.find_of import find_of, read_fingerprint
from es_simhash.flows.lookup.options import OnIncomplete, Options
from es_simhash.flows.lookup.verify import Verify
from es_simhash.flows.protocol import Flow
from es_simhash.flows.upkeep import backfill as backfilling, manage
from es_simhash.flows.upkeep.check import IndexCheck, check_indices
from es_simhash.flows.upkeep.doctor import diagnose
from es_simhash.flows.upkeep.explain_documents import explain_documents
from es_simhash.flows.upkeep.remove import Removal, remove_fields
from es_simhash.flows.upkeep.tune import tune
from es_simhash.hashing import Scheme
from es_simhash.index.actions import OnPartial, Problem, with_fingerprints
from es_simhash.index.grouping.decide import OnDuplicate
from es_simhash.index.grouping.rule import GroupingRequest, Rule
from es_simhash.index.meta import IndexSettings, text_fields_of
from es_simhash.index.plan import LookupPlan, PlanEstimate
from es_simhash.index.presets import Preset
from es_simhash.index.rescore import NearDup, NearDups

if TYPE_CHECKING:
    from es_simhash.quality.explain_texts import Explanation
    from es_simhash.quality.health import Diagnosis
    from es_simhash.quality.tuning import Tuning

__all__ = ["SimHashClient"]

_T = TypeVar("_T")


class SimHashClient(BaseClient):
    """
    Near-duplicate search through your own ``Elasticsearch`` or ``OpenSearch`` client.

    The client's connection, authentication and retries are used as they are; its errors pass through unchanged.
    Safe to share between threads as far as the client itself is.

    Args:
        client:
            An ``elasticsearch.Elasticsearch`` or ``opensearchpy.OpenSearch``, or a subclass.
        scheme:
            Scheme to insist on, by name or as an object; ``None`` adopts the one recorded in an index's mapping.
            Must be given where the mapping may not be read.
        prefix:
            Name of the object that holds the fields.
        dialect:
            ``"elasticsearch"`` or ``"opensearch"``, where the client's class does not tell.

    Raises:
        TypeError: If the client is async, or its class is not known and no dialect is given.
        InvalidInputError: If the scheme, prefix or dialect cannot be used.
    """

    _is_async = False

    def _run(self, flow: Flow[_T]) -> _T:
        return run(flow, self._client, self._dialect)

    def find_near_dups(
        self,
        index: Index,
        text: str | None = None,
        *,
        fingerprint: int | None = None,
        max_distance: int | None = None,
        size: int | None = None,
        filter: Filter = None,
        exclude_ids: Iterable[str] = (),
        source: bool | Sequence[str] = False,
        routing: str | None = None,
        plan: LookupPlan | None = None,
        verify: Verify | None = None,
        preset: str | Preset | None = None,
        on_incomplete: OnIncomplete = "raise",
    ) -> NearDups:
        """
        Return every document of *index* within max_distance of *text*, nearest first.

        Exact: each indexed fingerprint within max_distance is in the answer, however many there are. A document
        equal to the text is itself a result. A text without features (blank, only punctuation) has no
        near-duplicates. Cost: one search, and a few more where hundreds of candidates are expected or do not fit on a
        page; before the first lookup in an index, one request for its mapping, trusted for a minute, and two for its
        size, trusted for ten.

        Args:
            index:
                Name, list of names, wildcard, alias or data stream.
            text:
                The text whose near-duplicates are wanted.
            fingerprint:
                Its fingerprint instead, unsigned 64 bits.
            max_distance:
                Largest Hamming distance reported, in bits, inclusive, 0 to 64; by default the index's own, else 3.
            size:
                Most near-duplicates returned, the nearest; ``None`` for all. Which of several at the same distance
                are cut off is not defined.
            filter:
                A query, or a list of queries, that near-duplicates also match.
            exclude_ids:
                Ids of documents to leave out.
            source:
                ``False``, ``True`` or the ``_source`` fields that results carry.
            routing:
                Routing value that restricts the search.
            plan:
                Lookup plan to use, in place of the cheapest.
            verify:
                ``True``: compare the texts of what was found with *text*, drop what shares less than .8 of its
                shingles (exact Jaccard), and order by that similarity, largest first. A number: that bound instead. A
                function of a :class:`NearDup`: where its text is. A :class:`Verification`: all of it. Costs a search
                for every 500 near-duplicates, and needs a *text*. A near-duplicate whose text is not available is kept,
                last and without similarity, and ``unverified`` says why.
            preset:
                ``"identical"``, ``"near"`` or ``"similar"``: a max_distance and a verification bound that were
                measured together. Those given beside it go before.
            on_incomplete:
                ``"raise"``, or ``"return"`` to be given what was found, marked incomplete.

        Returns:
            :class:`NearDups`, ordered by (distance, index, id), or by similarity where verified; empty if there are
            none.

        Raises:
            IncompleteSearchError: If near-duplicates may be missing: failed shards, a time-out, no such index.
            SchemeMismatchError: If the index has another scheme than this client, or several that differ.
            MappingError: If the index lacks the fields.
            TypeError: If an argument has the wrong type, or not exactly one of text and fingerprint is given.
            InvalidInputError: If an argument has a value that cannot be used.
        """
        options = Options(max_distance, size, filter, exclude_ids, source, routing, plan, on_incomplete, verify, preset)
        return self._run(finding.find(self._context, index, text, fingerprint, options))

    def find_near_dups_of(
        self,
        index: Index,
        id: str,
        *,
        max_distance: int | None = None,
        size: int | None = None,
        filter: Filter = None,
        exclude_ids: Iterable[str] = (),
        source: bool | Sequence[str] = False,
        routing: str | None = None,
        plan: LookupPlan | None = None,
        verify: Verify | None = None,
        preset: str | Preset | None = None,
        on_incomplete: OnIncomplete = "raise",
    ) -> NearDups:
        """
        Return the near-duplicates of the document *id* of *index*, without itself.

        Arguments, result and errors as :meth:`find_near_dups`. Cost: a search more, for the document.

        Raises:
            InvalidInputError: If there is no such document, or it has no fingerprint.
        """
        options = Options(max_distance, size, filter, exclude_ids, source, routing, plan, on_incomplete, verify, preset)
        return self._run(find_of(self._context, index, id, options))

    def find_near_dups_many(
        self,
        index: Index,
        texts: Iterable[str] | None = None,
        *,
        fingerprints: Iterable[int | None] | None = None,
        max_distance: int | None = None,
        size: int | None = None,
        filter: Filter = None,
        exclude_ids: Iterable[str] = (),
        source: bool | Sequence[str] = False,
        routing: str | None = None,
        plan: LookupPlan | None = None,
        verify: Verify | None = None,
        preset: str | Preset | None = None,
        on_incomplete: OnIncomplete = "raise",
    ) -> list[NearDups | Exception]:
        """
        Return for each of *texts*, or of *fingerprints*, in order, what :meth:`find_near_dups` would.

        A lookup that fails is its exception in the list, and does not keep the others from their answers. Cost: one
        multi-search for every 100 texts, or a few requests for each where hundreds of candidates are expected.
        """
        options = Options(max_distance, size, filter, exclude_ids, source, routing, plan, on_incomplete, verify, preset)
        return self._run(find_many(self._context, index, texts, fingerprints, options))

    def stream_near_dups(
        self,
        index: Index,
        text: str | None = None,
        *,
        fingerprint: int | None = None,
        max_distance: int | None = None,
        filter: Filter = None,
        exclude_ids: Iterable[str] = (),
        source: bool | Sequence[str] = False,
        routing: str | None = None,
        plan: LookupPlan | None = None,
    ) -> Generator[NearDup, None, None]:
        """
        Yield the near-duplicates that :meth:`find_near_dups` would return, as they are read and in no order.

        For distances or groups so large that the answer should not be held in memory. Closing the generator early
        closes the point in time it reads from.

        Raises:
            IncompleteSearchError: After the last one, if some may be missing.
        """
        options = Options(max_distance, None, filter, exclude_ids, source, routing, plan)
        return stream(finding.scan(self._context, index, text, fingerprint, options), self._client, self._dialect)

    def explain_plan(self, index: Index, *, max_distance: int | None = None) -> tuple[PlanEstimate, ...]:
        """
        Return the plans for a lookup in *index* with their estimates, cheapest first: the first is the one used.

        Args:
            index:
                What would be searched.
            max_distance:
                Distance in bits; by default the index's own, else 3.

        Returns:
            Estimates for the size and skew of the index, within what its server is known to allow.
        """
        return self._run(finding.explain(self._context, index, max_distance))

    def get_fingerprint(self, index: Index, id: str) -> int:
        """
        Return the fingerprint that the document *id* of *index* holds, unsigned. Cost: one search.

        Raises:
            InvalidInputError: If there is no such document, it has no fingerprint, or several indices have one of
                that id with different fingerprints.
        """
        return self._run(read_fingerprint(self._context, index, id))

    def explain(
        self, index: Index, first: str, second: str, *, text_field: str | Sequence[str] = (), max_changes: int = 4
    ) -> Explanation:
        """
        Return why two documents are near-duplicates, or are not: bits, blocks, features, similarity, words.

        Args:
            index:
                Name of an index, alias or data stream.
            first:
                Id of a document.
            second:
                Id of another.
            text_field:
                Field or fields of the text; by default those that the index records.
            max_changes:
                Places shown at which the texts differ.

        Raises:
            InvalidInputError: If a document is missing or has no readable text.
        """
        return self._run(explain_documents(self._context, index, first, second, text_field, max_changes))

    def doctor(
        self, index: Index, *, sample: int = 1_000, text_field: str | Sequence[str] = (), seed: int = 0
    ) -> Diagnosis:
        """
        Return what is wrong with the fingerprints of *index*, or worth knowing, and what to do; reads only.

        Looks at mapping faults, documents without fingerprint, stale and broken fingerprints, short texts, hot blocks,
        numbers that JavaScript rounds, and forecasts candidates by max_distance.

        Args:
            index:
                Name, pattern, alias or data stream.
            sample:
                Fingerprinted documents drawn at random and examined, 1 to 10,000; all if there are fewer.
            text_field:
                Field or fields of the text; by default those that the index records.
            seed:
                Chooses the sample.
        """
        return self._run(diagnose(self._context, index, sample, text_field, seed))

    def tune(
        self,
        index: Index,
        *,
        sample: int = 500,
        schemes: Sequence[str | Scheme] = (),
        text_field: str | Sequence[str] = (),
        seed: int = 0,
    ) -> Tuning:
        """
        Return what schemes, distances and presets would find in texts like those of *index*; writes nothing.

        Edits of known kind are made to a sample of the texts. The index need not have our fields yet.

        Args:
            index:
                Name, pattern, alias or data stream.
            sample:
                Texts drawn at random, 1 to 10,000; all if there are fewer.
            schemes:
                Schemes to compare; by default ``shingles`` and ``words``. The index's own is always among them.
            text_field:
                Field or fields of the text; by default those that the index records.
            seed:
                Chooses the sample and the edits.

        Raises:
            InvalidInputError: If nothing says which field holds the text, or no document sampled has any.
        """
        return self._run(tune(self._context, index, sample, schemes, text_field, seed))

    def with_fingerprints(
        self,
        index: Index,
        actions: Iterable[Any],
        *,
        text_field: str | Sequence[str] | None = None,
        on_partial: OnPartial = "clear",
        on_problem: Callable[[Problem], object] | None = None,
        workers: int | None = None,
    ) -> Iterator[Any]:
        """
        Return an iterator over *actions* with the fingerprints that *index* wants, for a bulk helper of the client.

        As the function of the same name, with the scheme, text fields and fields recorded in the index's mapping.
        """
        settings = self._run(read_index_settings(self._context, index))
        return with_fingerprints(
            actions,
            text_field=text_fields_of(settings, text_field),
            scheme=settings.scheme,
            prefix=self._context.prefix,
            value=settings.value,
            on_partial=on_partial,
            on_problem=on_problem,
            workers=workers,
        )

    def ingest(
        self,
        index: str,
        documents: Iterable[Any],
        *,
        text_field: str | Sequence[str] | None = None,
        on_duplicate: OnDuplicate | None = "tag",
        max_distance: int | None = None,
        rule: Rule | None = None,
        canonical: str | None = None,
        id_from: ingesting.IdFrom = None,
        on_partial: OnPartial = "clear",
        workers: int | None = None,
    ) -> Generator[ingesting.Written, None, None]:
        """
        Write *documents* to *index* with their fingerprints and groups, and yield a report on each, in order.

        A document is a duplicate if it is within max_distance of one that was written before, be it in the same batch
        or not yet visible to searches. Nothing is written but as the reports are read. What the server refuses for
        load is sent again; any other refusal is reported and does not keep the other documents out. Several writers
        at once may miss each other's latest documents; :meth:`reconcile` mends that. docs/dedup.md tells more.

        Args:
            index:
                Name of an index, alias or data stream.
            documents:
                Documents or bulk actions, as :func:`with_fingerprints` takes them.
            text_field:
                Field or fields of the text; by default those that the index records.
            on_duplicate:
                ``"tag"``: write a duplicate with the id of its canonical. ``"skip"``: do not write it. ``"replace"``:
                write it as the canonical, and tag those it duplicates. A function, given the new document and a
                :class:`NearDup` (with source), returns one of these words, or ``"write"`` for no duplicate; async
                clients call it in a thread. ``None``: do not look for duplicates, write no groups.
            max_distance:
                Largest distance of a duplicate in bits, inclusive, 0 to 64; by default what the index records, else
                3. The first ingest that groups records it, the rule and the canonical order in the mapping.
            rule:
                ``"star"``, the default: each duplicate is within max_distance of its canonical. ``"connected"``:
                chains count.
            canonical:
                Which document :meth:`reconcile` prefers as canonical: ``"id"`` (the smallest, the default), a date or
                number field (the earliest or smallest; ``"-field"`` for the latest), or ``"longest"``.
            id_from:
                ``"content"`` for an id that the document's content decides, where it has none, so that the same
                document written again adds nothing; by default a random one.
            on_partial:
                As for :func:`with_fingerprints`.
            workers:
                Number of processes that compute fingerprints; by default none. As for :func:`with_fingerprints`.

        Raises:
            SchemeMismatchError, MappingError, InvalidInputError: Before anything is written. InvalidInputError also
                if the index is grouped by another rule or distance.
        """
        options = ingesting.IngestOptions(
            text_field, on_duplicate, max_distance, rule, canonical, id_from, on_partial, workers
        )
        return stream(ingesting.ingest(self._context, index, documents, options), self._client, self._dialect)

    def reconcile(
        self,
        index: Index,
        *,
        since: str | datetime | None = None,
        max_distance: int | None = None,
        rule: Rule | None = None,
        canonical: str | None = None,
        dry_run: bool = False,
    ) -> reconciling.Reconciled:
        """
        Make the groups of *index* what its rule says, whoever wrote the documents, in whatever order.

        Rewrites only documents that say something else, each only if nobody changes it meanwhile; run again, it
        writes nothing. Distance, rule and order are those that the index records; where nothing is recorded, those
        given are, as by :meth:`ingest`.

        Args:
            index:
                Name of an index, alias or data stream, or several that are grouped together.
            since:
                Look only at documents grouped at this moment or later, and what they, and canonicals deleted
                meanwhile, may have upset: a datetime with time zone, or ISO 8601. By default everything is looked at.
            max_distance:
                As for :meth:`ingest`.
            rule:
                As for :meth:`ingest`.
            canonical:
                As for :meth:`ingest`.
            dry_run:
                Only count what would be changed.

        Raises:
            InvalidInputError: If the index is grouped by another rule, distance or order.
            IncompleteSearchError: If not every document could be looked at.
        """
        request = GroupingRequest(rule, max_distance, canonical)
        moment = reconciling.check_moment(since)
        return self._run(reconciling.reconcile(self._context, index, request, since=moment, dry_run=dry_run))

    def groups(self, index: Index) -> Generator[grouping.Group, None, None]:
        """
        Yield each group of two or more documents of *index*, as the documents say, by id.

        Raises:
            MappingError: If the index was never grouped.
            IncompleteSearchError: If not every document could be looked at.
        """
        return stream(grouping.groups(self._context, index), self._client, self._dialect)

    def pairs(
        self, index: Index, against: Index | None = None, *, max_distance: int | None = None
    ) -> Generator[grouping.Pair, None, None]:
        """
        Yield every pair of near-duplicates within *index*, or with one in *index* and one in *against*, each once.

        Reads all fingerprints first; some 60 bytes a document. Copies of one text make as many pairs as there are
        pairs of them.

        Args:
            index:
                Name, list of names, wildcard, alias or data stream.
            against:
                Another; ``None`` for pairs within *index*.
            max_distance:
                Largest distance in bits, inclusive, 0 to 64; by default the index's own, else 3.

        Raises:
            SchemeMismatchError: If the two have different schemes.
            IncompleteSearchError: If not every document could be looked at.
        """
        return stream(grouping.pairs(self._context, index, against, max_distance), self._client, self._dialect)

    def dedupe(
        self,
        index: Index,
        *,
        action: deduping.Action = "tag",
        dry_run: bool = True,
        max_distance: int | None = None,
        rule: Rule | None = None,
        canonical: str | None = None,
    ) -> Generator[deduping.Deduped, None, None]:
        """
        Tag or delete the duplicates that *index* holds, and yield a record of each; by default only show them.

        The canonical of each group stays. A document is deleted only if it and its canonical are still as they were
        when they were compared; its record holds its source.

        Args:
            index:
                Name, list of names, alias or data stream.
            action:
                ``"tag"``, as :meth:`reconcile`, or ``"delete"``.
            dry_run:
                Change nothing, and yield what would be done.
            max_distance:
                As for :meth:`reconcile`.
            rule:
                As for :meth:`reconcile`.
            canonical:
                As for :meth:`reconcile`.
        """
        request = GroupingRequest(rule, max_distance, canonical)
        return stream(
            deduping.dedupe(self._context, index, action, request, dry_run=dry_run), self._client, self._dialect
        )

    def backfill(
        self,
        index: Index,
        *,
        text_field: str | Sequence[str] | None = None,
        filter: Filter = None,
        workers: int = 1,
        slices: int = 2,
        page: int = 1_000,
        documents_per_second: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        dry_run: bool = False,
    ) -> Generator[backfilling.BackfillProgress, None, None]:
        """
        Give each document of *index* the fingerprint of its present text, and yield how far that is.

        Fingerprints that are missing are added, stale ones mended; what is right is left alone. A document that
        somebody changes meanwhile is read again, so nobody's change is lost. Our fields are added to the mapping
        where it lacks them. The work is done as the reports are read; run again, it goes on.

        Args:
            index:
                Name, list of names, wildcard, alias or data stream.
            text_field:
                Field or fields of the text; by default those that the index records.
            filter:
                A query, or a list of queries, that the documents to look at match.
            workers:
                Processes that compute fingerprints; started only where there is enough to do. A script that uses
                more than one must guard its entry point: ``if __name__ == "__main__"``.
            slices:
                Slices of the index read, and bulk requests sent, at once.
            page:
                Documents a slice and page.
            documents_per_second:
                Go no faster than this.
            checkpoint:
                File that records what is done, 8 bytes a document; with the same file, a later run goes on.
            dry_run:
                Write nothing; count what would change, and forecast the time.

        Raises:
            MappingError: If the index lacks the fields and they cannot be added.
            IncompleteSearchError: If not every document could be looked at.
            InvalidInputError: If an argument cannot be used.
        """
        options = backfilling.BackfillOptions(
            text_field, filter, workers, slices, page, documents_per_second, checkpoint, dry_run
        )
        return stream(backfilling.backfill(self._context, index, options), self._client, self._dialect)

    def create_index(
        self,
        index: str,
        *,
        scheme: str | Scheme | None = None,
        text_field: str | Sequence[str] = (),
        max_distance: int | None = None,
        value: bool = True,
        mappings: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> IndexSettings:
        """
        Create *index* with our fields, and return what its mapping now records.

        Args:
            index:
                Name of the new index.
            scheme:
                Scheme of its fingerprints; by default this client's, else the library's default.
            text_field:
                Field or fields that the text comes from, recorded for ingest and backfill.
            max_distance:
                Distance that lookups use unless told otherwise, in bits; ``None`` leaves it at 3.
            value:
                Whether documents carry the signed 64-bit copy for scripts.
            mappings:
                Mapping of the caller's own fields; kept as it is.
            settings:
                Index settings, such as ``{"number_of_shards": 1}``.

        Raises:
            InvalidInputError: If an argument cannot be used, or the mappings given use the prefix already.
        """
        ours = self._settings(scheme, text_field, max_distance, value=value)
        return self._run(manage.create_index(self._context, index, ours, mappings, settings))

    def put_mapping(
        self,
        index: Index,
        *,
        scheme: str | Scheme | None = None,
        text_field: str | Sequence[str] = (),
        max_distance: int | None = None,
        value: bool | None = None,
    ) -> list[str]:
        """
        Add our fields to indices that exist; return the names of those changed.

        What is not given stays as an index records it; the caller's own fields and ``_meta`` keys stay too. Arguments
        as :meth:`create_index`.

        Raises:
            MappingError: If an index uses the prefix for something else, or records another scheme.
        """
        return self._run(manage.put_mapping(self._context, index, scheme, text_field, max_distance, value=value))

    def check(self, index: Index) -> list[IndexCheck]:
        """
        Return, for each index, whether lookups work there and what is wrong; reads only.
        """
        return self._run(check_indices(self._context, index))

    def remove(self, index: Index) -> Removal:
        """
        Take our fields out of the documents of *index*, and our entry out of its ``_meta``.

        Fields once mapped stay in the mapping, empty. Where the server allows no scripts, ``_source`` keeps the
        prefix with a null.
        """
        return self._run(remove_fields(self._context, index))
