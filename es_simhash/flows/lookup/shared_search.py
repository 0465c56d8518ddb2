"""
Several lookups in one search, told apart by the client: what a server spends on a search whatever it asks is shared.

The lookups are of one index, with the same options, and so have the same plan. What a single lookup asks, and what
comes of its answer, is ``lookup``'s business.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_simhash.flows.lookup.search import LARGEST_PAGE, Lookup
from es_simhash.flows.transfer.answers import find_gaps

__all__ = ["Bundle", "bundles"]

MOST_LOOKUPS = 50
# Most block terms in one search, so that its body stays small.
MOST_TERMS = 6_000
# Most documents, for each lookup of a bundle, whose distances to all of them are computed, by a script or the client.
MOST_PASSING = 12_000


@dataclass(frozen=True, slots=True)
class Bundle:
    """
    Lookups that are asked in one search.

    Attributes:
        lookups:
            One or more, of the same index and options.
    """

    lookups: Sequence[Lookup]

    @property
    def page(self) -> int:
        """Most hits of the search."""
        return min(LARGEST_PAGE, sum(each.page for each in self.lookups))

    def body(self) -> dict[str, Any]:
        """Return the search body."""
        first = self.lookups[0]
        if len(self.lookups) == 1:
            return first.body()
        return first.shared_body([each.fingerprint for each in self.lookups], page=self.page)

    def share(self, answer: Any) -> list[Any]:
        """
        Return each lookup's part of the *answer*; ``None`` for each where they have to be asked one by one.

        They have to where there is none, or the search was refused, or did not read everything, or a hit has no
        fingerprint to tell whose it is: a lookup alone knows what to do then. The one lookup of a bundle gets the
        answer as it is.
        """
        if len(self.lookups) == 1:
            return [answer]
        alone = [None] * len(self.lookups)
        if not isinstance(answer, Mapping) or "error" in answer or find_gaps(answer):
            return alone
        hits = answer["hits"]["hits"]
        if len(hits) >= self.page or not all(map(self.lookups[0].can_compare, hits)):
            return alone
        return [{**answer, "hits": {"hits": each.near(hits)}} for each in self.lookups]


def bundles(lookups: Sequence[Lookup]) -> Iterator[Bundle]:
    """
    Yield *lookups*, in order, in bundles that a server can be asked; one by one where that is no cheaper.
    """
    if not lookups:
        return
    size = lookups[0].shareable(MOST_LOOKUPS, terms=MOST_TERMS, passing=MOST_PASSING)
    for start in range(0, len(lookups), size):
        yield Bundle(lookups[start : start + size])
