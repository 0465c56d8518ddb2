"""
One fingerprint being looked up: the searches it takes, and what comes of them.

Which question to ask, and how often, is ``find``'s business; plans and queries are made in ``index``.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from es_simhash.flows.context import Context, Index
from es_simhash.flows.lookup.index_stats import limits_after_refusal
from es_simhash.flows.lookup.options import Options, checked, effective_distance, usable_limits
from es_simhash.flows.lookup.skim import Part, Skim
from es_simhash.flows.protocol import Call, Emit, Flow, status_of
from es_simhash.flows.transfer.answers import Gap, find_gaps, is_window_refused, sentences
from es_simhash.flows.transfer.pages import Hits, Pass, Passes, read_pages
from es_simhash.index.explain_plan import plan_lookup
from es_simhash.index.fields import Fields
from es_simhash.index.meta import IndexSettings
from es_simhash.index.plan import Limits, LookupPlan, check_plan, fits, minimum_should_match
from es_simhash.index.plan_cost import SKIMMED_FROM, IndexStats, estimate
from es_simhash.index.query import build_body, candidate_clauses, holder_clauses
from es_simhash.index.rescore import NearDup, NearDups, held_fingerprints, rescore

__all__ = ["Lookup"]

# A page that is not filled costs next to nothing; one that is too small costs the search a second time.
PAGE = 2_000
# Hits a page where one does not hold all; more than any server takes by default are refused.
NEXT_PAGE, LARGEST_PAGE = 5_000, 10_000
# From so many on, the nearest few are found sooner in order of clauses matched, reading no farther than is needed.
RANKED_FROM = 50_000
# Fingerprints asked for together, once they are known to be near.
HOLDERS = 1_000
# Planned for where the index was not measured: large and skewed, which costs a small and even one next to nothing.
ASSUMED = IndexStats(documents=64_000_000, density=8.0)


class Lookup:
    """
    One fingerprint being looked up in one index.

    Args:
        context:
            What the client object knows; limits that the server shows are put there.
        index:
            What to search.
        fingerprint:
            The fingerprint, unsigned.
        settings:
            What the index goes by.
        stats:
            Size and skew of the index; ``None`` where they were not measured.
        options:
            The caller's wishes.
    """

    def __init__(
        self,
        context: Context,
        index: Index,
        fingerprint: int,
        *,
        settings: IndexSettings,
        stats: IndexStats | None,
        options: Options,
    ) -> None:
        self.max_distance = effective_distance(settings, options)
        self._context = context
        self._field = Fields(context.prefix).fingerprint
        self._index = index
        self._fingerprint = fingerprint
        self._settings = settings
        self._is_measured = stats is not None
        self._stats = stats or ASSUMED
        self._options = options
        self._found: list[NearDup] = []
        self._reasons: dict[str, None] = {}
        self._candidates = 0
        self._limits = usable_limits(context, index, settings)
        self._replan()

    def _replan(self) -> None:
        """Choose the plan, by what the server is thought to allow, and the size of the first page with it."""
        self.plan: LookupPlan = check_plan(
            self._options.plan or plan_lookup(self.max_distance, stats=self._stats, limits=self._limits),
            self.max_distance,
        )
        expected = estimate(self.plan, self._stats).hits
        self.page = int(min(max(2 * expected, PAGE), LARGEST_PAGE))
        self._expected = expected if self._is_measured else 0.0

    @property
    def fingerprint(self) -> int:
        """The fingerprint looked up."""
        return self._fingerprint

    @property
    def expects_many(self) -> bool:
        """Whether so many candidates are expected that they are better skimmed, in a view of their own."""
        return self._expected > SKIMMED_FROM and self._limits.skims

    def shareable(self, most: int, *, terms: int, passing: float) -> int:
        """
        Return how many lookups like this one, at most *most*, are cheaper in one search than alone.

        Args:
            most:
                The answer if nothing else limits it.
            terms:
                Most block terms in a search.
            passing:
                Most documents that may pass the block terms of one lookup, times the lookups in a search.
        """
        if self.plan.is_scan:
            return 1
        expected = estimate(self.plan, self._stats).passing
        fits = (
            most,
            terms // self.plan.terms,
            self._limits.max_clauses // (2 * self.plan.clauses),
            int(passing / max(1.0, expected)),
        )
        return max(1, min(fits))

    def can_compare(self, hit: Mapping[str, Any]) -> bool:
        """Return whether *hit* carries a fingerprint."""
        return bool(held_fingerprints(hit, self._field))

    def near(self, hits: Hits) -> list[Mapping[str, Any]]:
        """Return the *hits*, all of which carry a fingerprint, that are within this lookup's distance."""
        return [
            hit
            for hit in hits
            if any(
                (int(each, 16) ^ self._fingerprint).bit_count() <= self.max_distance
                for each in hit["fields"][self._field]
            )
        ]

    def shared_body(self, fingerprints: Sequence[int], *, page: int) -> dict[str, Any]:
        """Return the body of one search for several *fingerprints*, with this lookup's plan and options."""
        return self._body(candidate_clauses(fingerprints, self.plan, prefix=self._context.prefix), page=page)

    def _body(self, clauses: Sequence[Mapping[str, Any]], *, page: int) -> dict[str, Any]:
        return build_body(
            clauses,
            filter=self._options.filter,
            exclude_ids=self._options.exclude_ids,
            prefix=self._context.prefix,
            size=page,
            source=self._options.source,
        )

    def body(self, *, ranked: bool = False) -> dict[str, Any]:
        """Return the search body; a *ranked* one scores by the number of clauses matched, which falls with distance."""
        body = self.shared_body([self._fingerprint], page=self.page)
        if ranked:
            clauses = body["query"]["bool"]
            clauses["must"] = clauses["filter"].pop(0)
        return body

    def search(self) -> Flow[NearDups]:
        """Return the near-duplicates: by one search, or page by page where that does not, or will not, hold them."""
        routing = {} if self._options.routing is None else {"routing": self._options.routing}
        may_view = True
        while True:
            in_view = self.expects_many and may_view
            try:
                if in_view:
                    return (yield from self._read_view())
                answer = yield Call("search", {"index": self._index, "body": self.body(), **routing})
            except Exception as error:
                if in_view and status_of(error) == 403:
                    may_view = False  # who may search but keep nothing on the server is served as far as one page goes
                elif in_view or not self.adapt(error):
                    raise
            else:
                return (yield from self.take_answer(answer))

    def adapt(self, error: BaseException | Mapping[str, Any] | Sequence[Gap]) -> bool:
        """Plan anew after a search was refused; return whether there is another way."""
        if is_window_refused(error) and self.page > 1:
            self.page = max(1, self.page // 2)
            return True
        # Another lookup may have learnt meanwhile what this one was refused for.
        smaller: Limits | None = self._limits.within(self._context.limits(self._index))
        if smaller == self._limits:
            smaller = limits_after_refusal(self._limits, error, scripted=self.plan.script)
        forced = self._options.plan
        if smaller is None or (forced is not None and not fits(forced, smaller)):
            return False
        self._limits = smaller
        self._replan()
        return True

    def take_answer(self, answer: Mapping[str, Any]) -> Flow[NearDups]:
        """Return what the *answer* to the first page, and the pages after it, give."""
        gaps = find_gaps(answer)
        hits = answer["hits"]["hits"]
        if gaps and self.adapt(gaps):
            # Some shards refused what others took, and say nothing of the documents there: ask another way.
            return (yield from self.search())
        if len(hits) >= self.page:
            return (yield from self._read_view())
        self._reasons |= dict.fromkeys(sentences(gaps))
        yield from self._take(hits)
        return self._result()

    def _read_view(self) -> Flow[NearDups]:
        """Return the near-duplicates, read page by page in one view of the index."""
        while True:
            self._found, self._candidates = [], 0
            try:
                gaps = yield from self._read_pages()
            except Exception as error:
                if not self.adapt(error):
                    raise
            else:
                if not (gaps and self.adapt(gaps)):
                    self._reasons |= dict.fromkeys(sentences(gaps))
                    return self._result()

    def _read_pages(self) -> Flow[list[Gap]]:
        """Read all candidates, or, if few are wanted of very many, the best until no better can come."""
        skimmable = self.expects_many and self._expected <= RANKED_FROM
        ranked = self._options.size is not None and not self.plan.is_scan and not skimmable
        # What a script lets through is near, and has to be read whole anyway.
        skims = self._limits.skims and not ranked and not self.plan.script
        return (
            yield from read_pages(
                self._index,
                self.body(ranked=ranked),
                self._take_ranked if ranked else self._take,
                page=NEXT_PAGE,
                routing=self._options.routing,
                ranked=ranked,
                passes=self._passes() if skims else None,
            )
        )

    def _passes(self) -> Passes:
        """Yield what to read, instead of all candidates with all that hits carry, to find the same."""
        skim = Skim(self._fingerprint, self.max_distance, self._field)
        body = self.body() | {"stored_fields": "_none_"}
        del body["_source"]  # refused beside it
        # What did not fit on a first page is more than was expected.
        likely = 2 * self._expected if self.expects_many else 2 * PAGE
        yield Pass(body, skim.note, int(min(max(likely + 1, 2 * PAGE), LARGEST_PAGE)), likely)
        parts = skim.parts(self._options.size, min(HOLDERS, self._limits.max_terms))
        # Not yet ours: where a view turns out not to be readable, everything is read another way.
        found: list[NearDup] = []
        for part in parts:
            page = min(NEXT_PAGE, part.missing + 1)
            body = self._body(holder_clauses(part.fingerprints, prefix=self._context.prefix), page=page)
            yield Pass(body, partial(self._take_part, part, found), page, part.documents)
        if skim.is_whole(parts):
            self._found, self._candidates = found, skim.candidates
        else:
            # A document with block terms and no fingerprint, for one: that needs a closer look, at everything.
            yield Pass(self.body(), self._take, NEXT_PAGE)

    def _take_part(self, part: Part, found: list[NearDup], hits: Hits) -> Flow[bool]:
        """Add to *found* what is wanted of a page of a *part*; return whether that is enough."""
        yield from ()
        found += part.take(self._rescore(filter(self.can_compare, hits)))
        return part.any_will_do and not part.missing

    def _take(self, hits: Hits) -> Flow[bool]:
        """Rescore a page of candidates and keep the near-duplicates among them; never enough."""
        yield from ()
        broken = [hit for hit in hits if not self.can_compare(hit)]
        self._reasons |= {
            f"document {hit['_id']!r} of {hit['_index']!r} has block terms but no {self._field}": None for hit in broken
        }
        whole = [hit for hit in hits if self.can_compare(hit)] if broken else hits
        self._candidates += len(hits)
        self._keep(self._rescore(whole))
        return False

    def _rescore(self, hits: Iterable[Mapping[str, Any]]) -> list[NearDup]:
        return rescore(hits, self._fingerprint, max_distance=self.max_distance, prefix=self._context.prefix)

    def _keep(self, found: list[NearDup]) -> None:
        """Keep *found*, or the nearest of it and of what is held, if the caller wants no more than some."""
        self._found += found
        size = self._options.size
        if size is not None and len(self._found) > size:
            self._found = heapq.nsmallest(size, self._found, key=_order)

    def stream(self) -> Flow[None]:
        """Emit near-duplicates as their pages are read."""
        while True:
            try:
                gaps = yield from read_pages(
                    self._index, self.body(), self._emit, page=NEXT_PAGE, routing=self._options.routing
                )
            except Exception as error:
                # What was emitted cannot be taken back, and would come a second time.
                if self._candidates or not self.adapt(error):
                    raise
            else:
                break
        self._reasons |= dict.fromkeys(sentences(gaps))
        self._result()

    def _emit(self, hits: Hits) -> Flow[bool]:
        yield from self._take(hits)
        for each in self._found:
            yield Emit(each)
        self._found.clear()
        return False

    def _take_ranked(self, hits: Hits) -> Flow[bool]:
        """Take a page in order of clauses matched; enough once nothing nearer than what is held can follow."""
        yield from self._take(hits)
        size = self._options.size or 0
        if not hits or len(self._found) < size or hits[-1].get("_score") is None:  # a scroll has no such order
            return False
        matched = round(hits[-1]["_score"])
        worst = max(each.distance for each in self._found)
        # What follows matches no more clauses than the last hit, and a fingerprint at distance d matches at least
        # minimum_should_match(d): so it is no nearer than the least d at which that is few enough.
        return all(minimum_should_match(nearer, self.plan.radii) > matched for nearer in range(worst))

    def _result(self) -> NearDups:
        if not self._reasons:
            # Only now: a refusal for the caller's filter is not mended by any plan, and must not spoil others.
            self._context.learn_limits(self._index, self._limits)
        found = {(each.index, each.id): each for each in self._found}
        answer = NearDups(
            tuple(sorted(found.values(), key=_order)[: self._options.size]),
            complete=not self._reasons,
            scheme=self._settings.scheme,
            max_distance=self.max_distance,
            plan=self.plan,
            candidates=self._candidates,
            reasons=tuple(self._reasons),
        )
        return checked(answer, self._options)


def _order(near_dup: NearDup) -> tuple[int, str, str]:
    return near_dup.distance, near_dup.index, near_dup.id
