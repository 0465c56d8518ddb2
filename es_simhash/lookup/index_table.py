"""
The table of the fingerprints of an index, and many lookups by it.

It is read by the numbers of operations. In a point in time nothing changes: a search there for documents with exactly
the near fingerprints of the table misses none. Shard by shard it is kept current: what was written since is read.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from es_simhash.errors import count
from es_simhash.lookup.find import Scope
from es_simhash.lookup.fingerprint_table import Fingerprints, FingerprintTable, Near, bytes_for
from es_simhash.lookup.lookup_options import MESSAGE_CHARACTERS, LookupRequest, TableError, as_fault, pays
from es_simhash.lookup.near_dups import NearDups, by_fingerprint, rescore
from es_simhash.lookup.plan import LookupPlan
from es_simhash.lookup.query import check_filter
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import confirm
from es_simhash.mapping.shards import NOTHING, Position, Positions, PositionsError, Range, Shard, ShardReading
from es_simhash.transport.answers import Gap, find_gaps
from es_simhash.transport.conversation import attempt, check_shards, refresh, rounds
from es_simhash.transport.pages import KEEP_ALIVE_SECONDS, Hits, View, close_view, open_view
from es_simhash.transport.protocol import Call, status_of
from es_simhash.transport.refusals import NO_SCRIPT, NO_SHARD, VIEW_ENDED, is_passing

logger = logging.getLogger("es_simhash")

# Fingerprints that one search returns, and searches at once.
PAGE = 50_000
SEARCHES = 2
# Where operations of several shards share a number, ranges are planned for so much of a page: some have more.
FILLED = 0.9
DIGITS = 16
GONE = 404
# What to leave out of an answer, as its reader does.
COUNTS = "-aggregations.fingerprints.buckets.doc_count"
# Lists what documents have, of each part of an index, unsorted: less work for a server than buckets.
LISTING = {
    "init_script": "state.shown = [];",
    "map_script": "if (state.shown.size() <= params.most) { state.shown.addAll(doc[params.field]); }",
    "combine_script": "return state.shown;",
    "reduce_script": "return states;",
}
# Stands for all shards of a point in time.
EVERYWHERE = Shard("", "", 0)


@dataclass(frozen=True, slots=True)
class Page:
    """
    What one search has shown of the range *asked*: fingerprints, ``None`` without a whole answer, and the *last*
    operation. *again*: ranges to search now: the same, or the halves of one that has too many fingerprints.
    """

    asked: Range
    fingerprints: Fingerprints | None
    again: Sequence[Range] = ()
    last: int = NOTHING


def read_fingerprints(keys: Sequence[Any]) -> Fingerprints:
    """Return *keys*, signed copies or hex digits, as fingerprints; raise TableError unless each has 16 of these."""
    if keys and not isinstance(keys[0], str):
        return np.asarray(keys, np.int64).view(np.uint64)
    joined = "".join(keys)
    if joined.strip("0123456789abcdef") or set(map(len, keys)) - {DIGITS}:
        wrong = (digits for digits in keys if len(digits) != DIGITS or digits.strip("0123456789abcdef"))
        raise TableError("fingerprint", next(wrong)[:MESSAGE_CHARACTERS])
    return np.frombuffer(bytes.fromhex(joined), ">u8").astype(np.uint64)


class IndexTable(FingerprintTable):
    """
    The fingerprints of the documents of *scope* that a search can show, and perhaps some that are gone.
    Cost: one search for each 50,000 documents at first; of a table that is kept current, later one, with what is new,
    for each shard that was written to.
    """

    def __init__(self, scope: Scope, most_bytes: int) -> None:
        super().__init__(scope.max_distance)
        self.scope = scope
        self._fields = Fields(scope.context.prefix)
        self._most_bytes = most_bytes
        # Scripts may read the signed copies, and so does this: numbers take the server less time.
        self._by_number = scope.settings.allows_scripts
        self._by_script = True
        self._readings: dict[Shard, ShardReading] = {}
        # How many operations of the caller came after all that is certain, by index; None if that is not known.
        self._written: Counter[str] | None = None
        self._positions = Positions(scope.index)
        self._view: View | None = None

    async def open(self, server: Port) -> None:
        """Read the fingerprints of a point in time and keep it open; SettingsChanged if settings have changed."""
        scope, started = self.scope, self.scope.context.clock()
        self._by_number = False  # digits that cannot be read are noticed
        try:
            self._view = await open_view(server.patient, scope.index, KEEP_ALIVE_SECONDS, scope.routing)
            if self._view is None:  # where a shard is missing, Elasticsearch opens none
                await check_shards(server, scope.index)
                self._view = await open_view(server.patient, scope.index, KEEP_ALIVE_SECONDS, scope.routing)
        except Exception as error:
            raise as_fault(error, "view") from error
        if self._view is None:
            raise TableError("view")
        if self._view.gaps:
            raise TableError("answer", str(next(iter(self._view.gaps))))
        await confirm(server, scope.index, settings=scope.settings, since=started)
        counts = {
            "documents": {"value_count": {"field": self._fields.fingerprint}},
            "last": {"max": {"field": "_seq_no"}},
        }
        found = (await self._search(server, self._body({"match_all": {}}, counts)))["aggregations"]
        last = found["last"].get("value")
        self._readings = {EVERYWHERE: ShardReading(Position(NOTHING, NOTHING if last is None else int(last)))}
        await self._read_all(server, int(found["documents"]["value"]))

    async def hits(self, server: Port, body: Mapping[str, Any]) -> Hits | None:
        """Return all hits of *body* in the point in time; ``None`` if they may not fit in its ``size``."""
        hits: Hits = (await self._search(server, body))["hits"]["hits"]
        return hits if len(hits) < body["size"] else None

    async def _search(self, server: Port, body: Mapping[str, Any]) -> Any:
        """Return the whole answer to *body* in the point in time."""
        if (view := self._view) is None:
            raise TableError("view")
        answer: Any = await server.until(
            lambda: attempt(server.send(view.call(body))), _is_settled, attempts=NO_SHARD.attempts
        )
        refusal = _refusal(answer)
        if VIEW_ENDED.meets(refusal):
            raise TableError("expired")
        if isinstance(refusal, Exception):
            raise as_fault(refusal, "search") from refusal
        if refusal:
            raise TableError("answer", str(refusal[0]))
        view.note(answer)
        return answer

    async def close(self, server: Port) -> None:
        """Give the point in time back."""
        view, self._view = self._view, None
        if view is not None:
            await close_view(server, view)

    async def catch_up(self, server: Port, *, documents: int) -> None:
        """
        Refresh the index and read what was not read yet, shard by shard; nothing of the caller is being written
        meanwhile. *documents*: about how many have fingerprints.
        """
        self._written = None
        await self._take_positions(server)
        await refresh(server, self.scope.index)
        for reading in self._readings.values():
            reading.note_refresh()
        await self._read_all(server, documents)
        self._written = None if any(reading.is_behind for reading in self._readings.values()) else Counter()

    def note_written(self, written: Mapping[str, int]) -> None:
        """
        Note how many operations the caller has *written* to each index since the last request for positions.
        Until the table has caught up, the caller must know of these documents itself: they are not read.
        """
        if self._written is not None:
            self._written.update(written)

    async def read_news(self, server: Port) -> Fingerprints:
        """
        Read what others wrote, and return the fingerprints shown; nothing of the caller is being written meanwhile.
        A lookup of known fingerprints that was answered before lacks no document but those of these fingerprints: one
        that was not shown then, because it was written again, is shown now.
        """
        if EVERYWHERE in self._readings:  # nothing is written to a point in time
            return np.empty(0, np.uint64)
        known = set(self._readings)
        await self._take_positions(server)
        if self._readings.keys() != known:
            self._written = None
        if self._written is not None:
            # These were numbered after all that is certain, so if there are as many numbers, nobody else wrote.
            numbers = Counter[str]()
            for shard, reading in self._readings.items():
                numbers[shard.index] += reading.latest.largest - reading.certain
            if numbers == self._written:
                return np.empty(0, np.uint64)
            self._written = None
        behind = [(shard, reading) for shard, reading in self._readings.items() if reading.is_behind]
        shown = await self._read(server, [Range(shard, reading.certain + 1) for shard, reading in behind])
        return np.concatenate([np.empty(0, np.uint64), *shown])

    async def _take_positions(self, server: Port) -> None:
        """Note where each shard is; begin with shards that are new, and forget those that are gone."""
        try:
            positions = await self._positions.read(server)
        except PositionsError as error:
            raise TableError(error.kind) from error
        except Exception as error:
            raise as_fault(error, "statistics") from error
        self._readings = {
            shard: self._readings.get(shard) or ShardReading(position) for shard, position in positions.items()
        }
        for shard, position in positions.items():
            self._readings[shard].note(position)

    async def _read_all(self, server: Port, documents: int) -> None:
        """Read all that was not read yet, where about so many *documents* have fingerprints."""
        if (needed := bytes_for(documents, self._max_distance)) > self._most_bytes:
            within = count(self._max_distance, "bit")
            raise TableError("memory", f"{documents:,} within {within} take {needed:,} of {self._most_bytes:,} bytes")
        operations = sum(reading.latest.largest + 1 for reading in self._readings.values())
        share = operations / max(1, documents)  # below 1, several documents have one number
        await self._read(server, self._unread(max(1, int(PAGE * (share * FILLED if share < 1 else share // 1)))))
        if documents > 1 and operations and not len(self):  # as where a user may not see the field of the numbers
            raise TableError("numbers", f"none of {documents:,} documents was shown")

    def _unread(self, width: int) -> list[Range]:
        """Return ranges, about so wide, that together cover all operations that may not have been read."""
        found = []
        for shard, reading in self._readings.items():
            if reading.is_behind:
                firsts = range(reading.certain + 1, reading.latest.largest + 1, width)
                found += [Range(shard, first, first + width - 1) for first in firsts[:-1]]
                found.append(Range(shard, firsts[-1]))
        return found

    async def _read(self, server: Port, ranges: Iterable[Range]) -> list[Fingerprints]:
        """Search *ranges*, a few at once, and return what was shown."""
        pages: list[Page] = []

        async def read(ranges: Sequence[Range]) -> Sequence[Range]:
            """Return the ranges without an answer."""
            waiting, refused = deque(ranges), list[Range]()
            while waiting:
                asked = [waiting.popleft() for _ in range(min(SEARCHES, len(waiting)))]
                answers = await server.together(list(map(self._call, asked)), concurrency=SEARCHES)
                taken = await server.compute(self._take, asked, answers)
                for page in taken:
                    (refused if page.fingerprints is None else waiting).extend(page.again)
                pages.extend(taken)
            return refused

        if await rounds(server, list(ranges), read):
            raise TableError("answer")
        self._advance(pages)
        return [page.fingerprints for page in pages if page.fingerprints is not None]

    def _call(self, wanted: Range) -> Call:
        fields = self._fields
        numbers = {"gte": wanted.first} | ({} if wanted.last is None else {"lte": wanted.last})
        field, odd = (fields.value, "not_numbers") if self._by_number else (fields.fingerprint, "broken")
        shown: dict[str, Any] = {"scripted_metric": {**LISTING, "params": {"field": field, "most": PAGE}}}
        if not self._by_script:
            # The default order, by count, takes the server twice as long.
            terms = {"field": field, "size": PAGE, "order": {"_key": "asc"}}
            shown = {"terms": terms if self._by_number else {**terms, "execution_hint": "map"}}
        others = [{"exists": {"field": name}} for name in (*fields.blocks, fields.fingerprint)]
        is_odd = {"must_not": {"exists": {"field": field}}, "should": others, "minimum_should_match": 1}
        aggregations = {
            "fingerprints": shown,
            "last": {"max": {"field": "_seq_no"}},
            odd: {"filter": {"bool": is_odd}},
        }
        body = self._body({"range": {"_seq_no": numbers}}, aggregations)
        if self._view is not None:
            arguments = dict(self._view.call(body).arguments)
        else:
            arguments = {"index": wanted.shard.index, "preference": f"_shards:{wanted.shard.number}", "body": body}
        return Call("search", arguments if self._by_script else {**arguments, "filter_path": COUNTS})

    def _body(self, query: Mapping[str, Any], aggregations: Mapping[str, Any]) -> dict[str, Any]:
        """Return the body of a search without hits for what matches *query*, and the filter in a point in time."""
        among = [query, *check_filter(self.scope.options.filter)]
        more = {"aggs": aggregations} if aggregations else {}
        return {"size": 0, "_source": False, "query": {"bool": {"filter": among}}, "track_total_hits": False, **more}

    def _take(self, asked: Sequence[Range], answers: Sequence[Any]) -> list[Page]:
        """Put the fingerprints of the *answers* to the searches of the ranges *asked* into the table."""
        by_script = self._by_script
        pages = [self._page(part, answer, by_script=by_script) for part, answer in zip(asked, answers, strict=True)]
        for page in pages:
            if page.fingerprints is not None:
                self.add(page.fingerprints)
        if self.nbytes > self._most_bytes:
            raise TableError("memory", f"{self.nbytes:,} bytes for {len(self):,} fingerprints")
        return pages

    def _page(self, asked: Range, answer: Any, *, by_script: bool) -> Page:
        refusal = _refusal(answer)
        if self._view is not None and VIEW_ENDED.meets(refusal):
            raise TableError("expired")
        if by_script and NO_SCRIPT.meets(refusal):
            self._by_script = False
            return Page(asked, np.empty(0, np.uint64), again=[asked])
        # A shard whose index is gone has no position the next time.
        if isinstance(refusal, Exception) and not is_passing(refusal) and status_of(refusal) != GONE:
            raise as_fault(refusal, "numbers")
        if refusal:
            return Page(asked, None, again=[asked])
        if self._view is not None:
            self._view.note(answer)
        found = answer["aggregations"]
        if "not_numbers" in found and found["not_numbers"]["doc_count"]:
            self._by_number = False
            return Page(asked, np.empty(0, np.uint64), again=[asked])
        if "broken" in found and found["broken"]["doc_count"]:
            raise TableError("fingerprint")
        shown, last = found["fingerprints"], found["last"].get("value")
        last = NOTHING if last is None else int(last)
        keys = [key for part in shown.get("value", ()) for key in part or ()]
        keys += [bucket["key"] for bucket in shown.get("buckets", ())]  # left out where it is empty and filtered
        is_full = len(keys) > PAGE or shown.get("sum_other_doc_count")
        return Page(asked, read_fingerprints(keys), asked.halves(last) if is_full else (), last)

    def _advance(self, pages: Iterable[Page]) -> None:
        """Note how far each shard was read, all of whose operations *pages* have shown."""
        whole: dict[Shard, list[Page]] = {}
        for page in pages:
            if not page.again:
                whole.setdefault(page.asked.shard, []).append(page)
        for shard, shown in whole.items():
            if (known := self._readings.get(shard)) is not None:
                first, *others = shown
                # Several searches may have been made in views of the index that differ.
                is_one = not others and first.asked.last is None and first.asked.first <= known.certain + 1
                known.advance(first.last if is_one else None)


def _refusal(answer: Any) -> Exception | list[Gap]:
    """Return the exception of a request, or why its answer is not whole."""
    # OpenSearch says of aggregations that they were terminated early.
    return answer if isinstance(answer, Exception) else find_gaps(answer, ignore=["terminated_early"])


def _is_settled(answer: Any) -> bool:
    """Return whether the same search would have no better answer in a moment."""
    refusal = _refusal(answer)
    is_lasting = isinstance(refusal, Exception) and not is_passing(refusal)
    return not refusal or is_lasting or VIEW_ENDED.meets(refusal)


class TableLookups:
    """The lookups of one call that a table answers; *total* is ``None`` if their number is not known."""

    def __init__(self, request: LookupRequest, total: int | None) -> None:
        self._request = request
        self._is_wanted = request.lookups != "server"
        self._total = total
        self._asked = 0
        self._table: IndexTable | None = None

    @property
    def is_loaded(self) -> bool:
        return self._table is not None

    async def ask(self, server: Port, scope: Scope, fingerprints: Sequence[int]) -> dict[int, NearDups]:
        """
        Return the answers for *fingerprints*, without those that the server must be asked for.
        The table is read if that pays now, or if the caller demands it. If it cannot be read, that is an error only if
        the caller demands it; else the server is asked from then on. SettingsChanged is raised in any case.
        """
        pays_now = self._request.lookups == "memory" or self._pays(scope)
        self._asked += len(fingerprints)
        if self._table is not None and _nothing_for(self._table.scope) != _nothing_for(scope):
            await self.close(server)  # the index was created again with another scheme, for example
        # A caller may take long between two batches, or an index was made anew: then all is read once more.
        for is_last in (False, True):
            try:
                if self._table is None and self._is_wanted and (pays_now or is_last):
                    await self._load(server, scope)
                return {} if self._table is None else await _answers(server, self._table, scope, fingerprints)
            except BaseException as error:
                await self.close(server)
                if not isinstance(error, TableError):
                    raise
                if error.kind != "expired" or is_last:
                    self._give_up(scope, error)
                    break
        return {}

    def _pays(self, scope: Scope) -> bool:
        lookups = self._asked if self._total is None else self._total - self._asked
        documents = scope.stats.documents
        return not scope.context.is_plain and pays(lookups, milliseconds=scope.milliseconds, documents=documents)

    async def _load(self, server: Port, scope: Scope) -> None:
        self._table = IndexTable(scope, self._request.most_bytes)
        await self._table.open(server)
        logger.info("lookups in %s: %d fingerprints are in memory", scope.index, len(self._table))

    def _give_up(self, scope: Scope, error: TableError) -> None:
        """Ask the server from now on."""
        if self._request.lookups == "memory" and not error.is_of_document:
            raise error.for_caller(scope.index) from error
        logger.info("lookups in %s: the server is asked about every text: %s", scope.index, error)
        self._is_wanted = False

    async def close(self, server: Port) -> None:
        """Give back what the server keeps."""
        table, self._table = self._table, None
        if table is not None:
            await table.close(server)


def _nothing_for(scope: Scope) -> NearDups:
    """Return the answer of a lookup that finds nothing; its plan says that all fingerprints were compared."""
    plan = LookupPlan(scope.max_distance)
    return NearDups(scheme=scope.settings.scheme, max_distance=scope.max_distance, plan=plan)


async def _answers(server: Port, table: IndexTable, scope: Scope, fingerprints: Sequence[int]) -> dict[int, NearDups]:
    near: Near = await server.compute(table.near, fingerprints)
    nothing, sizes = _nothing_for(scope), scope.options.sizes
    answers = {wanted: nothing for wanted in fingerprints if wanted not in near}
    waiting = deque(_groups(near, sizes.fingerprints))
    while waiting:
        group = waiting.popleft()
        known = {fingerprint for wanted in group for fingerprint in near[wanted]}
        hits = await table.hits(server, scope.fingerprints_body(known, page=sizes.largest_page))
        if hits is not None:
            answers |= await server.compute(_read, scope, {wanted: near[wanted] for wanted in group}, hits, nothing)
        elif len(group) > 1:
            waiting += (group[: len(group) // 2], group[len(group) // 2 :])
    return answers


def _groups(near: Near, most: int) -> Iterator[list[int]]:
    """Yield those that have something *near*, in groups with at most so many near fingerprints; not what has more."""
    group: list[int] = []
    number = 0
    for wanted, known in near.items():
        if len(known) > most:
            continue
        if number + len(known) > most:
            yield group
            group, number = [], 0
        group.append(wanted)
        number += len(known)
    if group:
        yield group


def _read(scope: Scope, near: Near, hits: Hits, nothing: NearDups) -> dict[int, NearDups]:
    """Return the answers for the fingerprints of *near*, whose documents are all among *hits*."""
    found_by = by_fingerprint(hits, scope.fingerprint_field)
    answers = {}
    for wanted, known in near.items():
        some = [hit for fingerprint in known for hit in found_by.get(fingerprint, ())]
        size, prefix = scope.nearest, scope.context.prefix
        found = rescore(some, wanted, max_distance=nothing.max_distance, prefix=prefix, size=size)
        answers[wanted] = replace(nothing, items=tuple(found), candidates=len(some))
    return answers
