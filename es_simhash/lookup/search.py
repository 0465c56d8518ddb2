"""The searches of one lookup: one page, and all pages if that is full."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from es_simhash.lookup.near_dups import NearDup, NearDups, hit_fingerprints, no_fingerprint_shown, rescore
from es_simhash.lookup.question import Question
from es_simhash.mapping.fields import Fields, read_fingerprint
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import confirming, send_confirmed
from es_simhash.transport.answers import Gap, find_gaps, sentences
from es_simhash.transport.pages import Hits, Reading
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
        if answer is None and question.is_full and subject.is_one_page:
            raise Crowded
        candidates = Candidates(question)
        with question:
            if answer is None and question.is_full:
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
    """Read all candidates, page by page."""
    subject, options = question.subject, question.subject.options
    confirm_once = confirming(server, subject.index, subject.settings)
    page = options.sizes.next_page
    reading = Reading(server, subject.index, question.body(), page=page, routing=options.routing)
    async with aclosing(reading.pages()) as pages:
        async for hits in pages:
            candidates.add(hits)
    await confirm_once()
    return reading.gaps
