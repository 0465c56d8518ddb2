"""
The groups of indices made right after documents were restored, or canonicals removed. No archive is read here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

from es_simhash.flows.context import Context
from es_simhash.flows.grouping.read import lost_canonicals
from es_simhash.flows.grouping.reconcile import Reconciled, reconcile
from es_simhash.flows.protocol import Flow
from es_simhash.flows.removal.restore_targets import Target
from es_simhash.flows.resolve import resolve_index
from es_simhash.index.fields import Fields
from es_simhash.index.grouping.rule import Grouping, GroupingRequest

__all__ = ["OnRegrouped", "Regroup", "regroup_without"]

OnRegrouped: TypeAlias = Callable[[tuple[str, ...], Reconciled], object]
"""
What is called with the names of indices that were grouped together, and what was done there.
"""


class Regroup:
    """
    Collects the indices to regroup: those of restored documents, and all that are grouped together with them.

    Args:
        context:
            What the client object knows.
        few:
            Up to so many restored documents, only the groups that these may have changed are judged.
    """

    def __init__(self, context: Context, *, few: int) -> None:
        self._context = context
        self._few = few
        self._groupings: dict[str, Grouping] = {}
        self._same: dict[str, str] = {}
        # Ids of what was restored, by name; no more than are needed to see that they are many.
        self._ids: dict[str, set[str]] = {}

    def add(self, id_: str, target: Target, canonical: Target) -> None:
        """Note where a document is, and where its canonical was."""
        self.join([target, canonical])
        ids = self._ids.setdefault(target.name, set())
        if len(ids) <= self._few:
            ids.add(id_)

    def join(self, targets: Iterable[Target]) -> None:
        """Note that indices are grouped together; those that cannot be used are left out."""
        places = [each for each in targets if each.fault is None and each.settings is not None]
        for each in places:
            if each.name not in self._same and each.settings is not None:
                self._same[each.name] = each.name
                if (grouping := Grouping.read(each.settings)) is not None:
                    self._groupings[each.name] = grouping
            self._same[self._first(places[0].name)] = self._first(each.name)

    def _first(self, name: str) -> str:
        while self._same[name] != name:
            name = self._same[name]
        return name

    def _scopes(self) -> Mapping[tuple[str, Grouping], list[str]]:
        scopes: dict[tuple[str, Grouping], list[str]] = {}
        touched = {self._first(name) for name in self._ids}
        for name, grouping in sorted(self._groupings.items(), key=lambda item: item[0]):
            if self._first(name) not in touched:
                continue
            scopes.setdefault((self._first(name), grouping), []).append(name)
        return scopes

    def carry_out(self, report: OnRegrouped | None) -> Flow[None]:
        """Make the groups right; what could not be written is reported, or else a warning."""
        for names in self._scopes().values():
            ids = set().union(*(self._ids.get(name, ()) for name in names))
            few = ids if len(ids) <= self._few else None
            done = yield from reconcile(self._context, names, GroupingRequest(), ids=few)
            if report is not None:
                report(tuple(names), done)
            else:
                _warn(names, done)


def regroup_without(context: Context, names: Sequence[str], removed: Collection[str]) -> Flow[None]:
    """
    Put documents of the indices *names* that lost their canonicals into groups again; warn of what cannot be written.

    Indices that record the same grouping are grouped together; those that record none are left alone. So are those
    whose documents name canonicals in other indices, which grouping *names* alone would take away from them: they are
    warned of.

    Args:
        context:
            What the client object knows.
        names:
            Names of the indices.
        removed:
            Ids of the documents that were removed.
    """
    if not removed:
        return
    resolved = yield from resolve_index(context, names)
    scopes: dict[Grouping, list[str]] = {}
    for name, own in resolved.each.items():
        if (grouping := Grouping.read(own)) is not None:
            scopes.setdefault(grouping, []).append(name)
    for grouping, each in scopes.items():
        lost = set((yield from lost_canonicals(each, Fields(context.prefix))))
        if lost.difference(removed):
            warnings.warn(
                f"the groups of {', '.join(each)} were left as they are, because documents there are duplicates of "
                "documents elsewhere: run reconcile over all indices that are grouped together",
                stacklevel=2,
            )
        elif grouping.rule == "connected" or lost:
            # A group that hung together by a removed document may fall apart; nothing that is there says so.
            ids = None if grouping.rule == "connected" else ()
            _warn(each, (yield from reconcile(context, each, GroupingRequest(), ids=ids)))


def _warn(names: Sequence[str], done: Reconciled) -> None:
    if done.failures or not done.is_settled:
        warnings.warn(f"the groups of {', '.join(names)} are not right yet: run reconcile again", stacklevel=2)
