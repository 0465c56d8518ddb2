"""Near-duplicates, and their selection from hits by Hamming distance. Hits are plain dicts; makes no request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from es_simhash.arguments import check_count, check_items
from es_simhash.errors import MappingError, WrongTypeError, count, shorten
from es_simhash.hashing import Scheme, from_hex, to_hex
from es_simhash.hashing.charikar import check_fingerprint
from es_simhash.lookup.plan import LookupPlan
from es_simhash.mapping.fields import DEFAULT_PREFIX, Fields, read_fingerprint
from es_simhash.mapping.meta import DEFAULT_MAX_DISTANCE, check_max_distance
from es_simhash.tables.notebook import Part, Sheet, cut, flat_source
from es_simhash.tables.tabular import Items
from es_simhash.texts.measures import FEWEST_LETTERS
from es_simhash.transport.protocol import Index, Key, document_key, index_key

if TYPE_CHECKING:
    from es_simhash.lookup.judge import LookupRule
    from es_simhash.mapping.rule import PairRule
    from es_simhash.texts.measures import Replaced

ROW = ("id", "index", "routing", "distance", "fingerprint", "similarity", "containment", "numbers")
"""The columns that every row of a near-duplicate has."""


NUMBERS_SAID: dict[str | None, str] = {
    "only": "only these differ",
    "signs": "only signs differ",
    "replaced": "others too",
}
"""What became of numbers, for people; nothing where they are the same."""


@dataclass(frozen=True, slots=True)
class NearDup:
    """
    One near-duplicate found in an index.

    Attributes:
        id:
            The document's ``_id``.
        index:
            Name of the index that holds it: the backing index, where an alias or data stream was searched.
        distance:
            Hamming distance to the fingerprint asked for, in bits.
        fingerprint:
            Its fingerprint, unsigned.
        source:
            Its ``_source``, where asked for.
        similarity:
            How similar its text and the text asked for are by the measure of the rule, 0 to 1; ``None`` where they were
            not compared.
        containment:
            The shared shingles as a share of those of the text that has fewer: near 1 also for an excerpt.
        routing:
            The document's ``_routing``, where it was indexed with one. An index may hold one ``_id`` several times,
            with different routing values.
        unverified:
            Why its text could not be compared, though the rule compares texts; ``None`` where it was, or by bits alone.
        numbers:
            ``"only"`` if its text differs in numbers alone, ``"signs"`` in their signs alone, ``"replaced"`` if numbers
            stand in the places of others beside other differences, else ``"same"``; ``None`` where no texts were
            compared.
    """

    id: str
    index: str
    distance: int
    fingerprint: int
    source: Mapping[str, Any] | None = field(default=None, compare=False)
    similarity: float | None = field(default=None, compare=False)
    containment: float | None = field(default=None, compare=False)
    routing: str | None = None
    unverified: str | None = field(default=None, compare=False)
    numbers: Replaced | None = field(default=None, compare=False)

    @property
    def key(self) -> Key:
        """The key that no other document has: index, ``_id`` and routing."""
        return Key(self.index, self.id, self.routing)

    @property
    def order(self) -> tuple[int, str, str, str]:
        """The place among other near-duplicates: nearest first, then by index, id and routing."""
        return self.distance, self.index, self.id, self.routing or ""

    def to_dict(self) -> dict[str, Any]:
        """Return the near-duplicate as plain JSON values, the fingerprint as 16 hex digits."""
        plain: dict[str, Any] = {
            "id": self.id,
            "index": self.index,
            "distance": self.distance,
            "fingerprint": to_hex(self.fingerprint),
        }
        if self.routing is not None:
            plain["routing"] = self.routing
        if self.similarity is not None:
            plain |= {"similarity": self.similarity, "containment": self.containment, "numbers": self.numbers}
        if self.unverified is not None:
            plain["unverified"] = self.unverified
        return plain if self.source is None else plain | {"source": dict(self.source)}

    def to_row(self) -> dict[str, Any]:
        """Return the near-duplicate as one flat row; a field of its source is a column, such as ``source.title``."""
        row = {name: getattr(self, name) for name in ROW} | {"fingerprint": to_hex(self.fingerprint)}
        return row | {f"source.{name}": value for name, value in (self.source or {}).items()}


def cells_of(near_dup: NearDup) -> dict[str, Any]:
    """Return what people read of a document: how alike, which one, its fields."""
    numbers = NUMBERS_SAID.get(near_dup.numbers)
    alike = {"bits": near_dup.distance, "similarity": near_dup.similarity, "numbers": numbers}
    which = {"id": near_dup.id, "index": near_dup.index, "routing": near_dup.routing}
    return alike | which | flat_source(near_dup.source)


MOST_REJECTED = 5
"""Most rejected documents that an answer carries."""


TOO_SHORT = f"too short to compare: fewer than {FEWEST_LETTERS} letters, or 8 logographs; preset identical compares it"
"""Why a text is near nothing by a rule that compares texts, for people."""

Reason = Literal["distance", "texts", "numbers", "short", "per", "within"]
"""What keeps two documents apart."""


def words_apart(because: Reason, rule: PairRule, distance: int, similarity: float | None) -> str:
    """
    Return for people why *rule* keeps two documents apart; *similarity* is that of their texts, ``None`` where nobody
    asked, or it is less than nine tenths of what the rule wants.
    """
    bits = count(distance, "bit")
    part = f"{100 * cut(similarity):g} %" if similarity is not None else f"less than {90 * (rule.similarity or 0):g} %"
    share = f"{bits}, {part} {rule.measure.of_what}"
    match because:
        case "distance":
            return f"{bits}, more than {rule.max_distance}"
        case "texts":
            return f"{share}, below {100 * (rule.similarity or 0):g} %"
        case "numbers":
            return f"{share}, but other numbers"
        case "short":
            return f"{bits}, {TOO_SHORT}"
        case "per":
            return f"{bits}, apart by per {rule.per}"
        case "within":
            return f"{bits}, apart by within {rule.within}"


@dataclass(frozen=True, slots=True)
class Rejected:
    """
    A document within the distance looked for that the rule rejected.

    Attributes:
        near_dup:
            The document, with the similarity of its text where texts or numbers decided.
        because:
            What keeps it apart: ``"texts"``, other ``"numbers"`` in similar texts, a text that is too ``"short"``, its
            values of ``"per"`` or ``"within"``.
        rule:
            The rule.
    """

    near_dup: NearDup
    because: Reason
    rule: PairRule

    def __str__(self) -> str:
        near_dup = self.near_dup
        return f"{near_dup.id}: {words_apart(self.because, self.rule, near_dup.distance, near_dup.similarity)}"

    def to_dict(self) -> dict[str, Any]:
        """Return the document as plain JSON values, and why it was rejected."""
        return {
            **self.near_dup.to_dict(),
            "because": self.because,
            "at_least": self.rule.similarity,
            "words": str(self),
        }


PARTS = "a text that is a part of a longer one: find_passages finds these"


@dataclass(frozen=True, slots=True)
class NearDups(Items[NearDup]):
    """
    The answer to one lookup: near-duplicates ordered by distance, then index, id and routing; the most similar first
    where texts were compared.

    Attributes:
        items:
            The near-duplicates.
        complete:
            Whether every document that the rule accepts is here; ``False`` only in an :class:`IncompleteSearchError`.
        scheme:
            The scheme of the fingerprints compared, where it is known.
        max_distance:
            Largest distance looked for, in bits.
        plan:
            The lookup plan that answered, a scan where fingerprints were in memory; ``None`` where the text has none.
        candidates:
            How many candidates were rescored.
        reasons:
            Why the answer is incomplete, one line each.
        rule:
            The :class:`LookupRule` by which the answer was made; ``None`` where no index is known.
        rejected:
            The nearest documents within max_distance that the rule rejected, at most five.
    """

    items: tuple[NearDup, ...] = ()
    complete: bool = True
    scheme: Scheme | None = None
    max_distance: int = DEFAULT_MAX_DISTANCE
    plan: LookupPlan | None = None
    candidates: int = 0
    reasons: tuple[str, ...] = ()
    rule: LookupRule | None = None
    rejected: tuple[Rejected, ...] = field(default=(), compare=False)

    _COLUMNS: ClassVar[tuple[str, ...]] = ROW

    @property
    def unverified(self) -> tuple[str, ...]:
        """Which near-duplicates were kept though their texts could not be compared, and why; one line each."""
        return tuple(
            f"document {near_dup.id!r} of {near_dup.index!r} was not compared: {near_dup.unverified}"
            for near_dup in self.items
            if near_dup.unverified is not None
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain JSON values."""
        return {
            "near_dups": [near_dup.to_dict() for near_dup in self.items],
            "complete": self.complete,
            "max_distance": self.max_distance,
            "rule": None if self.rule is None else self.rule.to_dict(),
            "scheme": None if self.scheme is None else str(self.scheme),
            "plan": None if self.plan is None else self.plan.name,
            "candidates": self.candidates,
            "unverified": list(self.unverified),
            "rejected": [rejected.to_dict() for rejected in self.rejected],
        }

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a flat row for each near-duplicate; the fingerprint is 16 hex digits."""
        return [near_dup.to_row() for near_dup in self.items]

    def _title(self) -> str:
        number = f"{len(self):,} near-duplicate{'' if len(self) == 1 else 's'}"
        how = self.rule or f"within {count(self.max_distance, 'bit')}"
        return f"{number} {how}{'' if self.complete else ', incomplete'}"

    def _sheets(self) -> Sequence[Part]:
        bars = {"bits": self.max_distance, "similarity": 1}
        return [Sheet("", list(map(cells_of, self.items)), bars)]

    def _notes(self) -> Mapping[str, Sequence[str]]:
        notes = {"incomplete because": self.reasons, "not verified": self.unverified}
        if not self.items:
            notes |= {"rejected": tuple(map(str, self.rejected)), "not found": (PARTS,)}
        return notes


def hit_fingerprints(hit: Mapping[str, Any], name: str) -> Sequence[str]:
    """
    Return the fingerprints, in hex digits, that *hit* carries in the docvalue field *name*; none if one of its values
    is no fingerprint: who wrote that may have meant any.
    """
    digits: Sequence[str] = hit.get("fields", {}).get(name) or ()
    return () if any(read_fingerprint(value) is None for value in digits) else digits


def no_fingerprint_shown(index: Index, field: str) -> str:
    """Return why nothing is known where documents of *index* were read, and none shows a fingerprint in *field*."""
    return (
        f"no document of {shorten(index_key(index))} shows what is a fingerprint in {field}: use a login that sees the "
        "field without a mask, or backfill the documents"
    )


def by_fingerprint(hits: Iterable[Mapping[str, Any]], name: str) -> dict[int, list[Mapping[str, Any]]]:
    """Return *hits* by each fingerprint that they carry in the docvalue field *name*."""
    found: dict[int, list[Mapping[str, Any]]] = {}
    for hit in hits:
        for digits in hit_fingerprints(hit, name):
            found.setdefault(int(digits, 16), []).append(hit)
    return found


def _check_hits(hits: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the hits of a search; raise TypeError if they are not a list of hits."""
    for hit in check_items("hits", hits, of="hits"):
        if not isinstance(hit, Mapping):
            raise WrongTypeError(f"hits must be a list of hits, but one is {type(hit).__name__} {shorten(hit)}")
        yield hit


def rescore(
    hits: Iterable[Mapping[str, Any]],
    fingerprint: int,
    *,
    max_distance: int = DEFAULT_MAX_DISTANCE,
    prefix: str = DEFAULT_PREFIX,
    size: int | None = None,
) -> list[NearDup]:
    """
    Return the near-duplicates among *hits*, nearest first.

    Args:
        hits:
            Candidates as a search answered them (``response["hits"]["hits"]``), with the fingerprint among their
            ``docvalue_fields``. A hit with several fingerprints counts with the nearest.
        fingerprint:
            The fingerprint asked for, unsigned.
        max_distance:
            Largest distance reported, in bits, inclusive. No index is asked: give the distance that yours records.
        prefix:
            Name of the object that holds the fields.
        size:
            Most near-duplicates returned; ``None`` for all.

    Returns:
        Near-duplicates ordered by (distance, index, id, routing), each document once.

    Raises:
        MappingError: If a hit carries no fingerprint.
        TypeError: If an argument has the wrong type.
        InvalidInputError: If max_distance or a fingerprint is out of range.

    Examples:
        >>> hits = [{"_index": "news", "_id": "7", "fields": {"simhash.fingerprint": ["0000000000000003"]}}]
        >>> [(found.id, found.distance, found.fingerprint) for found in rescore(hits, 0)]
        [('7', 2, 3)]
    """
    check_max_distance(max_distance)
    wanted = check_fingerprint(fingerprint)
    name = Fields(prefix).fingerprint
    found: dict[Key, NearDup] = {}
    if size is not None:
        check_count("size", size, 0)
    for hit in _check_hits(hits):
        digits = hit_fingerprints(hit, name)
        if not digits:
            raise MappingError(
                f"document {shorten(hit.get('_id'))} of {shorten(hit.get('_index'))} has block terms but no {name}: "
                "ask for the field in docvalue_fields, or backfill the document"
            )
        distance, value = min(((v ^ wanted).bit_count(), v) for v in map(from_hex, digits))
        if distance <= max_distance:
            key = document_key(hit)
            found[key] = NearDup(key.id, key.index, distance, value, hit.get("_source"), routing=key.routing)
    return sorted(found.values(), key=lambda near_dup: near_dup.order)[:size]
