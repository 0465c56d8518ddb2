"""
The pipeline that writes documents with fingerprints and groups, and reports on each.

While one batch is decided, the near-duplicates of the next are looked up; while it is written, the one after that is
read and fingerprinted.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from contextlib import ExitStack, aclosing, contextmanager
from dataclasses import dataclass, replace
from operator import length_hint
from typing import Any

from es_simhash.arguments import check_name
from es_simhash.errors import shorten
from es_simhash.groups.recorded import keep_recorded, record_grouping, settle_grouping
from es_simhash.ingest.content_reader import make_reader
from es_simhash.ingest.decide import DecisionRule, Existing, Known, decide
from es_simhash.ingest.ingest_options import IngestOptions
from es_simhash.ingest.item import Item
from es_simhash.ingest.near import Asked, NearLookup
from es_simhash.ingest.reading import Batch, GroupedIngest, Source, WriteTarget, check_indices, find_write_target
from es_simhash.ingest.settle import settle
from es_simhash.ingest.with_fingerprints import check_iterable
from es_simhash.ingest.written import Written, report
from es_simhash.mapping.context import Resolved, TextFields
from es_simhash.mapping.faults import refuse_hidden_groups
from es_simhash.mapping.fields import now
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import agree, check_unchanged, resolve_index
from es_simhash.mapping.rule import Grouping
from es_simhash.mapping.shards import reading_primaries
from es_simhash.mapping.user_fields import milliseconds_of
from es_simhash.transport.conversation import check_shards, unless_refused
from es_simhash.transport.feed import Feed
from es_simhash.transport.protocol import Call, Compute, Progress, check_index
from es_simhash.transport.refusals import is_no_index
from es_simhash.writes.bulk import Bulk
from es_simhash.writes.targets import read_source_modes, refuse_masked_values, refuse_unseen


@contextmanager
def _told_how_to_create() -> Iterator[None]:
    """Let the error of the client for an index that does not exist say how to make one."""
    try:
        yield
    except Exception as error:
        if is_no_index(error):
            error.add_note("create_index(index, text_field=FIELD) makes it")
        raise


async def ingest(
    server: Port, index: str, documents: Iterable[Any] | Feed[Any], options: IngestOptions, *, dry_run: bool = False
) -> AsyncGenerator[Sequence[Written], None]:
    """
    Write *documents* with their fingerprints to *index*; emit a :class:`Written` for each, in order.
    Cost: before the first document some five requests about the index; if documents are grouped, also a bulk that shows
    what the login may not see, a refresh, and four that record the rule and measure the index. For every 2,000
    documents (500 where the server is asked about each) a look at the mapping and a bulk; if they are grouped, a
    multi-search, or by the table a search, and a search of what is near, while the batch before it is decided. A
    refresh after every 100,000. A dry run takes no document, and refuses what is refused before the first one, but for
    a login that sees masks: only a write shows that, and a dry run needs no right to write.
    """
    check_index(check_name("index", index))
    if not isinstance(documents, Feed):
        check_iterable("documents", documents)
    with ExitStack() as stack:
        stack.enter_context(_told_how_to_create())
        server = await reading_primaries(server, index)
        if dry_run:
            resolved = await resolve_index(server, index)
            target = WriteTarget(resolved, agree(resolved, server.context))
            if options.on_duplicate is not None:
                await _choose_grouping(server, index, target, options, record=False)
            return
        target = await find_write_target(server, index)
        source = Source(index, documents, target=target, options=options, prefix=server.prefix)
        stack.callback(source.close)
        server.context.learn(index, agree(target.resolved, server.context), target.resolved)
        engine: Engine | None = None
        await check_shards(server, index)  # before a write, which waits for a missing one
        if options.on_duplicate is not None:
            await refuse_unseen(server, target.resolved)
            engine = await make_engine(server, target, source, options, length_hint(documents))
        done = 0
        async with aclosing(run_batches(server, index, source, target, engine)) as batches:
            async for items in batches:
                yield [report(item, prefix=server.prefix) for item in items]
                server.tell(Progress(done := done + len(items), None, "writing documents"))


async def make_engine(
    server: Port, target: WriteTarget, source: Source, options: IngestOptions, total: int, *, is_writing: bool = True
) -> Engine:
    """
    Return what decides the documents of *source*, *total* or more, ready for the first of them; *source* then reads
    what they are compared by.
    """
    index, on_duplicate = source.index, options.on_duplicate or "tag"
    mappings, grouping = await _choose_grouping(server, index, target, options, record=is_writing)
    if on_duplicate == "skip":
        grouping = replace(grouping, measure=grouping.measure.noting_numbers())
    source.reader = make_reader(grouping, mappings.values(), source.text_fields)
    is_recorded = all(own.text_fields for own in target.resolved.settings_of.values())
    ingest = GroupedIngest(
        server.context,
        index,
        target.settings,
        options,
        DecisionRule(grouping, on_duplicate, target.settings.scheme if is_recorded else None),
        Known(grouping.max_distance),
        TextFields(target.resolved.text_fields, source.text_fields),
        is_writing=is_writing,
    )
    engine = Engine(ingest, NearLookup(ingest, total, is_alias=bool(mappings) and index not in mappings))
    await engine.lookup.prepare(server)
    return engine


async def _choose_grouping(
    server: Port, index: str, target: WriteTarget, options: IngestOptions, *, record: bool
) -> tuple[Mapping[str, Mapping[str, Any]], Grouping]:
    """Return the mappings with their source modes, and the grouping; refuse indices that cannot be grouped so."""
    mappings = target.resolved.mappings
    if record:  # who writes nothing updates nothing
        mappings = await read_source_modes(server, index, mappings)
    refuse_hidden_groups(mappings, prefix=server.prefix)
    grouping = await settle_grouping(server, target.resolved, options.grouping, record=record)
    if grouping.per is not None:
        await refuse_masked_values(server, index, grouping.per)
    return mappings, grouping


async def _check(server: Port, index: str, target: WriteTarget, engine: Engine | None) -> None:
    """Refuse to go on in an index that now has another scheme or another grouping."""
    await check_unchanged(server, index, target.settings)
    if engine is not None:
        ingest = engine.ingest
        await keep_recorded(server, index, ingest.grouping, before=target.resolved, record=ingest.is_writing)


@dataclass(slots=True)
class Engine:
    """
    What is done with a batch before and after it is written, where documents are grouped.
    *is_shown*: a refresh has made all that is known visible to the lookups of the next batch.
    """

    ingest: GroupedIngest
    lookup: NearLookup
    is_shown: bool = False

    async def complete(self, server: Port, items: Sequence[Item], existing: Existing) -> Existing:
        """Return what is near *items*, with copies where no canonical accepts; mark what stays as it is."""
        if existing.held and existing.may_stay:
            await server.compute(self._keep_unchanged, items, existing.held, existing.gone)
        existing = await self.lookup.with_copies(server, items, existing)
        if self.ingest.rule.on_duplicate != "tag":
            await self._keep_updates(server, items, existing)
        return existing

    async def decide_and_look_up(
        self, server: Port, items: Sequence[Item], existing: Existing, following: Sequence[Item]
    ) -> tuple[Asked | None, Sequence[Any]]:
        """Decide *items*, while the server looks up those *following*; return what was asked, and the answers."""
        ingest = self.ingest
        at = await server.compute(now)
        sizes, known = ingest.options.sizes, ingest.known
        is_full = len(known.by_id) >= sizes.unshown or known.occupies(sizes.unshown_bytes)
        self.is_shown = ingest.is_writing and bool(items) and is_full
        asked = None if self.is_shown else await self.lookup.ask(server, following)
        deciding = Compute(decide_items, (items, existing, known, ingest.rule, ingest.prefix, at))
        calls = asked.calls if asked else ()
        [failure, *answers] = await server.together([deciding, *calls], concurrency=1 + len(calls))
        if isinstance(failure, Exception):
            raise failure
        if self.is_shown:
            # Only now, because *items* were looked up before the refresh; those after them see what it makes visible.
            await self.lookup.prepare(server)
            asked = await self.lookup.ask(server, following)
            answers = await server.together(asked.calls) if asked else []
        return asked, answers

    def _keep_unchanged(
        self, items: Sequence[Item], held: Mapping[str, Sequence[Mapping[str, Any]]], gone: AbstractSet[str]
    ) -> None:
        """Let each of *items* that the index holds as it is given be done: it keeps its group, none of *gone*."""
        written: set[str | None] = set()
        for item in items:
            hits = () if item.given_id is None else held.get(item.given_id, ())
            # Searches do not show yet what this ingest wrote.
            is_newest = item.given_id not in written and item.given_id not in self.ingest.known.by_id
            if hits and is_newest and item.is_held(hits, self.ingest.index, self.ingest.prefix, gone):
                continue
            if item.outcome is None and item.operation is not None:
                written.add(str(item.operation.header.get("_id")))

    async def _keep_updates(self, server: Port, items: Sequence[Item], existing: Existing) -> None:
        """Let none of *items* be skipped whose id is in the index: what is there would keep its old text."""
        given = [item for item in items if item.given_id and item.operation and item.operation.kind == "index"]
        for item in await self.lookup.find_present(server, given, existing.held):
            item.must_write = True

    async def settle(self, server: Port, items: Sequence[Item], existing: Existing) -> Exception | None:
        """Do what depends on the outcomes of *items*, which are known from now on; return what went wrong."""
        failure = await settle(server, self.ingest, items, existing)
        known = self.ingest.known
        if self.is_shown:
            known.clear()
            self.is_shown = False
        for item in items:
            is_done = item.outcome.is_done if item.outcome else not self.ingest.is_writing and not item.is_skipped
            if is_done and item.is_decided and item.decision is not None:
                known.add(item)
        self.lookup.note_written(items)
        return failure


async def run_batches(
    server: Port, index: str, source: Source, target: WriteTarget, engine: Engine | None
) -> AsyncGenerator[Sequence[Item], None]:
    """
    Yield the documents of *source* batch by batch, each with what became of it. Before a batch is written, the index
    must still have its settings. Three are on their way: while *batch* is decided, *following* is looked up; while it
    is written, the one after that is read.
    """
    lookup = engine.lookup if engine else None
    resolved = target.resolved
    existing = Existing()
    batch: Batch | None = Batch(())  # so that the first documents are looked up as all others are
    following: Batch | None = await server.compute(source.take)
    while batch is not None:
        # Decide; near and facts, of what follows.
        asked: Asked | None = None
        answers: Sequence[Any] = ()
        if engine:
            after = following.items if following else ()
            existing = await engine.complete(server, batch.items, existing)
            asked, answers = await engine.decide_and_look_up(server, batch.items, existing, after)
        # Bulk; read and fingerprint, of what comes after that.
        is_reading = following is not None and not following.is_last
        sent = [item for item in batch.items if item.is_sent] if engine is None or engine.ingest.is_writing else []
        sending = [item.operation for item in sent if item.operation is not None]
        bulk = Bulk(sending, prefix=server.prefix, repeats_scripts=False)
        if batch.items:  # the last batch is often empty
            await _check(server, index, target, engine)
        requests: list[Call | Compute] = [bulk.call()] if sent else []
        requests += [Compute(source.take, (lookup.batch if lookup else None,))] if is_reading else []
        done = await server.together(requests, concurrency=len(requests)) if requests else []
        written = done.pop(0) if sent else None
        ahead = done.pop(0) if is_reading else None
        # Settle and report.
        items, failure = await _finish(server, engine, batch.items, existing, sent, bulk, written)
        if items:
            yield items
        # Nothing is raised before every document that was written is reported.
        for error in (failure, batch.failure, ahead):
            if isinstance(error, BaseException):
                raise error
        resolved = await _follow_rollover(server, index, resolved, engine, items)
        for item in items:
            item.release()
        existing = await lookup.take(server, asked, answers) if lookup and asked else Existing()
        batch, following = following, ahead


async def _follow_rollover(
    server: Port, index: str, resolved: Resolved, engine: Engine | None, items: Sequence[Item]
) -> Resolved:
    """Return the indices behind *index*, after a check of one that a rollover made meanwhile; record the grouping."""
    written = {item.outcome.index for item in items if item.outcome and item.outcome.is_done}
    behind = await check_indices(server, index, resolved, {name for name in written if name})
    if behind is not resolved and engine is not None:
        await unless_refused(record_grouping(server, behind, engine.ingest.grouping), 401, 403)
    return behind


async def _finish(
    server: Port,
    engine: Engine | None,
    items: Sequence[Item],
    existing: Existing,
    sent: Sequence[Item],
    bulk: Bulk,
    answer: Any,
) -> tuple[Sequence[Item], Exception | None]:
    """Return *items* with the outcomes of those that were *sent*, as far as they are known, and what went wrong."""
    failure = None
    if bulk.outcomes:
        try:
            await bulk.finish(server, answer)
        except Exception as error:
            if not any(bulk.outcomes):
                raise
            failure = error
    written = {item.position: item.as_written(one) for item, one in zip(sent, bulk.outcomes, strict=True)}
    items = [written.get(item.position, item) for item in items]
    if failure is None and engine is not None:
        failure = await engine.settle(server, items, existing)
    return (items if failure is None else _told(items)), failure


def _told(items: Sequence[Item]) -> list[Item]:
    """
    Return the items of a batch that can be reported although some outcomes are not known.
    Of a skipped document nobody knows whether the one it was skipped for is there; of a tagged one that is said.
    """
    missing = {item.position for item in items if item.is_sent or item.is_refused or item.is_lost}
    told = [item for item in items if not item.is_sent and not (item.is_skipped and item.leader_position in missing)]
    for item in told:
        if item.decision is not None and item.leader_position in missing:
            item.doubt = f"{shorten(item.decision.group)} was not written, as far as is known: run reconcile"
    return told


def decide_items(
    items: Sequence[Item], existing: Existing, known: Known, rule: DecisionRule, prefix: str, at: str
) -> None:
    """Decide *items* in their order, at the moment *at*, and put the group fields into their operations."""
    deciding = [item for item in items if item.is_decided]
    decisions = decide(deciding, existing, known, rule, now=milliseconds_of(at) or 0)
    written: set[str] = set()
    for item, decision in zip(deciding, decisions, strict=True):
        if item.operation is not None and item.operation.kind == "create":
            # What is there under its id is told by its moment from one whose answer was lost.
            decision.at += item.id in known.by_id or item.id in written
        if decision.leader is not None:
            decision.at = max(decision.at, decision.leader.at + 1)
        item.at = decision.at
        written.add(item.id)
        item.take(decision, existing, prefix)
