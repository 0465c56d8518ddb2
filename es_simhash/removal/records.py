"""What a plan of removal and an archive consist of, and guard rails: plain values, checked. No file is read here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, get_args

from es_simhash.arguments import check_number
from es_simhash.errors import GuardRailError, shorten
from es_simhash.transport.names import Key

DEFAULT_MAX_SHARE = 0.2


SHOWN = 3


def check_max_share(share: Any) -> float:
    """Return *share* as a float; raise TypeError or InvalidInputError if it is not a number from 0 to 1."""
    return check_number("max_share", share, advice="a share from 0 to 1, such as 0.2")


@dataclass(frozen=True, slots=True)
class Share:
    """How many documents of a whole would be removed: *removals* of *documents*."""

    removals: int
    documents: int

    def exceeds(self, max_share: float) -> bool:
        """Return whether more than *max_share* of the documents would be removed."""
        # By the decimal number that people gave: 0.29 * 100 is less than 29 in floating point.
        return self.removals > Fraction(str(max_share)) * self.documents


@dataclass(frozen=True, slots=True)
class Excess:
    """A share that is too large; *field* is ``None`` if the whole index is meant."""

    share: Share
    max_share: float
    field: str | None = None
    value: str | None = None

    def __str__(self) -> str:
        """Return the sentence for people."""
        of = "of the index" if self.field is None else f"with {self.field} {shorten(self.value)}"
        return (
            f"{self.share.removals:,} of {self.share.documents:,} documents {of} would be removed, "
            f"more than the share of {self.max_share:g}"
        )


@dataclass(frozen=True, slots=True)
class Guards:
    """
    The guard rails of a plan, with the numbers that were found when it was made.

    *max_share* (0 to 1) is for the whole index and for each value of the keyword field *protect*. *documents*:
    the number in all indices of the plan. *values*: for each value of *protect* that loses documents, how many of
    how many.
    """

    max_share: float = DEFAULT_MAX_SHARE
    protect: str | None = None
    documents: int = 0
    values: Mapping[str, Share] = field(default_factory=dict)

    def find_excess(self, removals: int) -> list[Excess]:
        """Return the shares that are too large if *removals* documents are removed; the whole index first."""
        whole = Share(removals, self.documents)
        found = [Excess(whole, self.max_share)] if whole.exceeds(self.max_share) else []
        return found + [
            Excess(share, self.max_share, self.protect, value)
            for value, share in self.values.items()
            if share.exceeds(self.max_share)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the guard rails as plain JSON values."""
        values = {
            value: {"removals": each.removals, "documents": each.documents} for value, each in self.values.items()
        }
        return {
            "max_share": self.max_share,
            "documents": self.documents,
            "protect": self.protect,
            "values": values,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Guards:
        """Return the guard rails that :meth:`to_dict` made *plain* of; raise ValueError if they cannot be read."""
        try:
            values = {
                value: Share(int(each["removals"]), int(each["documents"])) for value, each in plain["values"].items()
            }
            protect = plain["protect"]
            if not isinstance(protect, (str, type(None))):
                raise ValueError("'protect' is not a name")  # noqa: TRY004 -- the caller names the line of the file
            return cls(check_max_share(plain["max_share"]), protect, int(plain["documents"]), values)
        except (AttributeError, KeyError, TypeError, OverflowError) as error:
            raise ValueError(f"'guards' cannot be read ({error!r})") from error


def refuse_excess(
    excess: list[Excess], advice: str = "see whether these are duplicates, and allow it with a larger max_share"
) -> None:
    """Raise GuardRailError if there is any excess."""
    if excess:
        more = f" (and {len(excess) - SHOWN} more)" if len(excess) > SHOWN else ""
        raise GuardRailError(
            f"{'; '.join(map(str, excess[:SHOWN]))}{more}: {advice}",
            excess=tuple(excess),
        )


Reason = Literal["similarity", "distance", "contained"]
REASONS: tuple[str, ...] = get_args(Reason)


def take(plain: Mapping[str, Any], name: str, *types: type) -> Any:
    """Return the value of *name*; raise ValueError if it is missing or of none of *types* (a bool is no int)."""
    value = plain.get(name)
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise ValueError(f"{name!r} is missing or of a wrong type")
    return value


def add_detail(sentence: str, detail: str) -> str:
    """Return *sentence*, and after it what more is known."""
    return f"{sentence}: {detail}" if detail else sentence


@dataclass(frozen=True, slots=True)
class PlannedDocument:
    """A document of a plan, as it was then; *fields* are values to show, *cut* names those that are shortened."""

    id: str
    index: str
    routing: str | None
    seq_no: int
    primary_term: int
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

    def to_dict(self) -> dict[str, Any]:
        """Return the document as plain JSON values."""
        return {
            "id": self.id,
            "index": self.index,
            "routing": self.routing,
            "seq_no": self.seq_no,
            "primary_term": self.primary_term,
            "fields": dict(self.fields),
            **({"cut": list(self.cut)} if self.cut else {}),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> PlannedDocument:
        """Return the document that :meth:`to_dict` made *plain* of; raise ValueError if it is no such document."""
        return cls(
            take(plain, "id", str),
            take(plain, "index", str),
            take(plain, "routing", str, type(None)),
            take(plain, "seq_no", int),
            take(plain, "primary_term", int),
            take(plain, "fields", dict),
            tuple(map(str, plain.get("cut") or ())),
        )


@dataclass(frozen=True, slots=True)
class PlannedRemoval:
    """
    One line of a plan: a duplicate that would be removed, and the document that stays for it.

    *distance* is in bits. *similarity* (0 to 1, by the measure of the grouping) is ``None`` in a plan by distance
    alone; with the reason ``"contained"`` it is the share of the duplicate's shingles that stand in the other
    document. *protected*: values of the protected field of the duplicate, as the guard rails count them; ``None``
    without such a field.
    """

    document: PlannedDocument
    canonical: PlannedDocument
    distance: int
    similarity: float | None
    reason: Reason = "similarity"
    protected: tuple[str, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the line as plain JSON values."""
        plain = self.document.to_dict()
        fields: dict[str, Any] = {name: plain.pop(name) for name in ("fields", "cut") if name in plain}
        return {
            **plain,
            "canonical": self.canonical.to_dict(),
            "distance": self.distance,
            "similarity": self.similarity,
            "reason": self.reason,
            **({} if self.protected is None else {"protected": list(self.protected)}),
            **fields,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> PlannedRemoval:
        """Return the removal that :meth:`to_dict` made *plain* of; raise ValueError if it is no such line."""
        reason = take(plain, "reason", str)
        if reason not in REASONS:
            raise ValueError(f"'reason' is none of {', '.join(REASONS)}")
        similarity = take(plain, "similarity", float, int, type(None))
        protected = take(plain, "protected", list, type(None))
        document = PlannedDocument.from_dict(plain)
        canonical = PlannedDocument.from_dict(take(plain, "canonical", dict))
        if document.key == canonical.key:
            raise ValueError("the document is its own canonical")
        return cls(
            document,
            canonical,
            take(plain, "distance", int),
            None if similarity is None else float(similarity),
            reason,
            None if protected is None else tuple(map(str, protected)),
        )


@dataclass(frozen=True, slots=True)
class PlanHeader:
    """
    The first line of a plan.

    *index_uuids*: UUID of each concrete index, by name. *grouping*: as ``_meta`` records one. *at*: ISO 8601.
    *view*: the names that the user gave, such as an alias: documents that they do not show are neither counted
    nor regrouped. It is empty in a plan of an earlier version, in one that Spark made, and for date math.
    """

    index_uuids: Mapping[str, str]
    prefix: str
    grouping: Mapping[str, Any]
    count: int = 0
    guards: Guards = field(default_factory=Guards)
    at: str = ""
    view: tuple[str, ...] = ()

    @property
    def is_by_containment(self) -> bool:
        """Whether its documents go because others contain them; these may be canonicals of groups."""
        return "contained" in self.grouping

    def to_dict(self) -> dict[str, Any]:
        """Return the header as plain JSON values, without format and version."""
        return {
            "at": self.at,
            "index_uuids": dict(self.index_uuids),
            **({"view": list(self.view)} if self.view else {}),
            "prefix": self.prefix,
            "grouping": dict(self.grouping),
            "count": self.count,
            "guards": self.guards.to_dict(),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> PlanHeader:
        """Return the header that :meth:`to_dict` made *plain* of; raise ValueError if it is no such header."""
        uuids = take(plain, "index_uuids", dict)
        return cls(
            {name: take(uuids, name, str) for name in uuids},
            take(plain, "prefix", str),
            take(plain, "grouping", dict),
            take(plain, "count", int),
            Guards.from_dict(take(plain, "guards", dict)),
            str(plain.get("at") or ""),
            tuple(map(str, take(plain, "view", list, type(None)) or ())),
        )


@dataclass(frozen=True, slots=True)
class Archived:
    """
    One line of an archive: a document as it was before it was removed.

    *source* is JSON, as the server returned it; *plan* the SHA-256 of the plan; *at* the time of archiving, ISO
    8601. *together*: names of the indices that were planned together, if several. *view*: the names that the plan
    was made for, if these are not its indices, such as an alias. The first line of a batch has both for all its
    lines.
    """

    index: str
    id: str
    routing: str | None
    source: str
    canonical: Key
    plan: str
    at: str
    together: tuple[str, ...] = ()
    view: tuple[str, ...] = ()

    @property
    def key(self) -> Key:
        """The key that no other document has: index, ``_id`` and routing."""
        return Key(self.index, self.id, self.routing)
