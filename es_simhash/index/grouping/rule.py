"""
How an index is grouped: rule, distance and canonical order, as its ``_meta`` records them.

Plain values, checked; read and written by every flow that groups, so that all writers of an index agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from es_simhash.errors import InvalidInputError, MappingError, shorten
from es_simhash.index.meta import IndexSettings
from es_simhash.index.plan import DEFAULT_MAX_DISTANCE, check_max_distance

__all__ = ["BY_ID", "LONGEST", "Grouping", "GroupingRequest", "Rule", "choose_grouping"]

Rule = Literal["star", "connected"]
RULES: tuple[str, ...] = get_args(Rule)

BY_ID = "id"
LONGEST = "longest"
_KEY = "grouping"


@dataclass(frozen=True, slots=True)
class Grouping:
    """
    How the documents of an index are grouped.

    Attributes:
        rule:
            ``"star"``: every member is within max_distance of its canonical. ``"connected"``: chains count.
        max_distance:
            Largest distance between documents that are neighbours, in bits, inclusive.
        order:
            Which document is preferred as canonical: ``"id"`` (the smallest, by code points), the name of a date or
            number field (the earliest or smallest first; ``"-field"`` for the latest or largest), or ``"longest"``
            (the longest text). The id decides among equal documents, and among documents without the field.

    Raises:
        TypeError: If an attribute has the wrong type.
        InvalidInputError: If one has a value that cannot be used.
    """

    rule: Rule = "star"
    max_distance: int = DEFAULT_MAX_DISTANCE
    order: str = BY_ID

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise InvalidInputError(f"rule {shorten(self.rule)} is not known: give 'star' or 'connected'")
        check_max_distance(self.max_distance)
        if not isinstance(self.order, str):
            raise TypeError(f"canonical must be a string, not {type(self.order).__name__}")
        if not self.order.removeprefix("-"):
            raise InvalidInputError("canonical names no order: give 'id', 'longest', a field, or '-field'")

    def __str__(self) -> str:
        """Return the grouping as words, for messages."""
        return f"rule {self.rule}, max_distance {self.max_distance} and canonical {self.order}"

    @property
    def field(self) -> str | None:
        """The field that decides the order; ``None`` where another thing does."""
        return None if self.order in (BY_ID, LONGEST) else self.order.removeprefix("-")

    @property
    def is_descending(self) -> bool:
        """Whether the latest or largest comes first."""
        return self.order.startswith("-")

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON values that stand in ``_meta``."""
        return {"rule": self.rule, "max_distance": self.max_distance, "canonical": self.order}

    @classmethod
    def read(cls, settings: IndexSettings) -> Grouping | None:
        """
        Return the grouping that *settings* of an index record; ``None`` where it was never grouped.

        Raises:
            MappingError: If the record is not one of ours.
        """
        recorded = (settings.extra or {}).get(_KEY)
        if recorded is None:
            return None
        try:
            return cls(recorded["rule"], recorded["max_distance"], recorded["canonical"])
        except (KeyError, TypeError, ValueError) as error:
            raise MappingError(
                f"the grouping recorded in the mapping, {shorten(recorded)}, cannot be read ({error}): "
                "it was written by another version of this library"
            ) from error

    def put(self, extra: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return *extra* with this grouping in it."""
        return {**(extra or {}), _KEY: self.to_dict()}


@dataclass(frozen=True, slots=True)
class GroupingRequest:
    """
    The grouping that a caller asks for; ``None`` means what is recorded, else the default.

    Attributes:
        rule:
            ``"star"`` or ``"connected"``.
        max_distance:
            Largest distance in bits, inclusive.
        canonical:
            The canonical order, as :class:`Grouping` has it.
        default_order:
            The order where none is asked for or recorded.
    """

    rule: Rule | None = None
    max_distance: int | None = None
    canonical: str | None = None
    default_order: str = BY_ID


def choose_grouping(settings: IndexSettings, request: GroupingRequest) -> Grouping:
    """
    Return the grouping that applies: the recorded one, else what is requested and, for the rest, the defaults.

    The default distance is the one that lookups in the index use, else 3.

    Args:
        settings:
            What the index records.
        request:
            What the caller asks for.

    Raises:
        InvalidInputError: If the caller asks for something else than what is recorded.
    """
    recorded = Grouping.read(settings)
    if recorded is None:
        distance = settings.max_distance if request.max_distance is None else request.max_distance
        return Grouping(
            request.rule or "star",
            DEFAULT_MAX_DISTANCE if distance is None else distance,
            request.canonical or request.default_order,
        )
    asked = Grouping(
        request.rule or recorded.rule,
        recorded.max_distance if request.max_distance is None else request.max_distance,
        request.canonical or recorded.order,
    )
    if asked != recorded:
        raise InvalidInputError(
            f"the index is grouped by {recorded}, not by {asked}: leave these options out, "
            "or group by another rule under a second prefix"
        )
    return recorded
