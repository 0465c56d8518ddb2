"""What removals say of a document id: for which documents it was removed. Files are read; no server is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise

from es_simhash.arguments import FilePath, check_inputs, check_key
from es_simhash.errors import InvalidInputError
from es_simhash.record import Record
from es_simhash.removal.decisions import approvals
from es_simhash.removal.records import Event
from es_simhash.removal.removal_file import RemovalFile
from es_simhash.transport.protocol import Key


@dataclass(frozen=True, slots=True)
class Removed(Record):
    """
    One removal of a document.

    Attributes:
        id:
            Its ``_id``.
        index:
            The index that it was removed from.
        canonical:
            Id of the document that it was removed for.
        canonical_index:
            The index of that.
        at:
            When it was archived to be deleted, ISO 8601.
        path:
            The file of the removal.
        plan:
            SHA-256 of the plan.
        distance:
            Their distance in bits.
        routing:
            Its routing value, where it has one.
        deleted:
            When it was deleted; ``None`` if that is not known, because the run was ended, or if it was kept.
        kept:
            Whether it was there afterwards: not deleted, or put back because its canonical was gone.
        restored:
            When it was restored; ``None`` if it was not, as far as the file knows.
        approved:
            Who had decided about the plan by then, and why.
    """

    _OPTIONAL = "routing deleted kept restored approved"

    id: str
    index: str
    canonical: str
    canonical_index: str
    at: str
    path: str
    plan: str
    distance: int
    routing: str | None = None
    deleted: str | None = None
    kept: bool = False
    restored: str | None = None
    approved: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class History(Record):
    """
    What removals say of the documents with one id.
    *removals*: those of the document, oldest first. *stands_for*: removals of other documents, whose canonical has this
    id.
    """

    id: str
    removals: tuple[Removed, ...]
    stands_for: tuple[Removed, ...]

    def __bool__(self) -> bool:
        """Whether the removals know the id at all."""
        return bool(self.removals or self.stands_for)


def removal_history(id_: str, paths: Sequence[FilePath]) -> History:
    """
    Return what the removals *paths* say of documents with the id *id_* in any index, oldest removal first.

    Args:
        id_:
            An ``_id``.
        paths:
            Files of removals.

    Raises:
        InvalidInputError: If a file is no removal, or is damaged.
    """
    check_key("id_", id_)
    names = check_inputs("paths", paths)
    if not names:
        raise InvalidInputError("paths is empty: give the files of removals")
    with ExitStack() as stack:
        files = [stack.enter_context(RemovalFile(name, is_checked=False)) for name in names]
        stands_for = [removed for removed in _find(files, "canonical_id = ?", id_) if removed.id != id_]
        return History(id_, tuple(_find(files, "id = ?", id_)), tuple(stands_for))


def _find(files: Sequence[RemovalFile], where: str, value: str) -> list[Removed]:
    """Return the removals for which the condition *where* holds, oldest first."""
    found: list[Removed] = []
    for file in files:
        for line, key, canonical, distance in file.removed(where, value):
            found += _times(file, line, key, canonical, distance)
    return sorted(found, key=lambda removed: (removed.at, removed.index, removed.id))


def _times(file: RemovalFile, line: int, key: Key, canonical: Key, distance: int) -> Iterator[Removed]:
    """Yield a removal for each time when the document was archived to be deleted; a run that goes on is none."""
    events = file.events(line)
    kinds = ["", *(event.kind for event in events)]
    begins = [n for n, (before, kind) in enumerate(pairwise(kinds)) if kind == "archived" and before != "archived"]
    for begin, end in pairwise([*begins, len(events)]):
        yield _removed(file, key, canonical, distance, events[begin:end])


def _removed(file: RemovalFile, key: Key, canonical: Key, distance: int, events: Sequence[Event]) -> Removed:
    when: dict[str, str] = {event.kind: event.at for event in events}
    back = [event.kind for event in events if event.kind in ("deleted", "kept", "restored")]
    is_kept = bool(back) and back[-1] == "kept"
    where = key.id, key.index, canonical.id, canonical.index, events[0].at, str(file.path), file.sha256, distance
    deleted = None if is_kept else when.get("deleted")
    decided = max(event.decisions for event in events if event.kind == "archived")
    approved = approvals(file.log[:decided])
    return Removed(*where, key.routing, deleted, is_kept, when.get("restored"), approved)
