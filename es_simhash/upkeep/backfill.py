"""
Gives fingerprints to documents that are already in an index, and new ones to documents whose text has changed.

Reads every document, and writes only what is missing or wrong, each document only in the version that was
read. Later passes read what changed meanwhile, until nothing is left. ``judge`` decides what a document
needs, counts and remembers; ``put_fields`` finds the indices.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from es_simhash.arguments import Count, check_fields, check_number, check_options, option
from es_simhash.errors import IncompleteSearchError, InvalidInputError
from es_simhash.hashing.pool import FingerprintPool
from es_simhash.lookup.query import Filter, check_filter
from es_simhash.mapping.fields import now
from es_simhash.mapping.port import Port
from es_simhash.mapping.shards import reading_primaries
from es_simhash.transport.answers import check_whole
from es_simhash.transport.buckets import count_documents
from es_simhash.transport.conversation import check_shards, refresh
from es_simhash.transport.pages import Hits, Reading, Step
from es_simhash.transport.protocol import Call, Index, Progress, check_index, document_key, noting, were
from es_simhash.upkeep.needed import FIRST_FAILURES, BackfillProgress, Judge, Judgement, Ledger, unreadable
from es_simhash.upkeep.put_fields import find_targets, has_passages, record_settings, record_text_fields, scheme_of
from es_simhash.writes.bulk import Bulk
from es_simhash.writes.operations import Failure

# One slice reads, and one request writes, so many documents at a time.
PAGE_DOCUMENTS, BULK_DOCUMENTS = 1_000, 500
# Most passes after the first one, over what others changed meanwhile.
PASSES = 8


@dataclass(frozen=True, slots=True)
class BackfillOptions:
    """
    How to backfill, checked.

    Args:
        text_field:
            Field or fields of the text; by default those that the index records.
        filter:
            A query, or a list of queries, that the documents to look at match.
        workers:
            Number of processes that compute fingerprints; by default none. As for :func:`with_fingerprints`.
        slices:
            Slices of the index that are read, and bulk requests that are sent, at once.
        documents_per_second:
            Go no faster than this.
        dry_run:
            Write nothing; count what would change, and forecast the time.
    """

    text_field: str | Sequence[str] | None = None
    filter: Filter = None
    workers: int | None = option(None, Count())
    slices: int = option(2, Count())
    documents_per_second: float | None = option(None, partial(check_number, above=0, advice="a number above 0"))
    dry_run: bool = False

    def __post_init__(self) -> None:
        check_filter(self.filter)
        check_fields("text_field", self.text_field, may_lack=True)
        check_options(self)


async def backfill(
    server: Port, index: Index, options: BackfillOptions
) -> AsyncGenerator[Sequence[BackfillProgress], None]:
    """
    Give every document of *index* the fingerprint of its present text; emit a :class:`BackfillProgress` regularly, and
    at the end. Raises InvalidInputError if the text field differs from the recorded one or no document has it,
    MappingError if an index maps our fields wrongly, or lacks them and no text field is named, and
    IncompleteSearchError if some documents could not be read.
    """
    server = await reading_primaries(server, index)
    await check_shards(server, check_index(index))
    targets = await find_targets(server, index, options.text_field, dry_run=options.dry_run)
    pool = FingerprintPool(scheme_of(targets), workers=options.workers, passages=has_passages(targets))
    try:
        work = _Backfill(index, options, Judge(server.prefix, targets, pool))
        with noting(lambda: were(0 if options.dry_run else work.ledger.changed, "changed")):
            async with aclosing(work.run(server)) as reports:
                async for report in reports:
                    yield [report]
    finally:
        await server.compute(pool.close)


async def finish_backfill(server: Port, index: Index, options: BackfillOptions) -> BackfillProgress:
    """Carry a whole backfill out, and return its last report, with the first failures of all."""
    last: BackfillProgress
    failures: list[Failure] = []
    async with aclosing(backfill(server, index, options)) as parts:
        async for part in parts:
            last = part[-1]
            failures += last.failures[: FIRST_FAILURES - len(failures)]
    return replace(last, failures=tuple(failures))


class _Backfill:
    def __init__(self, index: Index, options: BackfillOptions, judge: Judge) -> None:
        self._index = index
        self._options = options
        self._judge = judge
        self.ledger = Ledger(judge)
        self._began = self._elapsed = 0.0

    async def run(self, server: Port) -> AsyncGenerator[BackfillProgress, None]:
        options, ledger = self._options, self.ledger
        query = {"bool": {"filter": check_filter(options.filter)}}
        await refresh(server, self._index)
        # Shards that do not answer now are found missing when they are read.
        ledger.total, _ = await count_documents(server.patient, self._index, query)
        self._began = await server.compute(time.monotonic)
        body = {"query": query, "seq_no_primary_term": True}
        # Beside a filter, even one that matches everything, a should clause excludes nothing: it only marks hits.
        marked = {"bool": {"filter": [query], "should": [self._judge.not_indexed_query()]}}
        first = {**body, "query": marked, "_source": self._judge.source}
        async with aclosing(self._read(server, first, PAGE_DOCUMENTS)) as steps:
            async for step in steps:
                await self._take_first(server, step)
                yield self._report()
        fields = self._judge.never_seen()
        if fields and ledger.seen:  # an index without documents proves nothing
            raise InvalidInputError(
                f"no document has a field {fields[0]!r} in its _source: check the name of the text field"
            )
        for _ in range(0 if options.dry_run else PASSES):
            before = ledger.work
            ledger.left.clear()
            await refresh(server, self._index)
            # Ids and versions are enough: a document that is as this run left it needs no second look.
            async with aclosing(self._read(server, {**body, "_source": False}, 5 * PAGE_DOCUMENTS)) as steps:
                async for step in steps:
                    if fresh := await server.compute(ledger.find_fresh, step.hits):
                        await self._take_again(server, fresh)
                        yield self._report()
            if ledger.work == before and not ledger.left:
                break
        ledger.end()
        if not options.dry_run:
            await refresh(server, self._index)
            await self._record_passages(server)
        yield self._report(is_done=True)

    async def _read(self, server: Port, body: Mapping[str, Any], page: int) -> AsyncGenerator[Step, None]:
        options = self._options
        reading = Reading(
            server.patient,
            self._index,
            body,
            page=page,
            slices=options.slices,
            documents_per_second=options.documents_per_second,
        )
        async with aclosing(reading.steps()) as steps:
            async for step in steps:
                if unknown := {hit["_index"] for hit in step.hits} - self._judge.targets.keys():
                    reason = f"index {min(unknown)!r} was added while documents were read"
                    raise IncompleteSearchError(f"{reason}: run the backfill again", reasons=(reason,))
                yield step
        check_whole(reading.gaps)

    async def _take_first(self, server: Port, step: Step) -> None:
        """Compare and write a page of the first pass, while the next pages are read."""
        hits, ledger = step.hits, self.ledger
        step.answers = await self._put_right(server, hits, step.calls)
        shown = self._judge.take_shown()
        if not self._options.dry_run:
            await record_text_fields(server, self._judge.targets, shown)
        ledger.seen_by_index.update(hit["_index"] for hit in hits)
        self._elapsed = await server.compute(time.monotonic) - self._began
        rate = self._options.documents_per_second
        if rate is not None and (ahead := ledger.seen / rate - self._elapsed) > 0:
            await server.sleep(ahead)
        server.tell(Progress(ledger.seen, max(ledger.seen, ledger.total), "comparing documents"))

    async def _take_again(self, server: Port, hits: Hits) -> None:
        """Read and compare documents that others changed meanwhile; what cannot be read is for the next pass."""
        for begin in range(0, len(hits), BULK_DOCUMENTS):
            keys = [document_key(hit) for hit in hits[begin : begin + BULK_DOCUMENTS]]
            wanted = [{**key.header(), "_source": self._judge.source} for key in keys]
            answer = await server.patient.mget(body={"docs": wanted})
            for key, item in zip(keys, answer["docs"], strict=True):
                if "error" in item:
                    self.ledger.left.append(unreadable(key, item["error"]))
            await self._put_right(server, [item for item in answer["docs"] if item.get("found")])

    async def _put_right(self, server: Port, documents: Hits, beside: Sequence[Call] = ()) -> list[Any]:
        """Compare *documents*, and write what they lack; return the answers to the calls *beside*."""
        ledger = self.ledger
        at = await server.compute(now)
        wrong: list[Judgement] = await server.compute(ledger.compare, documents, at)
        ledger.seen += len(documents)
        if self._options.dry_run:
            ledger.changed += len(wrong)
            wrong = []
        parts = [wrong[begin : begin + BULK_DOCUMENTS] for begin in range(0, len(wrong), BULK_DOCUMENTS)]
        bulks = [Bulk([operation for judgement in part if (operation := judgement.operation)]) for part in parts]
        calls = [*(bulk.call() for bulk in bulks), *beside]
        answers = await server.patient.together(calls, concurrency=max(2, 2 * self._options.slices)) if calls else []
        for part, bulk, answer in zip(parts, bulks, answers, strict=False):
            await server.compute(ledger.settle, part, await bulk.finish(server, answer))
        return list(answers[len(parts) :])

    async def _record_passages(self, server: Port) -> None:
        """Record the indices in which every document with a text now has the terms of its passages."""
        for name, target in self._judge.targets.items():
            if target.settings.passages == "partial" and name not in self.ledger.unwritten_indices:
                documents, gaps = await count_documents(server.patient, name)
                # Else a filter, or that of an alias, has kept documents out of sight.
                if not gaps and documents <= self.ledger.seen_by_index[name]:
                    await record_settings(server, self._judge.targets, name, passages="complete")

    def _report(self, *, is_done: bool = False) -> BackfillProgress:
        return self.ledger.report(elapsed=self._elapsed if self._options.dry_run else None, is_done=is_done)
