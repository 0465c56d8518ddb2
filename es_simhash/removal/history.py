"""What archives say of a document id: for which documents it was removed. Files are read; no server is asked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from es_simhash.arguments import FilePath
from es_simhash.mapping.fields import full_name
from es_simhash.record import Record
from es_simhash.removal.archive import ArchiveReader, Note, cut_sentence
from es_simhash.removal.records import Archived

_Place = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Removed(Record):
    """
    One removal of a document, as an archive tells it: it was archived to be removed.
    The archive does not know whether a run that was killed deleted it, or whether it came back later. *at*: when it was
    archived, ISO 8601; with *again*, when it was to be removed once more. *kept*: the archive notes that it was there
    afterwards: not deleted, put back, or restored. *plan*: SHA-256. *distance*: bits, if the document recorded it for
    this canonical. *by* and *reason*: who decided about the plan, and why, where there were decisions.
    """

    _OPTIONAL = "by reason again kept"

    id: str
    index: str
    canonical: str
    canonical_index: str
    at: str
    archive: str
    plan: str
    routing: str | None = None
    distance: int | None = None
    by: str | None = None
    reason: str | None = None
    again: bool = False
    kept: bool = False

    @property
    def canonical_place(self) -> _Place:
        """Index and id of the document that it was removed for."""
        return self.canonical_index, self.canonical


@dataclass(frozen=True, slots=True)
class History(Record):
    """
    What archives say of the documents with one id.
    *removals*: a chain for each removal: the document, then the removal of its canonical, of that one's canonical, and
    so on. *stands_for*: removals of other documents, whose canonical has this id. *cut*: for each archive whose end was
    cut off, a sentence about it. *is_incomplete*: documents may be missing at the end of an archive.
    """

    id: str
    removals: tuple[tuple[Removed, ...], ...]
    stands_for: tuple[Removed, ...]
    cut: Mapping[str, str] = field(default_factory=dict)
    is_incomplete: bool = False

    def __bool__(self) -> bool:
        """Whether the archives know the id at all."""
        return bool(self.removals or self.stands_for)


def find_history(id_: str, archives: Sequence[FilePath], *, prefix: str = "simhash") -> History:
    """
    Return what *archives* say of documents with the id *id_* in any index, oldest removal first.
    Every archive is read to its end. Memory: some hundred bytes for each line. *prefix* is needed for distances.
    An empty history means "not removed with these archives" only if :attr:`History.is_incomplete` is false.
    """
    known: dict[_Place, list[Removed]] = {}
    ends: dict[str, ArchiveReader] = {}
    for path in archives:
        reader = ends[str(path)] = ArchiveReader(Path(path), allow_cut=True)
        for line in reader.read_all():
            if isinstance(line, Note):
                _take(line, known, str(path))
                continue
            stays = line.canonical
            distance = _distance(line, prefix) if id_ in (line.id, stays.id) else None
            where = (line.id, line.index, stays.id, stays.index, line.at, str(path))
            by, reason = line.approved or (None, None)
            removed = Removed(*where, line.plan, line.routing, distance, by, reason, line.again)
            known.setdefault((line.index, line.id), []).append(removed)
    for found in known.values():
        found.sort(key=lambda removed: removed.at)
    own = sorted((each for (_, held), found in known.items() if held == id_ for each in found), key=_moment)
    stands_for = sorted(
        (each for found in known.values() for each in found if each.canonical == id_ and each.id != id_), key=_moment
    )
    cut = {path: cut_sentence(each) for path, each in ends.items() if each.is_cut}
    is_incomplete = any(each.lacks_lines for each in ends.values())
    return History(id_, tuple(_chain(each, known) for each in own), tuple(stands_for), cut, is_incomplete)


def _take(note: Note, known: Mapping[_Place, list[Removed]], archive: str) -> None:
    """Add to what is *known* of documents what a *note* in an *archive* says of them."""
    for key in note.keys:
        found = known.get((key.index, key.id), [])
        own = (n for n, each in enumerate(found) if (each.routing, each.archive) == (key.routing, archive))
        if (last := max(own, default=None)) is None:  # its line is in another file: this is the end of an archive
            continue
        if note.state == "kept":
            found[last] = replace(found[last], kept=True)
        else:
            found.append(replace(found[last], at=note.at, again=True, kept=False))


def _moment(removed: Removed) -> tuple[str, str, str]:
    return removed.at, removed.index, removed.id


def _chain(first: Removed, known: Mapping[_Place, Iterable[Removed]]) -> tuple[Removed, ...]:
    """Return *first*, and the removal of its canonical after it, of that one's canonical, and so on."""
    chain = [first]
    while True:
        last = chain[-1]
        # A document that was restored meanwhile may have been removed before as well.
        later = [each for each in known.get(last.canonical_place, ()) if each.at >= last.at and each not in chain]
        if not later:
            return tuple(chain)
        chain.append(later[0])


def _distance(line: Archived, prefix: str) -> int | None:
    """Return the distance that the document recorded, if it was tagged with the canonical it was removed for."""
    own = json.loads(line.source).get(prefix)
    if not isinstance(own, Mapping) or own.get("duplicate_of") not in (line.canonical.id, full_name(*line.canonical)):
        return None
    distance = own.get("distance")
    return distance if isinstance(distance, int) and not isinstance(distance, bool) else None
