"""
The review of the plan in a file: as HTML, as text, or as numbers. The file is read line by line, twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from es_simhash.arguments import check_input
from es_simhash.removal.plan_file import Plan, read_plan
from es_simhash.review.summary import Summary, summarize

if TYPE_CHECKING:
    from es_simhash.removal.files import FilePath

__all__ = ["Review", "review_html"]


def review_html(path: FilePath) -> str:
    """
    Return the plan of removal in the file *path* as one HTML page, to judge it before it is applied.

    The page has every removal beside what stays, least similar first, and loads nothing from anywhere. For a plan of
    many thousand removals, write the pieces of ``Review.html`` to a file instead.

    Raises:
        InvalidInputError: If the file is no plan, or was cut short or changed.
    """
    return "".join(Review(check_input("path", path)).html())


class Review:
    """
    A plan, read and found whole.

    Args:
        path:
            File of the plan.

    Raises:
        InvalidInputError: If the file is no plan, or was cut short or changed.
    """

    def __init__(self, path: FilePath) -> None:
        self._plan = read_plan(path)
        self.summary: Summary = summarize(self._plan.removals(), self._plan.header.guards)

    def html(self) -> Iterator[str]:
        """Yield the page in pieces."""
        from es_simhash.review.page import Page, write_page  # noqa: PLC0415 -- only for pages

        plan = self._plan
        yield from write_page(Page(plan.path.name, describe(plan), self.summary, plan.removals))

    def text(self, *, limit: int | None = None) -> Iterator[str]:
        """
        Yield the review as lines of text; line breaks and controls of the documents are in them.

        Args:
            limit:
                Number of removals shown, least similar first; by default all.
        """
        from es_simhash.review.text import removal_lines, summary_lines  # noqa: PLC0415

        yield from summary_lines(self.summary, describe(self._plan))
        for removal in islice(self._plan.removals(), limit):
            yield ""
            yield from removal_lines(removal)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers of the plan as plain JSON values."""
        header = self._plan.header
        return {
            "plan": self._plan.sha256,
            "at": header.at,
            "indices": list(header.index_uuids),
            "grouping": dict(header.grouping),
            "max_share": header.guards.max_share,
            "protect": header.guards.protect,
            **self.summary.to_dict(),
        }


def describe(plan: Plan) -> dict[str, str]:
    """
    Return what *plan* says of itself, for people: a name and a text for each fact.
    """
    header = plan.header
    guards = header.guards
    limit = f"at most {guards.max_share * 100:g} % of the documents"
    return {
        "made": header.at or "at an unknown time",
        "indices": ", ".join(header.index_uuids),
        "grouping": _describe_grouping(header.grouping),
        "guard rail": limit + (f", and of each value of {guards.protect}" if guards.protect else ""),
        "SHA-256": plan.sha256,
    }


def _describe_grouping(grouping: Mapping[str, Any]) -> str:
    contained = grouping.get("contained")
    parts = _describe_rule(grouping) if contained is None else [f"at least {contained * 100:g} % stands in what stays"]
    if order := grouping.get("canonical"):
        parts.append(f"stays: {', then '.join(map(str, order)) if isinstance(order, list) else order}")
    if (per := grouping.get("per")) is not None:
        parts.append(f"only within one value of {per}")
    if isinstance(within := grouping.get("within"), list):
        parts.append(f"only within {' '.join(map(str, within))}")
    return "; ".join(parts)


def _describe_rule(grouping: Mapping[str, Any]) -> list[str]:
    similarity, distance = grouping.get("similarity"), grouping.get("max_distance")
    parts = [f"rule {grouping.get('rule')}", f"at most {distance} bits apart"]
    by = ""
    if isinstance(similarity, Mapping):
        by = f" ({similarity.get('measure')} of {similarity.get('unit')})"
        similarity = similarity.get("at_least")
    texts = f"at least {similarity * 100:g} % similar{by}" if isinstance(similarity, (int, float)) else "not compared"
    return [*parts, f"texts {texts}"]
