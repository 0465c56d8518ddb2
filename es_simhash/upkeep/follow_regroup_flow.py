"""
Decides the groups of changed documents, by the rule that the index records; ``groups`` has the rule itself.

After changes only the groups are judged that these may have touched, for some documents at a time, so that
reading continues between; all groups if that is less work. All are also judged at an interval, and, under the
rule ``connected``, once nothing else is left to do: there a deleted document may have been the link between
others, which touched groups do not show.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from es_simhash.errors import InvalidInputError, MappingError
from es_simhash.groups.reconcile_flow import Reconciled, reconcile
from es_simhash.groups.rule import Grouping, GroupingRequest, Resources
from es_simhash.groups.settings_flow import target_of
from es_simhash.mapping.context import Context
from es_simhash.transport.buckets_flow import count_documents
from es_simhash.transport.names import Index
from es_simhash.transport.protocol import Compute, Flow
from es_simhash.upkeep.follow_lease_flow import Lease
from es_simhash.upkeep.follow_options import FollowOptions, FollowReport, RefusedForNowError, Tally, refuses_whole_index
from es_simhash.upkeep.targets_flow import Target

# So many changed documents are judged at once; it takes some seconds.
FEW = 500
# More are not remembered: then all groups are judged.
MOST = 50_000
# To judge what one document may have touched takes as long as to judge so many of all documents.
COSTS = 4
# A mapping that cannot be grouped is looked at again after so many seconds.
REFUSED_SECONDS = 60.0
# While all groups are judged, one step may take long: the lease then lasts so many seconds.
LONG_SECONDS = 600.0


class Regroup:
    """Collects changed documents, and decides their groups; the *lease* is renewed meanwhile."""

    def __init__(self, context: Context, index: Index, options: FollowOptions, lease: Lease, tally: Tally) -> None:
        self._context = context
        self._index = index
        self._options = options
        self._lease = lease
        self._tally = tally
        self._grouping: Grouping | None = None
        self._ids: dict[str, None] = {}
        self._may_lack = False
        self._is_all = False
        # Whether something changed since all groups were judged.
        self._is_unproven = False
        self._rests_until = 0.0
        self._proven_at: float | None = None

    @property
    def is_pending(self) -> bool:
        """Whether groups are to be decided."""
        return self._grouping is not None and bool(self._ids or self._may_lack or self._is_all)

    def load(self, recorded: Any) -> None:
        """Take over what :meth:`to_dict` made: changed documents are not kept, so after them all groups are judged."""
        recorded = recorded if isinstance(recorded, Mapping) else {"pending": True}
        self._ids.clear()
        self._may_lack = False
        self._is_all = bool(recorded.get("pending"))
        self._is_unproven = bool(recorded.get("unproven"))

    def to_dict(self) -> dict[str, Any]:
        """Return what a later follower has to know, as plain JSON values."""
        return {"pending": bool(self._ids or self._may_lack or self._is_all), "unproven": self._is_unproven}

    def note_targets(self, targets: Mapping[str, Target]) -> None:
        """Note what the indices record now."""
        groupings = [found for each in targets.values() if (found := target_of(each.settings)) is not None]
        grouping = groupings[0] if groupings else None
        if grouping != self._grouping and self._grouping is not None:
            self._is_all = True
        self._grouping = grouping

    def add(self, ids: Iterable[str], *, may_lack: bool) -> None:
        """Note documents that changed, and whether others may lack their canonical."""
        self._may_lack |= may_lack
        if not self._is_all:
            self._ids.update(dict.fromkeys(ids))
        self._is_unproven |= bool(self._ids or self._may_lack or self._is_all)
        if len(self._ids) > MOST:
            self._ids.clear()
            self._is_all = True

    def seconds_left(self, clock: float) -> float:
        """Return how long it is until groups are to be decided again; infinite where none are pending."""
        return max(0.0, self._rests_until - clock) if self.is_pending else math.inf

    def is_due(self, clock: float, *, is_quiet: bool) -> bool:
        """Return whether groups are to be decided now; *is_quiet* says that nothing else is left to do."""
        if self._grouping is None or (clock < self._rests_until and not self._options.once):
            return False
        if self._proven_at is None:
            self._proven_at = clock
        is_old = clock - self._proven_at >= self._options.reconcile_seconds
        if self._is_unproven and (is_old or (is_quiet and self._grouping.rule == "connected")):
            self._is_all = True
        return self.is_pending

    def carry_out(self, report: Callable[[], FollowReport]) -> Flow[None]:
        """
        Decide the groups of the documents noted, or all groups; emit a *report* before each request.

        Raises RefusedForNowError if the server refuses writes now; the groups are then still to be decided.
        """
        begun = yield Compute(time.monotonic)
        if len(self._ids) > FEW:
            documents, _ = yield from count_documents(self._index)
            self._is_all |= COSTS * len(self._ids) > documents
        is_all, ids = self._is_all, list(islice(self._ids, FEW))
        if is_all:
            yield from self._lease.renew(seconds=LONG_SECONDS)
        flow = reconcile(
            self._context,
            self._index,
            GroupingRequest(),
            ids=None if is_all else ids,
            may_lack=self._may_lack,
            if_grouped=True,
            resources=Resources(memory_bytes=self._options.memory_bytes),
        )
        try:
            done = yield from self._lease.keeping(flow, report)
        except (MappingError, InvalidInputError) as error:
            # Fingerprints can be written, but not groups: their fields are wrong, or the grouping is being changed.
            if self._options.once:
                raise
            self._tally.errors["grouping"] += 1
            self._tally.problem = str(error)
            self._is_all = True
            self._rests_until = begun + REFUSED_SECONDS
        else:
            self._settle(done, None if is_all else ids)
            ended = yield Compute(time.monotonic)
            self._rests_until = 2 * ended - begun  # reading has half of the time
            if is_all:
                self._proven_at = ended
        if is_all:
            yield from self._lease.renew()

    def _settle(self, done: Reconciled, ids: Sequence[str] | None) -> None:
        """Note that the groups that *ids* may have touched were decided, or all groups."""
        self._tally.regrouped += done.changed
        for failure in done.failures:
            if refuses_whole_index(failure):
                raise RefusedForNowError(failure)
        for failure in done.failures:
            self._tally.fail(failure)
        if not done.is_settled and not done.failures and not self._options.once:
            return  # others kept changing documents: all that was noted is judged once more
        self._may_lack = False
        for id_ in ids or ():
            del self._ids[id_]
        if ids is None:
            self._ids.clear()
            self._is_all = self._is_unproven = False
