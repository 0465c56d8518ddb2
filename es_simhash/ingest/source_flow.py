"""
Reading the documents of an ingest: options, fingerprints put in, cut into batches. Nothing is sent here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from es_simhash.arguments import check_choice, check_count, check_fields, check_number
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.groups.rule import GroupingRequest
from es_simhash.hashing.pool import check_workers
from es_simhash.ingest.actions import OnPartial
from es_simhash.ingest.decide import OnDuplicate, check_policy
from es_simhash.ingest.item import Item, content_id, with_draft
from es_simhash.ingest.own_records import refuse_own_record
from es_simhash.ingest.read_content import ContentReader
from es_simhash.ingest.target_flow import WriteTarget
from es_simhash.ingest.with_fingerprints import PAUSE, fingerprint_actions
from es_simhash.lookup.memory_options import LookupRequest
from es_simhash.mapping.meta import text_fields_of
from es_simhash.passages.contained import check_contained
from es_simhash.transport.feed import Feed, read_in_background, weigh
from es_simhash.writes.operations import Operation, Outcome, Refusal, to_operation

IdFrom = Literal["content"] | None
OpType = Literal["index", "create"]

LARGEST_BATCH = 10_000
# Names that only few documents have, and each line of a file of ours.
_TELLING = frozenset({"action", "canonical", "format"})


def check_max_delay(seconds: Any) -> None:
    """
    Check a number of seconds, or ``None``.

    Raises:
        TypeError: If it is no number.
        InvalidInputError: If it is not above 0.
    """
    if seconds is None:
        return
    check_number("max_delay", seconds, above=0, advice="seconds above 0, or None")


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
    grouping: GroupingRequest = field(default_factory=GroupingRequest)
    id_from: IdFrom = None
    on_partial: OnPartial = "clear"
    workers: int | None = None
    max_delay: float | None = None
    op_type: OpType = "index"
    lookup: LookupRequest = field(default_factory=LookupRequest)
    contained: float | None = None

    def __post_init__(self) -> None:
        check_max_delay(self.max_delay)
        check_fields("text_field", self.text_field, may_lack=True)
        check_choice("op_type", self.op_type, get_args(OpType))
        check_choice("on_partial", self.on_partial, get_args(OnPartial))
        check_workers(self.workers)
        if self.on_duplicate is not None:
            check_policy(self.on_duplicate)
        if self.contained is not None:
            object.__setattr__(self, "contained", check_contained(self.contained))
            if self.on_duplicate not in ("tag", "skip"):
                raise InvalidInputError(
                    f"contained does not go with on_duplicate {shorten(self.on_duplicate)}: give 'tag' or 'skip', or "
                    "leave contained out"
                )
        check_choice("id_from", self.id_from, ("content", None))


@dataclass(frozen=True, slots=True)
class IngestSizes:
    """
    The sizes of batches and requests.

    Attributes:
        documents:
            Most documents in a batch.
        characters:
            About how many characters a batch may have before it is full.
        in_flight:
            Documents remembered because searches may not show them yet. When so many are written, the index is
            refreshed: memory stays bounded, whatever the refresh interval of the index.
        in_flight_bytes:
            The same for the memory that the texts of these documents occupy, where texts are compared.
    """

    documents: int = 500
    characters: int = 4_000_000
    in_flight: int = 20_000
    in_flight_bytes: int = 100_000_000

    def __post_init__(self) -> None:
        check_count("batch", self.documents, 1, LARGEST_BATCH)


@dataclass(frozen=True, slots=True)
class Batch:
    """
    Documents that go into one bulk request.

    Attributes:
        items:
            The documents; none after the last one, and where none came in time.
        failure:
            The exception with which the caller's documents broke off, after those of this batch.
        is_last:
            Whether no batch follows.
        due:
            Until when to wait for the next batch, so that this one is not sent too late; ``None`` if that does not
            matter.
    """

    items: Sequence[Item]
    failure: Exception | None = None
    is_last: bool = False
    due: float | None = None


class Source:
    """
    Reads documents, puts their fingerprints in, and cuts them into batches.

    Args:
        index:
            Where documents go that name no index themselves.
        documents:
            Documents or bulk actions, or a queue that somebody fills with them.
        target:
            The index that is written to, and its settings.
        options:
            How to ingest.
        prefix:
            Name of the object that holds the fields.
        sizes:
            How large a batch is.

    Attributes:
        text_fields:
            Fields of the text.
        reader:
            Reads what documents are compared by; ``None`` where only distances count.
    """

    def __init__(
        self,
        index: str,
        documents: Iterable[Any] | Feed[Any],
        *,
        target: WriteTarget,
        options: IngestOptions,
        prefix: str,
        sizes: IngestSizes,
    ) -> None:
        self._index = index
        self._target = target
        settings = target.settings
        self.text_fields = text_fields_of(settings, options.text_field)
        self.reader: ContentReader | None = None
        self._prefix = prefix
        self._options = options
        self._sizes = sizes
        self._position = 0
        self._problems: dict[int, str] = {}
        self._feed: Feed[Any] | None = documents if isinstance(documents, Feed) else None
        # When the documents came that were read from the queue and are in no batch yet, and until when to wait.
        self._arrivals: deque[float] = deque()
        self._due: float | None = None
        if isinstance(documents, Feed) or options.max_delay is not None:
            documents = self._read(documents)
        self._actions: Any = fingerprint_actions(
            documents,
            text_field=self.text_fields,
            scheme=settings.scheme,
            prefix=prefix,
            value=settings.value,
            passages=settings.passages is not None,
            on_partial=options.on_partial,
            on_problem=lambda problem: self._problems.update({problem.position: problem.reason}),
            workers=options.workers,
            ahead=False,  # a batch is taken while another is written
            batch=sizes.documents,
        )

    def take(self, due: float | None = None) -> Batch:
        """
        Return the next batch.

        With max_delay it may be smaller than it could be: it then ends at the moment *due*, or max_delay after its
        first document came, whichever is earlier.
        """
        self._due = due
        items: list[Item] = []
        characters = 0
        try:
            for action in self._actions:
                if action is PAUSE:
                    return self._batch(items)
                items.append(self._item(action))
                characters += weigh(action)
                if len(items) >= self._sizes.documents or characters >= self._sizes.characters:
                    return self._batch(items)
        except Exception as error:  # noqa: BLE001 -- raised by the flow, once the batch is written
            return self._batch(items, error, is_last=True)
        return self._batch(items, is_last=not items)

    def _batch(self, items: list[Item], failure: Exception | None = None, *, is_last: bool = False) -> Batch:
        due = None
        if self._arrivals and items and self._options.max_delay is not None:
            due = self._arrivals[0] + self._options.max_delay
        for _ in range(min(len(items), len(self._arrivals))):
            self._arrivals.popleft()
        return Batch(items, failure, is_last, due)

    def _read(self, documents: Iterable[Any] | Feed[Any]) -> Iterator[Any]:
        """Yield the documents as they come, and a pause where none came in time."""
        if isinstance(documents, Feed):
            feed = documents
        else:
            feed = self._feed = read_in_background(documents, Feed(most=self._sizes.documents))
        while (found := feed.take(self._wait_until())) is not None:
            if not found:
                yield PAUSE
            for moment, document in found:
                self._arrivals.append(moment)
                yield document

    def _wait_until(self) -> float | None:
        """Return the moment at which what was read must go on; ``None`` if nothing waits."""
        if self._options.max_delay is None:
            return None
        moments = [each for each in (self._due,) if each is not None]
        moments += [self._arrivals[0] + self._options.max_delay] if self._arrivals else []
        return min(moments, default=None)

    def close(self) -> None:
        """Stop reading, and end the processes that compute fingerprints, also when not all documents were read."""
        if self._feed is not None:
            self._feed.close()
        # A thread that was cut off while it read goes on to the end of its batch, and lets go then.
        with suppress(ValueError):
            self._actions.close()

    def _item(self, action: Any) -> Item:
        position = self._position
        self._position += 1
        problem = self._problems.pop(position, None)
        if isinstance(action, Mapping) and not _TELLING.isdisjoint(action):
            plain = {name: value for name, value in action.items() if name != self._prefix}
            refuse_own_record(plain, f"document {position}")
        try:
            operation = self._as_asked(to_operation(action, self._index))
            self._check_index(operation.header["_index"])
        except InvalidInputError as error:
            # Of text that could not be read the problem says why.
            reason = problem if problem and isinstance(action, (str, bytes)) else str(error)
            return Item(position, None, problem, Outcome(None, self._index, 400, Refusal(400, reason=reason)))
        if self._options.id_from == "content" and operation.kind in ("index", "create"):
            header = {"_id": content_id(operation.body, self._prefix), **operation.header}
            operation = Operation(operation.kind, header, operation.body)
        item = Item(position, operation, problem)
        if self._options.on_duplicate is None:
            return item
        return with_draft(item, self._prefix, with_source=callable(self._options.on_duplicate), reader=self.reader)

    def _as_asked(self, operation: Operation) -> Operation:
        if self._options.op_type == "index" or operation.kind == "create":
            return operation
        if operation.kind != "index":
            raise InvalidInputError(
                f"_op_type {operation.kind} does not go with op_type 'create', which only creates documents: leave one "
                "of them out"
            )
        return Operation("create", operation.header, operation.body)

    def _check_index(self, name: str) -> None:
        if name != self._index and not self._target.accepts(name):
            raise InvalidInputError(
                f"the document names index {shorten(name)}, which has no fields of ours or is not behind "
                f"{shorten(self._index)}: ingest it into {shorten(name)} itself"
            )
