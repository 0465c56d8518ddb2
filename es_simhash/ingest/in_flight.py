"""
The memory of documents that an ingest has decided to write and that searches may not show yet. Pure.

A later document under the same id takes the place of an earlier one, a refused write is withdrawn, and what it had
replaced stands again. Which document is a duplicate is decided in ``decide``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from es_simhash.groups.content import Content
from es_simhash.hashing import hamming_distance

if TYPE_CHECKING:
    from es_simhash.lookup.memory_table import FingerprintTable


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
    replaces: Sequence[_Entry] = ()
    replaced_by: Sequence[_Entry] = ()
    is_withdrawn: bool = False
    is_settled: bool = False


_CopyKey: TypeAlias = tuple[int, str, Hashable]


def _copy_key(document: ExistingDocument) -> _CopyKey:
    """Return a value that is equal for documents which every later document is compared with in the same way."""
    return document.fingerprint or 0, document.group, None if document.content is None else document.content.key


@dataclass(slots=True, eq=False)
class _Copies:
    """
    Documents that are equal for every later document, which are looked up as one.

    Attributes:
        place:
            Their place in the order in which the first of them was added.
        entries:
            The documents, one or more.
    """

    place: int
    entries: list[_Entry]


class InFlight:
    """
    Documents in flight, by id and by fingerprint.

    Args:
        max_distance:
            Largest distance of :meth:`find` in bits, inclusive.

    Attributes:
        settled:
            How many writes are done that were not forgotten.
    """

    def __init__(self, max_distance: int) -> None:
        self.settled = 0
        self._max_distance = max_distance
        self._current: dict[str, _Entry] = {}
        self._by_position: dict[int, _Entry] = {}
        self._contents: list[Content] = []
        self._copies: dict[_CopyKey, _Copies] = {}
        self._by_fingerprint: dict[int, list[_Copies]] = {}
        # Every fingerprint here is in the table or waits for it.
        self._table: FingerprintTable | None = None
        self._waiting: list[int] = []
        # What is near those foreseen: of the table, and of those foreseen.
        self._near: dict[int, AbstractSet[int]] = {}

    @property
    def size(self) -> int:
        """About how many bytes the texts of the documents occupy, prepared or not."""
        return sum(each.size for each in self._contents)

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
            old.replaced_by = [*old.replaced_by, entry]
            entry.replaces = [*entry.replaces, old]
        if document.content is not None:
            self._contents.append(document.content)
        if document.fingerprint is not None and is_attracting:
            key = _copy_key(document)
            if (copies := self._copies.get(key)) is None:
                self._keep(key, _Copies(len(self._copies), [entry]))
            else:
                copies.entries.append(entry)

    def _keep(self, key: _CopyKey, copies: _Copies) -> None:
        fingerprint = key[0]
        self._copies[key] = copies
        if fingerprint not in self._by_fingerprint:
            self._by_fingerprint[fingerprint] = []
            self._waiting.append(fingerprint)
        self._by_fingerprint[fingerprint].append(copies)
        if fingerprint not in self._near:
            self._near = {}

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

    def foresee(self, fingerprints: Sequence[int]) -> None:
        """
        Prepare :meth:`find` for these *fingerprints*, also for the documents with one of them that are added before.

        To find the neighbours of many at once is much faster.
        """
        import numpy as np  # noqa: PLC0415 -- takes longer to load than all the rest

        from es_simhash.lookup.memory_table import FingerprintTable  # noqa: PLC0415 -- loads numpy

        if self._table is None:
            self._table = FingerprintTable(self._max_distance)
        self._table.add(np.array(self._waiting, np.uint64))
        self._waiting.clear()
        wanted = np.array(list(dict.fromkeys(fingerprints)), np.uint64)
        before, among = self._table.near(wanted), self._table.near_among(wanted, wanted)
        near = ({*one.tolist(), *other.tolist()} for one, other in zip(before, among, strict=True))
        self._near = dict(zip(wanted.tolist(), near, strict=True))

    def _near_to(self, fingerprint: int) -> AbstractSet[int]:
        """Return the fingerprints near *fingerprint*: those in flight, and perhaps others."""
        if fingerprint not in self._near:
            self.foresee([fingerprint])
        return self._near[fingerprint]

    def has_near(self, fingerprint: int | None) -> bool:
        """Return whether :meth:`find` may find something."""
        known = self._by_fingerprint
        return fingerprint is not None and any(each in known for each in self._near_to(fingerprint))

    def find(
        self, fingerprint: int, *, hiders: set[int] | None = None, apart_from: str | None = None
    ) -> Iterator[tuple[int, ExistingDocument]]:
        """
        Yield (distance in bits, document) of the documents near *fingerprint*, one of all copies in a group.

        Args:
            fingerprint:
                What to look for; see :meth:`foresee`.
            hiders:
                Gets the positions of documents that hide others within max_distance.
            apart_from:
                An id; neither this document nor the members of its group are found.
        """
        known = self._by_fingerprint
        found = [copies for near in self._near_to(fingerprint) for copies in known.get(near, ())]
        for copies in sorted(found, key=lambda each: each.place):
            if copies.entries[0].document.group == apart_from:
                continue
            others = (each for each in copies.entries if each.document.id != apart_from)
            standing = next((each for each in others if self._is_standing(each)), None)
            if standing is not None:
                yield hamming_distance(fingerprint, standing.document.fingerprint or 0), standing.document
            elif hiders is not None:
                for each in copies.entries:
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
        if entry is not None and not entry.is_settled:
            entry.is_settled = True
            self.settled += 1

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
        self.settled = sum(each.is_settled for each in self._by_position.values())
        contents = (each.document.content for each in self._by_position.values())
        self._contents = [each for each in contents if each is not None]
        copies, self._copies, self._by_fingerprint = self._copies, {}, {}
        self._table, self._waiting, self._near = None, [], {}
        for key, before in copies.items():
            if left := [each for each in before.entries if id(each) in kept]:
                self._keep(key, _Copies(len(self._copies), left))

    @staticmethod
    def _is_visible(entry: _Entry) -> bool:
        if entry.document.position is None:
            return all(each.is_settled or each.is_withdrawn for each in entry.replaced_by)
        return entry.is_settled
