"""What a plan of removal is to contain: the arguments of ``plan_removal``. The command line reads them, too."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from es_simhash.arguments import Count, FilePath, check_field, check_inputs, check_items, check_options, option
from es_simhash.errors import Argument, InvalidInputError, Said
from es_simhash.groups.grouping_request import GroupingRequest
from es_simhash.lookup.query import Filter, check_filter
from es_simhash.mapping.rule import Grouping
from es_simhash.removal.guard_rails import DEFAULT_MAX_SHARE, check_max_share
from es_simhash.texts.measures import DEFAULT_SIMILARITY, check_bound


def _check_shown(name: str, value: Any) -> tuple[str, ...]:
    return tuple(check_field(name, each) for each in check_items(name, value, of="names of fields"))


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """
    What a plan is to contain, checked.

    Args:
        preset:
            ``"identical"``, ``"near"``, ``"similar"``, ``"edited"`` or ``"noisy"``: a max_distance and a
            similarity, where these are not given beside it.
        verify:
            Smallest similarity of a duplicate to its canonical, 0 to 1, or a :class:`Verification`; by default what
            the index's grouping records, else 0.8. ``False`` goes by distance alone; then the fingerprints must be
            those of the present texts.
        grouping:
            As for :meth:`ingest`; they need not be those that are recorded.
        filter:
            A query, or a list of queries, that the duplicates match.
        min_similarity:
            Smallest similarity of a document that goes to what stays, where it is larger than that of the grouping.
        limit:
            Largest number of removals; the most similar are taken.
        max_share:
            Largest share of all documents that :meth:`apply_removal` may remove, 0 to 1. A plan beyond it is made,
            and its ``excess`` says what will be refused.
        protect:
            Keyword field: of the documents with any one value of it no larger share may be removed either.
        after:
            Files of earlier removals: what people kept there is not in this plan, also after a reindex under the
            same alias, where the id counts. Files of which none keeps a document of these indices are refused.
        show:
            Fields whose values people see first; by default title, URL, source and date, by their usual names,
            where the mapping or some documents have them. A title that is found is shown in any case.
        max_field_chars:
            Characters of a value after which it is cut in the plan.
    """

    grouping: GroupingRequest = field(default_factory=GroupingRequest)
    filter: Filter = None
    min_similarity: float | None = option(
        None,
        check_bound,
        "SHARE",
        "Remove only documents whose text shares this part of its 7-letter shingles with that of the canonical.",
    )
    limit: int | None = option(None, Count(0), "N", "Remove at most N documents: the most similar ones.")
    max_share: float = option(
        DEFAULT_MAX_SHARE,
        lambda _, share: check_max_share(share),
        "SHARE",
        f"Let apply refuse to remove a larger share of the documents. Default: {DEFAULT_MAX_SHARE}.",
    )
    protect: str | None = option(
        None,
        check_field,
        "FIELD",
        "Let apply refuse to remove a larger share of the documents with any one value of this keyword field.",
    )
    after: Sequence[FilePath] = option((), check_inputs)
    show: Sequence[str] = option(
        (),
        _check_shown,
        "FIELDS",
        "Show these fields of each document, separated by commas, instead of URL, source and date as far as these are "
        "found. A title that is found is shown in any case. Repeatable.",
    )
    max_field_chars: int = option(10_000, Count(0))

    def __post_init__(self) -> None:
        check_filter(self.filter)
        if self.min_similarity is not None and self.grouping.verify is False:
            raise InvalidInputError(
                Said(Argument("min_similarity"), " needs a plan with verification: leave ", Argument("verify"), " out")
            )
        check_options(self)

    @classmethod
    def of(cls, **given: Any) -> PlanOptions:
        """Return the options for the arguments of ``plan_removal``."""
        of_groups = {each.name for each in fields(GroupingRequest)} & given.keys()
        grouping = GroupingRequest(**{name: given.pop(name) for name in of_groups})
        return cls(grouping=grouping, **given)

    def asked(self) -> dict[str, Any]:
        """Return what differs from the defaults, as plain JSON values: two plans of one index differ by no more."""
        plain: dict[str, Any] = {}
        for each in (self, self.grouping):
            for own in fields(each):
                value = getattr(each, own.name)
                if own.name not in ("grouping", "max_share") and value not in (None, (), own.default):
                    plain[own.name] = value
        written: dict[str, Any] = json.loads(json.dumps(plain, default=str))
        return written

    def bound(self, grouping: Grouping) -> float | None:
        """Return the smallest similarity of a duplicate to its canonical; ``None`` if texts are not compared."""
        if self.grouping.verify is False:
            return None
        similarity = DEFAULT_SIMILARITY if grouping.similarity is None else grouping.similarity
        return max(similarity, self.min_similarity or 0.0)
