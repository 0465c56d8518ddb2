"""
Corrects the groups of indices after documents were restored or removed, under the names that the user gave: what is
outside the filter or the routing value of an alias is neither read nor written.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence, Set as AbstractSet
from dataclasses import replace
from typing import Any, TypeAlias

from es_simhash.errors import InvalidInputError, MappingError
from es_simhash.groups.grouping_request import GroupingRequest
from es_simhash.groups.read import canonicals_body, lost_canonicals, name_of
from es_simhash.groups.reconcile import Reconciled, reconcile
from es_simhash.hashing import hamming_distance
from es_simhash.mapping.fields import Fields, read_fingerprint
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import narrowed, resolve_index
from es_simhash.mapping.rule import Grouping
from es_simhash.mapping.shards import reading_primaries
from es_simhash.transport.answers import find_gaps
from es_simhash.transport.conversation import refresh, unless_refused
from es_simhash.transport.pages import Hits, read_each
from es_simhash.transport.protocol import status_of

OnRegrouped: TypeAlias = Callable[[tuple[str, ...], Reconciled], object]
"""What is called with the names of indices that were grouped together, and what was done there."""

# Others may delete a canonical after it was chosen: then its members are put elsewhere once more.
ROUNDS = 5
IDS = 200
HITS = 1_000


class Regroup:
    """Collects the indices to regroup: those of restored documents, and all that are grouped together with them."""

    def __init__(self, *, few: int) -> None:
        self._few = few
        self._same: dict[str, str] = {}
        # Ids of what was restored, by name, and by the names that a plan was made for; no more than are needed to see
        # that they are many.
        self._ids: dict[str, set[str]] = {}
        self._by_view: dict[tuple[str, ...], set[str]] = {}

    def add(self, id_: str, names: Sequence[str], view: Sequence[str] = ()) -> None:
        """Note a document, in the first of *names*; in the others was its canonical; for *view* see names_within."""
        if view:
            ids = self._by_view.setdefault(tuple(view), set())
        else:
            self.join(names)
            ids = self._ids.setdefault(names[0], set())
        if len(ids) <= self._few:
            ids.add(id_)

    def join(self, names: Sequence[str]) -> None:
        """Note that the indices *names* are grouped together."""
        for name in names:
            self._same.setdefault(name, name)
            self._same[self._first(names[0])] = self._first(name)

    def _first(self, name: str) -> str:
        while self._same[name] != name:
            name = self._same[name]
        return name

    async def carry_out(self, server: Port, report: OnRegrouped | None) -> None:
        """Make the groups right; what could not be written is reported, or else a warning."""
        scopes = dict(self._by_view)
        for name, ids in self._ids.items():
            first = self._first(name)
            joined = tuple(sorted(other for other in self._same if self._first(other) == first))
            scopes[joined] = scopes.get(joined, set()) | ids
        for names, ids in scopes.items():
            await regroup(server, names, ids, few=self._few, report=report)


async def regroup(
    server: Port,
    names: Sequence[str],
    ids: Collection[str],
    *,
    gone: AbstractSet[str] = frozenset(),
    few: int,
    report: OnRegrouped | None = None,
) -> bool:
    """
    Correct the groups that *ids* (came back) and *gone* (removed) may have changed; return whether a repeat can do no
    more. Documents that name canonicals elsewhere stay as they are, with a warning. *few*: where more documents are
    concerned, all groups are judged. Without *report*, a warning tells what could not be corrected.
    """
    is_done = True
    for scope in await _find_scopes(server, names):
        try:
            done = await _regroup_scope(server, scope, ids, gone, few)
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


async def names_within(server: Port, view: Sequence[str], planned: AbstractSet[str]) -> list[str]:
    """
    Return under which names documents of the indices *planned* are grouped: those of *view*, else their own.
    What a file calls its view may stand for other indices, too, since a rollover or because an enemy wrote it. None
    is returned, with a warning, where only the view hides documents of *planned*.
    """
    asked = server.patient.get_mapping(index=list(view))
    answer = await unless_refused(asked, 403, 404)
    if answer is not None and answer.keys() <= planned:
        return list(view)
    if answer is None and len(view) > 1:
        parts = [await names_within(server, [name], planned) for name in view if not name.startswith("-")]
        return sorted({name for part in parts for name in part})
    if answer is not None and planned.isdisjoint(await narrowed(server, view)):
        return sorted(planned & answer.keys())
    state = "does not exist any more" if answer is None else "stands for other indices, too"
    warnings.warn(
        f"the groups were left as they are, because {', '.join(view)} {state}: run reconcile over the indices that are "
        "grouped together",
        stacklevel=2,
    )
    return []


async def _find_scopes(server: Port, names: Sequence[str]) -> list[list[str]]:
    """Return the names under which documents of one grouping are searched; each only once."""
    resolved = await unless_refused(resolve_index(server, names), 404)
    if resolved is None:
        there = await _existing(server, names)
        if there and len(there) < len(names):
            return await _find_scopes(server, there)
        warnings.warn(
            f"the groups were left as they are, because {', '.join(names)} does not exist any more: run reconcile over "
            "the indices that are grouped together",
            stacklevel=2,
        )
        return []
    groupings = {name: Grouping.read(own) for name, own in resolved.settings_of.items()}
    found = set(groupings.values())
    if len(found) == 1:
        return [list(names)] if None not in found else []
    hidden = await narrowed(server, names)
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
    return list(scopes.values())


async def _existing(server: Port, names: Sequence[str]) -> list[str]:
    asked = ((name, server.patient.get_mapping(index=name)) for name in names)
    return [name for name, answer in asked if await unless_refused(answer, 404) is not None]


async def _regroup_scope(
    server: Port, names: list[str], ids: Collection[str], gone: AbstractSet[str], few: int
) -> Reconciled | None:
    """Make the groups of *names* right, and return what was done; ``None`` where nothing had to be looked at."""
    server = await reading_primaries(server, names)
    await refresh(server, names)
    # Another index may have a document with the id of one that was removed: its members are judged all the same.
    lost = set(await lost_canonicals(server, names, doubted=gone))
    ids = {*ids, *(lost & gone)}
    leave = await _left_alone(server, names, sorted(lost - gone))
    lost -= leave
    # A group that hung together by a removed document may fall apart; nothing that is there says so.
    is_all = len(ids | lost) > few
    total: Reconciled | None = None
    changed = 0
    for _ in range(ROUNDS if ids or lost or is_all else 0):
        total = await reconcile(server, names, GroupingRequest(), ids=None if is_all else ids, leave=leave)
        changed += total.changed
        if total.failures or not total.changed or leave.issuperset(await lost_canonicals(server, names)):
            total = replace(total, changed=changed)
            break
    else:
        total = total and replace(total, changed=changed, is_settled=False)
    if gone:
        await _warn_of_hidden(server, names, gone)
    return total


async def _left_alone(server: Port, names: Sequence[str], lost: Sequence[str]) -> frozenset[str]:
    """Return the canonicals among *lost* whose members stay as they are, because these are elsewhere; warn of them."""
    elsewhere = await _find_elsewhere(server, names, lost)
    if not elsewhere and elsewhere is not None:
        return frozenset()
    indices = sorted({index for found in (elsewhere or {}).values() for index in found})
    where = f"in {', '.join(indices)}" if indices else "elsewhere, or may be"
    whole = set(indices)
    for name in names if indices else ():
        whole.update(await narrowed(server, [name]) or [name])
    together = f" ({','.join(sorted(whole))})" if whole else ""
    warnings.warn(
        f"documents of {', '.join(names)} were left as they are, because they are duplicates of documents {where}: run "
        f"reconcile over all indices that are grouped together{together}",
        stacklevel=2,
    )
    return frozenset(lost if elsewhere is None else elsewhere)


async def _find_elsewhere(server: Port, names: Sequence[str], lost: Sequence[str]) -> dict[str, set[str]] | None:
    """
    Return which of the groups *lost* have a canonical elsewhere, at the distance that a member records, each with its
    indices; ``None`` means that it cannot be seen.
    """
    fields = Fields(server.prefix)
    found: dict[str, set[str]] = {}
    shown = [fields.duplicate_of, fields.fingerprint, fields.distance]
    for begin in range(0, len(lost), IDS):
        part = list(lost[begin : begin + IDS])
        canonicals = await _search(server, "*", canonicals_body(part, fields))
        if not canonicals:
            if canonicals is None:
                return None
            continue
        query = {"terms": {fields.duplicate_of: sorted({name_of(hit, fields) for hit in canonicals})}}
        # All members: of a canonical whose members were not seen nobody knows that it is elsewhere.
        said: set[tuple[str, str, int]] = set()

        def note(hits: Hits, said: set[tuple[str, str, int]] = said) -> None:
            for hit in hits:
                if len(values := hit.get("fields") or {}) == 3:
                    canonical, digits, distance = (values[name][0] for name in shown)
                    said.add((canonical, digits, int(distance)))

        body = {"query": query, "docvalue_fields": shown, "_source": False}
        if await read_each(server, names, body, note, page=HITS):
            return None
        for hit in canonicals:
            bits = read_fingerprint(hit["fields"][fields.fingerprint][0])
            name = name_of(hit, fields)
            own = [tag for tag in said if tag[0] == name]
            pairs = ((bits, read_fingerprint(digits), distance) for _, digits, distance in own)
            if any(a is not None and b is not None and hamming_distance(a, b) == distance for a, b, distance in pairs):
                found.setdefault(name, set()).add(hit["_index"])
    return found


async def _search(server: Port, index: Any, body: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return all hits; ``None`` where shards do not answer, there are too many, or rights lack."""
    try:
        answer = await server.patient.search(index=index, body={**body, "size": HITS})
    except Exception as error:
        if status_of(error) is None:
            raise
        return None
    hits: list[dict[str, Any]] = answer["hits"]["hits"]
    return None if find_gaps(answer) or len(hits) >= HITS else hits


async def _warn_of_hidden(server: Port, names: Sequence[str], gone: AbstractSet[str]) -> None:
    """Say it where documents that an alias hides are duplicates of documents that were removed."""
    hidden = await narrowed(server, names)
    lost = await unless_refused(lost_canonicals(server, hidden), 401, 403) if hidden else None
    if gone & set(lost or ()):
        warnings.warn(
            f"documents that {', '.join(names)} does not show are duplicates of documents that were removed: run "
            f"reconcile over {', '.join(hidden)}",
            stacklevel=2,
        )
