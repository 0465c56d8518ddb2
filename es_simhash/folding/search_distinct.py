"""
Reads the pages of a distinct search.

Hits are read in the order of the search, some more than a page has; a hit whose group was shown before is folded. On
this page that is known. For earlier pages it is asked: a group was shown if its best-ranked matching document stands
before the place where the page begins. So nothing is kept between pages but that place, and a group of which a document
is added, changed or deleted between two pages may be shown once more, or missed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from es_simhash.errors import IncompleteSearchError, InvalidInputError, MappingError
from es_simhash.folding.page import DistinctHit, DistinctPage
from es_simhash.folding.request import DistinctOptions, DistinctSearch, SearchPlace
from es_simhash.groups.recorded import refuse_group_faults
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.meta import IndexSettings
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import read_known, resolve_index
from es_simhash.transport.answers import check_whole, find_gaps
from es_simhash.transport.buckets import READ, BucketReader, Clauses
from es_simhash.transport.pages import KEEP_ALIVE_SECONDS, View, close_view, open_view
from es_simhash.transport.protocol import Call, Index, check_index, document_key
from es_simhash.writes.targets import refuse_masked_values

# Groups that are asked for in one request, and the most hits that are read at once.
_GROUPS = 1_000
_LARGEST_WINDOW = 5_000
# A first page is one search of a few more hits than it shows, or else one of many more, or else several in a view.
_WIDER = 5
_LEFT_OUT = 10_000
# Kinds of numbers and dates, each with its own value for documents that have none.
_NUMBERS = {"byte", "short", "integer", "long", "unsigned_long", "half_float", "float", "double", "scaled_float"}
_NUMBERS |= {"date", "date_nanos"}

Hit = Mapping[str, Any]


async def search_distinct(
    server: Port, index: Index, body: Mapping[str, Any], options: DistinctOptions, after: str | None
) -> DistinctPage:
    """
    Return one page. Cost: one search for its hits, or two where much is folded, and one for the number of documents in
    their groups. A view is opened for a later page, for what is counted, and where no single search fills the page.
    """
    search, place = await _prepare(server, index, body, after)
    if after is None and not options.total:
        # What is aggregated costs more than hits, so it is rather not asked twice.
        widths = (_WIDER,) if search.aggregations else (1, _WIDER)
        for window in (width * _window(options.size) for width in widths):
            if window <= _LARGEST_WINDOW:
                reader = _Reader(None, search, options, place)
                page = await reader.page(server, window)
                if not reader.is_short:
                    return page
    view = await _open(server, index)
    try:
        reader = _Reader(view, search, options, place)
        return replace(await reader.page(server), total=await reader.count_hits(server))
    finally:
        await close_view(server, view)


async def search_distinct_pages(
    server: Port, index: Index, body: Mapping[str, Any], options: DistinctOptions
) -> AsyncGenerator[Sequence[DistinctPage], None]:
    """Yield all pages, read in one view; what was shown is kept in memory."""
    search, place = await _prepare(server, index, body)
    view = await _open(server, index)
    try:
        reader = _Reader(view, search, options, place, keeps=True)
        total = await reader.count_hits(server)
        reader.has_more = True
        while reader.has_more:
            yield [replace(await reader.page(server), total=total)]
    finally:
        await close_view(server, view)


def _window(size: int) -> int:
    """Return how many hits to read for a page of *size*: half of them may be folded."""
    return 2 * size + 4


async def _prepare(
    server: Port, index: Index, body: Mapping[str, Any], after: str | None = None
) -> tuple[DistinctSearch, SearchPlace]:
    """
    Return the search, checked, and where it goes on.
    Raises MappingError if the index lacks the fields, or the groups that the search goes by.
    """
    check_index(index)
    search = DistinctSearch(index, body, Fields(server.context.prefix))
    place = SearchPlace() if after is None else search.decode(after)
    settings_by_index = (await read_known(server, index))[1].settings_of
    if not _is_grouped(settings_by_index):  # perhaps since this client read the mapping
        settings_by_index = (await resolve_index(server, index)).settings_of
    if not _is_grouped(settings_by_index):
        raise MappingError("the index was never grouped: run setup(index) first")
    if len(settings_by_index) != 1 and search.sort_fields:
        await _check_order(server, search)
    return search, place


async def _check_order(server: Port, search: DistinctSearch) -> None:
    """Raise InvalidInputError if indices have values of several kinds in a sort field, behind which no page goes on."""
    answer = await server.patient.field_caps(index=search.index, fields=search.sort_fields)
    for name, kinds in answer["fields"].items():
        if len(numbers := sorted(_NUMBERS & kinds.keys())) > 1:
            raise InvalidInputError(
                f"sort by {name} has several kinds of values in these indices ({', '.join(numbers)}): give it a "
                "numeric_type, such as double or date_nanos"
            )


def _is_grouped(settings_by_index: Mapping[str, IndexSettings]) -> bool:
    """Return whether an index records a grouping, or no mapping may be read."""
    return not settings_by_index or any(one.is_grouped for one in settings_by_index.values())


async def _open(server: Port, index: Index) -> View:
    view = await open_view(server.patient, index, KEEP_ALIVE_SECONDS)
    if view is None:
        raise IncompleteSearchError(
            "no point in time can be opened: see whether each index is open, each shard has an active copy, and the "
            "user the right to it",
            reasons=("no point in time",),
        )
    return view


@dataclass
class _Reader:
    """
    Reads one page after another; without a *view* only one, by one search. *is_short*: that search did not fill it.
    *keeps*: all pages are read by this reader, so it knows what was shown.
    """

    view: View | None
    search: DistinctSearch
    options: DistinctOptions
    place: SearchPlace
    keeps: bool = False
    has_more: bool = False
    is_short: bool = False
    _aggregations: dict[str, Any] = field(default_factory=dict)
    _is_first: bool = True
    # Groups shown on the pages that this reader has read, and those shown before it began.
    _shown: set[str] = field(default_factory=set)
    # How many matching documents the groups of this page have.
    _counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._begins = self.place

    async def page(self, server: Port, window: int | None = None) -> DistinctPage:
        """Return the next page, by *window* hits at first; it is full unless the search has no more distinct hits."""
        size = self.options.size
        shown: list[Hit] = []
        window = window or _window(size)
        folded: set[str] = set()
        self.has_more = is_end = False
        while not (is_end or self.has_more):
            found, is_end = await self._read(server, min(window, _LARGEST_WINDOW), folded)
            await self._ask_unknown(server, found)
            read = 0
            for hit in found:
                if self._is_new(hit):
                    if len(shown) == size:
                        self.has_more = True
                        break
                    if (group := self._group(hit)) is not None:
                        self._shown.add(group)
                    shown.append(hit)
                read += 1
            self.place = self.search.behind(self.place, found[:read])
            if self.view is None and not (is_end or self.has_more):
                self.is_short = True
                return DistinctPage(())
            folded |= {group for hit in found if (group := self._group(hit)) is not None}
            window *= 2
        groups = [group for hit in shown if (group := self._group(hit)) is not None]
        if len(groups) < len(shown):
            refuse_group_faults(await resolve_index(server, self.search.index), server.prefix, grouped_only=True)
        await self._ask(server, [group for group in groups if group not in self._counts], first=False)
        if groups and not self._counts:
            await refuse_masked_values(server, self.search.index, self.search.fields.group, is_read=True)
        hits = tuple(map(self._result, shown))
        self._counts.clear()
        after = self.search.encode(self.place) if self.has_more and not self.keeps else None
        return DistinctPage(hits, after, None, self._aggregations)

    async def count_hits(self, server: Port) -> int | None:
        """
        Return the number of distinct hits of the search, by group, where that was asked for.
        A cardinality aggregation estimates, so every group is read, 50,000 in an answer.
        """
        if not self.options.total:
            return None
        search = self.search
        ungrouped = search.matching({"bool": {"must_not": [{"exists": {"field": search.fields.group}}]}})
        body = {**search.common, "size": 0, "query": ungrouped, "track_total_hits": True}
        found = int((await self._send(server, body))["hits"]["total"]["value"])

        async def ask(server: Port, _: Index, clauses: Clauses, aggs: Mapping[str, Any]) -> dict[str, Any]:
            asked = {"query": search.matching(*clauses), "aggs": aggs, "track_total_hits": False}
            aggregations: dict[str, Any] = (await self._send(server, {**body, **asked}))["aggregations"]
            return aggregations

        reader = BucketReader(search.index, (), search.fields.group, page=READ, ask=ask)
        while groups := await reader.read(server):
            found += len(groups)
        return found

    async def _send(self, server: Port, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the whole answer in the view, or without one of the index as it is."""
        call = Call("search", {"index": self.search.index, "body": body}) if self.view is None else self.view.call(body)
        answer = await server.patient.send(call)
        if self.view is not None:
            self.view.note(answer)
        check_whole(find_gaps(answer, ignore=["terminated_early"]))
        return answer

    async def _read(self, server: Port, size: int, left_out: set[str]) -> tuple[list[Hit], bool]:
        """Return hits behind the place, and whether there are no more; *left_out*: groups that are known by now."""
        # The members of further groups are skipped as they come; a server takes no more than 65,536 values.
        leave = sorted(left_out)[:_LEFT_OUT]
        skipped = set(self.place.run)
        window = size + len(skipped)
        body = self.search.hits_body(self.place, window, leave)
        if self._is_first and (aggregations := self.search.aggregations):
            body["aggs"] = aggregations
        answer = await self._send(server, body)
        if self._is_first:
            self._aggregations = answer.get("aggregations") or {}
            self._is_first = False
        found = answer["hits"]["hits"]
        # What ties may come in another order now: the groups of what was read were shown.
        new = []
        for hit in found:
            if document_key(hit) not in skipped or self.search.key(hit) != self.place.key:
                new.append(hit)
            elif (group := self._group(hit)) is not None:
                self._shown.add(group)
        return new, len(found) < window

    def _group(self, hit: Hit) -> str | None:
        values = (hit.get("fields") or {}).get(self.search.fields.group)
        return values[0] if values else None

    def _is_new(self, hit: Hit) -> bool:
        """Return whether *hit* is of no group that was shown."""
        group = self._group(hit)
        return group is None or group not in self._shown

    async def _ask_unknown(self, server: Port, hits: Sequence[Hit]) -> None:
        """Find out which groups of *hits* were shown on pages that another reader read."""
        if self._begins == SearchPlace():
            return
        first: dict[str, Hit] = {}
        for hit in hits:
            if (group := self._group(hit)) is not None and group not in self._shown:
                first.setdefault(group, hit)
        best_of = await self._ask(server, [group for group in first if group not in self._counts], first=True)
        for group, hit in first.items():
            best = best_of.get(group, hit)
            is_tie = self.search.key(best) == self.search.key(hit) and document_key(best) not in self._begins.run
            if document_key(best) != document_key(hit) and not is_tie:
                self._shown.add(group)

    async def _ask(self, server: Port, groups: Sequence[str], *, first: bool) -> dict[str, Hit]:
        """Note how many matching documents each of *groups* has; return the *first* of them, where that is wanted."""
        name = self.search.fields.group
        best = {"size": 1, "sort": self.search.sort, "_source": False}
        below = {"aggs": {"first": {"top_hits": best}}} if first else {}
        found: dict[str, Hit] = {}
        for begin in range(0, len(groups), _GROUPS):
            part = groups[begin : begin + _GROUPS]
            # By the values, not by ordinals of all groups, which each refresh makes anew.
            terms = {"terms": {"field": name, "size": len(part), "execution_hint": "map"}, **below}
            query = self.search.matching({"terms": {name: part}})
            body = {**self.search.common, "size": 0, "query": query, "aggs": {"groups": terms}}
            answer = await self._send(server, {**body, "track_total_hits": False})
            for bucket in answer["aggregations"]["groups"]["buckets"]:
                self._counts[bucket["key"]] = bucket["doc_count"]
                if first:
                    found[bucket["key"]] = bucket["first"]["hits"]["hits"][0]
        return found

    def _result(self, hit: Hit) -> DistinctHit:
        group = self._group(hit)
        return DistinctHit(self.search.clean(hit), group, max(0, self._counts.get(group or "", 0) - 1))
