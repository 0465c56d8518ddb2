"""
The pipeline that writes documents with fingerprints and groups, and reports on each.

While one batch is decided, the near-duplicates of the next are looked up; while it is written, the one after that is
read and fingerprinted.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from contextlib import ExitStack, aclosing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import length_hint
from typing import Any

from es_simhash.arguments import check_name
from es_simhash.errors import SimHashError, shorten
from es_simhash.groups.grouping_request import GroupingRequest
from es_simhash.groups.reconcile import reconcile
from es_simhash.groups.recorded import keep_recorded, record_grouping, settle_grouping
from es_simhash.ingest.content_reader import ContentReader, make_reader
from es_simhash.ingest.decide import DecisionRule, Existing, Unshown, decide
from es_simhash.ingest.ingest_options import IngestOptions, IngestSizes
from es_simhash.ingest.item import Item, name_group
from es_simhash.ingest.near import NearLookup
from es_simhash.ingest.reading import Batch, Source, WriteTarget, check_indices, find_write_target
from es_simhash.ingest.with_fingerprints import check_iterable
from es_simhash.ingest.written import Written, report
from es_simhash.mapping.context import Resolved, TextFields
from es_simhash.mapping.faults import refuse_hidden_groups
from es_simhash.mapping.fields import now, our_object
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import agree, check_unchanged
from es_simhash.mapping.rule import Grouping
from es_simhash.mapping.shards import reading_primaries
from es_simhash.mapping.user_fields import milliseconds_of
from es_simhash.transport.conversation import attempt, check_shards, refresh, unless_refused
from es_simhash.transport.protocol import Call, Compute, Progress, check_index, document_key
from es_simhash.transport.refusals import is_no_index
from es_simhash.writes.bulk import Bulk, rewrite
from es_simhash.writes.operations import Failure
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
    server: Port, index: str, documents: Iterable[Any], options: IngestOptions
) -> AsyncGenerator[Sequence[Written], None]:
    """
    Write *documents* with their fingerprints to *index*; emit a :class:`Written` for each, in order.
    Cost: before the first document some five requests about the index; if documents are grouped, also a bulk that shows
    what the login may not see, a refresh, and five that record the rule and measure the index. For every 2,000
    documents (500 where the server is asked about each) a look at the mapping and a bulk; if they are grouped, a
    multi-search, or by the table a search, and a search of what is near, while the batch before it is decided. A
    refresh after every 100,000.
    """
    check_index(check_name("index", index))
    check_iterable("documents", documents)
    with ExitStack() as stack:
        stack.enter_context(_told_how_to_create())
        server = await reading_primaries(server, index)
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
    lookup = NearLookup(
        server.context,
        index,
        target.settings,
        options,
        DecisionRule(grouping, on_duplicate, target.settings.scheme if is_recorded else None),
        TextFields(target.resolved.text_fields, source.text_fields),
        total=total,
        is_writing=is_writing,
    )
    await lookup.prepare(server)
    return Engine(lookup, options.sizes, source.reader)


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


@dataclass(slots=True)
class Engine:
    """
    What is done with a batch before and after it is written, where documents are grouped.
    *reader*: ``None`` where only distances count. *is_shown*: a refresh has made all that was written visible to the
    lookups of the next batch.
    """

    lookup: NearLookup
    sizes: IngestSizes
    reader: ContentReader | None
    is_shown: bool = False

    async def complete(self, server: Port, batch: Batch) -> None:
        """Take the answers about *batch*, with copies where no canonical accepts; mark what stays as it is."""
        lookup, items = self.lookup, batch.items
        if batch.asked is None:
            return
        batch.existing = existing = await lookup.take(server, batch.asked)
        if existing.held and existing.may_stay:
            await server.compute(self._keep_unchanged, items, existing.held, existing.gone, server.prefix)
        await lookup.add_copies(server, items, existing)
        if lookup.rule.on_duplicate == "skip":
            for item in items:  # what is there under its id would keep its old text
                is_there = existing.held is None or item.given_id in existing.held
                if item.document is not None and item.given_id is not None and is_there:
                    item.document.must_write = True

    async def decide(self, server: Port, batch: Batch, following: Batch | None) -> None:
        """Decide *batch*, while the server is asked what is near the documents of the one *following*."""
        lookup, sizes = self.lookup, self.sizes
        after = following or Batch(())
        is_full = len(lookup.unshown.by_id) >= sizes.unshown or lookup.unshown.occupies(sizes.unshown_bytes)
        self.is_shown = lookup.is_writing and bool(batch.items) and is_full
        after.asked = None if self.is_shown else await lookup.ask(server, after.items)
        deciding = await self._deciding(server, batch.items, batch.existing)
        calls = after.asked.calls if after.asked else ()
        [failure, *answers] = await server.together([deciding, *calls], concurrency=1 + len(calls))
        if isinstance(failure, Exception):
            raise failure
        if self.is_shown:
            # Only now, because *batch* was looked up before the refresh; those after it see what it makes visible.
            await lookup.prepare(server)
            after.asked = await lookup.ask(server, after.items)
            answers = await server.together(after.asked.calls) if after.asked else []
        if after.asked is not None:
            after.asked.answers = answers

    async def _deciding(self, server: Port, items: Sequence[Item], existing: Existing) -> Compute:
        lookup, at = self.lookup, await server.compute(now)
        return Compute(decide_items, (items, existing, lookup.unshown, lookup.rule, server.prefix, at))

    def _keep_unchanged(
        self,
        items: Sequence[Item],
        held: Mapping[str, Sequence[Mapping[str, Any]]],
        gone: AbstractSet[str],
        prefix: str,
    ) -> None:
        """Let each of *items* that the index holds as it is given be done: it keeps its group, none of *gone*."""
        written: set[str | None] = set()
        for item in items:
            hits = () if item.given_id is None else held.get(item.given_id, ())
            # Searches do not show yet what this ingest wrote.
            is_newest = item.given_id not in written and item.given_id not in self.lookup.unshown.by_id
            if hits and is_newest and item.is_held(hits, self.lookup.index, prefix, gone):
                continue
            if item.outcome is None and item.operation is not None:
                written.add(str(item.operation.header.get("_id")))

    def forget_shown(self, items: Sequence[Item]) -> None:
        """Forget what a refresh has made visible: all but *items*, of the batch that was on its way."""
        if self.is_shown:
            self.lookup.unshown.clear()
            self.lookup.keep_written(items)

    async def decide_again(self, server: Port, batch: Batch) -> list[Item]:
        """Decide again what was skipped for an item that is lost; return what is to be written now."""
        lost = {item.position for item in batch.items if item.is_lost}
        stands = {item.document.id for item in batch.items if item.document and item.is_lost}
        newest = {item.document.id: item.position for item in batch.items if item.document and item.is_done}
        again = [
            item
            for item in batch.items
            if item.document and item.is_skipped and item.leader
            if item.leader.position in lost or item.takes_for_gone(stands)
            # What was written later in the batch counts, and not its older text.
            if newest.get(item.document.id, -1) < item.position
        ]
        if again:
            deciding = await self._deciding(server, again, batch.existing)
            await server.compute(deciding.function, *deciding.arguments)
        return [item for item in again if item.is_sent]

    async def repair(self, server: Port, batch: Batch, sent: Sequence[Item]) -> Exception | None:
        """
        Let ``reconcile`` put right the groups that depend on one of the items *sent* that is not there, or is not what
        was decided about; return what went wrong. Cost: nothing for most batches.
        """
        lookup = self.lookup
        # Of those of one id the last one counts.
        standing = {item.key: item for item in batch.items if item.document is not None and item.is_done}
        lost = {item.position: item.document.id for item in sent if item.document and item.is_lost}
        upset = [item for item in standing.values() if item.is_upset or (item.leader and item.leader.position in lost)]
        ids = {item.key.id for item in upset} | self._standing_again(batch, {*lost.values()})
        if not ids:
            return None
        # One without a fingerprint is a group by itself, and no reconcile looks at it.
        bare = [key for key, item in standing.items() if item.is_upset and item.is_bare]
        failures: list[Failure] = []
        try:
            done = await reconcile(server, lookup.index, GroupingRequest(), ids=ids, may_lack=False)
            if bare:
                outcomes = await rewrite(server, bare, partial(name_group, server.prefix), source=[server.prefix])
                failures = [one.to_failure() for one in outcomes if one is not None and not one.is_done]
                await refresh(server, lookup.index)
            held = await lookup.held(server, sorted({key.id for key in standing})) or {}
        except Exception as error:  # noqa: BLE001 -- raised once the batch is reported
            for item in upset:
                item.doubt = f"its group is out of date ({error}): run reconcile"
            return None if isinstance(error, SimHashError) else error
        for hit in chain(*held.values()):
            written = standing.get(document_key(hit))
            if written is not None and written.document is not None:
                written.is_upset |= done.is_settled and written.takes_for_gone(ids)
                was_copy = written.document.is_member
                written.take_group(our_object(hit["_source"], server.prefix))
                lookup.unshown.add(written.document)
                # Of a document that turned out to be a copy nothing is one: what was skipped for it is decided again.
                written.is_lost |= written.document.is_member and not was_copy
        failures += done.failures
        if failures or not done.is_settled:
            said = "; ".join(map(str, failures)) or "others change it"
            for item in upset:
                item.doubt = f"its group is out of date ({said}): run reconcile"
        return None

    def _standing_again(self, batch: Batch, ids: AbstractSet[str]) -> set[str]:
        """Return which of *ids*, of refused documents, *batch* was decided by: what these were to replace stands."""
        if not ids:
            return set()
        found = {*self.lookup.unshown.by_id}
        for item in batch.items:
            if item.document is not None and not item.is_lost:
                found |= {near.id for near in batch.existing.of(item.document.fingerprint)}
            if item.decision is not None and item.decision.is_stale:
                found.add(item.decision.group)
        return found.intersection(ids)


async def run_batches(
    server: Port, index: str, source: Source, target: WriteTarget, engine: Engine | None
) -> AsyncGenerator[Sequence[Item], None]:
    """
    Yield the documents of *source* batch by batch, each with what became of it. Before a batch is written, the index
    must still have its settings. Three are on their way: while *batch* is decided, *following* is looked up; while it
    is written, the one after that is read.
    """
    resolved = target.resolved
    is_writing = engine is None or engine.lookup.is_writing
    batch: Batch | None = Batch(())  # so that the first documents are looked up as all others are
    following: Batch | None = await server.compute(source.take)
    while batch is not None:
        # Decide; near, of what follows.
        if engine:
            await engine.complete(server, batch)
            await engine.decide(server, batch, following)
        # Bulk; read and fingerprint, of what comes after that.
        is_reading = following is not None and not following.is_last
        sent = [item for item in batch.items if item.is_sent] if is_writing else []
        bulk = _bulk_of(sent, server.prefix)
        if batch.items:  # the last batch is often empty
            await check_unchanged(server, index, target.settings)
            if engine is not None:
                grouping = engine.lookup.rule.grouping
                await keep_recorded(server, index, grouping, before=target.resolved, record=is_writing)
        requests: list[Call | Compute] = [bulk.call()] if sent else []
        requests += [Compute(source.take, (engine.lookup.batch if engine else None,))] if is_reading else []
        done = await server.together(requests, concurrency=len(requests)) if requests else []
        answer = done.pop(0) if sent else None
        ahead = done.pop(0) if is_reading else None
        # Settle and report.
        failure = await _settle(server, engine, batch, sent, bulk, answer)
        items = batch.items if failure is None else _told(batch.items)
        if items:
            yield items
        # Nothing is raised before every document that was written is reported.
        for error in (failure, batch.failure, ahead):
            if isinstance(error, BaseException):
                raise error
        resolved = await _follow_rollover(server, index, resolved, engine, items)
        batch, following = following, ahead


def _bulk_of(items: Sequence[Item], prefix: str) -> Bulk:
    sending = [item.operation for item in items if item.operation is not None]
    return Bulk(sending, prefix=prefix, repeats_scripts=False)


async def _settle(
    server: Port, engine: Engine | None, batch: Batch, sent: Sequence[Item], bulk: Bulk, answer: Any
) -> Exception | None:
    """
    Take the outcomes of the items that were *sent*, and do what depends on them; return what went wrong.
    What was skipped for a document that was refused is decided and written in its turn.
    """
    reader = engine.reader if engine else None
    while sent:
        failure = None
        try:
            await bulk.finish(server, answer)
        except Exception as error:  # noqa: BLE001 -- raised once the batch is reported
            failure = error
        for item, outcome in zip(sent, bulk.outcomes, strict=True):
            item.take_outcome(outcome, server.prefix, reader, is_grouped=engine is not None)
        if failure is not None or engine is None:
            return failure
        engine.lookup.note_written(sent)
        if failure := await engine.repair(server, batch, sent):
            return failure
        sent = await engine.decide_again(server, batch)
        bulk = _bulk_of(sent, server.prefix)
        answer = await attempt(server.send(bulk.call())) if sent else None
    if engine is not None:
        if not engine.lookup.is_writing:
            engine.lookup.keep_written(batch.items)
        engine.forget_shown(batch.items)
    return None


def _told(items: Sequence[Item]) -> list[Item]:
    """
    Return the items of a batch that can be reported although some outcomes are not known.
    Of a skipped document nobody knows whether the one it was skipped for is there; of a tagged one that is said.
    """
    missing = {item.position for item in items if item.is_sent or item.is_lost}
    told: list[Item] = []
    for item in items:
        depends = item.leader is not None and item.leader.position in missing
        if item.is_sent or (item.is_skipped and depends):
            continue
        told.append(item)
        if depends and item.decision is not None and item.doubt is None:
            item.doubt = f"{shorten(item.decision.group)} was not written, as far as is known: run reconcile"
    return told


async def _follow_rollover(
    server: Port, index: str, resolved: Resolved, engine: Engine | None, items: Sequence[Item]
) -> Resolved:
    """Return the indices behind *index*, after a check of one that a rollover made meanwhile; record the grouping."""
    written = {item.outcome.index for item in items if item.outcome and item.outcome.is_done}
    behind = await check_indices(server, index, resolved, {name for name in written if name})
    if behind is not resolved and engine is not None:
        await unless_refused(record_grouping(server, behind, engine.lookup.rule.grouping), 401, 403)
    return behind


def decide_items(
    items: Sequence[Item], existing: Existing, unshown: Unshown, rule: DecisionRule, prefix: str, at: str
) -> None:
    """Decide *items* in their order, at the moment *at*, and put the group fields into their operations."""
    deciding = [item for item in items if item.document is not None and item.outcome is None]
    documents = [item.document for item in deciding if item.document is not None]
    decisions = decide(documents, existing, unshown, rule, now=milliseconds_of(at) or 0)
    written: set[str] = set()
    for item, document, decision in zip(deciding, documents, decisions, strict=True):
        if item.operation is not None and item.operation.kind == "create":
            # What is there under its id is told by its moment from one whose answer was lost.
            decision.at += document.id in unshown.by_id or document.id in written
        if decision.leader is not None:
            decision.at = max(decision.at, decision.leader.at + 1)
        document.at = decision.at
        written.add(document.id)
        item.take(decision, existing, prefix)
