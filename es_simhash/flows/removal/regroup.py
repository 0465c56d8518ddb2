"""
Which indices a restore touched, and their groups made right again. No document of an archive is read here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TypeAlias

from es_simhash.flows.context import Context
from es_simhash.flows.grouping.reconcile import Reconciled, reconcile
from es_simhash.flows.protocol import Flow
from es_simhash.flows.removal.restore_targets import Target
from es_simhash.index.grouping.rule import Grouping, GroupingRequest

__all__ = ["OnRegrouped", "Regroup"]

OnRegrouped: TypeAlias = Callable[[tuple[str, ...], Reconciled], object]
"""
What is called with the names of indices that were grouped together, and what was done there.
"""


class Regroup:
    """
    Collects the indices that are grouped together: those of documents, and of the canonicals they were removed for.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._groupings: dict[str, Grouping] = {}
        self._same: dict[str, str] = {}

    def add(self, target: Target, canonical: Target) -> None:
        """Note where a document is, and where its canonical was."""
        places = [each for each in (target, canonical) if each.fault is None and each.settings is not None]
        for each in places:
            if each.name not in self._same and each.settings is not None:
                self._same[each.name] = each.name
                if (grouping := Grouping.read(each.settings)) is not None:
                    self._groupings[each.name] = grouping
        if len(places) == 2:
            self._same[self._first(places[0].name)] = self._first(places[1].name)

    def _first(self, name: str) -> str:
        while self._same[name] != name:
            name = self._same[name]
        return name

    def _scopes(self) -> Mapping[tuple[str, Grouping], list[str]]:
        scopes: dict[tuple[str, Grouping], list[str]] = {}
        for name, grouping in sorted(self._groupings.items(), key=lambda item: item[0]):
            scopes.setdefault((self._first(name), grouping), []).append(name)
        return scopes

    def carry_out(self, report: OnRegrouped | None) -> Flow[None]:
        """Make the groups right; what could not be written is reported, or else a warning."""
        for names in self._scopes().values():
            done = yield from reconcile(self._context, names, GroupingRequest())
            if report is not None:
                report(tuple(names), done)
            elif done.failures or not done.is_settled:
                warnings.warn(f"the groups of {', '.join(names)} are not right yet: run reconcile again", stacklevel=2)
