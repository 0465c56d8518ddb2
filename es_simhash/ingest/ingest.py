"""
The pipeline that writes documents with fingerprints and groups, and reports on each.

While one batch is written, the near-duplicates of the next are looked up, and the one after it is read and
fingerprinted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence, Set as AbstractSet
from contextlib import ExitStack, aclosing
from dataclasses import dataclass
from operator import attrgetter, length_hint
from typing import Any

from es_simhash.arguments import check_name
from es_simhash.errors import Advice, Said, shorten
from es_simhash.groups.recorded import keep_recorded, record_grouping, settle_grouping
from es_simhash.ingest.decide import Decider, Existing, OnDuplicate
from es_simhash.ingest.existing import ExistingLookup
from es_simhash.ingest.item import Item, decide_items, make_reader, may_be_skipped
from es_simhash.ingest.plain import Entry, Plain, put_fields
from es_simhash.ingest.reading import (
    Batch,
    GroupedIngest,
    IngestOptions,
    Source,
    WriteTarget,
    check_indices,
    find_write_target,
)
from es_simhash.ingest.settle import Settlement
from es_simhash.ingest.with_fingerprints import check_iterable
from es_simhash.ingest.written import Written, report
from es_simhash.mapping.context import Context, Resolved, TextFields
from es_simhash.mapping.faults import find_source_faults, refuse_hidden_groups
from es_simhash.mapping.fields import now
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import agree, check_unchanged, resolve_index
from es_simhash.mapping.rule import Grouping
from es_simhash.mapping.shards import reading_primaries
from es_simhash.transport.conversation import check_shards, unless_refused
from es_simhash.transport.feed import Feed
from es_simhash.transport.protocol import Call, Compute, Progress, check_index
from es_simhash.transport.refusals import is_no_index
from es_simhash.writes.bulk import Bulk
from es_simhash.writes.targets import read_source_modes, refuse_masked_values, refuse_unseen


async def ingest(
    server: Port, index: str, documents: Iterable[Any] | Feed[Any], options: IngestOptions, *, dry_run: bool = False
) -> AsyncGenerator[Sequence[Written], None]:
    """Carry out :func:`_ingest`; the error of the client for an index that does not exist says how to make one."""
    try:
        async with aclosing(_ingest(server, index, documents, options, dry_run=dry_run)) as parts:
            async for part in parts:
                yield part
    except Exception as error:
        if is_no_index(error):
            error.add_note(
                Said(
                    f"There is no index {shorten(index)}: make it with ",
                    Advice("create_index", typed="es-simhash create, or ingest --create"),
                    ".",
                )
            )
        raise


async def _ingest(
    server: Port, index: str, documents: Iterable[Any] | Feed[Any], options: IngestOptions, *, dry_run: bool
) -> AsyncGenerator[Sequence[Written], None]:
    """
    Write *documents* with their fingerprints to *index*; emit a :class:`Written` for each, in order.
    Cost: for every 2,000 documents (500 where the server is asked about each) a bulk request; if they are grouped, a
    multi-search, or by the table a search, at the same time as the bulk before it, a refresh at the start, and one
    after every 100,000. A dry run takes no document, and refuses what is refused before the first one, but for a login
    that sees masks: only a write shows that, and a dry run needs no right to write.
    """
    check_index(check_name("index", index))
    if not isinstance(documents, Feed):
        check_iterable("documents", documents)
    server = await reading_primaries(server, index)
    if dry_run:
        resolved = await resolve_index(server, index)
        target = WriteTarget(resolved, agree(resolved, server.context))
        if options.on_duplicate is not None:
            await _choose_grouping(server, index, target, options, record=False)
        return
    target = await find_write_target(server, index)
    with ExitStack() as stack:
        source = Source(index, documents, target=target, options=options, prefix=server.prefix)
        stack.callback(source.close)
        server.context.learn(index, agree(target.resolved, server.context), target.resolved)
        grouper: _Grouper | None = None
        await check_shards(server, index)  # before a write, which waits for a missing one
        if options.on_duplicate is not None:
            await refuse_unseen(server, target.resolved)
            total = length_hint(documents)
            grouper = await make_grouper(server, index, target, source, options.on_duplicate, options, total)
            await grouper.lookup.prepare(server)
        source.is_straight = _may_be_straight(server, source, target)
        pipeline = _Pipeline(server.context, index, source, grouper, target.resolved)
        async with aclosing(pipeline.run(server, lambda: _check(server, index, target, grouper))) as parts:
            async for part in parts:
                yield part


def _may_be_straight(server: Port, source: Source, target: WriteTarget) -> bool:
    """Return whether documents that nothing is near need no more than their text, their id and their JSON."""
    reader = source.reader
    is_by_text = reader is None or not (reader.per or reader.within)
    is_usual = is_by_text and target.settings.passages is None and server.writes_standard_json
    return is_usual and not server.context.is_plain


async def make_grouper(
    server: Port,
    index: str,
    target: WriteTarget,
    source: Source,
    policy: OnDuplicate,
    options: IngestOptions,
    total: int,
    *,
    record: bool = True,
    lookups: type[ExistingLookup] = ExistingLookup,
) -> _Grouper:
    """Return what groups the documents of *source*, *total* or more, which then reads what they are compared by."""
    mappings, grouping = await _choose_grouping(server, index, target, options, record=record)
    source.reader = make_reader(grouping, mappings.values(), source.text_fields)
    is_recorded = all(own.text_fields for own in target.resolved.settings_of.values())
    ingest = GroupedIngest(
        server.context,
        index,
        target.settings,
        options,
        Decider(grouping, policy, target.settings.scheme if is_recorded else None),
        TextFields(target.resolved.text_fields, source.text_fields),
        source.reader,
        is_updatable=not any(map(find_source_faults, mappings.values())),
    )
    is_alias = bool(mappings) and index not in mappings
    return _Grouper(ingest, lookups(ingest, total, is_alias=is_alias), source)


async def _choose_grouping(
    server: Port, index: str, target: WriteTarget, options: IngestOptions, *, record: bool
) -> tuple[Mapping[str, Mapping[str, Any]], Grouping]:
    """Return the mappings with their source modes, and the grouping; refuse indices that cannot be grouped so."""
    mappings = await read_source_modes(server, index, target.resolved.mappings)
    refuse_hidden_groups(mappings, prefix=server.prefix)
    grouping = await settle_grouping(server, target.resolved, options.grouping, record=record)
    if grouping.per is not None:
        await refuse_masked_values(server, index, grouping.per)
    return mappings, grouping


async def _check(server: Port, index: str, target: WriteTarget, grouper: _Grouper | None) -> None:
    """Refuse to go on writing to an index that now has another scheme or another grouping."""
    await check_unchanged(server, index, target.settings)
    if grouper is not None:
        await keep_recorded(server, index, grouper.ingest.grouping, before=target.resolved)


@dataclass(frozen=True, slots=True)
class _Grouper:
    """What is done with a batch before and after it is written, where documents are grouped."""

    ingest: GroupedIngest
    lookup: ExistingLookup
    source: Source

    async def decide(self, server: Port, entries: Sequence[Entry], existing: Existing) -> list[Entry]:
        if existing.held:
            entries = await server.compute(self._keep_unchanged, entries, existing.held, existing.lost)
        straight = await server.compute(self._find_straight, entries, existing)
        entries = [straight.get(each.position) or self.source.as_item(each) for each in entries]
        items: Sequence[Item] = [each for each in entries if isinstance(each, Item)]
        existing = await self.lookup.with_copies(server, entries, existing)
        if self.ingest.options.on_duplicate != "tag":
            await self._keep_updates(server, items, existing)
        at = await server.compute(now)
        await server.compute(decide_items, self.ingest.decider, entries, existing, self.ingest.prefix, at)
        if straight:
            await server.compute(put_fields, straight.values(), self.ingest.prefix, value=self.ingest.settings.value)
        # Only now, because these were looked up before the refresh; the batch after them sees what it makes visible.
        in_flight, sizes = self.ingest.decider.in_flight, self.ingest.options.sizes
        if entries and (in_flight.settled >= sizes.in_flight or in_flight.occupies(sizes.in_flight_bytes)):
            await self.lookup.prepare(server)
            in_flight.forget_settled()
        return list(entries)

    def _keep_unchanged(
        self, entries: Sequence[Entry], held: Mapping[str, Sequence[Mapping[str, Any]]], lost: AbstractSet[str]
    ) -> list[Entry]:
        """Return *entries*; one that the index holds as it is given is done, and keeps its group, none of *lost*."""
        kept: list[Entry] = []
        written: set[str | None] = set()
        for entry in entries:
            kept.append(entry)
            hits = () if entry.given_id is None else held.get(entry.given_id, ())
            # Searches do not show yet what this ingest wrote.
            if hits and entry.given_id not in written and not self.ingest.decider.in_flight.hides(hits[0]["_id"]):
                kept[-1] = self.source.as_item(entry).unless_held(hits, self.ingest.index, self.ingest.prefix, lost)
            if kept[-1].outcome is None and entry.operation is not None:
                written.add(str(entry.operation.header.get("_id")))
        return kept

    def _find_straight(self, entries: Sequence[Entry], existing: Existing) -> dict[int, Plain]:
        """Return the documents of a batch that nothing is near, in the index, in flight, or in the batch."""
        plain = [each for each in entries if isinstance(each, Plain)]
        if not plain:
            return {}
        in_flight = self.ingest.decider.in_flight
        ids = Counter(str(each.operation.header.get("_id")) for each in entries if each.operation is not None)
        for id_ in ids:
            in_flight.free_members(id_)
        in_flight.foresee(fingerprints := [each for entry in entries if (each := entry.fingerprint) is not None])
        near = {fingerprint for fingerprint, found in existing.near.items() if found}
        near |= existing.gaps.keys() | existing.unseen.keys()
        near.update(each for each, count in Counter(fingerprints).items() if count > 1 or in_flight.is_near(each))
        again = {id_ for id_, count in ids.items() if count > 1 or in_flight.hides(id_)}
        return {each.position: each for each in plain if each.fingerprint not in near and each.id not in again}

    async def _keep_updates(self, server: Port, items: Sequence[Item], existing: Existing) -> None:
        """Let none of *items* be skipped whose id is in the index: what is there would keep its old text."""
        drafts = await server.compute(may_be_skipped, self.ingest.decider, items, existing)
        if drafts:
            for each in await self.lookup.find_present(server, drafts, existing.held):
                each.must_write = True

    async def settle(self, server: Port, entries: Sequence[Entry]) -> tuple[list[Entry], Exception | None]:
        """Return *entries* after what depended on their outcomes was done, and what went wrong with that."""
        straight = [each for each in entries if isinstance(each, Plain)]
        settled = items = [each for each in entries if isinstance(each, Item)]
        if not all(item.is_as_decided for item in items):
            settlement = Settlement(self.ingest, items, self.lookup)
            settled = settlement.items
            try:
                await settlement.run(server)
            except Exception as error:  # noqa: BLE001 -- raised once the batch is reported
                return _in_order(settled, straight), error
        together = _in_order(settled, straight)
        self.ingest.decider.in_flight.settle(item.position for item in settled)
        self.ingest.decider.in_flight.settle_straight(straight)
        self.lookup.note_written(together)
        return together, None


def _in_order(items: Sequence[Item], straight: Sequence[Plain]) -> list[Entry]:
    return sorted((*items, *straight), key=attrgetter("position")) if straight else list(items)


@dataclass(frozen=True, slots=True)
class _Answers:
    """What came back from the requests that went out together with a bulk; exceptions are values."""

    bulk: Any = None
    ahead: Any = None
    lookups: Sequence[Any] = ()


@dataclass(slots=True)
class _Pipeline:
    """Carries batches through: decides, writes during the lookups of the next batch, and reports."""

    context: Context
    index: str
    source: Source
    grouper: _Grouper | None
    resolved: Resolved

    async def run(self, server: Port, check: Callable[[], Awaitable[None]]) -> AsyncGenerator[Sequence[Written], None]:
        """
        Carry all batches through; *check*, before each is written, that the index still has its settings.
        Three are on their way: *batch* is decided and written, *following* is looked up, and the one after it is read.
        """
        done = 0
        grouper = self.grouper
        lookup = grouper.lookup if grouper else None
        first: Batch = await server.compute(self.source.take)
        existing = await lookup.look_up_first(server, first.items) if lookup else Existing()
        batch: Batch | None = first
        following: Batch | None = None if first.is_last else await server.compute(self.source.take)
        while batch is not None:
            items = await grouper.decide(server, batch.items, existing) if grouper else list(batch.items)
            asked = await lookup.ask(server, following.items) if lookup and following else None
            is_reading = following is not None and not following.is_last
            sent = [item for item in items if item.is_sent]
            sending = [item.operation for item in sent if item.operation is not None]
            bulk = Bulk(sending, prefix=self.context.prefix, repeats_scripts=False)
            await check()
            reading = Compute(self.source.take, (lookup.batch if lookup else None,)) if is_reading else None
            answers = await self._send(server, bulk, asked.calls if asked else (), reading)
            items, failure = await self._finish(server, items, sent, bulk, answers.bulk)
            yield [report(item, prefix=self.context.prefix) for item in items]
            done += len(items)
            server.tell(Progress(done, None, "writing documents"))
            # Nothing is raised before every document that was written is reported.
            for each in (failure, batch.failure, answers.ahead):
                if isinstance(each, BaseException):
                    raise each
            await self._follow_rollover(server, items)
            for each in items:
                if isinstance(each, Plain):
                    each.let_go()
            if lookup and asked:
                existing = await lookup.take(server, asked, answers.lookups)
            batch, following = following, answers.ahead

    async def _follow_rollover(self, server: Port, items: Sequence[Entry]) -> None:
        """Check an index that a rollover made meanwhile, and record the grouping there."""
        written = {item.outcome.index for item in items if item.outcome and item.outcome.is_done}
        behind = await check_indices(server, self.index, self.resolved, {name for name in written if name})
        if behind is not self.resolved and self.grouper is not None:
            await unless_refused(record_grouping(server, behind, self.grouper.ingest.grouping), 401, 403)
        self.resolved = behind

    async def _send(self, server: Port, bulk: Bulk, lookups: Sequence[Call], reading: Compute | None) -> _Answers:
        """Write a batch, look up the one after it, and read the one after that, all at once."""
        requests: dict[str, Call | Compute] = {}
        if bulk.outcomes:
            requests["bulk"] = bulk.call()
        if reading is not None:
            requests["ahead"] = reading
        both = [*requests.values(), *lookups]
        answers = await server.together(both, concurrency=len(both)) if both else []
        named = dict(zip(requests, answers, strict=False))
        return _Answers(**named, lookups=answers[len(requests) :])

    async def _finish(
        self, server: Port, items: Sequence[Entry], sent: Sequence[Entry], bulk: Bulk, answer: Any
    ) -> tuple[list[Entry], Exception | None]:
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
        straight = [each for each in items if isinstance(each, Plain)]
        if not all(each.is_as_decided for each in straight):
            if self.grouper is not None:
                self.grouper.ingest.decider.in_flight.wake(straight)
            items = list(map(self.source.as_item, items))
        if failure is not None:
            return _known(items), failure
        return await self.grouper.settle(server, items) if self.grouper else (list(items), None)


def _known(items: Sequence[Entry]) -> list[Entry]:
    """Return the items of a batch that can be reported although some outcomes are not known."""
    unknown = {item.position for item in items if item.is_sent or item.is_refused}
    known = [item for item in items if not item.is_sent]
    # Of a skipped document nobody knows whether the one it was skipped for is there.
    return [item for item in known if not (item.is_skipped and item.leader_position in unknown)]
