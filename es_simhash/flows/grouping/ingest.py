"""
Documents into an index, with their fingerprints and groups, and a report on each.

The fields are put in by ``ingest_helper``, duplicates are decided about in ``index.deciding``, sending and trying again
is ``bulk``'s; here they meet, in a pipeline: while one batch is being written, the near-duplicates of the next are
looked up, and the one after it is read and fingerprinted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from es_simhash.errors import InvalidInputError, shorten
from es_simhash.flows.context import Context, read_index_settings
from es_simhash.flows.grouping.grouper import Grouper
from es_simhash.flows.grouping.settings import settle_grouping
from es_simhash.flows.protocol import Call, Compute, Emit, Flow, Together
from es_simhash.flows.transfer.bulk import bulk_call, finish_bulk, to_operation
from es_simhash.hashing import hamming_distance
from es_simhash.index.actions import OnPartial
from es_simhash.index.grouping.decide import OnDuplicate, check_policy
from es_simhash.index.grouping.drafts import Item, content_id
from es_simhash.index.grouping.rule import GroupingRequest, Rule
from es_simhash.index.meta import IndexSettings, text_fields_of
from es_simhash.index.operations import Operation, Outcome, Refusal
from es_simhash.ingest_helper import with_fingerprints

__all__ = ["IngestOptions", "Written", "ingest"]

CHUNK_DOCUMENTS = 500
CHUNK_CHARACTERS = 4_000_000

IdFrom = Literal["content"] | None


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """
    How to ingest: the keyword arguments of the client's method.

    Raises:
        TypeError: If one has the wrong type.
        InvalidInputError: If one has a value that cannot be used.
    """

    text_field: str | Sequence[str] | None = None
    on_duplicate: OnDuplicate | None = None
    max_distance: int | None = None
    rule: Rule | None = None
    canonical: str | None = None
    id_from: IdFrom = None
    on_partial: OnPartial = "clear"
    workers: int | None = None

    def __post_init__(self) -> None:
        if self.on_duplicate is not None:
            check_policy(self.on_duplicate)
        if self.id_from not in (None, "content"):
            raise InvalidInputError(f"id_from {shorten(self.id_from)} is not known: give 'content' or None")


@dataclass(frozen=True, slots=True)
class Written:
    """
    What became of one document.

    Attributes:
        position:
            Its place among the documents given, from 0.
        id:
            Its ``_id``; assigned where the document had none.
        index:
            Name of the index that holds it.
        action:
            ``"written"``, ``"tagged"`` (written as a duplicate), ``"replaced"`` (written, and canonical in the place
            of another), ``"skipped"`` (not written) or ``"refused"`` (by the server, or for what it is).
        reason:
            Why it was refused, or what is amiss with a document that was written; else ``None``.
        canonical:
            Id of the document that stands for its group, its own where it does; after ``"replaced"`` the one that did
            before. ``None`` where documents are not grouped, or it has no fingerprint.
        distance:
            Distance to that document, in bits.
        fingerprinted:
            Whether it was sent with a fingerprint: a document without text, or without features, is not.
    """

    position: int
    id: str | None
    index: str | None
    action: str
    reason: str | None = None
    canonical: str | None = None
    distance: int | None = None
    fingerprinted: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON values."""
        plain: dict[str, Any] = {
            "position": self.position,
            "id": self.id,
            "index": self.index,
            "action": self.action,
            "reason": self.reason,
            "fingerprinted": self.fingerprinted,
        }
        return plain if self.canonical is None else plain | {"canonical": self.canonical, "distance": self.distance}


def ingest(context: Context, index: str, documents: Iterable[Any], options: IngestOptions) -> Flow[None]:
    """
    Write *documents* to *index* with their fingerprints; emit a :class:`Written` for each, in order.

    Cost: for every 500 documents a bulk request, and where they are grouped a multi-search beside the bulk before it,
    a refresh at the start, and one after every 20,000.
    """
    if not isinstance(index, str):
        raise TypeError(f"index must be a name, not {type(index).__name__}")
    settings = yield from read_index_settings(context, index)
    source = _Source(context, index, settings, documents, options)
    grouper: Grouper | None = None
    if options.on_duplicate is not None:
        default_order = f"-{context.prefix}.at" if options.on_duplicate == "replace" else "id"
        request = GroupingRequest(options.rule, options.max_distance, options.canonical, default_order)
        grouping = yield from settle_grouping(context, index, request)
        grouper = Grouper(context, index, settings, grouping, options.on_duplicate)
        yield from grouper.prepare()
    try:
        yield from _Pipeline(source, grouper).run()
    finally:
        source.close()


@dataclass(slots=True)
class _Batch:
    """Documents that go into one bulk request; a source that breaks is told after what it gave before."""

    items: list[Item] = field(default_factory=list)
    failure: Exception | None = None

    @property
    def is_last(self) -> bool:
        return self.failure is not None or not self.items


class _Source:
    """Reads documents, puts their fingerprints in, and cuts them into batches."""

    def __init__(
        self, context: Context, index: str, settings: IndexSettings, documents: Iterable[Any], options: IngestOptions
    ) -> None:
        self._index = index
        self._prefix = context.prefix
        self._options = options
        self._position = 0
        self._problems: dict[int, str] = {}
        self._actions: Any = with_fingerprints(
            documents,
            text_field=text_fields_of(settings, options.text_field),
            scheme=settings.scheme,
            prefix=context.prefix,
            value=settings.value,
            on_partial=options.on_partial,
            on_problem=lambda problem: self._problems.update({problem.position: problem.reason}),
            workers=options.workers,
            ahead=False,  # a batch is taken while another is written: see _Pipeline
        )

    def take(self) -> _Batch:
        """Return the next batch."""
        batch = _Batch()
        characters = 0
        try:
            for action in self._actions:
                batch.items.append(self._item(action))
                characters += weigh(action)
                if len(batch.items) >= CHUNK_DOCUMENTS or characters >= CHUNK_CHARACTERS:
                    break
        except Exception as error:  # noqa: BLE001 -- raised by the flow, once the batch is written
            batch.failure = error
        return batch

    def close(self) -> None:
        """Let go of the documents, and of the processes that make their fingerprints, also when not all were read."""
        # A thread that was cut off while it read goes on to the end of its batch, and lets go then.
        with suppress(ValueError):
            self._actions.close()

    def has_fingerprint(self, item: Item) -> bool:
        """Return whether the document of *item* is sent with a fingerprint."""
        operation = item.operation
        if operation is None or item.is_skipped:
            return False
        body = operation.body.get("doc") if operation.kind == "update" else operation.body
        held = body.get(self._prefix) if isinstance(body, Mapping) else None
        return isinstance(held, Mapping) and "fingerprint" in held

    def _item(self, action: Any) -> Item:
        position = self._position
        self._position += 1
        problem = self._problems.pop(position, None)
        try:
            operation = to_operation(action, self._index)
        except InvalidInputError as error:
            return Item(position, None, problem, Outcome(None, self._index, 400, Refusal(400, reason=str(error))))
        if self._options.id_from == "content" and operation.kind in ("index", "create"):
            operation = Operation(
                operation.kind, {"_id": content_id(operation.body, self._prefix), **operation.header}, operation.body
            )
        return Item(position, operation, problem)


class _Pipeline:
    """Carries batches through: decided about, written beside the lookups of the next, reported."""

    def __init__(self, source: _Source, grouper: Grouper | None) -> None:
        self._source = source
        self._grouper = grouper
        self._ahead: _Batch | None = None

    def run(self) -> Flow[None]:
        batch: _Batch = yield Compute(self._source.take)
        if self._grouper is not None:
            yield from self._grouper.look_up(batch.items)
        following: _Batch | None = None
        if not batch.is_last:
            following = yield Compute(self._source.take)
        while True:
            following = yield from self._write(batch, following)
            for item in batch.items:
                report = _report(item, is_grouped=self._grouper is not None)
                yield Emit(replace(report, fingerprinted=self._source.has_fingerprint(item)))
            if batch.failure is not None:
                raise batch.failure
            if following is None:
                return
            batch, following = following, self._ahead

    def _write(self, batch: _Batch, following: _Batch | None) -> Flow[_Batch | None]:
        """Write *batch*; meanwhile look up *following* and read the batch after it."""
        grouper = self._grouper
        if grouper is not None:
            yield from grouper.decide(batch.items)
        sending = [item for item in batch.items if item.operation and not item.outcome and not item.is_skipped]
        operations = [item.operation for item in sending if item.operation is not None]
        lookups = grouper.batch(following.items) if grouper is not None and following is not None else None
        requests: list[Call | Compute] = []
        if operations:
            requests.append(bulk_call(operations))
        if lookups is not None:
            requests.append(lookups.call())
        is_reading = following is not None and not following.is_last
        if is_reading:
            requests.append(Compute(self._source.take))
        answers = (yield Together(requests, concurrency=3)) if requests else []
        ahead = answers.pop() if is_reading else None
        if isinstance(ahead, BaseException):
            raise ahead
        self._ahead = ahead
        found = answers.pop() if lookups is not None else None
        if operations:
            outcomes = yield from finish_bulk(operations, answers.pop())
            for item, outcome in zip(sending, outcomes, strict=True):
                item.outcome = outcome
        if grouper is not None:
            yield from grouper.settle(batch.items)
            if lookups is not None and following is not None:
                yield from grouper.take(following.items, lookups, found)
        return following


def _report(item: Item, *, is_grouped: bool) -> Written:
    outcome, draft = item.outcome, item.draft
    if item.is_skipped and draft is not None and draft.leader is not None:
        return Written(
            item.position, draft.id, draft.leader.index, "skipped", item.problem, draft.group, draft.distance
        )
    if outcome is None:
        return Written(item.position, None, None, "refused", item.problem)
    if not outcome.is_done:
        return Written(item.position, outcome.id, outcome.index, "refused", str(outcome.error))
    if not is_grouped or draft is None or draft.fingerprint is None:
        return Written(item.position, outcome.id, outcome.index, "written", item.problem)
    action, canonical, distance = "written", draft.group, draft.distance
    if draft.verdict == "replace" and draft.leader is not None:
        action, canonical = "replaced", draft.leader.id
        distance = hamming_distance(draft.fingerprint, draft.leader.fingerprint or 0)
    elif draft.verdict == "tag":
        action = "tagged"
    return Written(item.position, outcome.id, outcome.index, action, item.problem, canonical, distance)


def weigh(value: Any) -> int:
    """
    Return roughly how many characters *value* takes in a request.
    """
    if isinstance(value, str):
        return len(value) + 2
    if isinstance(value, Mapping):
        return sum(len(str(key)) + 3 + weigh(each) for key, each in value.items())
    if isinstance(value, (list, tuple)):
        return sum(map(weigh, value))
    return 8
