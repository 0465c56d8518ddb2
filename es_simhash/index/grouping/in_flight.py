"""
The memory of documents that an ingest has decided to write and that searches may not show yet. Pure.

A later document under the same id takes the place of an earlier one, a refused write is withdrawn, and what it had
replaced stands again. Which document is a duplicate is decided in ``decide``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from es_simhash.index.grouping.content import Content
from es_simhash.index.grouping.in_memory import InMemoryLookup

__all__ = ["ExistingDocument", "InFlight"]


@dataclass(frozen=True, slots=True)
class ExistingDocument:
    """
    A document that another may duplicate, in the index or in flight.

    Attributes:
        id:
            Its ``_id``.
        fingerprint:
            Its fingerprint; ``None`` if it has none, and so no near-duplicates.
        group:
            The group it belongs to: the id of its canonical, its own where it is one.
        index:
            Name of the index that holds it, where known.
        source:
            The document, where the policy wants to see it.
        routing:
            Its routing value.
        position:
            Its place among the documents given, from 0; ``None`` for one that a search showed.
        content:
            What it is compared by beside the fingerprint; ``None`` where only distances count.
        at:
            The moment at which it was grouped, in milliseconds since 1970; 0 if it never was.
    """

    id: str
    fingerprint: int | None
    group: str
    index: str | None = None
    source: Mapping[str, Any] | None = None
    routing: str | None = None
    position: int | None = None
    content: Content | None = None
    at: int = 0


@dataclass(slots=True, eq=False)
class _Entry:
    """
    One document in this memory.

    Attributes:
        document:
            The document.
        earlier:
            The entry that had its id before.
        replaces:
            Entries whose place as canonical it took.
        replaced_by:
            Entries that took its place as canonical.
        is_withdrawn:
            Whether its write was refused.
        is_settled:
            Whether its write is done, so that the next refresh makes it visible.
    """

    document: ExistingDocument
    earlier: _Entry | None = None
    replaces: list[_Entry] = field(default_factory=list)
    replaced_by: list[_Entry] = field(default_factory=list)
    is_withdrawn: bool = False
    is_settled: bool = False


_CopyKey: TypeAlias = tuple[int, str, Hashable]


def _copy_key(document: ExistingDocument) -> _CopyKey:
    """Return a value that is equal for documents which every later document is compared with in the same way."""
    return document.fingerprint or 0, document.group, None if document.content is None else document.content.key


class InFlight:
    """Documents in flight, by id and by fingerprint."""

    def __init__(self) -> None:
        self._current: dict[str, _Entry] = {}
        self._by_position: dict[int, _Entry] = {}
        # Copies that belong to one group are equal for every later document: they are looked up as one.
        self._copies: dict[_CopyKey, list[_Entry]] = {}
        self._lookup: InMemoryLookup[list[_Entry]] = InMemoryLookup()

    @property
    def settled(self) -> int:
        """Number of documents whose writes are done."""
        return sum(each.is_settled for each in self._current.values())

    @property
    def size(self) -> int:
        """About how many bytes the texts of the documents occupy, prepared or not."""
        contents = (each.document.content for each in self._current.values())
        return sum(each.size for each in contents if each is not None)

    def add(
        self, document: ExistingDocument, *, replaced: Iterable[ExistingDocument] = (), is_attracting: bool = True
    ) -> None:
        """
        Remember *document*; it hides what searches, or this memory, have under its id.

        Args:
            document:
                A document in flight, with its position.
            replaced:
                Canonicals that it replaces.
            is_attracting:
                Whether later documents may be found to be its duplicates.
        """
        entry = self._put(document)
        for each in replaced:
            old = self._by_position.get(-1 if each.position is None else each.position) or self._shadow(each)
            old.replaced_by.append(entry)
            entry.replaces.append(old)
        if document.fingerprint is not None and is_attracting:
            key = _copy_key(document)
            if key not in self._copies:
                self._copies[key] = []
                self._lookup.add(document.fingerprint, self._copies[key])
            self._copies[key].append(entry)

    def _put(self, document: ExistingDocument) -> _Entry:
        entry = _Entry(document, self._current.get(document.id))
        self._current[document.id] = entry
        if document.position is not None:
            self._by_position[document.position] = entry
        return entry

    def _shadow(self, shown: ExistingDocument) -> _Entry:
        """Return the entry that hides a document which a search shows and which was replaced."""
        current = self._current.get(shown.id)
        is_shadow = current is not None and current.document.position is None
        return current if current is not None and is_shadow else self._put(shown)

    def hides(self, id_: str) -> bool:
        """Return whether a document in flight is newer than what a search shows under *id_*."""
        return id_ in self._current

    def get(self, id_: str) -> ExistingDocument | None:
        """Return the document in flight under *id_*."""
        entry = self._current.get(id_)
        return None if entry is None else entry.document

    def hiders(self, id_: str) -> set[int]:
        """Return the positions of the documents whose writes, if they are withdrawn, may show *id_* again."""
        entry = self._current.get(id_)
        return set() if entry is None else self._hiders_of(entry)

    def find(
        self, fingerprint: int, max_distance: int, *, hiders: set[int] | None = None
    ) -> Iterator[tuple[int, ExistingDocument]]:
        """
        Yield (distance in bits, document) of the documents within *max_distance*, one of all copies in a group.

        Args:
            fingerprint:
                What to look for.
            max_distance:
                Largest distance in bits, inclusive.
            hiders:
                Gets the positions of documents that hide others within *max_distance*.
        """
        for distance, copies in self._lookup.find(fingerprint, max_distance):
            standing = next((each for each in copies if self._is_standing(each)), None)
            if standing is not None:
                yield distance, standing.document
            elif hiders is not None:
                for each in copies:
                    if not each.is_withdrawn:
                        hiders.update(self._hiders_of(each))
                        hiders.update(self.hiders(each.document.id))

    @staticmethod
    def _hiders_of(entry: _Entry) -> set[int]:
        hiding = [entry, *(each for each in entry.replaced_by if not each.is_withdrawn)]
        return {each.document.position for each in hiding if each.document.position is not None}

    def _is_standing(self, entry: _Entry) -> bool:
        return self._current.get(entry.document.id) is entry and all(each.is_withdrawn for each in entry.replaced_by)

    def withdraw(self, position: int) -> None:
        """Forget the document given at *position*; the documents that it replaced are valid again."""
        entry = self._by_position.pop(position, None)
        if entry is None:
            return
        entry.is_withdrawn = True
        self._restore(entry.document.id)
        for each in entry.replaces:
            if each.document.position is None and all(other.is_withdrawn for other in each.replaced_by):
                each.is_withdrawn = True  # searches find it again
                self._restore(each.document.id)

    def _restore(self, id_: str) -> None:
        """Put the last entry of *id_* that is not withdrawn in its place."""
        entry = self._current.pop(id_, None)
        while entry is not None and entry.is_withdrawn:
            entry = entry.earlier
        if entry is not None:
            self._current[id_] = entry

    def settle(self, position: int) -> None:
        """Note that the write of the document given at *position*, and of what it replaced, is done."""
        entry = self._by_position.get(position)
        if entry is not None:
            entry.is_settled = True

    def forget_settled(self) -> None:
        """Forget what a refresh has made visible to searches, if it began after the writes were done."""
        self._current = {id_: each for id_, each in self._current.items() if not self._is_visible(each)}
        kept: set[int] = set()
        for current in self._current.values():
            entry: _Entry | None = current
            while entry is not None:  # an earlier one counts again if the write of the later one is withdrawn
                kept.add(id(entry))
                if entry.earlier is not None and self._is_visible(entry.earlier):
                    entry.earlier = None
                entry = entry.earlier
        self._by_position = {place: each for place, each in self._by_position.items() if id(each) in kept}
        copies, self._copies, self._lookup = self._copies, {}, InMemoryLookup()
        for key, entries in copies.items():
            if left := [each for each in entries if id(each) in kept]:
                self._copies[key] = left
                self._lookup.add(key[0], left)

    @staticmethod
    def _is_visible(entry: _Entry) -> bool:
        if entry.document.position is None:
            return all(each.is_settled or each.is_withdrawn for each in entry.replaced_by)
        return entry.is_settled
