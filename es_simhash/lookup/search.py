"""
The searches of one lookup: one page, and all pages if that is full.

Many candidates are skimmed: only their fingerprints are read first, and then the documents of the near ones.
The expensive part of a hit is its ``_id``: it lies in the stored fields, and unpacking those costs a server
several times what the rest of a hit does.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any

from es_simhash.hashing import from_hex
from es_simhash.lookup.near_dups import NearDup, NearDups, hit_fingerprints, no_fingerprint_shown, rescore
from es_simhash.lookup.plan import minimum_should_match
from es_simhash.lookup.question import Question
from es_simhash.mapping.fields import Fields, read_fingerprint
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import confirming, send_confirmed
from es_simhash.transport.answers import Gap, find_gaps, sentences
from es_simhash.transport.pages import Hits, Reading, View, read_view
from es_simhash.transport.protocol import Call, document_key


class Crowded(Exception):  # noqa: N818 -- caught where such a question is asked
    """A question that is to be answered by one page has more candidates."""


class Candidates:
    """The candidates read so far, and the near-duplicates among them; only the nearest if a size is given."""

    __slots__ = ("count", "near_dups", "question", "reasons", "unreadable")

    def __init__(self, question: Question) -> None:
        self.question = question
        self.near_dups: list[NearDup] = []
        self.count = 0
        self.reasons: dict[str, None] = {}  # why the answer is incomplete
        self.unreadable: set[str | None] = set()  # what candidates have in place of a fingerprint

    def add(self, hits: Hits) -> None:
        """Rescore a page of candidates and keep the near-duplicates among them."""
        size = self.question.subject.options.size
        self.count += len(hits)
        self.near_dups += self.rescore(self.readable(hits))
        if size is not None and len(self.near_dups) > size:
            self.near_dups = heapq.nsmallest(size, self.near_dups, key=lambda each: each.order)

    def readable(self, hits: Hits) -> Hits:
        """Return those of *hits* that have a fingerprint; note what the others have in its place."""
        field = self.question.field
        if broken := [hit for hit in hits if not hit_fingerprints(hit, field)]:
            hits = [hit for hit in hits if hit_fingerprints(hit, field)]
            for hit in broken:
                values = hit.get("fields", {}).get(field) or [None]
                self.unreadable.update(value for value in values if read_fingerprint(value) is None)
        return hits

    async def judge_unreadable(self, server: Port) -> list[Gap]:
        """
        Note as reasons the documents without a readable fingerprint that are near by their block terms, which are its
        digits: the same ones with every plan. Those where these are none either are found by no lookup.
        """
        if not self.unreadable:
            return []
        asked, subject = self.question, self.question.subject
        fields = Fields(subject.context.prefix)
        shown = sorted(value for value in self.unreadable if value is not None)
        is_masked = bool(shown)  # until a search for what is shown finds it
        clauses: list[Any] = [{"terms": {asked.field: shown}}]
        if None in self.unreadable:
            there = [{"exists": {"field": block}} for block in fields.blocks]
            clauses.append({"bool": {"filter": there, "must_not": {"exists": {"field": asked.field}}}})
        page = subject.options.sizes.next_page
        body = subject.body([{"bool": {"should": clauses, "minimum_should_match": 1}}], page=page)
        body |= {"_source": False, "docvalue_fields": [asked.field, *fields.blocks]}
        reading = Reading(server, subject.index, body, page=page, routing=subject.options.routing)
        async with aclosing(reading.pages()) as pages:
            async for hits in pages:
                for hit in hits:
                    is_masked &= asked.field not in hit["fields"]
                    terms = [str(term) for block in fields.blocks for term in hit["fields"].get(block, ())]
                    value = read_fingerprint("".join(terms))
                    if value is None or hit_fingerprints(hit, asked.field):
                        continue
                    if (value ^ asked.fingerprint).bit_count() <= asked.max_distance:
                        said = f"document {hit['_id']!r} of {hit['_index']!r} has block terms but no {asked.field}"
                        self.reasons[f"{said}: backfill it"] = None
        if is_masked:
            self.reasons[no_fingerprint_shown(subject.index, asked.field)] = None
        return reading.gaps

    def rescore(self, hits: Hits) -> list[NearDup]:
        """Return the near-duplicates among *hits*, all of which have a fingerprint."""
        asked, subject = self.question, self.question.subject
        found = rescore(hits, asked.fingerprint, max_distance=asked.max_distance, prefix=subject.context.prefix)
        if subject.read is None or not subject.most_texts:
            return found
        near = {each.key for each in found}
        for hit in hits:
            if document_key(hit) in near and "_source" in hit:
                subject.read.add(hit)
        return found if subject.options.source else [replace(each, source=None) for each in found]

    def is_settled(self, hits: Hits) -> bool:
        """
        Return whether no candidate after the page *hits* is nearer than what was found.
        The candidates must come in order of clauses matched; if the server does not keep that order: ``False``.
        """
        size = self.question.subject.options.size or 0
        if not hits or len(self.near_dups) < size or hits[-1].get("_score") is None:  # a scroll has no such order
            return False
        matched = round(hits[-1]["_score"])
        worst = max(each.distance for each in self.near_dups)
        # What follows matches no more clauses than the last hit, and a fingerprint at distance d matches at least
        # minimum_should_match(d). Its distance is therefore at least the least d for which that is few enough.
        return all(minimum_should_match(nearer, self.question.plan.radii) > matched for nearer in range(worst))

    def result(self, gaps: Iterable[Gap]) -> NearDups:
        """Return the answer, incomplete if there are *gaps* in what was read."""
        self.reasons |= dict.fromkeys(sentences(gaps))
        question, subject = self.question, self.question.subject
        if not self.reasons and subject.settings.allows_scripts and not question.may_script:
            # Only now: a search refused because of the caller's filter must not teach other lookups.
            subject.context.note_scriptless(subject.index)
        found = {each.key: each for each in self.near_dups}
        return NearDups(
            tuple(sorted(found.values(), key=lambda each: each.order)[: subject.options.size]),
            complete=not self.reasons,
            scheme=subject.settings.scheme,
            max_distance=question.max_distance,
            plan=question.plan,
            candidates=self.count,
            reasons=tuple(self.reasons),
        )


async def search(server: Port, question: Question, answer: Mapping[str, Any] | None = None) -> NearDups:
    """Return the near-duplicates, from one page or from all. *answer*: that to the first search, if it was sent."""
    subject = question.subject
    while True:
        if answer is None and question.reads_all and subject.is_one_page:
            raise Crowded
        candidates = Candidates(question)
        with question:
            if answer is None and question.reads_all:
                gaps = await _read_all(server, question, candidates)
            else:
                if answer is None:
                    call = Call("search", {"index": subject.index, "body": question.body(), **subject.routing})
                    answer = await send_confirmed(server, subject.index, call, settings=subject.settings)
                gaps, hits, answer = find_gaps(answer), answer["hits"]["hits"], None
                if len(hits) >= question.page:
                    question.is_full = True
                    continue
                candidates.add(hits)
            # Where shards refused what others accepted, nothing is known of their documents.
            if not question.adapt(gaps):
                break
    return candidates.result([*gaps, *await candidates.judge_unreadable(server)])


async def _read_all(server: Port, question: Question, candidates: Candidates) -> list[Gap]:
    """Read all candidates; if few of very many are wanted, stop when no better one can come."""
    subject, options = question.subject, question.subject.options
    is_cheaper_skimmed = question.expects_many and question.expected <= options.sizes.ranked_from
    is_ranked = options.size is not None and not question.plan.is_scan and not is_cheaper_skimmed
    # What a script lets through is near, and has to be read whole anyway.
    skims = not is_ranked and not question.plan.script
    confirm_once = confirming(server, subject.index, subject.settings)
    reading = Reading(
        server,
        subject.index,
        question.body(ranked=is_ranked),
        page=options.sizes.next_page,
        routing=options.routing,
        ranked=is_ranked,
        shortcut=partial(_skim, server, question, candidates) if skims else None,
    )
    async with aclosing(reading.pages()) as pages:
        async for hits in pages:
            candidates.add(hits)
            if is_ranked and candidates.is_settled(hits):
                break
    await confirm_once()
    return reading.gaps


async def _skim(server: Port, question: Question, candidates: Candidates, view: View) -> bool:
    """
    Read fingerprints first, and whole only what is near; return whether that was possible.
    It is not where documents are deleted meanwhile, for example: then *candidates* are as before.
    """
    subject, sizes = question.subject, question.subject.options.sizes
    near = NearFingerprints(question)
    body = question.body() | {"stored_fields": "_none_"}
    del body["_source"]  # a server refuses both together
    # Candidates that did not fit on a first page are more than were expected.
    likely = 2 * question.expected if question.expects_many else 2 * sizes.first_page
    page = int(min(max(likely + 1, 2 * sizes.first_page), sizes.largest_page))
    async with aclosing(read_view(server, view, body, page=page, likely=likely)) as pages:
        async for hits in pages:
            near.count(candidates.readable(hits), len(hits))
    found: list[NearDup] = []
    every = near.wanted(subject.options.size, sizes.fingerprints)
    for wanted in every:
        page = min(sizes.next_page, wanted.missing + 1)
        reads_texts = wanted.documents <= subject.most_texts
        body = subject.fingerprints_body(wanted.fingerprints, page=page, reads_texts=reads_texts)
        async with aclosing(read_view(server, view, body, page=page, likely=wanted.documents)) as pages:
            async for hits in pages:
                if wanted.take(candidates, hits, found):
                    break
    if any(wanted.missing for wanted in every):
        return False
    candidates.near_dups, candidates.count = found, near.candidates
    return True


@dataclass(slots=True)
class Wanted:
    """
    Near fingerprints whose documents are asked for together.
    *documents*: how many of the candidates have one of them. *missing*: how many more documents are wanted; below 0,
    more were found than there are candidates. *any_will_do*: fewer are wanted than there are, no matter which.
    """

    fingerprints: frozenset[int]
    documents: int
    missing: int
    any_will_do: bool

    def take(self, candidates: Candidates, hits: Hits, found: list[NearDup]) -> bool:
        """Put the wanted documents of a page into *found*; return whether that is enough."""
        near = candidates.rescore(candidates.readable(hits))
        wanted = [each for each in near if each.fingerprint in self.fingerprints]
        if self.any_will_do:
            wanted = wanted[: self.missing]
        self.missing -= len(wanted)
        found.extend(wanted)
        return self.any_will_do and not self.missing


class NearFingerprints:
    """The near fingerprints among the candidates of a question, and how many have each."""

    def __init__(self, question: Question) -> None:
        self.candidates = 0
        self._question = question
        self._near: Counter[int] = Counter()

    def count(self, hits: Hits, candidates: int) -> None:
        """Count the near fingerprints of *hits*, those of a page of *candidates* that have one."""
        self.candidates += candidates
        for hit in hits:
            digits = hit_fingerprints(hit, self._question.field)
            distance, nearest = min((self._distance(value), value) for value in map(from_hex, digits))
            if distance <= self._question.max_distance:
                self._near[nearest] += 1

    def wanted(self, size: int | None, most: int) -> list[Wanted]:
        """Return what to ask for, at most *most* fingerprints together: all that is near, or the *size* nearest."""
        left = sum(self._near.values()) if size is None else size
        nearest = sorted(self._near, key=self._distance)
        totals = zip(nearest, accumulate(self._near[each] for each in nearest), strict=True)
        # Of the documents at the farthest distance that is needed, only some are needed, no matter which.
        farthest = next((self._distance(each) for each, total in totals if total > left), math.inf)
        nearer = [each for each in nearest if self._distance(each) < farthest]
        last = [each for each in nearest if self._distance(each) == farthest]
        found: list[Wanted] = []
        for values in (nearer, last):
            for start in range(0, len(values), most):
                fingerprints = frozenset(values[start : start + most])
                documents = sum(self._near[each] for each in fingerprints)
                if number := min(documents, left):
                    found.append(Wanted(fingerprints, documents, number, any_will_do=number < documents))
                left -= number
        return found

    def _distance(self, value: int) -> int:
        return (value ^ self._question.fingerprint).bit_count()
