"""
Says of each document, before it is stored, whether a near-duplicate is there already: the decision of an ingest that
skips duplicates. It is the engine of ``ingest``, which does not write.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass, fields, replace
from operator import length_hint
from typing import Any, Literal, TypeAlias

from es_simhash.arguments import check_name
from es_simhash.errors import InvalidInputError
from es_simhash.groups.grouping_request import GroupingRequest
from es_simhash.ingest.actions import ActionRules
from es_simhash.ingest.ingest import make_engine, run_batches
from es_simhash.ingest.ingest_options import IngestOptions, ScreenOptions
from es_simhash.ingest.item import Item, has_fingerprint
from es_simhash.ingest.reading import Source, WriteTarget, find_write_target
from es_simhash.ingest.with_fingerprints import check_iterable
from es_simhash.lookup.documents import read_sources
from es_simhash.lookup.judge import LookupRule, Origin
from es_simhash.lookup.near_dups import TOO_SHORT
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import agree
from es_simhash.mapping.rule import PairRule
from es_simhash.mapping.shards import reading_primaries
from es_simhash.record import Record
from es_simhash.transport.protocol import Key, Progress, check_index

ScreenAnswer: TypeAlias = Literal["new", "near", "unsure"]

PAGE_DOCUMENTS = 1_000
_NO_VALUE = "a text has no value of {}, by which the index keeps documents apart: give a document that has it"


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
        must_write:
            Whether it is near another one, and an ingest that skips duplicates writes it all the same: the index, or a
            document before it in the call, has its id, and the old text would stay; or only numbers or signs differ.
        source:
            The fields of the winner in the index that were asked for; ``None`` if it is gone meanwhile.
        reason:
            Why it is unsure, or that it is new because its text is too short to compare: one line.
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
    must_write: bool = False
    source: Mapping[str, Any] | None = None
    reason: str | None = None

    _OPTIONAL = "id index routing place distance similarity must_write source reason"

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain JSON values, the rule in words."""
        return Record.to_dict(self) | {"rule": str(self.rule)}


class _Texts(Source):
    """A reader of documents, or of plain texts."""

    def _prepare(self, given: Any, rules: ActionRules) -> Item:
        is_text = isinstance(given, str)
        item = super()._prepare({rules.text_fields[0]: given} if is_text else given, rules)
        item.is_text = is_text
        if item.operation is not None and item.operation.kind not in ("index", "create"):
            said = f"an action that is to {item.operation.kind} something is not screened: give whole documents"
            return self._refused(item.position, InvalidInputError(said))
        return item


async def screen(
    server: Port, index: str, documents: Iterable[Any], options: ScreenOptions
) -> AsyncGenerator[Sequence[Screened], None]:
    """
    Emit a :class:`Screened` for each of *documents*, in order; nothing is written, and the index is not refreshed.
    Cost: for every 500 documents a multi-search, or by the fingerprints of a point in time, where that is cheaper, a
    search for every 2,000; one of the texts near them, one of the fields asked for, and one of the ids that
    come with them; the mapping again, unless the answer came at once.
    """
    check_index(check_name("index", index))
    check_iterable("documents", documents)
    server = await reading_primaries(server, index)
    target = await find_write_target(server, index, is_writing=False)
    server.context.learn(index, agree(target.resolved, server.context), target.resolved)
    decides = IngestOptions(text_field=options.text_field, on_duplicate="skip", grouping=options.grouping)
    with closing(_Texts(index, documents, target=target, options=decides, prefix=server.prefix)) as source:
        engine = await make_engine(server, target, source, decides, length_hint(documents), is_writing=False)
        rule = _rule_of(target, options.grouping, engine.lookup.rule.grouping.pair_rule)
        done = 0
        async with aclosing(run_batches(server, index, source, target, engine)) as batches:
            async for items in batches:
                leaders = [item.leader for item in items if item.leader is not None]
                keys = [Key(leader.index or "", leader.id) for leader in leaders if leader.position is None]
                sources = await read_sources(server, index, keys, source=options.source)
                yield [_screened(item, rule, sources, server.prefix) for item in items]
                server.tell(Progress(done := done + len(items), None, "screening documents"))


def _rule_of(target: WriteTarget, request: GroupingRequest, rule: PairRule) -> LookupRule:
    """Return *rule* with where it comes from, as an answer says it."""
    is_recorded = any(settings.is_grouped for settings in target.resolved.settings_of.values())
    is_recorded |= target.settings.max_distance is not None and request == GroupingRequest()
    origin: Origin = "recorded" if is_recorded else "default" if request == GroupingRequest() else "given"
    return LookupRule(**{part.name: getattr(rule, part.name) for part in fields(rule)}, origin=origin)


def _screened(item: Item, rule: LookupRule, sources: Mapping[Key, Mapping[str, Any]], prefix: str) -> Screened:
    leader, document = item.leader, item.document
    is_fingerprinted = item.operation is not None and has_fingerprint(item.operation, prefix)
    if leader is not None and document is not None and item.decision is not None:
        near = Screened(
            item.position,
            "near",
            rule,
            is_fingerprinted,
            distance=leader.distance_to(document.fingerprint),
            similarity=item.decision.similarity,
            must_write=item.decision.verdict != "skip",
        )
        if leader.position is not None:
            return replace(near, place=leader.position)
        key = Key(leader.index or "", leader.id, leader.routing)
        return replace(near, id=key.id, index=key.index, routing=key.routing, source=sources.get(key))
    reason = _why_unsure(item, rule)
    if reason is None and item.decision is not None and item.decision.is_short:
        return Screened(item.position, "new", rule, is_fingerprinted, reason=TOO_SHORT)
    return Screened(item.position, "unsure" if reason else "new", rule, is_fingerprinted, reason=reason)


def _why_unsure(item: Item, rule: LookupRule) -> str | None:
    """Return why nobody can say that *item* is new; ``None`` if it is."""
    if item.outcome is not None:  # it is no document
        return str(item.outcome.error)
    if item.document is None or item.document.fingerprint is None:
        return item.problem
    apart = [name for name in (rule.per, rule.within.field if rule.within else None) if name is not None]
    if item.is_text and apart:
        return _NO_VALUE.format(" and ".join(apart))
    return item.missed or item.problem
