"""
One lookup: its plan, its searches and its answer. One page, and all pages if that is full; or a stream.

Many candidates are skimmed: only their fingerprints are read first, and then the documents of the near ones.
The expensive part of a hit is its ``_id``: it lies in the stored fields, and unpacking those costs a server
several times what the rest of a hit does. No answer depends on an estimate: a wrong one makes a lookup slower.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from es_simhash.hashing import from_hex, to_hex
from es_simhash.lookup.fetch import FETCH
from es_simhash.lookup.judge import Read
from es_simhash.lookup.lookup_options import (
    LookupOptions,
    check_complete,
    usable_limits,
)
from es_simhash.lookup.near_dups import NearDup, NearDups, hit_fingerprints, rescore
from es_simhash.lookup.plan import (
    SKIMMED_FROM,
    LookupPlan,
    check_plan,
    estimate,
    fits,
    minimum_should_match,
    plan_lookup,
)
from es_simhash.lookup.query import Query, build_body, candidate_clauses
from es_simhash.mapping.context import Context, IndexStats
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.meta import DEFAULT_MAX_DISTANCE, IndexSettings
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import confirming, send_confirmed
from es_simhash.transport.answers import Gap, find_gaps, is_source_refused, is_view_ended
from es_simhash.transport.limits import smaller
from es_simhash.transport.pages import (
    KEEP_ALIVE_SECONDS,
    Hits,
    NoOrder,
    Reading,
    Scroll,
    View,
    read_view,
    viewing,
)
from es_simhash.transport.protocol import Call, Index, document_key, status_of

# Most texts that come with hits, and their characters: more are read by themselves, once they are known to be wanted.
_TEXTS, _CHARACTERS = 300, 4_000_000

# The plan for an index that was not measured suits a large and skewed one. It costs little more in a small one.
ASSUMED = IndexStats(documents=64_000_000, density=8.0)


@dataclass(frozen=True, slots=True)
class Subject:
    """
    The common part of several questions; *stats* are ``None`` if they were not measured.
    *read*: where the texts go that hits bring with them, if few are expected; ``None`` if none are wanted.
    """

    context: Context
    index: Index
    settings: IndexSettings
    stats: IndexStats | None
    options: LookupOptions
    read: Read | None = None

    @property
    def max_distance(self) -> int:
        return DEFAULT_MAX_DISTANCE if self.options.max_distance is None else self.options.max_distance

    @property
    def field(self) -> str:
        return Fields(self.context.prefix).fingerprint

    @property
    def routing(self) -> dict[str, str]:
        return {} if self.options.routing is None else {"routing": self.options.routing}

    @property
    def milliseconds(self) -> float:
        """How long one lookup by block terms is expected to take the server."""
        return estimate(Question(self, 0).plan, self.stats or ASSUMED).milliseconds

    def fingerprints_body(self, fingerprints: Iterable[int], *, page: int, reads_texts: bool = False) -> dict[str, Any]:
        """Return the body of a search for the documents that have one of *fingerprints*, and for no others."""
        clause = {"terms": {self.field: sorted(map(to_hex, fingerprints))}}
        return self.body([clause], page=page, reads_texts=reads_texts)

    def body(self, clauses: Sequence[Query], *, page: int, reads_texts: bool = False) -> dict[str, Any]:
        """Return the body of a search for the documents that match all *clauses*, with at most *page* hits."""
        options = self.options
        body = build_body(clauses, options.filter, options.exclude_ids, self.context.prefix, page, options.source)
        if reads_texts and self.read is not None:
            body["docvalue_fields"] += self.read.rules.docvalue_fields
            body["_source"] = options.source or self.read.rules.text_fields.all
        return body

    @property
    def most_texts(self) -> int:
        """Most hits of a search that bring their texts with them: few, and fewer the longer texts were seen."""
        source = self.options.source
        if self.read is None or not (isinstance(source, bool) or set(self.read.rules.text_fields.all) <= {*source}):
            return 0
        longest = self.context.longest_text(self.index)  # not known before one was read
        return min(_TEXTS, _CHARACTERS // longest) if longest else 0


class Question:
    """
    The question of one lookup, with the plan that the server's known limits allow.
    *known*: all fingerprints within max_distance that documents of the index may have. If given, the documents that
    have one are asked for, not block terms; too many for the server make it ``None``. *page*: most hits of the first
    search. *expected*: candidates by the cost model; 0 if not measured.
    """

    __slots__ = (
        *("expected", "field", "fingerprint", "known", "limits", "max_distance", "page", "plan", "reads_texts"),
        "subject",
    )

    def __init__(self, subject: Subject, fingerprint: int, *, known: Sequence[int] | None = None) -> None:
        self.subject = subject
        self.fingerprint = fingerprint
        self.known = known
        self.field = subject.field
        self.max_distance = subject.max_distance
        self.limits = usable_limits(subject.context, subject.index, subject.settings)
        self._choose_plan()

    def _choose_plan(self) -> None:
        """Choose the plan, within the limits, and with it the size of the first page."""
        sizes, plan, stats = self.subject.options.sizes, self.subject.options.plan, self.subject.stats
        if self.known is not None and not (self.limits.skims and len(self.known) <= self.limits.max_terms):
            self.known = None
        if plan is None:
            plan = plan_lookup(self.max_distance, stats=stats or ASSUMED, limits=self.limits)
        self.plan: LookupPlan = check_plan(plan, self.max_distance)
        hits = 0.0 if self.known is not None else estimate(self.plan, stats or ASSUMED).hits
        self.page = int(min(max(2 * hits, sizes.first_page), sizes.largest_page))
        self.expected = 0.0 if stats is None else hits
        most = self.subject.most_texts
        # A page that is full shows that more were found than that: then they are read without texts.
        self.reads_texts = most > 0 and 2 * hits <= most
        if self.reads_texts:
            self.page = min(self.page, most)

    @property
    def reads_all_at_once(self) -> bool:
        """Whether all pages are read at once, without a first page to try: very many are expected, and skimmed."""
        return self.expected > SKIMMED_FROM and self.limits.skims

    def adapt(self, refusal: BaseException | Mapping[str, Any] | Sequence[Gap]) -> bool:
        """
        Change the plan, or the page, after a refused search; return whether another search is possible.
        *refusal*: the client's exception, the ``error`` of one search of a multi-search, or the gaps of an answer.
        """
        if (page := smaller(self.page, refusal, "hits")) < self.page:
            self.page = page
            return True
        if self.subject.most_texts and is_source_refused(refusal):  # an index keeps none
            self.subject.context.note_text(self.subject.index, _CHARACTERS + 1)
            self._choose_plan()
            return True
        # Another lookup may have learnt meanwhile what this one was refused for.
        limits = self.limits.within(self.subject.context.limits(self.subject.index))
        if limits == self.limits:
            limits = limits.after(refusal, scripted=self.plan.script)
        forced = self.subject.options.plan
        if limits == self.limits or (forced is not None and not fits(forced, limits)):
            return False
        self.limits = limits
        self._choose_plan()
        return True

    def body(self, *, ranked: bool = False) -> dict[str, Any]:
        """Return the search body; the score of a *ranked* one is the number of clauses that a hit matches."""
        body = self.shared_body([self], page=self.page)
        if ranked:
            clauses = body["query"]["bool"]
            clauses["must"] = clauses["filter"].pop(0)
        return body

    def shared_body(self, questions: Sequence[Question], *, page: int) -> dict[str, Any]:
        """Return the body of one search for several *questions* like this one, with its plan."""
        if self.known is not None:
            return self.subject.fingerprints_body(
                {known for each in questions for known in each.known or ()}, page=page
            )
        prefix = self.subject.context.prefix
        clauses = candidate_clauses([each.fingerprint for each in questions], self.plan, prefix=prefix)
        return self.subject.body(clauses, page=page, reads_texts=self.reads_texts)


@dataclass(frozen=True, slots=True)
class NoFingerprint:
    """A candidate that cannot be compared: it has block terms and no fingerprint."""

    index: str
    id: str
    field: str

    def __str__(self) -> str:
        return f"document {self.id!r} of {self.index!r} has block terms but no {self.field}"


class Collector:
    """The near-duplicates of one question among the candidates read so far; only the nearest if a size is given."""

    __slots__ = ("candidates", "found", "gaps", "question")

    def __init__(self, question: Question) -> None:
        self.question = question
        self.found: list[NearDup] = []
        self.candidates = 0
        self.gaps: dict[Gap | NoFingerprint, None] = {}

    def add(self, hits: Hits) -> None:
        """Rescore a page of candidates and keep the near-duplicates among them."""
        field = self.question.field
        broken = [hit for hit in hits if not hit_fingerprints(hit, field)]
        self.gaps |= {NoFingerprint(hit["_index"], hit["_id"], field): None for hit in broken}
        self.candidates += len(hits)
        self.found += self.rescore([hit for hit in hits if hit_fingerprints(hit, field)] if broken else hits)
        size = self.question.subject.options.size
        if size is not None and len(self.found) > size:
            self.found = heapq.nsmallest(size, self.found, key=lambda each: each.order)

    def rescore(self, hits: Iterable[Mapping[str, Any]]) -> list[NearDup]:
        """Return the near-duplicates among *hits*, all of which have a fingerprint."""
        asked, subject = self.question, self.question.subject
        every = list(hits)
        found = rescore(every, asked.fingerprint, max_distance=asked.max_distance, prefix=subject.context.prefix)
        if subject.read is None or not subject.most_texts:
            return found
        near = {each.key for each in found}
        for hit in every:
            if document_key(hit) in near and "_source" in hit:
                subject.read.add(hit)
        return found if subject.options.source else [replace(each, source=None) for each in found]

    def is_settled(self, hits: Hits) -> bool:
        """
        Return whether no candidate after the page *hits* is nearer than what was found.
        The candidates must come in order of clauses matched; if the server does not keep that order: ``False``.
        """
        size = self.question.subject.options.size or 0
        if not hits or len(self.found) < size or hits[-1].get("_score") is None:  # a scroll has no such order
            return False
        matched = round(hits[-1]["_score"])
        worst = max(each.distance for each in self.found)
        # What follows matches no more clauses than the last hit, and a fingerprint at distance d matches at least
        # minimum_should_match(d). Its distance is therefore at least the least d for which that is few enough.
        return all(minimum_should_match(nearer, self.question.plan.radii) > matched for nearer in range(worst))

    def result(self, gaps: Iterable[Gap]) -> NearDups:
        """Return the answer, given the *gaps* of what was read; raise an error for gaps that are not accepted."""
        self.gaps |= dict.fromkeys(gaps)
        question, subject = self.question, self.question.subject
        if not self.gaps:
            # Only now: a search refused because of the caller's filter must not teach limits to other lookups.
            subject.context.learn_limits(subject.index, question.limits)
        found = {each.key: each for each in self.found}
        answer = NearDups(
            tuple(sorted(found.values(), key=lambda each: each.order)[: subject.options.size]),
            complete=not self.gaps,
            scheme=subject.settings.scheme,
            max_distance=question.max_distance,
            plan=question.plan,
            candidates=self.candidates,
            reasons=tuple(map(str, self.gaps)),
        )
        return check_complete(answer, subject.options.on_incomplete)


async def _skim(server: Port, view: View, question: Question, collector: Collector) -> bool:
    """
    Collect, in one *view* of the index, the same as reading all candidates whole; return whether that was possible.
    *collector* receives what was found only at the end, because a view may turn out not to be readable.
    """
    sizes = question.subject.options.sizes
    skim = Skim(question)
    body = question.body() | {"stored_fields": "_none_"}
    del body["_source"]  # a server refuses both together
    # Candidates that did not fit on a first page are more than were expected.
    likely = 2 * question.expected if question.reads_all_at_once else 2 * sizes.first_page
    page = int(min(max(likely + 1, 2 * sizes.first_page), sizes.largest_page))
    async with aclosing(read_view(server, view, body, page=page, likely=likely)) as pages:
        async for hits in pages:
            skim.count(hits)
    parts = skim.parts(question.subject.options.size, min(sizes.fingerprints, question.limits.max_terms))
    found: list[NearDup] = []
    for part in parts:
        page = min(sizes.next_page, part.missing + 1)
        reads_texts = part.documents <= question.subject.most_texts
        body = question.subject.fingerprints_body(part.fingerprints, page=page, reads_texts=reads_texts)
        async with aclosing(read_view(server, view, body, page=page, likely=part.documents)) as pages:
            async for hits in pages:
                if part.take(collector, hits, found):
                    break
    if not skim.is_whole(parts):
        return False
    collector.found, collector.candidates = found, skim.candidates
    return True


@dataclass(slots=True)
class Part:
    """
    Near fingerprints whose documents are asked for together.
    *documents*: how many of the candidates have one of them. *missing*: how many more documents are wanted; below 0,
    more were found than there are candidates. *any_will_do*: fewer are wanted than there are, no matter which.
    """

    fingerprints: frozenset[int]
    documents: int
    missing: int
    any_will_do: bool

    def take(self, collector: Collector, hits: Hits, found: list[NearDup]) -> bool:
        """Put the wanted documents of a page into *found*; return whether that is enough."""
        near = collector.rescore([hit for hit in hits if hit_fingerprints(hit, collector.question.field)])
        wanted = [each for each in near if each.fingerprint in self.fingerprints]
        if self.any_will_do:
            wanted = wanted[: self.missing]
        self.missing -= len(wanted)
        found.extend(wanted)
        return self.any_will_do and not self.missing


class Skim:
    """The near fingerprints among the candidates of a lookup."""

    def __init__(self, question: Question) -> None:
        self.candidates = 0
        self._question = question
        self._near: Counter[int] = Counter()
        self._unreadable = 0

    def count(self, hits: Hits) -> None:
        """Count the near fingerprints of a page of candidates."""
        self.candidates += len(hits)
        for hit in hits:
            digits = hit_fingerprints(hit, self._question.field)
            if not digits:
                self._unreadable += 1
                continue
            distance, nearest = min((self._distance(value), value) for value in map(from_hex, digits))
            if distance <= self._question.max_distance:
                self._near[nearest] += 1

    def parts(self, size: int | None, most: int) -> list[Part]:
        """Return what to ask for, at most *most* fingerprints together: all that is near, or the *size* nearest."""
        left = sum(self._near.values()) if size is None else size
        farthest = self._farthest(left)
        # Of the documents at the farthest distance that is needed, only some are needed, no matter which.
        nearer = [each for each in self._near if self._distance(each) < farthest]
        last = [each for each in self._near if self._distance(each) == farthest]
        found: list[Part] = []
        for values in (nearer, last):
            for start in range(0, len(values), most):
                fingerprints = frozenset(values[start : start + most])
                documents = sum(self._near[each] for each in fingerprints)
                wanted = min(documents, left)
                if wanted:
                    found.append(Part(fingerprints, documents, wanted, any_will_do=wanted < documents))
                left -= wanted
        return found

    def _farthest(self, documents: int) -> int:
        """Return the least distance within which there are more than so many *documents*; beyond all if none is."""
        counts = [0] * (self._question.max_distance + 1)
        for value, count in self._near.items():
            counts[self._distance(value)] += count
        totals = accumulate(counts)
        return next((distance for distance, total in enumerate(totals) if total > documents), len(counts))

    def is_whole(self, parts: Sequence[Part]) -> bool:
        """Return whether every candidate was compared, and every wanted near-duplicate was found."""
        return not self._unreadable and not any(part.missing for part in parts)

    def _distance(self, value: int) -> int:
        return (value ^ self._question.fingerprint).bit_count()


async def search(server: Port, question: Question) -> NearDups:
    """Return the near-duplicates, from one page or from all; after a refusal another plan or page is tried."""
    subject = question.subject
    may_read_all = True
    while True:
        reads_all = question.reads_all_at_once and may_read_all
        try:
            if reads_all:
                return await _read_all(server, question)
            call = Call("search", {"index": subject.index, "body": question.body(), **subject.routing})
            answer = await send_confirmed(server, subject.index, call, settings=subject.settings)
        except Exception as error:
            if reads_all and status_of(error) == 403:
                may_read_all = False  # a user who may search but not open a view gets an answer if one page holds it
            elif reads_all or not question.adapt(error):
                raise
        else:
            return await read_answer(server, question, answer)


async def read_answer(server: Port, question: Question, answer: Mapping[str, Any]) -> NearDups:
    """Return the near-duplicates, given the *answer* to the first search; read more pages if it has not all of them."""
    gaps = find_gaps(answer)
    if gaps and question.adapt(gaps):
        # Some shards refused what others accepted, so nothing is known of their documents: ask another way.
        return await search(server, question)
    hits = answer["hits"]["hits"]
    if len(hits) >= question.page:
        question.reads_texts = False
        return await _read_all(server, question)
    collector = Collector(question)
    collector.add(hits)
    return collector.result(gaps)


async def _read_all(server: Port, question: Question) -> NearDups:
    subject = question.subject
    is_again = False
    while True:
        collector, confirm_once = Collector(question), confirming(server, subject.index, subject.settings)
        try:
            gaps = await _read_candidates(server, question, collector)
        except Exception as error:
            if not is_again and is_view_ended(error):
                is_again = True  # an index was made anew while it was read
            elif not question.adapt(error):
                raise
        else:
            if gaps and not is_again and is_view_ended(gaps):
                is_again = True
            elif not (gaps and question.adapt(gaps)):
                await confirm_once()
                return collector.result(gaps)


async def _read_candidates(server: Port, question: Question, collector: Collector) -> list[Gap]:
    """Read all candidates; if few of very many are wanted, stop when no better one can come."""
    options = question.subject.options
    is_cheaper_skimmed = question.reads_all_at_once and question.expected <= options.sizes.ranked_from
    is_planned = question.known is None and not question.plan.is_scan
    is_ranked = options.size is not None and is_planned and not is_cheaper_skimmed
    # What a script lets through is near, and has to be read whole anyway.
    skims = question.limits.skims and not is_ranked and not question.plan.script

    if skims:
        return await _read_skimmed(server, question, collector)
    reading = Reading(
        server,
        question.subject.index,
        question.body(ranked=is_ranked),
        page=options.sizes.next_page,
        routing=options.routing,
        ranked=is_ranked,
    )
    async with aclosing(reading.pages()) as pages:
        async for hits in pages:
            collector.add(hits)
            if is_ranked and collector.is_settled(hits):
                break
    return reading.gaps


async def _read_skimmed(server: Port, question: Question, collector: Collector) -> list[Gap]:
    """Read fingerprints first, and whole only what is near; without a usable view everything, by a scroll."""
    subject, page = question.subject, question.subject.options.sizes.next_page
    async with viewing(server, subject.index, KEEP_ALIVE_SECONDS, subject.routing) as view:
        if view is not None:
            try:
                if not await _skim(server, view, question, collector):
                    # A document has block terms and no fingerprint, for example: read everything whole.
                    async with aclosing(read_view(server, view, question.body(), page=page)) as pages:
                        async for hits in pages:
                            collector.add(hits)
                return list(view.gaps)
            except NoOrder:
                pass
    scroll = Scroll(server, subject.index, question.body(), page=page, options=subject.routing)
    async with aclosing(scroll.read()) as pages:
        async for hits in pages:
            collector.add(hits)
    return scroll.gaps


async def stream(server: Port, question: Question) -> AsyncGenerator[NearDups, None]:
    """Yield near-duplicates as their pages are read, a few at a time, in no order."""
    collector = Collector(question)
    subject = question.subject
    options = subject.options
    confirm_once = confirming(server, subject.index, subject.settings)
    while True:
        reading = Reading(server, subject.index, question.body(), page=options.sizes.next_page, routing=options.routing)
        try:
            async with aclosing(reading.pages()) as pages:
                async for hits in pages:
                    await confirm_once()
                    collector.add(hits)
                    for begin in range(0, len(collector.found), FETCH):
                        yield NearDups(tuple(collector.found[begin : begin + FETCH]))
                    collector.found.clear()
        except Exception as error:
            # What was emitted cannot be taken back, and would come a second time.
            if collector.candidates or not question.adapt(error):
                raise
        else:
            # A shard without our fields refuses nothing: some shards may answer, and others refuse the plan.
            if reading.gaps and not collector.candidates and question.adapt(reading.gaps):
                continue
            await confirm_once()
            collector.result(reading.gaps)
            return
