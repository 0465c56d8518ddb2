"""
Groups of the documents that changed ones may have upset, by steps along decisions that turn out otherwise.

A document belongs to the first canonical near it, and only canonicals decide about others. So what is *decided* is
grouped with the canonicals near it; what turns out to be canonical with the copies near it, and with theirs. What is
read for that alone is as it says; if one of these turns out to belong elsewhere, it is decided in its turn, with those
that name it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from es_simhash.groups.read import PAGE, SMALLEST, canonicals_body
from es_simhash.lookup.find import Crowded, Lookup, Scope
from es_simhash.lookup.find_many import ask_together
from es_simhash.lookup.judge import LookupRule
from es_simhash.lookup.lookup_options import LookupOptions, LookupRequest, Sizes, check_complete
from es_simhash.lookup.plan import index_stats
from es_simhash.mapping.fields import Fields, full_name, read_fingerprint
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import read_index_settings
from es_simhash.transport.answers import check_whole
from es_simhash.transport.pages import Hits, read_each
from es_simhash.transport.protocol import MAX_HITS, Index, Key, Progress, document_key, ids_query

if TYPE_CHECKING:
    from es_simhash.groups.table import Groups, Table
    from es_simhash.lookup.index_table import TableLookups

ASKED_FINGERPRINTS = 200
# Fewer than a page, so that one search shows those with these names.
NAMES = PAGE - 1_000
# Reading the fingerprints of more takes too many requests.
IN_MEMORY = 100_000


async def group_touched(
    server: Port,
    index: Index,
    table: Table,
    max_distance: int,
    group: Callable[[], Awaitable[Groups]],
    query: Mapping[str, Any],
    *,
    named: Collection[str],
) -> Groups:
    """
    Add to *table* the documents that match *query* or name one of *named* as canonical, and what these upset; return
    what *group* makes of the table in the end.
    The groups are those of all documents, if all that no change touches is right. Cost: a multi-search for every 200
    fingerprints that are decided, and a few searches for every 500 documents read.
    """
    from es_simhash.lookup.index_table import TableLookups  # noqa: PLC0415 -- loads numpy

    settings, stats = await read_index_settings(server, index), await index_stats(server, index)
    # A small index is read as a table of fingerprints, if there is much to look up.
    request = LookupRequest(lookups="auto" if stats.documents <= IN_MEMORY else "server")
    lookups = TableLookups(request, 2 * len(named))
    # By such a plan a lookup has few candidates: those of many fit into a page.
    stats = replace(stats, documents=max(stats.documents, SMALLEST))
    # Where no script may filter, a lookup has some hundred candidates for each million documents.
    options = LookupOptions(sizes=Sizes(first_page=MAX_HITS))
    scope = Scope(server.context, index, settings, options, LookupRule(max_distance), stats=stats, is_one_page=True)
    touched = _Touched(server, table, scope, lookups)
    wrong = set(await touched.read(query))
    named = {*named, *touched.bare}
    is_new = True
    try:
        while wrong or is_new:
            touched.decided |= wrong
            await touched.read_named(named)
            await touched.read_near(touched.decided, copies=False)
            await touched.read_canonicals()
            groups = await group()
            wrong = set(await server.compute(groups.wrong)) - touched.decided
            canonicals = [place for place in touched.decided if groups.canonical[place] == place]
            is_new = await touched.read_near(canonicals, copies=True)
    finally:
        await lookups.close(server)
    return groups


class _Touched:
    """The documents read, by key; *bare*: names of those that matched and have no fingerprint; *decided*: places."""

    def __init__(self, server: Port, table: Table, scope: Scope, lookups: TableLookups) -> None:
        self.decided: set[int] = set()
        self.bare: set[str] = set()
        self._server, self._table, self._scope, self._lookups = server, table, scope, lookups
        self._fields = Fields(server.prefix)
        self._places: dict[Key, int] = {}
        self._unreadable: set[Key] = set()
        # The canonicals that documents name, by place.
        self._leaders: dict[int, str] = {}
        self._named: set[str] = set()
        self._found: set[str] = set()
        self._asked: dict[bool, set[int]] = {False: set(), True: set()}

    async def read(self, query: Mapping[str, Any]) -> list[int]:
        """Return the places of the documents that match *query*; new ones are added to the table."""
        hits: list[Mapping[str, Any]] = []
        body = {**self._table.search_body(), "query": {"bool": {"filter": [query]}}}
        check_whole(await read_each(self._server, self._scope.index, body, hits.extend, page=PAGE))
        return await self._server.compute(self._add, hits)

    def _add(self, hits: Hits) -> list[int]:
        fields = self._fields
        keys = {document_key(hit): hit for hit in hits}
        new = [hit for key, hit in keys.items() if key not in self._places and key not in self._unreadable]
        new = [hit for hit in new if fields.fingerprint in hit.get("fields", {})]
        self._table.add(new)
        for hit in new:
            own = hit["fields"]
            if read_fingerprint(own[fields.fingerprint][0]) is not None:
                place = self._places[document_key(hit)] = len(self._places)
                if fields.duplicate_of in own:
                    self._leaders[place] = own[fields.duplicate_of][0]
            else:
                self._unreadable.add(document_key(hit))
        self.bare.update(name for key in keys if key not in self._places for name in (key.id, full_name(*key)))
        return [self._places[key] for key in keys if key in self._places]

    async def read_named(self, names: set[str]) -> None:
        """Decide what names one of *names*, or what is decided, as its canonical; read what shares such an id."""
        while names := (names | self._names_of(self.decided)) - self._named:
            self._named |= names
            for part in _parts(sorted(names), NAMES):
                naming = {"terms": {self._fields.duplicate_of: part}}
                await self.read({"bool": {"should": [naming, ids_query(part)]}})
            self.decided |= {place for place, leader in self._leaders.items() if leader in self._named}

    def _names_of(self, places: Iterable[int]) -> set[str]:
        """Return the names that groups of the documents at *places* may have."""
        keys = (self._table.row(place).key for place in places)
        return {name for key in keys for name in (key.id, full_name(*key))}

    async def read_near(self, places: Iterable[int], *, copies: bool) -> bool:
        """Read the *copies*, or else what is none, near the documents at *places*; return whether some are new."""
        before, near = len(self._places), set[Key]()
        waiting = {self._table.row(place).fingerprint for place in places} - self._asked[copies]
        self._asked[copies] |= waiting
        if not copies:  # most have few near them: then one lookup shows all
            crowded = await self._look_up(waiting, self._scope, near)
            self._asked[True] |= waiting - crowded
            waiting = crowded
        which = {"filter" if copies else "must_not": {"exists": {"field": self._fields.duplicate_of}}}
        options = replace(self._scope.options, filter={"bool": which})
        await self._look_up(waiting, replace(self._scope, options=options, is_one_page=False), near)
        for part in _parts(sorted({key.id for key in near - self._places.keys()}), NAMES):
            await self.read(ids_query(part))
        return len(self._places) > before

    async def _look_up(self, fingerprints: set[int], scope: Scope, near: set[Key]) -> set[int]:
        """Add to *near* what is near *fingerprints*; return those near which is more than a page has, if one is all."""
        crowded: set[int] = set()
        for part in _parts(sorted(fingerprints), ASKED_FINGERPRINTS):
            self._server.tell(Progress(len(self.decided), None, "looking up near-duplicates"))
            known = await self._lookups.ask(self._server, scope, part)
            rest = [fingerprint for fingerprint in part if fingerprint not in known]
            lookups = [Lookup(scope, fingerprint) for fingerprint in rest]
            answers = await ask_together(self._server, lookups, is_patient=True)
            for fingerprint, found in [*known.items(), *zip(rest, answers, strict=True)]:
                if isinstance(found, Crowded):
                    crowded.add(fingerprint)
                elif isinstance(found, Exception):
                    raise found
                else:
                    near.update(document.key for document in check_complete(found))
        return crowded

    async def read_canonicals(self) -> None:
        """Read the canonicals that documents name."""
        while names := set(self._leaders.values()) - self._found:
            self._found |= names
            for part in _parts(sorted(names), NAMES):
                await self.read(canonicals_body(part, self._fields)["query"])


def _parts(items: Sequence[Any], size: int) -> list[Any]:
    return [items[begin : begin + size] for begin in range(0, len(items), size)]
