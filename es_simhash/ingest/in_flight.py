"""
The memory of documents that an ingest decided to write and that searches may not show. No requests.

A later document under the same id takes the place of an earlier one; a refused write is withdrawn, and the
earlier one is valid again. ``decide`` says which document is a duplicate.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

from es_simhash.hashing import hamming_distance
from es_simhash.lookup.content import Content

if TYPE_CHECKING:
    from es_simhash.lookup.fingerprint_table import FingerprintTable, Near


@dataclass(slots=True)
class Document:
    """
    A document that is decided about, or that another may duplicate, in the index or in flight.
    *fingerprint*: ``None``, nothing is near it. *group*: its name; empty before the decision. *is_member*: another
    document is the canonical; *canonicals* are those of its group in the index, ``None`` where nobody asked for them.
    *position*: among the documents given, from 0; ``None`` for one that a search showed. *content*: ``None`` where only
    distances count. *at*: when it was grouped, in milliseconds since 1970; 0 if never.
    *must_write*: an update, or its id is in the index: never skipped.
    In flight it is a node of that memory too: *earlier* had its id before, *is_settled* means that its write is done.
    One object for each document, because Python's garbage collector looks at all of them again and again.
    """

    id: str
    fingerprint: int | None
    group: str = ""
    index: str | None = None
    routing: str | None = None
    position: int | None = None
    content: Content | None = None
    at: int = 0
    must_write: bool = False
    is_member: bool = False
    canonicals: Sequence[Document] | None = None
    earlier: Document | None = field(default=None, init=False, compare=False, repr=False)
    is_withdrawn: bool = field(default=False, init=False, compare=False, repr=False)
    is_settled: bool = field(default=False, init=False, compare=False, repr=False)

    def distance_to(self, fingerprint: int | None) -> int | None:
        """Return the distance in bits; ``None`` where one of the two has no fingerprint."""
        known = self.fingerprint is not None and fingerprint is not None
        return hamming_distance(self.fingerprint or 0, fingerprint or 0) if known else None


_CopyKey: TypeAlias = tuple[int, str, bool, Hashable]


def _copy_key(document: Document) -> _CopyKey:
    """Return a value that is equal for documents which every later document is compared with in the same way."""
    content = None if document.content is None else document.content.key
    return document.fingerprint or 0, document.group, document.is_member, content


class Straight(Protocol):
    """A document that nothing is near, in flight without being a :class:`Document` until something asks for it."""

    fingerprint: int | None
    at: int
    is_settled: bool

    @property
    def id(self) -> str: ...
    @property
    def size(self) -> int: ...
    def to_document(self) -> Document: ...


class InFlight:
    """Documents in flight, by id and by fingerprint; *settled* counts writes done and not yet forgotten."""

    def __init__(self, max_distance: int) -> None:
        self.settled = 0
        self._max_distance = max_distance
        self._current: dict[str, Document | Straight] = {}
        self._by_position: dict[int, Document] = {}
        self._contents: list[Content] = []
        self._characters = 0
        self._asleep = 0  # bytes of the texts of straight documents
        # Documents that are equal for every later one are looked up as one; a list where there are several.
        self._copies: dict[_CopyKey, Document | list[Document]] = {}
        self._keys: dict[int, _CopyKey | list[_CopyKey] | Straight] = {}
        self._members: dict[str, list[Document]] = {}
        # Every fingerprint here is in the table or waits for it.
        self._table: FingerprintTable | None = None
        self._waiting: list[int] = []
        # What is near those foreseen, apart from themselves: of the table, and of those foreseen.
        self._foreseen: frozenset[int] = frozenset()
        self._near: Near = {}

    def occupies(self, most: int) -> bool:
        """Return whether the texts of the documents, prepared or not, occupy about *most* bytes or more."""
        # A prepared text has 8 bytes a shingle, and no more shingles than characters: most are never asked.
        most -= self._asleep
        return 8 * self._characters >= most and sum(each.size for each in self._contents) >= most

    def add(self, document: Document, *, may_have_duplicates: bool = True) -> None:
        """Remember *document*, which hides others of its id; *may_have_duplicates*: later ones may duplicate it."""
        self._put(document)
        if document.content is not None:
            self._contents.append(document.content)
            self._characters += document.content.characters
        if may_have_duplicates:
            self._keep(document)
        else:
            self._members.setdefault(document.group, []).append(document)

    def add_straight(self, document: Straight) -> None:
        """Remember *document*, a foreseen one that nothing in flight is near."""
        self._asleep += document.size
        self._current[document.id] = document
        fingerprint = document.fingerprint or 0
        self._keys[fingerprint] = document
        self._waiting.append(fingerprint)

    def _awake(self, straight: Straight) -> Document:
        """Return *straight* as a document like the others."""
        self._asleep -= straight.size
        document = straight.to_document()
        document.is_settled = straight.is_settled
        self._current[document.id] = document
        if document.position is not None:
            self._by_position[document.position] = document
        if document.content is not None:
            self._contents.append(document.content)
            self._characters += document.content.characters
        key = self._keys[document.fingerprint or 0] = _copy_key(document)
        self._copies[key] = document
        return document

    def wake(self, documents: Iterable[Straight]) -> None:
        """Treat *documents* like the others from now on."""
        for each in documents:
            if self._current.get(each.id) is each:
                self._awake(each)

    def _under(self, id_: str) -> Document | None:
        found = self._current.get(id_)
        return found if found is None or isinstance(found, Document) else self._awake(found)

    def _keep(self, document: Document) -> None:
        if document.fingerprint is None:
            return
        key = _copy_key(document)
        keys = self._keys_of(key[0])
        copies = self._copies.get(key)
        if isinstance(copies, list):
            copies.append(document)
            return
        if copies is not None:
            self._copies[key] = [copies, document]
            return
        self._copies[key] = document
        fingerprint = key[0]
        if isinstance(keys, list):
            keys.append(key)
        elif keys is not None:
            self._keys[fingerprint] = [keys, key]
        else:
            self._keys[fingerprint] = key
            self._waiting.append(fingerprint)
            if fingerprint not in self._foreseen:
                self._foreseen, self._near = frozenset(), {}

    def _put(self, document: Document) -> Document:
        document.earlier = self._under(document.id)
        self._current[document.id] = document
        if document.position is not None:
            self._by_position[document.position] = document
        self.free_members(document.id)
        return document

    def free_members(self, id_: str) -> None:
        """Let :meth:`find` return the copies of *id_*, which is written again: they may not be near it any more."""
        for each in self._members.pop(id_, ()):
            self._keep(each)

    def hides(self, id_: str) -> bool:
        """Return whether a document in flight is newer than what a search shows under *id_*."""
        return id_ in self._current

    def get(self, id_: str) -> Document | None:
        return self._under(id_)

    def blockers(self, id_: str) -> set[int]:
        """Return the positions of the documents whose writes, if they are withdrawn, may show *id_* again."""
        current = self._under(id_)
        return set() if current is None or current.position is None else {current.position}

    def foresee(self, fingerprints: Sequence[int]) -> None:
        """
        Prepare :meth:`find` for *fingerprints*, many at once, which is much faster than one by one.
        Documents with one of these fingerprints that are added in between are found too.
        """
        if self._foreseen.issuperset(fingerprints):
            return
        import numpy as np  # noqa: PLC0415 -- takes longer to load than all the rest

        from es_simhash.lookup.fingerprint_table import FingerprintTable  # noqa: PLC0415 -- loads numpy

        if self._table is None:
            self._table = FingerprintTable(self._max_distance)
        self._table.add(np.array(self._waiting, np.uint64))
        self._waiting.clear()
        self._foreseen = frozenset(fingerprints)
        self._near = self._table.near_others(list(self._foreseen))

    def _keys_near(self, fingerprint: int) -> Iterator[_CopyKey]:
        if fingerprint not in self._foreseen:
            self.foresee([fingerprint])
        # Of thousands that are near each other in one batch, few may be kept.
        for each in (fingerprint, *filter(self._keys.__contains__, self._near.get(fingerprint, ()))):
            keys = self._keys_of(each)
            yield from keys if isinstance(keys, list) else (keys,) if keys else ()

    def _keys_of(self, fingerprint: int) -> _CopyKey | list[_CopyKey] | None:
        keys = self._keys.get(fingerprint)
        return keys if keys is None or isinstance(keys, (tuple, list)) else _copy_key(self._awake(keys))

    def is_foreseen_near(self, fingerprint: int | None) -> bool:
        return fingerprint in self._near

    def foreseen_near(self, fingerprint: int, among: Iterable[int]) -> Iterable[int]:
        """Return those of the foreseen *among* that are near *fingerprint*, and others; all if one is not foreseen."""
        if fingerprint not in self._foreseen or not self._foreseen.issuperset(among):
            return among
        return (fingerprint, *self._near.get(fingerprint, ()))

    def is_near(self, fingerprint: int) -> bool:
        """Return whether anything in flight, or of what is foreseen, may be near the foreseen *fingerprint*."""
        return fingerprint in self._near or fingerprint in self._keys

    def contents_near(self, fingerprint: int) -> Iterator[Content]:
        """Yield what documents in flight near *fingerprint* are compared by, one for all copies."""
        for key in self._keys_near(fingerprint):
            copies = self._copies[key]
            content = (copies[0] if isinstance(copies, list) else copies).content
            if content is not None:
                yield content

    def has_near(self, fingerprint: int | None) -> bool:
        """Return whether :meth:`find` may find something."""
        if fingerprint in self._foreseen and fingerprint not in self._near:
            return fingerprint in self._keys  # most documents, without detours
        return fingerprint is not None and next(self._keys_near(fingerprint), None) is not None

    def find(
        self, fingerprint: int, *, blockers: set[int] | None = None, apart_from: str | None = None
    ) -> Iterator[tuple[int | None, Document]]:
        """
        Yield (distance in bits, document) for those near *fingerprint*, one for all copies in a group; in the order in
        which a search shows them, so that a decision does not depend on a refresh.
        *blockers* gets the positions of documents that hide others within max_distance. *apart_from* is an id: neither
        this document nor the members of its group are found.
        """
        found = [self._copies[key] for key in self._keys_near(fingerprint)]
        for copies in sorted(
            (each if isinstance(each, list) else [each] for each in found), key=lambda each: (each[0].at, each[0].id)
        ):
            if copies[0].group == apart_from:
                continue
            others = (each for each in copies if each.id != apart_from)
            standing = next((each for each in others if self._is_standing(each)), None)
            if standing is not None:
                yield standing.distance_to(fingerprint), standing
            elif blockers is not None:
                for each in copies:
                    if not each.is_withdrawn:
                        blockers.update(() if each.position is None else (each.position,))
                        blockers.update(self.blockers(each.id))

    def _is_standing(self, document: Document) -> bool:
        return self._current.get(document.id) is document

    def withdraw(self, position: int) -> None:
        """Forget the document given at *position*; an earlier one under its id is valid again."""
        document = self._by_position.pop(position, None)
        if document is None:
            return
        document.is_withdrawn = True
        self._restore(document.id)

    def _restore(self, id_: str) -> None:
        """Put the last document under *id_* that is not withdrawn in its place."""
        document = self._under(id_)
        self._current.pop(id_, None)
        while document is not None and document.is_withdrawn:
            document = document.earlier
        if document is not None:
            self._current[id_] = document

    def settle(self, positions: Iterable[int]) -> None:
        """Note that the writes of the documents given at *positions* are done."""
        for document in filter(None, map(self._by_position.get, positions)):
            self.settled += not document.is_settled
            document.is_settled = True

    def settle_straight(self, documents: Iterable[Straight]) -> None:
        """Note that the writes of *documents* are done."""
        for each in documents:
            self.settled += 1
            each.is_settled = True
            if self._current.get(each.id) is not each:
                each.to_document().is_settled = True

    def forget_settled(self) -> None:
        """Forget what a refresh has made visible to searches, if it began after the writes were done."""
        self._current = {id_: each for id_, each in self._current.items() if not each.is_settled}
        kept: set[int] = set()
        straight = [each for each in self._current.values() if not isinstance(each, Document)]
        for current in self._current.values():
            document = current if isinstance(current, Document) else None
            while document is not None:  # an earlier one counts again if the write of the later one is withdrawn
                kept.add(id(document))
                if document.earlier is not None and document.earlier.is_settled:
                    document.earlier = None
                document = document.earlier
        self._by_position = {place: each for place, each in self._by_position.items() if id(each) in kept}
        self.settled = sum(each.is_settled for each in self._by_position.values())
        self._contents = [each.content for each in self._by_position.values() if each.content is not None]
        self._characters = sum(each.characters for each in self._contents)
        self._asleep = sum(each.size for each in straight)
        before, self._copies, self._keys = self._copies, {}, {}
        members = {group: [each for each in some if id(each) in kept] for group, some in self._members.items()}
        self._members = {group: some for group, some in members.items() if some}
        self._table, self._waiting, self._foreseen, self._near = None, [], frozenset(), {}
        for copies in before.values():
            for each in copies if isinstance(copies, list) else (copies,):
                if id(each) in kept:
                    self._keep(each)
        self._keys.update((each.fingerprint or 0, each) for each in straight)
        self._waiting += [each.fingerprint or 0 for each in straight]
