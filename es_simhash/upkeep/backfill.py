"""
Gives fingerprints to documents that are already in an index, and new ones to documents whose text has changed.

Reads every document, and writes only what is missing or wrong, each document only in the version that was
read. Later passes read what changed meanwhile, until nothing is left. ``needed`` decides what a document
needs, counts and remembers; ``put_fields`` finds the indices. ``remove_fields`` goes the same way, with another judge.
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
from es_simhash.lookup.query import Filter, check_filter
from es_simhash.mapping.port import Port
from es_simhash.mapping.shards import reading_primaries
from es_simhash.transport.answers import check_whole
from es_simhash.transport.buckets import count_documents
from es_simhash.transport.conversation import check_shards, refresh
from es_simhash.transport.pages import Hits, Reading, Step
from es_simhash.transport.protocol import Call, Index, Progress, check_index, document_key, noting, were
from es_simhash.upkeep.needed import FIRST_FAILURES, BackfillProgress, Judge, Judgement, Judging, Ledger, unreadable
from es_simhash.upkeep.put_fields import find_targets, record_settings, record_text_fields
from es_simhash.writes.bulk import Bulk, send_bulk
from es_simhash.writes.operations import Failure

# One slice reads, and one request writes, so many documents at a time.
PAGE_DOCUMENTS, BULK_DOCUMENTS = 1_000, 500
# Most passes after the first one, over what others changed meanwhile.
PASSES = 8
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
    judge = Judge(server.prefix, targets, workers=options.workers)
    try:
        passes = Passes(index, check_filter(options.filter), judge, options)
        with noting(lambda: were(0 if options.dry_run else passes.ledger.changed, "changed")):
            async with aclosing(passes.first(server)) as reports:
                async for report in reports:
                    if not options.dry_run:
                        await record_text_fields(server, judge.targets, judge.take_shown())
                    yield [report]
            fields = judge.never_seen()
            if fields and passes.ledger.seen:  # an index without documents proves nothing
                raise InvalidInputError(
                    f"no document has a field {fields[0]!r} in its _source: check the name of the text field"
                )
            if not options.dry_run:
                async with aclosing(passes.again(server)) as reports:
                    async for report in reports:
                        yield [report]
                await refresh(server, index)
                await _record_passages(server, judge, passes.ledger)
            yield [passes.report(is_done=True)]
    finally:
        await server.compute(judge.close)


async def _record_passages(server: Port, judge: Judge, ledger: Ledger) -> None:
    """Record the indices in which every document with a text now has the terms of its passages."""
    for name, target in judge.targets.items():
        if target.settings.passages == "partial" and name not in ledger.unwritten_indices:
            documents, gaps = await count_documents(server.patient, name)
            # Else a filter, or that of an alias, has kept documents out of sight.
            if not gaps and documents <= ledger.seen_by_index[name]:
                await record_settings(server, judge.targets, name, passages="complete")


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
    """Reads what matches *clauses*, writes what *judge* says it needs, and reads again what changed meanwhile."""

    def __init__(self, index: Index, clauses: Sequence[Any], judge: Judging, options: BackfillOptions) -> None:
        self._index = index
        self._query = {"bool": {"filter": list(clauses)}}
        self._options = options
        self._judge = judge
        self.ledger = Ledger(judge)
        self._began = self._elapsed = 0.0
        # Whether the server took only the second way of a whole request, as where it runs no scripts.
        self._is_refused = False

    async def first(self, server: Port) -> AsyncGenerator[BackfillProgress, None]:
        """Look at every document."""
        await refresh(server, self._index)
        # Shards that do not answer now are found missing when they are read.
        self.ledger.total, _ = await count_documents(server.patient, self._index, self._query)
        self._began = await server.compute(time.monotonic)
        marked = {"bool": {"filter": [self._query], **self._judge.marks}}
        body = {"query": marked, "_source": self._judge.source}
        async with aclosing(self._read(server, body, PAGE_DOCUMENTS)) as steps:
            async for step in steps:
                await self._take_first(server, step)
                yield self.report()

    async def again(self, server: Port) -> AsyncGenerator[BackfillProgress, None]:
        """Look at the documents that are not as this run left them, until there are none; what is left has failed."""
        ledger, body = self.ledger, {"query": self._query, "_source": False}
        for _ in range(PASSES):
            before = ledger.work
            ledger.left.clear()
            await refresh(server, self._index)
            async with aclosing(self._read(server, body, 5 * PAGE_DOCUMENTS)) as steps:
                async for step in steps:
                    if fresh := await server.compute(ledger.find_fresh, step.hits):
                        await self._take_again(server, fresh)
                        yield self.report()
            if ledger.work == before and not ledger.left:
                break
        ledger.end()

    async def _read(self, server: Port, body: Mapping[str, Any], page: int) -> AsyncGenerator[Step, None]:
        options = self._options
        reading = Reading(
            server.patient,
            self._index,
            {**body, "seq_no_primary_term": True},
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
        wrong: list[Judgement] = await server.compute(ledger.compare, documents)
        ledger.seen += len(documents)
        if self._options.dry_run:
            ledger.changed += len(wrong)
            wrong = []
        parts = [wrong[begin : begin + BULK_DOCUMENTS] for begin in range(0, len(wrong), BULK_DOCUMENTS)]
        asked = [
            [(self._is_refused and judgement.otherwise) or judgement.operation for judgement in part] for part in parts
        ]
        bulks = [Bulk([operation for operation in part if operation]) for part in asked]
        calls = [*(bulk.call() for bulk in bulks), *beside]
        answers = await server.patient.together(calls, concurrency=max(2, 2 * self._options.slices)) if calls else []
        for part, bulk, answer in zip(parts, bulks, answers, strict=False):
            outcomes = await bulk.finish(server, answer)
            refused = {
                place: operation
                for place, outcome in enumerate(outcomes)
                if outcome.status == BAD_REQUEST and (operation := part[place].otherwise)
            }
            seconds = await send_bulk(server, list(refused.values()))
            self._is_refused |= len(refused) == len(part) and all(outcome.is_done for outcome in seconds)
            for place, outcome in zip(refused, seconds, strict=True):
                outcomes[place] = outcome
            await server.compute(ledger.settle, part, outcomes)
        return list(answers[len(parts) :])

    def report(self, *, is_done: bool = False) -> BackfillProgress:
        return self.ledger.report(elapsed=self._elapsed if self._options.dry_run else None, is_done=is_done)
