"""
The searches of one lookup: one page where that holds all candidates, else all pages; or a stream of them.

``question`` makes the bodies, ``collect`` collects the results, and ``find`` decides which lookups to make.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from es_simhash.flows.confirmation import confirm, send_confirmed
from es_simhash.flows.lookup.collect import Collector
from es_simhash.flows.lookup.question import Question, Subject
from es_simhash.flows.lookup.skim import skim_passes
from es_simhash.flows.protocol import Call, Emit, Flow, status_of
from es_simhash.flows.transfer.answers import Gap, find_gaps, is_view_ended
from es_simhash.flows.transfer.pages import Hits, read_pages, without_requests
from es_simhash.index.rescore import NearDups

__all__ = ["read_answer", "search", "stream"]


def search(question: Question) -> Flow[NearDups]:
    """
    Return the near-duplicates: by one search, or by reading all pages where one does not hold all candidates.

    If the server refuses a search, the next possible plan or page is tried.
    """
    subject = question.subject
    may_read_all = True
    while True:
        reads_all = question.expects_many and may_read_all
        try:
            if reads_all:
                return (yield from _read_all(question))
            call = Call("search", {"index": subject.index, "body": question.body(), **subject.routing})
            answer = yield from send_confirmed(subject.context, subject.index, call, settings=subject.settings)
        except Exception as error:
            if reads_all and status_of(error) == 403:
                may_read_all = False  # a user who may search but not open a view gets an answer if one page holds it
            elif reads_all or not question.adapt(error):
                raise
        else:
            return (yield from read_answer(question, answer))


def read_answer(question: Question, answer: Mapping[str, Any]) -> Flow[NearDups]:
    """
    Return the near-duplicates, given the *answer* to the first search; read more pages if it has not all of them.
    """
    gaps = find_gaps(answer)
    if gaps and question.adapt(gaps):
        # Some shards refused what others accepted, so nothing is known of their documents: ask another way.
        return (yield from search(question))
    hits = answer["hits"]["hits"]
    if len(hits) >= question.page:
        return (yield from _read_all(question))
    collector = Collector(question)
    collector.add(hits)
    return collector.result(gaps)


def _read_all(question: Question) -> Flow[NearDups]:
    subject = question.subject
    is_again = False
    while True:
        collector, started = Collector(question), subject.context.clock()
        try:
            gaps = yield from _read_candidates(question, collector)
        except Exception as error:
            if not is_again and is_view_ended(error):
                is_again = True  # an index was made anew while it was read
            elif not question.adapt(error):
                raise
        else:
            if gaps and not is_again and is_view_ended(gaps):
                is_again = True
            elif not (gaps and question.adapt(gaps)):
                yield from _confirm_since(started, subject)
                return collector.result(gaps)


def _confirm_since(started: float, subject: Subject) -> Flow[None]:
    """
    Confirm the settings that pages were read with, unless that was done since the time *started*.

    The view is opened after *started*, and what it shows stays as it was then.
    """
    context = subject.context
    since = context.clock() - started
    yield from confirm(context, subject.index, settings=subject.settings, after_seconds=since)


def _read_candidates(question: Question, collector: Collector) -> Flow[list[Gap]]:
    """Read all candidates; if few of very many are wanted, stop when no better one can come."""
    options = question.subject.options
    is_skimmable = question.expects_many and question.expected <= options.sizes.ranked_from
    is_planned = question.known is None and not question.plan.is_scan
    is_ranked = options.size is not None and is_planned and not is_skimmable
    # What a script lets through is near, and has to be read whole anyway.
    skims = question.limits.skims and not is_ranked and not question.plan.script

    def add(hits: Hits) -> bool:
        collector.add(hits)
        return is_ranked and collector.is_settled(hits)

    handle = without_requests(add)
    return (
        yield from read_pages(
            question.subject.index,
            question.body(ranked=is_ranked),
            handle,
            page=options.sizes.next_page,
            routing=options.routing,
            ranked=is_ranked,
            passes=skim_passes(question, collector, handle) if skims else None,
        )
    )


def stream(question: Question) -> Flow[None]:
    """
    Emit near-duplicates as their pages are read, in no order.
    """
    collector = Collector(question)
    subject = question.subject
    options = subject.options
    is_confirmed, started = False, subject.context.clock()

    def emit(hits: Hits) -> Flow[bool]:
        nonlocal is_confirmed
        if not is_confirmed:
            yield from _confirm_since(started, subject)
            is_confirmed = True
        collector.add(hits)
        for each in collector.found:
            yield Emit(each)
        collector.found.clear()
        return False

    while True:
        try:
            gaps = yield from read_pages(
                subject.index, question.body(), emit, page=options.sizes.next_page, routing=options.routing
            )
        except Exception as error:
            # What was emitted cannot be taken back, and would come a second time.
            if collector.candidates or not question.adapt(error):
                raise
        else:
            # A shard without our fields refuses nothing: some shards may answer, and others refuse the plan.
            if gaps and not collector.candidates and question.adapt(gaps):
                continue
            if not is_confirmed:
                yield from _confirm_since(started, subject)
            collector.result(gaps)
            return
