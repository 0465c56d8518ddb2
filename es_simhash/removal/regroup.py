"""
Makes groups right after documents were removed or put back, under the names that the user gave: what is outside the
filter or the routing value of an alias is neither read nor written.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence, Set as AbstractSet

from es_simhash.errors import IncompleteWriteError
from es_simhash.groups.grouping_request import GroupingRequest
from es_simhash.groups.reconcile import Written, reconcile
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import narrowed
from es_simhash.mapping.shards import reading_primaries
from es_simhash.transport.buckets import aggregate_named
from es_simhash.transport.conversation import refresh

NAMES = 1_000
MOST_IDS = 1_000
# Another removal may delete a canonical after it was chosen: what was written is looked at once more.
ROUNDS = 5


async def regroup(
    server: Port, names: Sequence[str], *, back: Collection[str] = (), gone: Collection[str] = ()
) -> None:
    """
    Make the groups right that documents with the ids *back*, or the groups *gone*, may have changed; all groups, for
    more than 1,000. Raises IncompleteWriteError if documents could not be rewritten.
    Cost: a search for every 1,000 *gone*, then what ``reconcile`` costs.
    """
    if not names:
        return
    server = await reading_primaries(server, names)
    await refresh(server, names)
    ids, names_gone, field = set(back), sorted(gone), Fields(server.prefix).duplicate_of
    for begin in range(0, len(names_gone), NAMES):
        ids |= (await aggregate_named(server, names, [], field, names_gone[begin : begin + NAMES])).keys()
    refused = 0
    for _ in range(ROUNDS):
        if not ids or refused:
            break
        written: Written = {}
        touched = None if len(ids) > MOST_IDS else ids
        done = await reconcile(
            server, names, GroupingRequest(), ids=touched, may_lack=False, if_grouped=True, written=written
        )
        ids = {key.id for key in written}
        refused = len(done.failures)
    if ids or refused:
        said = f"the groups of {', '.join(names)} are not right yet: run the same command or call again, or reconcile"
        raise IncompleteWriteError(said, refused=refused)


async def names_within(server: Port, view: Sequence[str], planned: AbstractSet[str]) -> tuple[str, ...]:
    """
    Return under which names documents of the indices *planned* are grouped: those of *view*, else their own.
    What a file calls its view may stand for other indices, too, since a rollover or because an enemy wrote it. None
    is returned, with a warning, where only the view hides documents of *planned*, or nothing is there any more.
    """
    view = view or sorted(planned)
    present = (await server.patient.get_mapping(index=view, ignore_unavailable=True)).keys()
    if present and present <= planned:
        return tuple(name for name in view if name not in planned or name in present)
    if present and planned.isdisjoint(await narrowed(server, view)):
        return tuple(sorted(planned & present))
    state = "stands for other indices, too" if present else "does not exist any more"
    warnings.warn(
        f"the groups were left as they are, because {', '.join(view)} {state}: run reconcile over the indices that are "
        "grouped together",
        stacklevel=2,
    )
    return ()
