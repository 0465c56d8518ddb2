"""
Guard rails: which share of an index, or of the documents with one value of a field, may be removed at most.

Only numbers are compared here; they are counted in ``flows.removal``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from es_simhash.arguments import check_number
from es_simhash.errors import GuardRailError, shorten

DEFAULT_MAX_SHARE = 0.2


SHOWN = 3


def check_max_share(share: Any) -> float:
    """
    Return *share*, the largest share of documents that may be removed, as a float.

    Raises:
        TypeError: If it is not a number.
        InvalidInputError: If it is not between 0 and 1.
    """
    return check_number("max_share", share, advice="a share from 0 to 1, such as 0.2")


@dataclass(frozen=True, slots=True)
class Share:
    """
    How many documents of a whole would be removed.

    Attributes:
        removals:
            Number of documents that would be removed.
        documents:
            Number of all.
    """

    removals: int
    documents: int

    def exceeds(self, max_share: float) -> bool:
        """Return whether more than *max_share* of the documents would be removed."""
        # By the decimal number that people gave: 0.29 * 100 is less than 29 in floating point.
        return self.removals > Fraction(str(max_share)) * self.documents


@dataclass(frozen=True, slots=True)
class Excess:
    """
    A share that is too large.

    Attributes:
        share:
            The numbers.
        max_share:
            The largest share allowed.
        field:
            The protected field; ``None`` where the whole index is meant.
        value:
            Its value.
    """

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

    Attributes:
        max_share:
            Largest share of the documents that may be removed, 0 to 1.
        protect:
            Keyword field of whose values no larger share may be removed either; ``None`` for none.
        documents:
            Number of documents of all indices of the plan.
        values:
            For each value of *protect* that loses documents, how many of how many.
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
        """
        Return the guard rails that :meth:`to_dict` made *plain* of.

        Raises:
            ValueError: If they cannot be read.
        """
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
    """
    Refuse a removal of too many documents.

    Args:
        excess:
            The shares that are too large.
        advice:
            What to do.

    Raises:
        GuardRailError: If there is any excess.
    """
    if excess:
        more = f" (and {len(excess) - SHOWN} more)" if len(excess) > SHOWN else ""
        raise GuardRailError(
            f"{'; '.join(map(str, excess[:SHOWN]))}{more}: {advice}",
            excess=tuple(excess),
        )
