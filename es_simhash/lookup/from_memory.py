"""
Many lookups by the fingerprints of one point in time: when that pays, and the answer of each.

Nothing must be kept current: a lookup in the same point in time, for documents with exactly the fingerprints of
the table, misses none, whatever is written meanwhile.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from es_simhash.errors import IncompleteSearchError
from es_simhash.hashing import to_hex
from es_simhash.lookup import memory_operations as reading
from es_simhash.lookup.find import Scope
from es_simhash.lookup.lookup_options import LookupRequest, ResidentError, as_fault, pays
from es_simhash.lookup.near_dups import NearDups, by_fingerprint, rescore
from es_simhash.lookup.plan import make_plan
from es_simhash.lookup.query import check_filter
from es_simhash.mapping.context import IndexStats
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import confirm
from es_simhash.transport.answers import find_gaps
from es_simhash.transport.conversation import Patience, check_shards
from es_simhash.transport.pages import KEEP_ALIVE_SECONDS, Hits, View, close_view, open_view
from es_simhash.transport.refusals import NO_SHARD, VIEW_ENDED, is_passing

if TYPE_CHECKING:
    from es_simhash.lookup.memory_table import Near

FINGERPRINTS = 1 << 64
# Ranges are planned for so much of a page: there may be more in one than in another.
FILLED = 0.9
# A point in time that was not searched for so much of its life is searched for nothing.
UNUSED = 0.25


@dataclass(frozen=True, slots=True)
class Span:
    """Fingerprints of a range as hex digits, after *after* and up to *last*; ``None`` where it has no such end."""

    after: str | None = None
    last: str | None = None

    def query(self, name: str) -> dict[str, Any]:
        """Return the query of documents that have one of them in the field *name*."""
        bounds = {key: digits for key, digits in (("gt", self.after), ("lte", self.last)) if digits is not None}
        return {"range": {name: bounds}} if bounds else {"exists": {"field": name}}


def spans(documents: int) -> list[Span]:
    """Return ranges that together have all fingerprints, and each so few that they fit on a page if evenly spread."""
    count = max(1, int(documents / (FILLED * reading.PAGE)) + 1)
    ends = [to_hex(FINGERPRINTS * number // count) for number in range(1, count)]
    return [Span(*each) for each in zip([None, *ends], [*ends, None], strict=True)]


def _is_settled(answer: Mapping[str, Any]) -> bool:
    """Return whether the same search would have no better answer in a moment."""
    gaps = find_gaps(answer)
    return not gaps or VIEW_ENDED.meets(gaps)


class Snapshot:
    """
    The fingerprints of the documents of an index, as they were at one point in time.
    Cost: one search for each 45,000 documents.
    """

    def __init__(self, subject: Scope, request: LookupRequest) -> None:
        from es_simhash.lookup.memory_table import FingerprintTable  # noqa: PLC0415 -- loads numpy

        self._subject = subject
        self._fields = Fields(subject.context.prefix)
        self._request = request
        self._filter = check_filter(subject.options.filter)
        self._table = FingerprintTable(subject.max_distance)
        self._view: View | None = None
        self._used = 0.0

    def __len__(self) -> int:
        return len(self._table)

    def near(self, fingerprints: Sequence[int]) -> Near:
        return self._table.near(reading.as_array(fingerprints))

    async def load(self, server: Port) -> None:
        """Open the point in time and read all fingerprints; raise SettingsChanged if the settings have changed."""
        subject, index = self._subject, self._subject.index
        started = subject.context.clock()
        try:
            self._view = await open_view(server, index, KEEP_ALIVE_SECONDS, subject.routing)
            if self._view is None:  # where a shard is missing, Elasticsearch opens none
                await check_shards(server, index)
                self._view = await open_view(server, index, KEEP_ALIVE_SECONDS, subject.routing)
        except IncompleteSearchError as error:
            raise ResidentError("answer", error.reasons[0]) from error
        except Exception as error:
            raise as_fault(error, "answer" if is_passing(error) else "view") from error
        if self._view is None:
            raise ResidentError("view")
        if self._view.gaps:
            raise ResidentError("answer", str(next(iter(self._view.gaps))))
        since = subject.context.clock() - started
        await confirm(server, index, settings=subject.settings, after_seconds=since)
        documents = await self._count(server, self._view)
        reading.check_fits(documents, subject.max_distance, self._request.most_bytes)
        await self._read(server, self._view, spans(documents))

    async def _count(self, server: Port, view: View) -> int:
        """Return how many documents have a fingerprint; refuse those that have only block terms."""
        name = self._fields.fingerprint
        answer = await self._search(server, view, self._body({"exists": {"field": name}}, track_total_hits=True))
        broken = await self._search(server, view, self._body(reading.broken_query(self._fields), size=1))
        if broken["hits"]["hits"]:
            raise ResidentError("fingerprint")
        return int(answer["hits"]["total"]["value"])

    def _body(self, query: Mapping[str, Any], *, size: int = 0, **more: Any) -> dict[str, Any]:
        body = {"size": size, "_source": False, "query": {"bool": {"filter": [query, *self._filter]}}}
        return {"track_total_hits": False, **body, **more}

    async def _read(self, server: Port, view: View, wanted: Sequence[Span]) -> None:
        """Read the fingerprints of *wanted*."""
        name = self._fields.fingerprint
        terms = {"fingerprints": reading.fingerprint_terms(name)}
        await reading.read_ranges(
            server,
            wanted,
            calls=lambda some: [view.call(self._body(each.query(name), aggs=terms)) for each in some],
            take=lambda some, answers: self._take(view, some, answers),
            patience=Patience(NO_SHARD.attempts),
        )
        self._used = self._subject.context.clock()

    def _take(self, view: View, asked: Sequence[Span], answers: Sequence[Any]) -> list[reading.Page[Span]]:
        """Put the fingerprints of the *answers* to the searches of the ranges *asked* into the table."""
        pages = [self._page(view, each, answer) for each, answer in zip(asked, answers, strict=True)]
        reading.check_memory(self._table, self._request.most_bytes)
        return pages

    def _page(self, view: View, asked: Span, answer: Any) -> reading.Page[Span]:
        if VIEW_ENDED.meets(answer if isinstance(answer, Exception) else find_gaps(answer)):
            raise ResidentError("expired")
        if isinstance(answer, Exception) and not is_passing(answer):
            raise as_fault(answer, "search") from answer
        found = None if isinstance(answer, Exception) else reading.read_aggregations(answer, "search")
        if found is None:
            return reading.Page(asked, again=[asked], is_refused=True)
        view.note(answer)
        values = reading.read_fingerprints(buckets := found["fingerprints"]["buckets"])
        self._table.add(values)
        # The smallest come first, so that all of the range up to the last one are there.
        rest = [Span(buckets[-1]["key"], asked.last)] if len(buckets) >= reading.PAGE else []
        return reading.Page(asked, values, rest)

    async def hits(self, server: Port, body: Mapping[str, Any]) -> Hits | None:
        """Return all hits of *body* in the point in time; ``None`` if they may not fit in its ``size``."""
        if self._view is None:
            raise ResidentError("view")
        hits: Hits = (await self._search(server, self._view, body))["hits"]["hits"]
        return hits if len(hits) < body["size"] else None

    async def keep(self, server: Port) -> None:
        """Search for nothing if the point in time would end otherwise, because nothing near was found for long."""
        if self._view is not None and self._subject.context.clock() - self._used > UNUSED * KEEP_ALIVE_SECONDS:
            await self._search(server, self._view, self._body({"match_none": {}}))

    async def _search(self, server: Port, view: View, body: Mapping[str, Any]) -> Any:
        """Return the whole answer to *body*."""

        async def send() -> Any:
            try:
                answer = await server.send(view.call(body))
            except Exception as error:
                if VIEW_ENDED.meets(error):
                    raise ResidentError("expired") from error
                raise
            view.note(answer)
            return answer

        try:
            answer = await server.until(send, _is_settled, attempts=NO_SHARD.attempts)
        except Exception as error:
            if isinstance(error, ResidentError):
                raise
            raise as_fault(error, "answer" if is_passing(error) else "search") from error
        self._used = self._subject.context.clock()
        gaps = find_gaps(answer)
        if gaps:
            raise ResidentError("expired" if VIEW_ENDED.meets(gaps) else "answer", str(gaps[0]))
        return answer

    async def close(self, server: Port) -> None:
        """Give the point in time back."""
        view, self._view = self._view, None
        if view is not None:
            await close_view(server, view)


logger = logging.getLogger("es_simhash")


class MemoryLookups:
    """The lookups of one call that are answered from memory; *total* is ``None`` if their number is not known."""

    def __init__(self, request: LookupRequest, total: int | None) -> None:
        self._request = request
        self._is_wanted = request.lookups != "server"
        self._total = total
        self._asked = 0
        self._snapshot: Snapshot | None = None
        self._nothing: NearDups | None = None

    @property
    def is_loaded(self) -> bool:
        return self._snapshot is not None

    async def prepare(self, server: Port, subject: Scope) -> None:
        """
        Read the fingerprints of *subject* if that pays now, or if the caller demands it.
        If they cannot be read, that is an error only if the caller demands it; else the server is asked from then on.
        SettingsChanged is raised in any case.
        """
        if self._nothing is not None and self._nothing != _nothing_for(subject):
            await self.close(server)  # the index was created again with another scheme, for example
        is_demanded = self._request.lookups == "memory"
        if self._snapshot is None and self._is_wanted and (is_demanded or self._pays(subject)):
            await self._load(server, subject)

    def _pays(self, subject: Scope) -> bool:
        lookups = self._asked if self._total is None else self._total - self._asked
        stats = subject.stats or IndexStats()
        return pays(lookups, milliseconds=subject.milliseconds, documents=stats.documents)

    async def _load(self, server: Port, subject: Scope, *, is_last: bool = False) -> None:
        snapshot = Snapshot(subject, self._request)
        try:
            await snapshot.load(server)
        except BaseException as error:
            await snapshot.close(server)
            if not isinstance(error, ResidentError):
                raise
            if error.kind == "expired" and not is_last:
                await self._load(server, subject, is_last=True)  # an index was made anew while it was read
            else:
                self._give_up(subject, error)
        else:
            logger.info("lookups in %s: %d fingerprints are in memory", subject.index, len(snapshot))
            self._snapshot, self._nothing = snapshot, _nothing_for(subject)

    def _give_up(self, subject: Scope, error: ResidentError) -> None:
        """Ask the server from now on."""
        if self._request.lookups == "memory" and not error.is_of_document:
            raise error.for_caller(subject.index) from error
        logger.info("lookups in %s: the server is asked about every text: %s", subject.index, error)
        self._is_wanted = False

    async def ask(self, server: Port, subject: Scope, fingerprints: Sequence[int]) -> dict[int, NearDups]:
        """Return the answers for *fingerprints*, without those that the server must be asked for."""
        self._asked += len(fingerprints)
        for is_last in (False, True):
            if self._snapshot is None or not fingerprints:
                break
            try:
                return await _answers(server, self._snapshot, subject, fingerprints)
            except ResidentError as error:
                await self.close(server)
                if error.kind == "expired" and not is_last:
                    # A caller may take long between two batches, or an index was made anew.
                    await self._load(server, subject)
                else:
                    self._give_up(subject, error)
        return {}

    async def close(self, server: Port) -> None:
        """Give back what the server keeps."""
        snapshot, self._snapshot, self._nothing = self._snapshot, None, None
        if snapshot is not None:
            await snapshot.close(server)


def _nothing_for(subject: Scope) -> NearDups:
    """Return the answer of a lookup that finds nothing; its plan says that all fingerprints were compared."""
    plan = make_plan(subject.max_distance, ())
    return NearDups(scheme=subject.settings.scheme, max_distance=subject.max_distance, plan=plan)


async def _answers(
    server: Port, snapshot: Snapshot, subject: Scope, fingerprints: Sequence[int]
) -> dict[int, NearDups]:
    near: Near = await server.compute(snapshot.near, fingerprints)
    await snapshot.keep(server)
    nothing = _nothing_for(subject)
    answers = dict.fromkeys((each for each in fingerprints if each not in near), nothing)
    waiting = deque(_groups(near, subject.options.sizes.fingerprints))
    while waiting:
        some = waiting.popleft()
        known = {each for one in some for each in near[one]}
        hits = await snapshot.hits(server, subject.fingerprints_body(known, page=subject.options.sizes.largest_page))
        if hits is not None:
            answers |= await server.compute(_read, subject, {one: near[one] for one in some}, hits, nothing)
        elif len(some) > 1:
            waiting += (some[: len(some) // 2], some[len(some) // 2 :])
    return answers


def _groups(near: Near, most: int) -> Iterator[list[int]]:
    """Yield those that have something *near*, in groups with at most so many near fingerprints; not what has more."""
    group: list[int] = []
    count = 0
    for each, known in near.items():
        if not 0 < len(known) <= most:
            continue
        if count + len(known) > most:
            yield group
            group, count = [], 0
        group.append(each)
        count += len(known)
    if group:
        yield group


def _read(subject: Scope, near: Near, hits: Hits, nothing: NearDups) -> dict[int, NearDups]:
    """Return the answers for the fingerprints of *near*, whose documents are all among *hits*."""
    found_by = by_fingerprint(hits, subject.fingerprint_field)
    answers = {}
    for wanted, known in near.items():
        some = [hit for each in known for hit in found_by.get(each, ())]
        size, prefix = subject.nearest, subject.context.prefix
        found = rescore(some, wanted, max_distance=nothing.max_distance, prefix=prefix, size=size)
        answers[wanted] = replace(nothing, items=tuple(found), candidates=len(some))
    return answers
