"""What removals say of a document id: for which documents it was removed. Files are read; no server is asked."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from typing import IO, Any

from es_simhash.arguments import FilePath, check_input, check_items, check_name
from es_simhash.errors import InvalidInputError
from es_simhash.record import Record
from es_simhash.removal.decisions import Decisions, approvals, in_words, last_words
from es_simhash.removal.removal_file import Event, RemovalFile
from es_simhash.removal.sqlite_file import damaged
from es_simhash.tables.tabular import for_spreadsheets
from es_simhash.transport.protocol import Key
from es_simhash.transport.raw_json import join_members

_Place = tuple[str, str]


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
    *removals*: a chain for each removal: the document, then the removal of its canonical, of that one's canonical, and
    so on. *stands_for*: removals of other documents, whose canonical has this id.
    """

    id: str
    removals: tuple[tuple[Removed, ...], ...]
    stands_for: tuple[Removed, ...]

    def __bool__(self) -> bool:
        """Whether the removals know the id at all."""
        return bool(self.removals or self.stands_for)


def removal_history(id_: str, paths: Sequence[FilePath]) -> History:
    """
    Return what the removals *paths* say of documents with the id *id_* in any index, oldest removal first.

    Where the document that stayed was removed later, the history goes on with that one.

    Args:
        id_:
            An ``_id``.
        paths:
            Files of removals.

    Raises:
        InvalidInputError: If a file is no removal, or is damaged.
    """
    check_name("id_", id_)
    names = [check_input("paths", each) for each in check_items("paths", paths, of="files")]
    if not names:
        raise InvalidInputError("paths is empty: give the files of removals")
    with ExitStack() as stack:
        files = [stack.enter_context(RemovalFile(each, is_checked=False)) for each in names]
        own = _find(files, "id = ?", id_)
        stands_for = [each for each in _find(files, "canonical_id = ?", id_) if each.id != id_]
        return History(id_, tuple(_chain(each, files) for each in own), tuple(stands_for))


def _find(files: Sequence[RemovalFile], where: str, *values: str) -> list[Removed]:
    """Return the removals for which the condition *where* holds, oldest first."""
    found: list[Removed] = []
    for file in files:
        for line, key, canonical, distance in file.removed(where, *values):
            found += _times(file, line, key, canonical, distance)
    return sorted(found, key=lambda each: (each.at, each.index, each.id))


def _times(file: RemovalFile, line: int, key: Key, canonical: Key, distance: int) -> Iterator[Removed]:
    """Yield a removal for each time when the document was archived to be deleted, and it had not been before."""
    events = file.events(line)
    begins = [n for n, each in enumerate(events) if each.kind == "archived" and _is_new(events[:n])]
    for begin, end in pairwise([*begins, len(events)]):
        yield _removed(file, key, canonical, distance, events[begin:end])


def _is_new(before: Sequence[Event]) -> bool:
    """Return whether a removal begins, and goes not on: the document was not archived yet, or had come back since."""
    return not before or before[-1].kind in ("deleted", "kept", "restored", "copied")


def _removed(file: RemovalFile, key: Key, canonical: Key, distance: int, events: Sequence[Event]) -> Removed:
    when: dict[str, str] = {each.kind: each.at for each in events}
    back = [each.kind for each in events if each.kind in ("deleted", "kept", "restored")]
    is_kept = bool(back) and back[-1] == "kept"
    where = key.id, key.index, canonical.id, canonical.index, events[0].at, str(file.path), file.sha256, distance
    deleted = None if is_kept else when.get("deleted")
    decided = max(each.decisions for each in events if each.kind == "archived")
    approved = approvals(file.log[:decided])
    return Removed(*where, key.routing, deleted, is_kept, when.get("restored"), approved)


def _chain(first: Removed, files: Sequence[RemovalFile]) -> tuple[Removed, ...]:
    """Return *first*, and the removal of its canonical after it, of that one's canonical, and so on."""
    chain = [first]
    while True:
        last = chain[-1]
        # A document that was restored meanwhile may have been removed before as well.
        found = _find(files, "name = ? AND id = ?", last.canonical_index, last.canonical)
        later = [each for each in found if each.at >= last.at and each not in chain]
        if not later:
            return tuple(chain)
        chain.append(later[0])


def export_removals(paths: Sequence[FilePath]) -> Iterator[dict[str, Any]]:
    """
    Yield all that the removals *paths* have, a plain dict for each line of their plans.
    ``_source`` is the text of an archived document. Memory: that of one document.
    """
    for path in paths:
        with RemovalFile(path) as file:
            kept_by = _kept_by(file.log)
            for batch in file.batches(100):
                for number, each in batch.items():
                    times = list(_times(file, number, each.document.key, each.canonical.key, each.distance))
                    plain = {**each.to_dict(), "plan": file.sha256, "kept_by": kept_by.get(each.document.key)}
                    plain |= {"events": [{"kind": event.kind, "at": event.at} for event in file.events(number)]}
                    plain |= {"approved": [list(one) for one in (times[-1].approved if times else ())]}
                    archived = file.find([number]).get(number)
                    if archived is None and times:
                        raise damaged(file.path, f"the text of line {number} is not whole")
                    yield {**plain, "_source": archived and archived.source}


def _kept_by(log: Sequence[Decisions]) -> Mapping[Key, list[str]]:
    found: dict[Key, list[str]] = {}
    for each in last_words(log):
        for key in each.keep:
            found.setdefault(key, []).append(each.by)
    return found


def write_jsonl(paths: Sequence[FilePath], file: IO[bytes]) -> int:
    """Write all that the removals *paths* have as gzip, JSON Lines; return the number of lines."""
    number = 0
    with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as zipped:
        for each in export_removals(paths):
            number += 1
            source = each.pop("_source")
            members = {name: json.dumps(value) for name, value in each.items()}
            line = join_members(members | ({} if source is None else {"_source": source}))
            zipped.write(f"{line}\n".encode("utf-8", "surrogatepass"))
    return number


COLUMNS = (
    *("index", "id", "routing", "canonical_index", "canonical_id", "distance", "similarity", "difference", "reason"),
    *("plan", "kept_by", "approved", "archived", "deleted", "kept", "restored", "fields", "canonical_fields"),
)


def write_csv(paths: Sequence[FilePath], file: IO[str]) -> int:
    """
    Write what the removals *paths* have, without the texts of ``_source``, as CSV; return the number of rows.
    A spreadsheet would compute a text that begins like a formula: such a one has an apostrophe before it.
    """
    number = 0
    rows = csv.DictWriter(file, COLUMNS, extrasaction="ignore")
    rows.writeheader()
    for each in export_removals(paths):
        number += 1
        canonical = each["canonical"]
        when = {event["kind"]: event["at"] for event in each["events"]}
        row = {
            **each,
            **when,
            "canonical_index": canonical["index"],
            "canonical_id": canonical["id"],
            "kept_by": "; ".join(each["kept_by"] or ()),
            "approved": in_words(each["approved"]),
            "fields": json.dumps(each.get("fields", {}), ensure_ascii=False),
            "canonical_fields": json.dumps(canonical.get("fields", {}), ensure_ascii=False),
        }
        rows.writerow(for_spreadsheets(row))
    return number
