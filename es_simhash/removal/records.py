"""
What a plan of removal and an archive consist of: plain values, checked. No file is read or written here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from es_simhash.removal.guards import Guards
from es_simhash.transport.keys import Key

Reason = Literal["similarity", "distance", "contained"]
REASONS: tuple[str, ...] = get_args(Reason)


def take(plain: Mapping[str, Any], name: str, *types: type) -> Any:
    """
    Return the value of *name*, which must have one of *types*.

    Raises:
        ValueError: If it is missing or of another type.
    """
    value = plain.get(name)
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise ValueError(f"{name!r} is missing or of a wrong type")
    return value


def add_detail(sentence: str, detail: str) -> str:
    """
    Return *sentence*, and after it what more is known.
    """
    return f"{sentence}: {detail}" if detail else sentence


@dataclass(frozen=True, slots=True)
class PlannedDocument:
    """
    A document of a plan, as it was when the plan was made.

    Attributes:
        id:
            Its ``_id``.
        index:
            Name of the concrete index that holds it.
        routing:
            Its routing value; ``None`` where it has none.
        seq_no:
            Its sequence number; with *primary_term* it names the version of the document.
        primary_term:
            Its primary term.
        fields:
            Values to show, by field: the texts, and the fields asked for.
        cut:
            Names of the fields whose values are shortened here.
    """

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
        """
        Return the document that :meth:`to_dict` made *plain* of.

        Raises:
            ValueError: If it is not such a document.
        """
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

    Attributes:
        document:
            The duplicate.
        canonical:
            Its canonical.
        distance:
            Their distance in bits.
        similarity:
            Similarity of their texts by the measure of the grouping, 0 to 1; ``None`` in a plan by distance alone. Of a
            document that another contains: the share of its shingles that stand there.
        reason:
            What the decision rests on: ``"similarity"`` of the texts, ``"distance"`` alone, or ``"contained"``: the
            text stands in that of the other document.
        protected:
            Values of the protected field of the duplicate, as the guard rails count them; ``None`` where no field is
            protected.
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
        """
        Return the removal that :meth:`to_dict` made *plain* of.

        Raises:
            ValueError: If it is not such a line.
        """
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

    Attributes:
        index_uuids:
            UUID of each concrete index that was planned for, by name.
        prefix:
            Name of the object that holds the fields.
        grouping:
            The grouping that made the duplicates, as ``_meta`` records one.
        count:
            Number of removals.
        guards:
            The guard rails, with the numbers that were found.
        at:
            When the plan was made, ISO 8601.
        view:
            The names that the user gave, such as an alias: what they do not show is neither counted nor regrouped.
            Empty in a plan of an earlier version, and in one that Spark made.
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
        """
        Return the header that :meth:`to_dict` made *plain* of.

        Raises:
            ValueError: If it is not such a header.
        """
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

    Attributes:
        index:
            Name of the concrete index that held it.
        id:
            Its ``_id``.
        routing:
            Its routing value; ``None`` where it had none.
        source:
            Its ``_source``: JSON, as the server returned it.
        canonical:
            The document that it was removed for.
        plan:
            SHA-256 of the plan, in hex digits.
        at:
            When it was archived, ISO 8601.
        together:
            Names of the indices that were planned together, where there are several; the first line of a batch has
            them for all.
        view:
            The names that the plan was made for, where these are not its indices, such as an alias; likewise.
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
