"""
The async client: each method names the flow of the sync client's and hands it to the driver for asyncio.

What the arguments mean stands with the sync methods; nothing is decided here.
"""

from __future__ import annotations

import os
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from es_simhash.client.base import BaseClient, Filter
from es_simhash.client.drivers import read_in_thread, run_async, stream_async
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

__all__ = ["AsyncSimHashClient"]

_T = TypeVar("_T")


class AsyncSimHashClient(BaseClient):
    """
    Near-duplicate search through your own ``AsyncElasticsearch`` or ``AsyncOpenSearch`` client.

    Methods, arguments, results and errors are those of :class:`SimHashClient`; what returns a value there is awaited
    here, and what yields there is an async iterator here.
    """

    _is_async = True

    async def _run(self, flow: Flow[_T]) -> _T:
        return await run_async(flow, self._client, self._dialect)

    async def find_near_dups(
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
        """Return every document of *index* within max_distance of *text*: see the sync client."""
        options = Options(max_distance, size, filter, exclude_ids, source, routing, plan, on_incomplete, verify, preset)
        return await self._run(finding.find(self._context, index, text, fingerprint, options))

    async def find_near_dups_of(
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
        """Return the near-duplicates of the document *id* of *index*: see the sync client."""
        options = Options(max_distance, size, filter, exclude_ids, source, routing, plan, on_incomplete, verify, preset)
        return await self._run(find_of(self._context, index, id, options))

    async def find_near_dups_many(
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
        """Return for each of *texts* its near-duplicates, or the exception of its lookup: see the sync client."""
        options = Options(max_distance, size, filter, exclude_ids, source, routing, plan, on_incomplete, verify, preset)
        return await self._run(find_many(self._context, index, texts, fingerprints, options))

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
    ) -> AsyncGenerator[NearDup, None]:
        """Yield near-duplicates as they are read and in no order: see the sync client."""
        options = Options(max_distance, None, filter, exclude_ids, source, routing, plan)
        flow = finding.scan(self._context, index, text, fingerprint, options)
        return stream_async(flow, self._client, self._dialect, result=[])

    async def explain_plan(self, index: Index, *, max_distance: int | None = None) -> tuple[PlanEstimate, ...]:
        """Return the plans for a lookup in *index* with their estimates: see the sync client."""
        return await self._run(finding.explain(self._context, index, max_distance))

    async def get_fingerprint(self, index: Index, id: str) -> int:
        """Return the fingerprint that the document *id* of *index* holds: see the sync client."""
        return await self._run(read_fingerprint(self._context, index, id))

    async def explain(
        self, index: Index, first: str, second: str, *, text_field: str | Sequence[str] = (), max_changes: int = 4
    ) -> Explanation:
        """Return why two documents are near-duplicates, or are not: see the sync client."""
        return await self._run(explain_documents(self._context, index, first, second, text_field, max_changes))

    async def doctor(
        self, index: Index, *, sample: int = 1_000, text_field: str | Sequence[str] = (), seed: int = 0
    ) -> Diagnosis:
        """Return what is wrong with the fingerprints of *index*, and what to do: see the sync client."""
        return await self._run(diagnose(self._context, index, sample, text_field, seed))

    async def tune(
        self,
        index: Index,
        *,
        sample: int = 500,
        schemes: Sequence[str | Scheme] = (),
        text_field: str | Sequence[str] = (),
        seed: int = 0,
    ) -> Tuning:
        """Return what schemes, distances and presets would find in such texts: see the sync client."""
        return await self._run(tune(self._context, index, sample, schemes, text_field, seed))

    async def with_fingerprints(
        self,
        index: Index,
        actions: Iterable[Any] | AsyncIterable[Any],
        *,
        text_field: str | Sequence[str] | None = None,
        on_partial: OnPartial = "clear",
        on_problem: Callable[[Problem], object] | None = None,
        workers: int | None = None,
    ) -> AsyncIterator[Any]:
        """
        Iterate over *actions* with the fingerprints that *index* wants, for ``async_bulk``: see the sync client.

        An async generator: the mapping is read when the first action is asked for.
        """
        settings = await self._run(read_index_settings(self._context, index))
        finished = with_fingerprints(
            actions if isinstance(actions, AsyncIterable) else _as_async(actions),
            text_field=text_fields_of(settings, text_field),
            scheme=settings.scheme,
            prefix=self._context.prefix,
            value=settings.value,
            on_partial=on_partial,
            on_problem=on_problem,
            workers=workers,
        )
        async for action in finished:
            yield action

    def ingest(
        self,
        index: str,
        documents: Iterable[Any] | AsyncIterable[Any],
        *,
        text_field: str | Sequence[str] | None = None,
        on_duplicate: OnDuplicate | None = "tag",
        max_distance: int | None = None,
        rule: Rule | None = None,
        canonical: str | None = None,
        id_from: ingesting.IdFrom = None,
        on_partial: OnPartial = "clear",
        workers: int | None = None,
    ) -> AsyncGenerator[ingesting.Written, None]:
        """Write *documents*, which may come from an async generator, to *index*: see the sync client."""
        options = ingesting.IngestOptions(
            text_field, on_duplicate, max_distance, rule, canonical, id_from, on_partial, workers
        )

        async def stream() -> AsyncGenerator[ingesting.Written, None]:
            # Documents are read by a thread, beside the requests.
            items = read_in_thread(documents) if isinstance(documents, AsyncIterable) else documents
            flow = ingesting.ingest(self._context, index, items, options)
            async with aclosing(stream_async(flow, self._client, self._dialect, result=[])) as reports:
                async for report in reports:
                    yield report

        return stream()

    async def reconcile(
        self,
        index: Index,
        *,
        since: str | datetime | None = None,
        max_distance: int | None = None,
        rule: Rule | None = None,
        canonical: str | None = None,
        dry_run: bool = False,
    ) -> reconciling.Reconciled:
        """Make the groups of *index* what its rule says: see the sync client."""
        request = GroupingRequest(rule, max_distance, canonical)
        moment = reconciling.check_moment(since)
        return await self._run(reconciling.reconcile(self._context, index, request, since=moment, dry_run=dry_run))

    def groups(self, index: Index) -> AsyncGenerator[grouping.Group, None]:
        """Yield each group of two or more documents of *index*: see the sync client."""
        return stream_async(grouping.groups(self._context, index), self._client, self._dialect, result=[])

    def pairs(
        self, index: Index, against: Index | None = None, *, max_distance: int | None = None
    ) -> AsyncGenerator[grouping.Pair, None]:
        """Yield every pair of near-duplicates: see the sync client."""
        return stream_async(
            grouping.pairs(self._context, index, against, max_distance), self._client, self._dialect, result=[]
        )

    def dedupe(
        self,
        index: Index,
        *,
        action: deduping.Action = "tag",
        dry_run: bool = True,
        max_distance: int | None = None,
        rule: Rule | None = None,
        canonical: str | None = None,
    ) -> AsyncGenerator[deduping.Deduped, None]:
        """Tag or delete the duplicates that *index* holds, and yield a record of each: see the sync client."""
        request = GroupingRequest(rule, max_distance, canonical)
        return stream_async(
            deduping.dedupe(self._context, index, action, request, dry_run=dry_run),
            self._client,
            self._dialect,
            result=[],
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
    ) -> AsyncGenerator[backfilling.BackfillProgress, None]:
        """Give each document of *index* the fingerprint of its present text: see the sync client."""
        options = backfilling.BackfillOptions(
            text_field, filter, workers, slices, page, documents_per_second, checkpoint, dry_run
        )
        return stream_async(backfilling.backfill(self._context, index, options), self._client, self._dialect, result=[])

    async def create_index(
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
        """Create *index* with our fields: see the sync client."""
        ours = self._settings(scheme, text_field, max_distance, value=value)
        return await self._run(manage.create_index(self._context, index, ours, mappings, settings))

    async def put_mapping(
        self,
        index: Index,
        *,
        scheme: str | Scheme | None = None,
        text_field: str | Sequence[str] = (),
        max_distance: int | None = None,
        value: bool | None = None,
    ) -> list[str]:
        """Add our fields to indices that exist: see the sync client."""
        return await self._run(manage.put_mapping(self._context, index, scheme, text_field, max_distance, value=value))

    async def check(self, index: Index) -> list[IndexCheck]:
        """Return, for each index, whether lookups work there and what is wrong: see the sync client."""
        return await self._run(check_indices(self._context, index))

    async def remove(self, index: Index) -> Removal:
        """Take our fields out of the documents of *index*: see the sync client."""
        return await self._run(remove_fields(self._context, index))


async def _as_async(items: Iterable[Any]) -> AsyncIterator[Any]:
    for item in items:
        yield item
