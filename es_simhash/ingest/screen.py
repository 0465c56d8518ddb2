"""
Says of each document, before it is stored, whether a near-duplicate is there already: the decision of an ingest that
skips duplicates, without its writes. ``decide`` decides.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from operator import length_hint
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from es_simhash.arguments import Count, check_fields, check_name, check_options, option
from es_simhash.errors import InvalidInputError
from es_simhash.groups.grouping_request import GroupingRequest
from es_simhash.groups.recorded import keep_recorded
from es_simhash.ingest.actions import ActionRules
from es_simhash.ingest.decide import Document, Existing
from es_simhash.ingest.ingest import make_grouper
from es_simhash.ingest.item import Item, decide_items, find_near, has_fingerprint
from es_simhash.ingest.near import NearLookup
from es_simhash.ingest.reading import (
    Batch,
    GroupedIngest,
    IngestOptions,
    IngestSizes,
    Source,
    WriteTarget,
    find_write_target,
)
from es_simhash.ingest.with_fingerprints import check_iterable
from es_simhash.lookup.judge import LookupRule, Origin
from es_simhash.lookup.lookup_options import TableError
from es_simhash.lookup.query import check_source
from es_simhash.mapping.fields import now
from es_simhash.mapping.port import Around, Port
from es_simhash.mapping.resolve import TRUSTED_SECONDS, SettingsChanged, agree, check_unchanged
from es_simhash.mapping.rule import PairRule, target_of
from es_simhash.mapping.shards import reading_primaries
from es_simhash.record import Record
from es_simhash.transport.answers import check_whole
from es_simhash.transport.feed import Feed
from es_simhash.transport.pages import Hits, read_each
from es_simhash.transport.protocol import Call, Compute, Key, Progress, check_index, document_key
from es_simhash.transport.server import Answer

if TYPE_CHECKING:
    from es_simhash.lookup.index_table import IndexTable

ScreenAnswer: TypeAlias = Literal["new", "near", "unsure"]

PAGE = 1_000
# An answer that came within this time of a mapping that was just read needs no other one.
SLOW_SECONDS = 0.1
# Nothing is written, so all that is new stays in memory.
_SIZES = IngestSizes(in_flight=2**62, in_flight_bytes=2**62)
_NO_VALUE = "a text has no value of {}, by which the index keeps documents apart: give a document that has it"


@dataclass(frozen=True, slots=True)
class ScreenOptions:
    """
    How to screen, checked.

    Args:
        text_field:
            Field or fields of the text; by default those that the index records.
        source:
            ``False``, ``True`` or the ``_source`` fields of the winner that the answer carries.
        grouping:
            ...
        workers:
            Number of processes that compute fingerprints; by default none. As for :func:`with_fingerprints`.
    """

    text_field: str | Sequence[str] | None = None
    source: bool | Sequence[str] = False
    grouping: GroupingRequest = field(default_factory=GroupingRequest)
    workers: int | None = option(None, Count())

    def __post_init__(self) -> None:
        check_options(self)
        check_fields("text_field", self.text_field, may_lack=True)
        check_source(self.source)

    def for_ingest(self) -> IngestOptions:
        """Return the options of the ingest whose decisions these are."""
        how: Any = {"on_duplicate": "skip", "grouping": self.grouping, "sizes": _SIZES}
        return IngestOptions(text_field=self.text_field, workers=self.workers, **how)


@dataclass(frozen=True, slots=True)
class Screened(Record):
    """
    What is known of one document before it is stored.

    Attributes:
        position:
            Its place among the documents given, from 0.
        answer:
            ``"new"``, ``"near"`` (a near-duplicate of the winner), or ``"unsure"``, where something could not be read
            or compared.
        rule:
            The rule by which that was decided; ``str(rule)`` says it.
        fingerprinted:
            Whether it has a fingerprint: a document without text, or without features, is near nothing.
        id, index, routing:
            The winner, where the index has it.
        place:
            The position of the winner, where it is an earlier document of the same call.
        distance:
            Distance to the winner, in bits.
        similarity:
            How similar the two texts are, 0 to 1; ``None`` where texts are not compared.
        is_update:
            Whether it is near another one, and the index, or a document before it in the call, has its id: an ingest
            writes it all the same, because the old text would stay.
        source:
            The fields of the winner in the index that were asked for; ``None`` if it is gone meanwhile.
        reason:
            Why it is unsure: one line.
    """

    position: int
    answer: ScreenAnswer
    rule: LookupRule
    fingerprinted: bool = False
    id: str | None = None
    index: str | None = None
    routing: str | None = None
    place: int | None = None
    distance: int | None = None
    similarity: float | None = None
    is_update: bool = False
    source: Mapping[str, Any] | None = None
    reason: str | None = None

    _OPTIONAL = "id index routing place distance similarity is_update source reason"

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain JSON values, the rule in words."""
        return Record.to_dict(self) | {"rule": str(self.rule)}


class _Lookup(NearLookup):
    """The lookups of one call, which refresh nothing."""

    async def prepare(self, server: Port) -> None:
        await self._group_lookups.prepare(server, again=False)

    async def _fill(self, server: Port, table: IndexTable) -> None:
        try:
            await table.open(server)
        except SettingsChanged as error:
            raise TableError("expired") from error
        finally:
            await table.close(server)


class _Texts(Source):
    """A reader of documents, or of plain texts, whose positions are *texts*; *named*: positions of those with an id."""

    texts: set[int]
    named: set[int]

    def _prepare(self, given: Any, rules: ActionRules) -> Item:
        if is_text := isinstance(given, str):
            given = {rules.text_fields[0]: given}
        item = super()._prepare(given, rules)
        if item.operation is not None and item.operation.kind not in ("index", "create"):
            said = f"an action that is to {item.operation.kind} something is not screened: give whole documents"
            return self._refused(item.position, InvalidInputError(said))
        if is_text:
            self.texts.add(item.position)
        elif item.operation is not None and item.operation.header.get("_id") is not None:
            self.named.add(item.position)
        return item


class _SettingsOnce(Around):
    """A port that asks for the settings of an index once: what reads primaries and what reads sources want the same."""

    _known: tuple[Call, Answer] | None = None

    async def send(self, call: Call) -> Answer:
        if call.api != "get_settings":
            return await super().send(call)
        if self._known is None or self._known[0] != call:
            self._known = call, await super().send(call)
        return self._known[1]


async def screen(
    server: Port, index: str, documents: Iterable[Any] | Feed[Any], options: ScreenOptions
) -> AsyncGenerator[Sequence[Screened], None]:
    """
    Emit a :class:`Screened` for each of *documents*, in order; nothing is written, and the index is not refreshed.
    Cost: for every 500 documents a multi-search, or by the fingerprints of a point in time, where that is cheaper, a
    search for every 2,000; one of the texts near them, one of the fields asked for, and one of their ids where they are
    near something and have one; the mapping again, unless the answer came within a tenth of a second.
    """
    check_index(check_name("index", index))
    if not isinstance(documents, Feed):
        check_iterable("documents", documents)
    server = await reading_primaries(_SettingsOnce(server), index)
    target, how = await find_write_target(server, index, is_writing=False), options.for_ingest()
    server.context.learn(index, agree(target.resolved, server.context), target.resolved)
    with closing(_Texts(index, documents, target=target, options=how, prefix=server.prefix)) as source:
        source.texts, source.named = set(), set()
        total = length_hint(documents)
        grouper = await make_grouper(server, index, target, source, "skip", how, total, record=False, lookups=_Lookup)
        ingest, lookup = grouper.ingest, grouper.lookup
        rule = _rule_of(target, options.grouping, ingest.grouping.pair_rule)
        await lookup.prepare(server)
        batch: Batch | None = await server.compute(source.take)
        done = 0
        while batch is not None:
            # As of any lookup: what was confirmed just before it holds for an answer that comes soon.
            is_sure = server.context.clock() - server.context.confirmed.find(index)[0] < TRUSTED_SECONDS
            asked = await lookup.ask(server, batch.items)
            reading = [] if batch.is_last else [Compute(source.take, (lookup.batch,))]
            both: list[Call | Compute] = [*reading, *(asked.calls if asked else ())]
            answers = await server.together(both, concurrency=len(both)) if both else []
            existing = await lookup.take(server, asked, answers[len(reading) :]) if asked else Existing()
            items = batch.items
            existing = await lookup.with_copies(server, items, existing)
            await _decide(server, ingest, lookup, source.named, items, existing)
            if items:  # the last batch is often empty
                after = SLOW_SECONDS if is_sure else TRUSTED_SECONDS
                await check_unchanged(server, index, target.settings, after_seconds=after)
                await keep_recorded(server, index, ingest.grouping, before=target.resolved, record=False)
            sources = await _read_sources(server, index, items, wanted=check_source(options.source))
            screened = [_screened(item, existing, rule, source.texts, sources, server.prefix) for item in items]
            yield screened
            server.tell(Progress(done := done + len(screened), None, "screening documents"))
            if batch.failure is not None:
                raise batch.failure
            batch = answers[0] if reading else None
            if isinstance(batch, BaseException):
                raise batch


def _rule_of(target: WriteTarget, request: GroupingRequest, rule: PairRule) -> LookupRule:
    """Return *rule* with where it comes from, as an answer says it."""
    is_recorded = any(target_of(settings) is not None for settings in target.resolved.settings_of.values())
    is_recorded |= target.settings.max_distance is not None and request == GroupingRequest()
    origin: Origin = "recorded" if is_recorded else "default" if request == GroupingRequest() else "given"
    return LookupRule(**{part.name: getattr(rule, part.name) for part in fields(rule)}, origin=origin)


async def _decide(
    server: Port,
    ingest: GroupedIngest,
    lookup: NearLookup,
    named: set[int],
    items: Sequence[Item],
    existing: Existing,
) -> None:
    """Decide *items* as an ingest would; those of the ids that the index has would be written even if they are near."""
    near = await server.compute(find_near, items, existing, ingest.known)
    if drafts := [item.draft for item in near if item.draft is not None and item.position in named]:
        for draft in await lookup.find_present(server, drafts):
            draft.must_write = True
    at = await server.compute(now)
    await server.compute(decide_items, items, existing, ingest.known, ingest.rule, ingest.prefix, at)
    for item in items:
        if item.draft is not None and item.decision is not None and item.decision.verdict != "skip":
            ingest.known.add(item.draft)


async def _read_sources(
    server: Port, index: str, items: Sequence[Item], *, wanted: bool | list[str]
) -> dict[Key, Mapping[str, Any]]:
    """Return the fields asked for of the winners that the index has."""
    leaders = [leader for item in items if (leader := _leader_of(item)) is not None and leader.position is None]
    if wanted is False or not leaders:
        return {}
    found: dict[Key, Mapping[str, Any]] = {}

    def note(hits: Hits) -> None:
        found.update((document_key(hit), hit.get("_source") or {}) for hit in hits)

    ids, names = sorted({leader.id for leader in leaders}), sorted({leader.index or "" for leader in leaders})
    query = {"bool": {"filter": [{"ids": {"values": ids}}, {"terms": {"_index": names}}]}}
    body = {"query": query, "_source": wanted}
    check_whole(await read_each(server.patient, index, body, note, page=PAGE))
    return found


def _leader_of(item: Item) -> Document | None:
    return None if item.decision is None else item.decision.leader


def _screened(
    item: Item,
    existing: Existing,
    rule: LookupRule,
    texts: set[int],
    sources: Mapping[Key, Mapping[str, Any]],
    prefix: str,
) -> Screened:
    draft, leader = item.draft, _leader_of(item)
    is_fingerprinted = item.operation is not None and has_fingerprint(item.operation, prefix)
    if draft is not None and leader is not None and item.decision is not None:
        near = Screened(
            item.position,
            "near",
            rule,
            is_fingerprinted,
            distance=leader.distance_to(draft.fingerprint),
            similarity=item.decision.similarity,
            is_update=item.decision.verdict != "skip",
        )
        if leader.position is not None:
            return replace(near, place=leader.position)
        key = Key(leader.index or "", leader.id, leader.routing)
        return replace(near, id=key.id, index=key.index, routing=key.routing, source=sources.get(key))
    reason = _why_unsure(item, existing, rule, is_text=item.position in texts)
    return Screened(item.position, "unsure" if reason else "new", rule, is_fingerprinted, reason=reason)


def _why_unsure(item: Item, existing: Existing, rule: LookupRule, *, is_text: bool) -> str | None:
    """Return why nobody can say that *item* is new; ``None`` if it is."""
    if item.outcome is not None:  # it is no document
        return str(item.outcome.error)
    draft, decision = item.draft, item.decision
    if draft is None or draft.fingerprint is None or decision is None:
        return item.problem
    apart = [name for name in (rule.per, rule.within.field if rule.within else None) if name is not None]
    if is_text and apart:
        return _NO_VALUE.format(" and ".join(apart))
    missed = [*existing.gaps.get(draft.fingerprint, ()), *map(str, decision.uncompared)]
    return f"a near-duplicate may have been missed ({'; '.join(missed)})" if missed else item.problem
