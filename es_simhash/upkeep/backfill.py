"""
Gives fingerprints to documents that are already in an index, and new ones to documents whose text has changed.

Reads every document, and writes only what is missing or wrong, each document only in the version that was read. Then
it does the same again, for what changed meanwhile, until nothing is left. ``needed`` decides what a document needs;
``put_fields`` finds the indices. ``remove_fields`` goes the same way, with another judge.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from es_simhash.arguments import Count, check_fields, check_options, option
from es_simhash.errors import IncompleteSearchError
from es_simhash.lookup.query import Filter, check_filter
from es_simhash.mapping.port import Port
from es_simhash.mapping.shards import reading_primaries
from es_simhash.transport.answers import check_whole
from es_simhash.transport.buckets import count_documents
from es_simhash.transport.conversation import check_shards, refresh
from es_simhash.transport.pages import Reading, Step
from es_simhash.transport.protocol import Call, Index, Key, Progress, check_index, noting, were
from es_simhash.upkeep.needed import FIRST_FAILURES, BackfillProgress, Judge, Judgement, Judging
from es_simhash.upkeep.put_fields import find_targets
from es_simhash.writes.bulk import CONFLICT, MISSING, Bulk, send_bulk
from es_simhash.writes.operations import Failure, Outcome, refuse_hindered

# One slice reads, and one request writes, so many documents at a time.
PAGE_DOCUMENTS, BULK_DOCUMENTS = 1_000, 500
# Where others change documents all the time, so many passes are enough.
PASSES = 4
BAD_REQUEST = 400


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
        dry_run:
            Write nothing; count what would change.
    """

    text_field: str | Sequence[str] | None = None
    filter: Filter = None
    workers: int | None = option(None, Count())
    slices: int = option(2, Count())
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
    judge = Judge(server.prefix, targets, workers=options.workers)
    try:
        passes = Passes(index, check_filter(options.filter), judge, options)
        with noting(lambda: were(0 if options.dry_run else passes.changed, "changed")):
            async with aclosing(passes.run(server)) as reports:
                async for report in reports:
                    yield [report]
            if not options.dry_run:
                await refresh(server, index)
            yield [passes.report(is_done=True)]
    finally:
        await server.compute(judge.close)


async def finish_backfill(server: Port, index: Index, options: BackfillOptions) -> BackfillProgress:
    """Carry a whole backfill out, and return its last report, with the first failures of all."""
    last: BackfillProgress
    failures: list[Failure] = []
    async with aclosing(backfill(server, index, options)) as parts:
        async for part in parts:
            last = part[-1]
            failures += last.failures[: FIRST_FAILURES - len(failures)]
    return replace(last, failures=tuple(failures))


class Passes:
    """
    Reads what matches *clauses*, and writes what *judge* says it needs, until a pass finds nothing to write. A document
    that others change first is left for the next pass; what fails is named once, and not tried again.

    Nothing is remembered of a document that is done: a second pass compares it again, which adds a sixth to the time.
    """

    def __init__(self, index: Index, clauses: Sequence[Any], judge: Judging, options: BackfillOptions) -> None:
        self._index = index
        self._query = {"bool": {"filter": list(clauses)}}
        self._options = options
        self._judge = judge
        self.total = self.seen = self.changed = 0
        self.is_settled = True
        self._stale = self._empty = 0
        self._failed: set[Key] = set()
        # Since the last report.
        self._failures: list[Failure] = []
        # Those that others changed before our write, in the last pass.
        self._left: dict[Key, Failure] = {}

    async def run(self, server: Port) -> AsyncGenerator[BackfillProgress, None]:
        """Carry the passes out; in a dry run, one without writing. Yield a report after each page."""
        await refresh(server, self._index)
        # Shards that do not answer now are found missing when they are read.
        self.total, _ = await count_documents(server.patient, self._index, self._query)
        for number in range(1 if self._options.dry_run else PASSES):
            if number:
                await refresh(server, self._index)
            before = self.changed
            self._left.clear()
            async with aclosing(self._read(server)) as steps:
                async for step in steps:
                    await self._take(server, step, is_first=not number)
                    yield self.report()
            if self.changed == before and not self._left:
                break
        else:
            self.is_settled = self._options.dry_run
        for place, failure in self._left.items():
            self._fail(place, failure)

    async def _read(self, server: Port) -> AsyncGenerator[Step, None]:
        query = {"bool": {"filter": [self._query], **self._judge.marks}}
        body = {"query": query, "_source": self._judge.source, "seq_no_primary_term": True}
        reading = Reading(server.patient, self._index, body, page=PAGE_DOCUMENTS, slices=self._options.slices)
        async with aclosing(reading.steps()) as steps:
            async for step in steps:
                if unknown := {hit["_index"] for hit in step.hits} - self._judge.targets.keys():
                    reason = f"index {min(unknown)!r} was added while documents were read"
                    raise IncompleteSearchError(f"{reason}: run the backfill again", reasons=(reason,))
                yield step
        check_whole(reading.gaps)

    async def _take(self, server: Port, step: Step, *, is_first: bool) -> None:
        """Compare and write the documents of a page, while the next pages are read."""
        judged: list[Judgement] = await server.compute(self._judge.judge, step.hits)
        judged = [judgement for judgement in judged if judgement.place not in self._failed]
        wrong = [judgement for judgement in judged if judgement.operation is not None]
        looked_at = judged if is_first else wrong
        self.seen += len(looked_at)
        self._empty += sum(judgement.is_empty for judgement in looked_at)
        for judgement in judged:
            if judgement.failure is not None:
                self._fail(judgement.place, judgement.failure)
        if self._options.dry_run:
            self._count(wrong)
        else:
            step.answers = await self._write(server, wrong, step.calls)
        server.tell(Progress(self.seen, max(self.seen, self.total), "comparing documents"))

    async def _write(self, server: Port, wrong: Sequence[Judgement], beside: Sequence[Call]) -> Sequence[Any]:
        """Write what documents need; return the answers to the calls *beside*."""
        parts = [wrong[begin : begin + BULK_DOCUMENTS] for begin in range(0, len(wrong), BULK_DOCUMENTS)]
        bulks = [Bulk([judgement.operation for judgement in part if judgement.operation]) for part in parts]
        calls = [*(bulk.call() for bulk in bulks), *beside]
        answers = await server.patient.together(calls, concurrency=2 * self._options.slices) if calls else []
        for part, bulk, answer in zip(parts, bulks, answers, strict=False):
            outcomes = await bulk.finish(server, answer)
            refused = {
                place: judgement.otherwise
                for place, (judgement, outcome) in enumerate(zip(part, outcomes, strict=True))
                if outcome.status == BAD_REQUEST and judgement.otherwise is not None
            }
            for place, outcome in zip(refused, await send_bulk(server, list(refused.values())), strict=True):
                outcomes[place] = outcome
            self._settle(part, outcomes)
        return answers[len(parts) :]

    def _settle(self, part: Sequence[Judgement], outcomes: Sequence[Outcome]) -> None:
        for judgement, outcome in zip(part, outcomes, strict=True):
            if outcome.is_done:
                self._count([judgement])
            elif outcome.status == CONFLICT:
                self._left[judgement.place] = outcome.to_failure()
            elif outcome.status != MISSING:
                self._fail(judgement.place, outcome.to_failure())
        refuse_hindered(outcomes)

    def _count(self, judged: Sequence[Judgement]) -> None:
        self.changed += len(judged)
        self._stale += sum(judgement.is_stale for judgement in judged)

    def _fail(self, place: Key, failure: Failure) -> None:
        self._failed.add(place)
        self._failures.append(failure)

    def report(self, *, is_done: bool = False) -> BackfillProgress:
        """Return the present report, with only the failures since the last one."""
        failures, self._failures = tuple(self._failures), []
        return BackfillProgress(
            total=max(self.total, self.seen),
            seen=self.seen,
            changed=self.changed,
            stale=self._stale,
            empty=self._empty,
            failures=failures,
            failed=len(self._failed),
            is_done=is_done,
            is_settled=self.is_settled,
        )
