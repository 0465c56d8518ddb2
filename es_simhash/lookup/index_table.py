"""
The table of the fingerprints of an index, and many lookups by it.

It is read by the numbers of operations. In a point in time nothing changes: a search there for documents with exactly
the near fingerprints of the table misses none. Shard by shard it is kept current: what was written since is read.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from es_simhash.errors import count
from es_simhash.lookup.find import Scope
from es_simhash.lookup.fingerprint_table import Fingerprints, FingerprintTable, Near, bytes_for
from es_simhash.lookup.lookup_options import MESSAGE_CHARACTERS, LookupRequest, TableError, TableFault, as_fault, pays
from es_simhash.lookup.near_dups import NearDups, by_fingerprint, rescore
from es_simhash.lookup.plan import LookupPlan
from es_simhash.lookup.query import check_filter
from es_simhash.mapping.fields import Fields, read_fingerprint
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import confirm
from es_simhash.mapping.shards import NOTHING, Position, Positions, PositionsError, Shard, ShardReading
from es_simhash.transport.answers import Gap, find_gaps
from es_simhash.transport.conversation import attempt, check_shards, refresh
from es_simhash.transport.pages import KEEP_ALIVE_SECONDS, Hits, View, close_view, open_view
from es_simhash.transport.protocol import Call, status_of
from es_simhash.transport.refusals import ATTEMPTS, NO_SCRIPT, NO_SHARD, VIEW_ENDED, Refusal, is_passing

logger = logging.getLogger("es_simhash")

# Fingerprints that one search returns.
PAGE = 50_000
# Ranges of operations are planned for so much of a page: some have more.
FILLED = 0.9
GONE = 404
# Lists what documents have, of each part of an index, unsorted: a third of the work of buckets.
LISTING = {
    "init_script": "state.shown = [];",
    "map_script": "if (state.shown.size() <= params.most) { state.shown.addAll(doc[params.field]); }",
    "combine_script": "return state.shown;",
    "reduce_script": "return states;",
}
# Stands for all shards of a point in time.
EVERYWHERE = Shard("", "", 0)


def read_fingerprints(keys: Sequence[Any]) -> Fingerprints:
    """Return *keys*, signed copies or hex digits, as fingerprints; raise TableError unless each has 16 of these."""
    if keys and not isinstance(keys[0], str):
        return np.asarray(keys, np.int64).view(np.uint64)
    values = list(map(read_fingerprint, keys))
    if None in values:
        raise TableError("fingerprint", keys[values.index(None)][:MESSAGE_CHARACTERS])
    return np.array(values, np.uint64)


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
        answer = await self._ask(server, EVERYWHERE, self._body({"match_all": {}}, counts))
        found = self._whole(answer, "search")["aggregations"]
        last = found["last"].get("value")
        self._readings = {EVERYWHERE: ShardReading(Position(NOTHING, NOTHING if last is None else int(last)))}
        await self._read_all(server, int(found["documents"]["value"]))

    async def hits(self, server: Port, body: Mapping[str, Any]) -> Hits | None:
        """Return all hits of *body* in the point in time; ``None`` if they may not fit in its ``size``."""
        hits: Hits = self._whole(await self._ask(server, EVERYWHERE, body), "search")["hits"]["hits"]
        return hits if len(hits) < body["size"] else None

    async def _ask(self, server: Port, shard: Shard, body: Mapping[str, Any]) -> Any:
        """Return the answer to *body*, of *shard* or in the point in time, or the exception that it failed with."""
        by_shard = {"index": shard.index, "preference": f"_shards:{shard.number}", "body": body}
        call = Call("search", by_shard) if self._view is None else self._view.call(body)

        def is_settled(answer: Any) -> bool:
            refusal = _refusal(answer)
            is_passing_now = is_passing(refusal) if isinstance(refusal, Exception) else bool(refusal)
            return not is_passing_now or self._is_over(refusal)

        attempts = ATTEMPTS if self._view is None else NO_SHARD.attempts
        return await server.until(lambda: attempt(server.send(call)), is_settled, attempts=attempts)

    def _is_over(self, refusal: Refusal) -> bool:
        """Return whether a *refusal* says that the point in time has ended."""
        return self._view is not None and VIEW_ENDED.meets(refusal)

    def _whole(self, answer: Any, kind: TableFault) -> Any:
        """Return *answer* if it is whole; raise TableError, of *kind* where it was refused."""
        refusal = _refusal(answer)
        if self._is_over(refusal):
            raise TableError("expired")
        if isinstance(refusal, Exception):
            # A shard whose index is gone has no position the next time.
            is_gone = self._view is None and status_of(refusal) == GONE
            raise TableError("answer") if is_gone else as_fault(refusal, kind)
        if refusal:
            raise TableError("answer", str(refusal[0]))
        if self._view is not None:
            self._view.note(answer)
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
        shown = [await self._read(server, shard) for shard in self._readings]
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
        for shard in self._readings:
            # Documents of several shards of a point in time may have one number.
            await self._read(server, shard, width=max(1, int(PAGE * FILLED * operations / max(1, documents))))
        if documents > 1 and operations and not len(self):  # as where a user may not see the field of the numbers
            raise TableError("numbers", f"none of {documents:,} documents was shown")

    async def _read(self, server: Port, shard: Shard, *, width: int | None = None) -> Fingerprints:
        """Read the operations of *shard* that may be new, about *width* at a time, and return what was shown."""
        reading, shown = self._readings[shard], [np.empty(0, np.uint64)]
        first, largest, last = reading.certain + 1, reading.latest.largest, NOTHING
        while first <= largest:
            end = None if width is None or first + width > largest else first + width - 1
            answer = await self._ask(server, shard, self._listing(first, end))
            if self._by_script and NO_SCRIPT.meets(_refusal(answer)):
                self._by_script = False
                continue
            found = self._whole(answer, "numbers")["aggregations"]
            if found["odd"]["doc_count"]:
                if not self._by_number:
                    raise TableError("fingerprint")
                self._by_number = False
                continue
            last = int(found["last"].get("value") or NOTHING)
            keys = [key for part in found["fingerprints"].get("value", ()) for key in part or ()]
            keys += [bucket["key"] for bucket in found["fingerprints"].get("buckets", ())]
            if len(keys) > PAGE or found["fingerprints"].get("sum_other_doc_count"):
                largest = max(largest, last)
                width = max(1, min(width or largest, largest - first) // 2)
                continue
            shown.append(await server.compute(self._take, keys))
            first = largest + 1 if end is None else end + 1
        # Several searches may have been made in views of the index that differ.
        reading.advance(last if len(shown) == 2 else None)
        return np.concatenate(shown)

    def _take(self, keys: Sequence[Any]) -> Fingerprints:
        """Put the fingerprints that *keys* are into the table, and return them."""
        fingerprints = read_fingerprints(keys)
        self.add(fingerprints)
        if self.nbytes > self._most_bytes:
            raise TableError("memory", f"{self.nbytes:,} bytes for {len(self):,} fingerprints")
        return fingerprints

    def _listing(self, first: int, last: int | None) -> dict[str, Any]:
        """Return the body of a search that lists the fingerprints of operations from *first* to *last*."""
        fields = self._fields
        field = fields.value if self._by_number else fields.fingerprint
        shown: dict[str, Any] = {"scripted_metric": {**LISTING, "params": {"field": field, "most": PAGE}}}
        if not self._by_script:
            # The default order, by count, takes the server twice as long.
            shown = {"terms": {"field": field, "size": PAGE, "order": {"_key": "asc"}, "execution_hint": "map"}}
        others = [{"exists": {"field": name}} for name in (*fields.blocks, fields.fingerprint)]
        is_odd = {"must_not": {"exists": {"field": field}}, "should": others, "minimum_should_match": 1}
        aggregations = {
            "fingerprints": shown,
            "last": {"max": {"field": "_seq_no"}},
            "odd": {"filter": {"bool": is_odd}},
        }
        numbers = {"gte": first} | ({} if last is None else {"lte": last})
        return self._body({"range": {"_seq_no": numbers}}, aggregations)

    def _body(self, query: Mapping[str, Any], aggregations: Mapping[str, Any]) -> dict[str, Any]:
        """Return the body of a search without hits for what matches *query*, and the filter in a point in time."""
        among = [query, *check_filter(self.scope.options.filter)]
        plain = {"size": 0, "_source": False, "track_total_hits": False}
        return {**plain, "query": {"bool": {"filter": among}}, "aggs": aggregations}


def _refusal(answer: Any) -> Exception | list[Gap]:
    """Return the exception of a request, or why its answer is not whole."""
    # OpenSearch says of aggregations that they were terminated early.
    return answer if isinstance(answer, Exception) else find_gaps(answer, ignore=["terminated_early"])


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
        if self._table is not None and self._table.scope.nothing != scope.nothing:
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


async def _answers(server: Port, table: IndexTable, scope: Scope, fingerprints: Sequence[int]) -> dict[int, NearDups]:
    near: Near = await server.compute(table.near, fingerprints)
    sizes = scope.options.sizes
    nothing = replace(scope.nothing, plan=LookupPlan(scope.max_distance))  # all fingerprints were compared
    answers = {wanted: nothing for wanted in fingerprints if wanted not in near}
    waiting = [list(near)] if near else []
    while waiting:
        group = waiting.pop()
        known = {fingerprint for wanted in group for fingerprint in near[wanted]}
        hits = None
        if len(known) <= sizes.fingerprints:
            hits = await table.hits(server, scope.fingerprints_body(known, page=sizes.largest_page))
        if hits is not None:
            answers |= await server.compute(_read, scope, {wanted: near[wanted] for wanted in group}, hits, nothing)
        elif len(group) > 1:
            waiting += (group[: len(group) // 2], group[len(group) // 2 :])
    return answers


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
