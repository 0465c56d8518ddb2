"""
The groups of indices made right after documents were restored or removed. No archive is read here.

Documents are searched by the names that the user gave, never by the concrete indices behind them: so what the filter or
the routing value of an alias hides is neither read nor written.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Sequence, Set as AbstractSet
from dataclasses import replace
from typing import Any, TypeAlias

from es_simhash.errors import InvalidInputError, MappingError
from es_simhash.groups.read_flow import lost_canonicals
from es_simhash.groups.reconcile_flow import Reconciled, reconcile
from es_simhash.groups.rule import Grouping, GroupingRequest
from es_simhash.hashing import from_hex, hamming_distance
from es_simhash.mapping.context import Context
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.primaries_flow import reads_primaries
from es_simhash.mapping.resolve_flow import narrowed, resolve_index
from es_simhash.removal.restore_targets_flow import Target
from es_simhash.transport.answers import find_gaps
from es_simhash.transport.protocol import Call, Flow, status_of
from es_simhash.transport.refresh_flow import refresh
from es_simhash.transport.retry_flow import ask

OnRegrouped: TypeAlias = Callable[[tuple[str, ...], Reconciled], object]
"""
What is called with the names of indices that were grouped together, and what was done there.
"""

# Others may delete a canonical after it was chosen: then its members are put elsewhere once more.
ROUNDS = 5
IDS = 200
HITS = 1_000


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
        self._same: dict[str, str] = {}
        # Ids of what was restored, by name, and by the names that a plan was made for; no more than are needed to see
        # that they are many.
        self._ids: dict[str, set[str]] = {}
        self._by_view: dict[tuple[str, ...], set[str]] = {}

    def add(self, id_: str, target: Target, canonical: Target, view: Sequence[str] = ()) -> None:
        """Note where a document is, and where its canonical was, or the names that its plan was made for."""
        if view:
            ids = self._by_view.setdefault(tuple(view), set())
        else:
            self.join([target, canonical])
            ids = self._ids.setdefault(target.view, set())
        if len(ids) <= self._few:
            ids.add(id_)

    def join(self, targets: Iterable[Target]) -> None:
        """Note that indices are grouped together; those that cannot be used are left out."""
        places = [each.view for each in targets if each.fault is None and each.settings is not None]
        for each in places:
            self._same.setdefault(each, each)
            self._same[self._first(places[0])] = self._first(each)

    def _first(self, name: str) -> str:
        while self._same[name] != name:
            name = self._same[name]
        return name

    def carry_out(self, report: OnRegrouped | None) -> Flow[None]:
        """Make the groups right; what could not be written is reported, or else a warning."""
        scopes = dict(self._by_view)
        for name, ids in self._ids.items():
            first = self._first(name)
            joined = tuple(sorted(each for each in self._same if self._first(each) == first))
            scopes[joined] = scopes.get(joined, set()) | ids
        for names, ids in scopes.items():
            yield from regroup(self._context, names, ids, few=self._few, report=report)


def regroup(
    context: Context,
    names: Sequence[str],
    ids: Collection[str],
    *,
    gone: AbstractSet[str] = frozenset(),
    few: int,
    report: OnRegrouped | None = None,
) -> Flow[bool]:
    """
    Make the groups right that *ids*, which came back, and *gone*, which were removed, may have changed.

    Indices that record the same grouping are grouped together; those that record none are left alone. So are those
    whose documents name canonicals elsewhere, which grouping *names* alone would take away from them: they are warned
    of. Returns whether nothing is left that the same call could do.

    Args:
        context:
            What the client object knows.
        names:
            What is searched, as the user named it.
        ids:
            Ids of documents that came back.
        gone:
            Ids of documents that were removed.
        few:
            Where more documents are concerned, all groups are judged.
        report:
            Is called with what was done; by default a warning tells of what could not be made right.
    """
    is_done = True
    for scope, grouping in (yield from _find_scopes(context, names)):
        try:
            done = yield from _regroup_scope(context, scope, grouping, ids, gone, few)
        except (MappingError, InvalidInputError) as error:
            warnings.warn(f"the groups of {', '.join(scope)} are not right yet: {error}", stacklevel=2)
            is_done = False
            continue
        if done is None:
            continue
        is_done = is_done and done.is_settled
        if report is not None:
            report(tuple(scope), done)
        elif not done.is_settled:
            warnings.warn(f"the groups of {', '.join(scope)} are not right yet: run reconcile again", stacklevel=2)
    return is_done


def _find_scopes(context: Context, names: Sequence[str]) -> Flow[list[tuple[list[str], Grouping]]]:
    """Return the names under which documents of one grouping are searched, and the grouping; each only once."""
    try:
        resolved = yield from resolve_index(context, names)
    except Exception as error:
        if status_of(error) != 404:
            raise
        there = yield from _existing(names)
        if there and len(there) < len(names):
            return (yield from _find_scopes(context, there))
        warnings.warn(
            f"the groups were left as they are, because {', '.join(names)} does not exist any more: run reconcile over "
            "the indices that are grouped together",
            stacklevel=2,
        )
        return []
    groupings = {name: Grouping.read(own) for name, own in resolved.each.items()}
    found = set(groupings.values())
    if len(found) == 1:
        return [(list(names), each) for each in found if each is not None]
    hidden = yield from narrowed(names)
    scopes: dict[Grouping, list[str]] = {}
    for name, grouping in groupings.items():
        if grouping is None:
            continue
        if name in hidden:
            warnings.warn(
                f"the groups of {name} were left as they are, because {', '.join(names)} shows only a part of it, "
                "and has indices that are grouped otherwise: run reconcile under a name that has one grouping",
                stacklevel=2,
            )
        else:
            scopes.setdefault(grouping, []).append(name)
    return [(each, grouping) for grouping, each in scopes.items()]


def _existing(names: Sequence[str]) -> Flow[list[str]]:
    there = []
    for name in names:
        try:
            yield from ask(Call("get_mapping", {"index": name}))
        except Exception as error:
            if status_of(error) != 404:
                raise
        else:
            there.append(name)
    return there


@reads_primaries
def _regroup_scope(
    context: Context, names: list[str], grouping: Grouping, ids: Collection[str], gone: AbstractSet[str], few: int
) -> Flow[Reconciled | None]:
    """Make the groups of *names* right, and return what was done; ``None`` where nothing had to be looked at."""
    fields = Fields(context.prefix)
    yield from refresh(names)
    lost = set((yield from lost_canonicals(names, fields)))
    elsewhere = yield from _find_elsewhere(names, sorted(lost - gone), fields)
    if elsewhere is None or elsewhere:
        where = "elsewhere, or may be" if elsewhere is None else f"in {', '.join(sorted(elsewhere))}"
        together = "" if elsewhere is None else f" ({','.join(sorted({*names, *elsewhere}))})"
        warnings.warn(
            f"the groups of {', '.join(names)} were left as they are, because documents there are duplicates of "
            f"documents {where}: run reconcile over all indices that are grouped together{together}",
            stacklevel=2,
        )
        return None
    # A group that hung together by a removed document may fall apart; nothing that is there says so.
    is_all = (bool(gone) and grouping.rule == "connected") or len(ids) + len(lost) > few
    total: Reconciled | None = None
    changed = 0
    for _ in range(ROUNDS if ids or lost or is_all else 0):
        total = yield from reconcile(context, names, GroupingRequest(), ids=None if is_all else ids)
        changed += total.changed
        if total.failures or not total.changed or not (yield from lost_canonicals(names, fields)):
            total = replace(total, changed=changed)
            break
    else:
        total = total and replace(total, changed=changed, is_settled=False)
    if gone:
        yield from _warn_of_hidden(names, gone, fields)
    return total


def _find_elsewhere(names: Sequence[str], lost: Sequence[str], fields: Fields) -> Flow[set[str] | None]:
    """
    Return the indices that have canonicals which documents of *names* name, and which are not there.

    A canonical has the distance to a member that the member records: an index that happens to have a document of that
    id is not meant. ``None`` where that cannot be seen.
    """
    found: set[str] = set()
    for begin in range(0, len(lost), IDS):
        part = list(lost[begin : begin + IDS])
        is_there = [{"ids": {"values": part}}, {"exists": {"field": fields.fingerprint}}]
        is_canonical = {"filter": is_there, "must_not": [{"exists": {"field": fields.duplicate_of}}]}
        canonicals = yield from _search("*", {"bool": is_canonical}, [fields.fingerprint])
        if not canonicals:
            if canonicals is None:
                return None
            continue
        query = {"terms": {fields.duplicate_of: sorted({hit["_id"] for hit in canonicals})}}
        members = yield from _search(names, query, [fields.fingerprint, fields.duplicate_of, fields.distance])
        if members is None:
            return None
        said = {
            (values[fields.duplicate_of][0], values[fields.fingerprint][0], int(values[fields.distance][0]))
            for hit in members
            if len(values := hit.get("fields") or {}) == 3
        }
        for hit in canonicals:
            bits = from_hex(hit["fields"][fields.fingerprint][0])
            own = [each for each in said if each[0] == hit["_id"]]
            if any(hamming_distance(bits, from_hex(digits)) == distance for _, digits, distance in own):
                found.add(hit["_index"])
    return found


def _search(index: Any, query: Any, fields: Sequence[str]) -> Flow[list[dict[str, Any]] | None]:
    """Return the first hits with *fields*; ``None`` where shards do not answer, or the user may not search there."""
    body = {"size": HITS, "query": query, "docvalue_fields": list(fields), "_source": False}
    try:
        answer = yield from ask(Call("search", {"index": index, "body": body}))
    except Exception as error:
        if status_of(error) is None:
            raise
        return None
    hits: list[dict[str, Any]] = answer["hits"]["hits"]
    return None if find_gaps(answer) else hits


def _warn_of_hidden(names: Sequence[str], gone: AbstractSet[str], fields: Fields) -> Flow[None]:
    """Say it where documents that an alias hides are duplicates of documents that were removed."""
    hidden = yield from narrowed(names)
    try:
        lost = (yield from lost_canonicals(hidden, fields)) if hidden else []
    except Exception as error:
        if status_of(error) not in (401, 403):
            raise
        return
    if gone & set(lost):
        warnings.warn(
            f"documents that {', '.join(names)} does not show are duplicates of documents that were removed: run "
            f"reconcile over {', '.join(hidden)}",
            stacklevel=2,
        )
