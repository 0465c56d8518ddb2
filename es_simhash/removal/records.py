"""What a plan of removal and an archive consist of, and what applying and restoring report: plain values, checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from es_simhash.arguments import check_sendable
from es_simhash.errors import has_lone_surrogate
from es_simhash.record import Record, read_record
from es_simhash.removal.losses import LOSSLESS, LOST, TAKEN_IN, Loss
from es_simhash.transport.protocol import Key

if TYPE_CHECKING:
    from es_simhash.removal.guard_rails import Excess, OneStays

LONGEST_ID = 512
"""Bytes; the servers' limit."""


def add_detail(sentence: str, detail: str) -> str:
    """Return *sentence*, and after it what more is known."""
    return f"{sentence}: {detail}" if detail else sentence


@dataclass(frozen=True, slots=True)
class PlannedDocument(Record):
    """
    A document of a plan, as it was then; *fields* are values to show, *cut* names those that are shortened.
    *digest* is that of the fields that decided; another version with the same digest is the document that was planned.
    """

    _OPTIONAL = "cut"

    id: str
    index: str
    routing: str | None
    seq_no: int
    primary_term: int
    digest: str
    fields: Mapping[str, Any] = field(default_factory=dict, compare=False)
    cut: tuple[str, ...] = field(default=(), compare=False)

    @property
    def key(self) -> Key:
        """The key that no other document has: index, ``_id`` and routing."""
        return Key(self.index, self.id, self.routing)

    @property
    def version(self) -> tuple[int, int]:
        """Sequence number and primary term."""
        return self.seq_no, self.primary_term


@dataclass(frozen=True, slots=True)
class PlannedRemoval(Record):
    """
    One line of a plan: a duplicate, and the document that stays for it.
    *distance* is in bits. *similarity*: 0 to 1, by the measure of the grouping. *loss*: what is lost if the duplicate
    goes. *is_kept_shorter*: all that the document that stays has stands in the duplicate, which has more.
    """

    _OPTIONAL = "is_kept_shorter"

    document: PlannedDocument
    canonical: PlannedDocument
    distance: int
    similarity: float
    loss: Loss
    is_kept_shorter: bool = False

    def differs(self, name: str) -> bool:
        """Return whether both documents show other values of a field; how a value is spaced does not count."""
        one, other = (json.dumps(row.fields.get(name)) for row in (self.document, self.canonical))
        return "".join(one.split()) != "".join(other.split())

    def is_newer(self, date: str | None) -> bool:
        """Return whether the document that goes has a later *date* than what stays, as far as both are known."""
        if date is None:
            return False
        goes, stays = (moment_of(row.fields.get(date)) for row in (self.document, self.canonical))
        return goes is not None and stays is not None and goes > stays

    def to_dict(self) -> dict[str, Any]:
        """Return the line as plain JSON values: those of the document, and beside them all else."""
        plain = Record.to_dict(self)
        return {**plain.pop("document"), **plain}

    @classmethod
    def read(cls, plain: Any) -> PlannedRemoval:
        """Return the removal that :meth:`to_dict` made *plain* of; raise ValueError if it is no such line."""
        removal = read_record(cls, {**plain, "document": plain} if isinstance(plain, dict) else plain)
        if removal.document.key == removal.canonical.key:
            raise ValueError("the document is its own canonical")
        if not all(
            0 < len(row.id.encode(errors="replace")) <= LONGEST_ID for row in (removal.document, removal.canonical)
        ):
            raise ValueError(f"an id is empty, or has more than {LONGEST_ID} bytes")
        # An id goes into the body of a request, which can hold it.
        check_sendable("it", [removal.document.index, removal.canonical.index])
        return removal


def moment_of(value: Any) -> float | None:
    """Return a date as a number: ISO 8601, or a number that a server takes for one; else ``None``."""
    with suppress(TypeError, ValueError, OverflowError):
        found = datetime.fromisoformat(value)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    with suppress(TypeError, ValueError, OverflowError):
        return float(value)
    return None


@dataclass(frozen=True, slots=True)
class Archived:
    """
    A document as it was before it was removed, and for which document of which line of the plan.
    *source* is JSON, as the server returned it. *distance* is in bits. *created*: the ``creation_date`` of the index,
    by the server's clock.
    """

    index: str
    id: str
    routing: str | None
    source: str
    canonical: Key
    line: int
    distance: int = 0
    created: str = ""

    @property
    def key(self) -> Key:
        """The key that no other document has: index, ``_id`` and routing."""
        return Key(self.index, self.id, self.routing)

    @property
    def digest(self) -> bytes:
        """The digest of key and text; another document under that key has another one."""
        text = f"{json.dumps([*self.key])}\n{self.source}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(text, digest_size=16).digest()


T = TypeVar("T")


def in_parts(items: Iterable[T], size_of: Callable[[T], int], most: int, largest: int) -> Iterator[list[T]]:
    """
    Yield *items* in parts of *most*, or of fewer that are about *largest* together.

    >>> list(in_parts([1, 2, 1, 1, 1, 9, 1], int, 3, 5))
    [[1, 2, 1], [1, 1, 9], [1]]
    >>> list(in_parts([4, 9, 1, 1], int, 3, 5))
    [[4, 9], [1, 1]]
    """
    part: list[T] = []
    size = 0
    for item in items:
        part.append(item)
        size += size_of(item)
        if len(part) == most or size >= largest:
            yield part
            part, size = [], 0
    if part:
        yield part


def to_json(value: Any) -> str:
    """Return *value* as JSON; half of a surrogate pair is an escape there."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return json.dumps(value, allow_nan=False) if has_lone_surrogate(text) else text


EventKind: TypeAlias = Literal["archived", "deleted", "kept", "restored", "copied"]
"""
``archived``: it is about to be deleted, as its last archived text has it. ``deleted``: it was. ``kept``: it was there
when the run had done with it, or came back. ``restored``, ``copied``: put back where it was, or into another index.
"""


@dataclass(frozen=True, slots=True)
class Event:
    """What was done with a line; *decisions*: how many files of decisions had been taken in."""

    line: int
    kind: EventKind
    at: str
    decisions: int


DuplicateAction: TypeAlias = Literal["deleted", "would delete", "held back", "kept", "restored"]

KeptKind = Literal[
    "changed", "missing", "canonical_changed", "canonical_missing", "index_replaced", "unreadable", "not_allowed"
]
"""Why a document of a plan is kept."""

DuplicateKind: TypeAlias = KeptKind | Literal["conflict", "refused", "not_restored", "unarchived", "decided"]

_SENTENCES: dict[str, str] = {
    "changed": "its text, or a field that decided, was changed after the plan was made",
    "missing": "it is gone already, and this removal did not delete it",
    "canonical_changed": "the text of its canonical, or a field that decided, was changed after the plan was made",
    "canonical_missing": "its canonical was deleted",
    "index_replaced": "its index was deleted, or replaced by another of that name",
    "conflict": "others kept changing it",
    "refused": "the server refused",
    "unreadable": "the server could not read it now",
    "not_restored": "its canonical was deleted, and the server refused to take it back: restore it from the file",
    "unarchived": "the file of the removal does not give its text back: look for a copy of the file, or plan again",
    "decided": "it was decided to keep it",
    "not_allowed": "more would be lost by its going than the plan allows",
}


@dataclass(frozen=True, slots=True)
class DuplicateResult(Record):
    """
    What became of one duplicate; in a dry run, what would become of it.

    Attributes:
        id:
            Its ``_id``.
        index:
            Name of the index that holds it, or held it.
        canonical:
            Id of the document that stays.
        canonical_index:
            Name of the index that holds that.
        distance:
            Their distance in bits.
        action:
            ``"deleted"``; in a dry run ``"would delete"``, and ``"held back"`` in a plan that does not take its class
            in. ``"kept"`` where the plan no longer fits, the server
            refused, or it was decided to keep it. ``"restored"`` where it was deleted and came back, because its
            canonical was deleted or changed at the same moment.
        kind:
            Why it was kept or restored, as a word; else ``None``.
        detail:
            What more is known, such as the server's own words.
        similarity:
            Similarity of the two texts.
        loss:
            What is lost by its going, as a class.
        routing:
            Its routing value, where it has one.
        earlier:
            Whether an earlier run of the same plan deleted it, and this one found it gone.
    """

    _NAMES = "id index canonical canonical_index distance similarity loss action kind reason routing earlier"
    _OPTIONAL = "routing earlier"

    id: str
    index: str
    canonical: str
    canonical_index: str
    distance: int | None
    action: DuplicateAction
    kind: DuplicateKind | None = None
    detail: str = ""
    similarity: float | None = None
    loss: Loss | None = None
    routing: str | None = None
    earlier: bool = False

    @property
    def is_done(self) -> bool:
        """Whether what was planned, or decided about it, was done, or would be."""
        return self.kind in (None, "decided")

    @property
    def reason(self) -> str | None:
        """Why it was kept or restored, as a sentence for people; else ``None``."""
        return None if self.kind is None else add_detail(_SENTENCES[self.kind], self.detail)

    @classmethod
    def of(
        cls, removal: PlannedRemoval, action: DuplicateAction, kind: DuplicateKind | None = None, detail: str = ""
    ) -> DuplicateResult:
        """Return the record of a line of a plan."""
        document, canonical = removal.document, removal.canonical
        where = document.id, document.index, canonical.id, canonical.index, removal.distance
        return cls(*where, action, kind, detail, removal.similarity, removal.loss, document.routing)


LEFT_OUT: Mapping[str, str] = {
    "not_similar": "with a text that is not similar enough",
    "too_short": "with a text too short to say anything",
    "unreadable": "with a text that could not be read, or is masked for this login",
    "changed": "changed or deleted meanwhile",
    "filtered": "left out by the filter",
    "decided": "kept by people before",
    "no_fingerprint": "without a readable fingerprint: run setup",
}
"""Why a duplicate is not in a plan, by kind; what gives another kind (``may_delete``, ``make_plan``) adds it here."""

LeftOut: TypeAlias = str
"""A kind of :data:`LEFT_OUT`."""


@dataclass(frozen=True, slots=True)
class RemovalPlan:
    """
    What a plan of removal contains, and what it leaves out.

    Attributes:
        path:
            The file; empty for a plan that is in none.
        sha256:
            SHA-256 of the plan: who approved this one approved no other.
        count:
            Number of documents that would be removed.
        held:
            Number of duplicates that are held back: something would be lost, and the plan was not asked to take them in
            (*also*). A person can decide to remove them.
        losses:
            How many duplicates, of both, have each class: what is lost if they go.
        kept_is_shorter:
            How many of those held back have all that stays for them, and more: ``canonical="longest"`` lets them stay.
        newer:
            How many of the documents that would be removed are newer than what stays, by :attr:`date`.
        date:
            The date field that is shown; empty for none.
        also:
            The classes that are taken in.
        examples:
            Of each class that is held back three lines, the least similar.
        documents:
            Number of documents of the indices.
        duplicates:
            Number of duplicates that the grouping has.
        left_out:
            How many documents are not in the plan, by kind; :attr:`left_out_words` has the meanings.
        excess:
            The share that is removed, where it is larger than *max_share*: ``apply_removal`` refuses the plan as it is.
        large_group:
            How many documents go for one, where they are very many: ``apply_removal`` refuses the plan as it is.
        without_fingerprint:
            How many documents have a text field and no fingerprint, so that they were not looked at: ``backfill`` adds
            it where the text has letters.
        ungrouped:
            Where the index records a grouping, how many documents have a fingerprint and no group: ``reconcile`` groups
            them. The plan has their duplicates all the same.
        unmet:
            How many documents that were kept before are of another index or routing, gone, or no duplicates.
        rule:
            By what the documents are duplicates, in words.
        removals:
            What would go, least similar first, if the plan is in no file.
    """

    path: str
    sha256: str
    count: int
    documents: int
    duplicates: int
    left_out: Mapping[str, int] = field(default_factory=dict)
    excess: Excess | None = None
    large_group: OneStays | None = None
    without_fingerprint: int = 0
    ungrouped: int = 0
    unmet: int = 0
    rule: str = ""
    held: int = 0
    losses: Mapping[Loss, int] = field(default_factory=dict)
    kept_is_shorter: int = 0
    newer: int = 0
    date: str = ""
    also: tuple[Loss, ...] = ()
    examples: tuple[PlannedRemoval, ...] = field(default=(), repr=False)
    removals: tuple[PlannedRemoval, ...] = field(default=(), repr=False)

    def goes(self, line: PlannedRemoval) -> bool:
        """Return whether a *line* of the plan goes without a decision of a person; else it is held back."""
        return line.loss in (*LOSSLESS, *self.also)

    @property
    def left_out_words(self) -> tuple[str, ...]:
        """How many documents are not in the plan, and why, in words; a phrase for each kind."""
        return tuple(f"{number:,} {LEFT_OUT[kind]}" for kind, number in self.left_out.items())

    @property
    def loss_words(self) -> str:
        """What is lost by class, and what takes in the classes that are held back, in words."""
        lossless = sum(self.losses.get(loss, 0) for loss in LOSSLESS)
        said = [f"{lossless:,} lose nothing by going"]
        for loss, number in self.losses.items():
            if loss in TAKEN_IN:
                said.append(f"{number:,} {LOST[loss]} ({'taken in' if loss in self.also else f'--also {loss}'})")
        return f"{self.count + self.held:,} repeat another: {'; '.join(said)}"

    @property
    def advice(self) -> tuple[str, ...]:
        """Which other order of canonicals would lose less, in words."""
        found = []
        if self.kept_is_shorter:
            number = f"{self.kept_is_shorter:,} of those held back"
            found.append(f"{number} have all that stays for them, and more: --canonical longest lets them stay")
        if self.newer:
            which = f"in {self.newer:,} of {self.count:,} the newer one by {self.date} goes"
            found.append(f"{which}: --canonical -{self.date} lets the latest stay")
        return tuple(found)

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why ``apply_removal`` refuses the plan as it is, and what allows it; a sentence for each reason."""
        return tuple(found.refusal() for found in (self.excess, self.large_group) if found is not None)


RestoredAction: TypeAlias = Literal["restored", "would restore", "exists", "differs", "refused"]

RestoredKind: TypeAlias = Literal[
    "index_missing", "unplanned", "unmapped", "other_scheme", "dropped", "pipeline", "unreadable", "refused"
]

_RESTORED: dict[str, str] = {
    "index_missing": "its index does not exist any more: create it, or name another index to restore into",
    "unplanned": "the plan that names its index is damaged: name an index to restore into",
    "unmapped": "its index does not map our fields any more: add them to its mapping, or name another index to "
    "restore into",
    "other_scheme": "its fingerprint is not the one that the index's scheme gives its text: name an index that has the "
    "scheme it was removed from",
    "dropped": "an ingest pipeline of the server dropped it",
    "pipeline": "it was written, and is not as it was archived: a final pipeline of the index, or another program, "
    "changed it",
    "unreadable": "the server could not read it now: run the restore again",
    "refused": "the server refused",
}


@dataclass(frozen=True, slots=True)
class Restored(Record):
    """
    What became of one document of an archive; in a dry run, what would become of it.

    Attributes:
        id:
            Its ``_id``.
        index:
            Name of the index that holds it now; where it was refused, of the one that was to hold it.
        action:
            ``"restored"`` where it was missing and is there now; in a dry run ``"would restore"``. ``"exists"`` where
            it was there already, with the same fields, and ``"differs"`` where another document has its id: nothing is
            written then. ``"refused"`` where it could not be written. ``"differs"`` with the kind ``"pipeline"`` where
            it was written, and then changed.
        routing:
            Its routing value, where it has one.
        canonical:
            Id of the document that it was removed for.
        canonical_index:
            Name of the index that held that.
        kind:
            Why it was refused or changed, as a word; else ``None``.
        detail:
            What more is known, such as the server's own words.
    """

    _NAMES = "id index action canonical canonical_index kind reason routing"
    _OPTIONAL = "routing"

    id: str
    index: str
    action: RestoredAction
    routing: str | None = None
    canonical: str = ""
    canonical_index: str = ""
    kind: RestoredKind | None = None
    detail: str = ""

    @property
    def is_done(self) -> bool:
        """Whether the document is in the index, with the fields of the archive, or would be."""
        return self.action in ("restored", "would restore", "exists")

    @property
    def reason(self) -> str | None:
        """Why the document is not as the archive has it, as a sentence for people; else ``None``."""
        if self.action == "differs" and self.kind is None:
            return "another version of it is there, which was not changed"
        return None if self.kind is None else add_detail(_RESTORED[self.kind], self.detail)

    @classmethod
    def of(
        cls, archived: Archived, index: str, action: RestoredAction, kind: RestoredKind | None = None, detail: str = ""
    ) -> Restored:
        """Return the record of a line of an archive."""
        canonical = archived.canonical
        return cls(archived.id, index, action, archived.routing, canonical.id, canonical.index, kind, detail)
