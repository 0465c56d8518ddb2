"""
Reads the documents of an ingest, puts fingerprints in, and cuts them into batches; knows where they may be written.

An index without fingerprint fields, such as one that a rollover made meanwhile, is refused: the server maps them
as text there, and from then on no lookup through the alias works.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from es_simhash.errors import InvalidInputError, MappingError, shorten
from es_simhash.ingest.actions import ActionRules, body_of, prepare_body, weigh
from es_simhash.ingest.content_reader import ContentReader
from es_simhash.ingest.decide import Existing
from es_simhash.ingest.ingest_options import IngestOptions
from es_simhash.ingest.item import Item, content_id, has_upsert, read_own
from es_simhash.ingest.with_fingerprints import BATCH_DOCUMENTS, fingerprint_actions
from es_simhash.mapping.context import Resolved
from es_simhash.mapping.faults import USE_COMPONENT
from es_simhash.mapping.fields import dotted_names, users_content
from es_simhash.mapping.meta import IndexSettings, check_text_fields, text_fields_of
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import agree, resolve_index
from es_simhash.mapping.user_fields import check_held
from es_simhash.transport.raw_json import JsonObject, as_sent, read_json, why_unreadable
from es_simhash.writes.operations import SPECIAL, Operation, Outcome, Refusal, to_operation
from es_simhash.writes.targets import find_write_index, prepare_targets

if TYPE_CHECKING:
    from es_simhash.ingest.near import Asked


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """Where an ingest writes: the indices behind the name, and the *settings* of the one written to."""

    resolved: Resolved
    settings: IndexSettings

    def accepts(self, index: str) -> bool:
        """Return whether a document may name *index* itself: one behind the name, with our fields."""
        return self.resolved.assumed is not None or index in self.resolved.settings_of


async def find_write_target(server: Port, index: str, *, is_writing: bool = True) -> WriteTarget:
    """
    Return where a write to *index* goes, after fingerprint fields were added where they can be, if it *is_writing*.
    Cost: one request (get mapping), and those of :func:`~es_simhash.writes.targets.prepare_targets`; one more for
    an alias over indices with different text fields. Raises also if a rollover would create an index without the
    fields.
    """
    resolved = await resolve_index(server, index)
    resolved = await prepare_targets(server, index, resolved) if is_writing else resolved
    settings = agree(resolved, server.context)
    if not settings.text_fields and len(resolved.settings_of) > 1:
        own = resolved.settings_of.get(await find_write_index(server, index, resolved.mappings))
        settings = settings if own is None else replace(settings, text_fields=own.text_fields)
    return WriteTarget(resolved, settings)


async def check_indices(server: Port, index: str, resolved: Resolved, written: set[str]) -> Resolved:
    """Return the indices behind *index* after a batch went to *written*; raise if one lacks the fields."""
    if resolved.assumed is not None or written <= resolved.mappings.keys():
        return resolved
    now = await resolve_index(server, index)
    faulty = {index for index, _ in now.faults} | set(now.unmapped)
    if wrong := sorted(written & faulty):
        raise _unmapped(index, wrong, server.prefix)
    return now


def _unmapped(alias: str, names: list[str], prefix: str) -> MappingError:
    return MappingError(
        f"index {names[0]!r} behind {alias!r} does not map {prefix!r}: {USE_COMPONENT}; then roll over, and index the "
        f"documents of {names[0]!r} again",
        problems=tuple(f"index {name!r} does not map {prefix!r}" for name in names),
        kinds=("template",) * len(names),
    )


# Batches that are read before the first report.
EARLY = 2
# What our fields, the action line and the id add to a document in a request, roughly.
OWN_CHARACTERS = 300
# What an action has that is a plain document with an id.
_ENVELOPE = frozenset({"_index", "_id", "_source"})


@dataclass(slots=True)
class Batch:
    """
    Documents that go into one bulk request.
    *items*: empty after the last one. *failure*: with which the caller's documents broke off, after those of it.
    *asked*: about what is near them; *existing*: what searches showed.
    """

    items: Sequence[Item]
    failure: BaseException | None = None
    is_last: bool = False
    asked: Asked | None = None
    existing: Existing = field(default_factory=Existing)


class Source:
    """A reader of documents that adds fingerprints and cuts batches; *index* is for those that name none."""

    def __init__(
        self,
        index: str,
        documents: Iterable[Any],
        *,
        target: WriteTarget,
        options: IngestOptions,
        prefix: str,
    ) -> None:
        self.index = index
        self._target = target
        settings = target.settings
        self.text_fields = text_fields_of(settings, options.text_field)
        self.reader: ContentReader | None = None
        self._prefix = prefix
        # The one text field, if it is no path. What a document has that is more than a text, an id and the user's own.
        fields = check_text_fields(self.text_fields)
        for name, mapping in target.resolved.mappings.items():
            check_held(name, mapping, fields)
        self._text_field = fields[0] if len(fields) == 1 and "." not in fields[0] else None
        self._unusual = SPECIAL | dotted_names(prefix) | {prefix}
        self._options = options
        self._position = 0
        self._taken = 0
        self._failure: BaseException | None = None  # with which the source broke off, unless that is an Exception
        documents = self._read(documents)
        self._items: Any = fingerprint_actions(
            documents,
            text_field=self.text_fields,
            scheme=settings.scheme,
            prefix=prefix,
            value=settings.value,
            passages=settings.passages is not None,
            workers=options.workers,
            ahead=False,  # a batch is taken while another is written
            batch=min(options.batch or BATCH_DOCUMENTS, BATCH_DOCUMENTS),
            prepare=self._prepare,
            hand_on=self._finished,
        )

    def take(self, most: int | None = None) -> Batch:
        """Return the next batch; with *most* documents, unless the caller chose how many."""
        items: list[Item] = []
        characters, sizes = 0, self._options.sizes
        most = self._options.batch or most or sizes.most
        most = most if self._taken >= EARLY else min(most, sizes.first)
        self._taken += 1
        try:
            for item in self._items:
                items.append(item)
                characters += item.weight
                if len(items) >= most or characters >= sizes.characters:
                    return Batch(items)
        except Exception as error:  # noqa: BLE001 -- raised by the flow, once the batch is written
            return Batch(items, error, is_last=True)
        return Batch(items, self._failure, is_last=not items or self._failure is not None)

    def _read(self, documents: Iterable[Any]) -> Iterator[Any]:
        """Yield the documents as they come, also those before a cancellation that the source passes on."""
        given = iter(documents)
        while True:
            try:
                document = next(given, self)
            except (Exception, KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # noqa: BLE001 -- raised by the flow, as an Exception is
                self._failure = error
                return
            if document is self:
                return
            yield document

    def close(self) -> None:
        """Stop reading, and end the processes that compute fingerprints, also when not all documents were read."""
        # A thread that was cut off while it read goes on to the end of its batch, and lets go then.
        with suppress(ValueError):
            self._items.close()

    def _prepare(self, given: Any, rules: ActionRules) -> Item:
        """Return what is read of one document; the item is made once its fingerprint is known."""
        position = self._position
        self._position += 1
        try:
            action = read_json(given) if isinstance(given, (str, bytes)) else given
            read = self._read_plain(action)
            members = None if read is None else _members_of(read[0].body)
            # What is nested too deeply fails here, and not among others.
            weight = OWN_CHARACTERS + (weigh(action) if members is None else len(members))
        except (ValueError, RecursionError) as error:
            return self._refused(position, error)
        if read is not None:
            operation, text = read
            operation.members = members
            return Item(position=position, operation=operation, weight=weight, texts=(text,))
        try:
            operation = self._as_asked(to_operation(action, self.index))
            self._check_index(operation.header["_index"])
        except InvalidInputError as error:
            return self._refused(position, error)
        item = Item(position=position, operation=operation, weight=weight)
        if operation.kind != "delete":
            try:
                if "_source" in action:
                    operation.body = body_of(action)
                item.part = prepare_body(operation.kind, operation.body, rules)
                item.texts = item.part.texts
                item.problems += item.part.problems
                if item.part.upsert is not None and has_upsert(operation):
                    item.upsert = item.part.upsert.problems
            except (ValueError, RecursionError) as error:
                if _is_taken(operation.body, self._prefix):
                    return self._refused(position, error)
                item.problems += (why_unreadable(error),)
        return item

    def _read_plain(self, action: Any) -> tuple[Operation, str] | None:
        """Return the operation, and the text, of a document that has no more than these; most are read only here."""
        source = action
        if type(action) is dict and action.keys() <= _ENVELOPE and action.get("_index", self.index) == self.index:
            source = action.get("_source", action)
        if type(source) not in (dict, JsonObject) or not self._unusual.isdisjoint(source):
            return None
        text, id_ = source.get(self._text_field), action.get("_id")
        if type(text) is not str or not (id_ is None or (type(id_) is str and id_ and id_.isascii())):
            return None
        if source is action:  # a copy of what was given
            source.pop("_id", None)
        header = {"_index": self.index} if id_ is None else {"_index": self.index, "_id": id_}
        return Operation(self._options.op_type, header, source), text

    def _refused(self, position: int, error: Exception) -> Item:
        outcome = Outcome(None, self.index, 400, Refusal(400, reason=why_unreadable(error)))
        return Item(position=position, outcome=outcome)

    def _finished(self, item: Item) -> Item:
        """Return *item*, whose document has its fields, with an id, and what is decided about, where it needs them."""
        operation = item.operation
        if operation is None:
            return item
        if operation.ours is None and operation.kind in ("index", "create"):
            operation.ours = read_own(operation.body, self._prefix)
        if self._options.id_from == "content" and operation.kind in ("index", "create"):
            operation.header = {"_id": content_id(operation.body, self._prefix), **operation.header}
        if operation.kind in ("index", "create") and operation.header.get("_id") is not None:
            item.given_id = str(operation.header["_id"])
        if self._options.on_duplicate is not None:
            item.read_operation(self._prefix, self.reader)
        return item

    def _as_asked(self, operation: Operation) -> Operation:
        if self._options.op_type == "index" or operation.kind == "create":
            return operation
        if operation.kind != "index":
            raise InvalidInputError(
                f"_op_type {operation.kind} does not go with op_type 'create', which only creates documents: leave one "
                "of them out"
            )
        operation.kind = "create"
        return operation

    def _check_index(self, name: str) -> None:
        if name != self.index and not self._target.accepts(name):
            raise InvalidInputError(
                f"the document names index {shorten(name)}, which has no fields of ours or is not behind "
                f"{shorten(self.index)}: ingest it into {shorten(name)} itself"
            )


def _members_of(body: Mapping[str, Any]) -> str | None:
    """Return the JSON of *body* without the last brace; ``None`` if only a client knows how to write it."""
    try:
        return (body.to_json() if isinstance(body, JsonObject) else as_sent(body))[:-1]
    except (TypeError, ValueError, RecursionError):
        return None


def _is_taken(body: Any, prefix: str) -> bool:
    """Return whether a document, or a part of an update, has something of the user's own where our object goes."""
    parts = (body, *map(body.get, ("doc", "upsert"))) if isinstance(body, Mapping) else ()
    return any(isinstance(part, Mapping) and users_content(part, prefix, is_kept=True) is not None for part in parts)
