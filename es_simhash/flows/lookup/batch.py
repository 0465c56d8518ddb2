"""
Many lookups in one request, for writers: what documents near to those being written does the index hold?

The lookups themselves are ``lookup``'s; here is the batch, the patience with a server under load, and what is read of
the groups. No decision and no write.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from es_simhash.flows.context import Context, Index
from es_simhash.flows.lookup.index_stats import index_stats
from es_simhash.flows.lookup.options import Options
from es_simhash.flows.lookup.search import Lookup
from es_simhash.flows.lookup.shared_search import Bundle, bundles
from es_simhash.flows.protocol import Call, Flow, status_of
from es_simhash.flows.transfer.retry import Patience, is_passing, retry
from es_simhash.index.documents import read_text
from es_simhash.index.fields import Fields
from es_simhash.index.meta import IndexSettings
from es_simhash.index.plan_cost import IndexStats
from es_simhash.index.rescore import NearDup, NearDups

__all__ = ["Neighbours", "Question"]

# A writer plans as for at least so many documents: a small index may not stay one until the next survey.
SMALLEST = 1_000_000
_TOO_LARGE = 413
_ATTEMPTS = 8


@dataclass(frozen=True, slots=True)
class Question:
    """
    Several lookups that go out in one request.

    Attributes:
        fingerprints:
            What is looked up.
        bundles:
            A lookup for each, in order; several share a search where that is cheaper.
        index:
            What is searched.
    """

    fingerprints: Sequence[int]
    bundles: Sequence[Bundle]
    index: Index

    def call(self) -> Call:
        """Return the request."""
        header = {"index": self.index}
        return Call("msearch", {"body": [line for each in self.bundles for line in (header, each.body())]})


class Neighbours:
    """
    Lookups of one index for one max_distance, many at once.

    Args:
        context:
            What the client object knows.
        index:
            What to search.
        settings:
            What the index goes by.
        max_distance:
            Largest distance in bits, inclusive.
        canonicals_only:
            Leave out documents that are tagged as duplicates.
        source:
            Whether to read whole documents; else only the group fields are read.
        fields:
            More ``_source`` fields to read.
    """

    def __init__(
        self,
        context: Context,
        index: Index,
        settings: IndexSettings,
        *,
        max_distance: int,
        canonicals_only: bool = False,
        source: bool = False,
        fields: Sequence[str] = (),
    ) -> None:
        self._context = context
        self._index = index
        self._settings = settings
        self._fields = Fields(context.prefix)
        self._stats = IndexStats()
        # A shard that is missing for good is waited for once, and not for every document.
        self._is_partial = False
        names = self._fields
        self._options = Options(
            max_distance=max_distance,
            filter={"bool": {"must_not": [{"exists": {"field": names.duplicate_of}}]}} if canonicals_only else None,
            source=source or [names.group, names.duplicate_of, names.at, *fields],
            on_incomplete="return",
        )

    def prepare(self) -> Flow[None]:
        """Learn what the lookup plan goes by; again and again, since the index grows under a writer."""
        found = (yield from index_stats(self._context, self._index, again=True)) or IndexStats()
        self._stats = replace(found, documents=max(found.documents, SMALLEST))

    def question(self, fingerprints: Sequence[int]) -> Question:
        """Return what asks for the documents near to each of *fingerprints*, in one request."""
        return Question(fingerprints, list(bundles([self._lookup(each) for each in fingerprints])), self._index)

    def _lookup(self, fingerprint: int) -> Lookup:
        return Lookup(
            self._context,
            self._index,
            fingerprint,
            settings=self._settings,
            stats=self._stats,
            options=self._options,
        )

    def take(self, question: Question, answer: Any) -> Flow[dict[int, NearDups]]:
        """
        Return what is near to each fingerprint, given the *answer* to the question, or the exception it failed with.

        What the server refuses for load, or answers incompletely, is asked again with growing waits. What is then
        still incomplete says so; what is refused for another reason raises.
        """
        failed = isinstance(answer, BaseException)
        if failed and not (is_passing(answer) or status_of(answer) == _TOO_LARGE):
            raise answer
        answers = [None] * len(question.bundles) if failed else answer["responses"]
        found: dict[int, NearDups] = {}
        alone: list[Lookup] = []
        for bundle, part in zip(question.bundles, answers, strict=True):
            for lookup, own in zip(bundle.lookups, bundle.share(part), strict=True):
                if own is None and len(bundle.lookups) > 1:
                    alone.append(lookup)
                else:
                    found[lookup.fingerprint] = yield from self._take_one(lookup, own)
        if alone:
            # What could not share a search is asked again, in one request, each lookup for itself.
            if failed:
                yield Patience().wait()
            again = Question([each.fingerprint for each in alone], [Bundle([each]) for each in alone], self._index)
            found |= yield from self._ask(again)
        return found

    def ask(self, fingerprints: Sequence[int]) -> Flow[dict[int, NearDups]]:
        """Return what is near to each of *fingerprints*, in one request."""
        if not fingerprints:
            return {}
        return (yield from self._ask(self.question(fingerprints)))

    def _ask(self, question: Question) -> Flow[dict[int, NearDups]]:
        try:
            answer = yield question.call()
        except Exception as error:  # noqa: BLE001 -- judged by take
            answer = error
        return (yield from self.take(question, answer))

    def _take_one(self, lookup: Lookup, part: Any) -> Flow[NearDups]:
        if part is not None and "error" not in part:
            found = yield from lookup.take_answer(part)
            if found.complete or self._is_partial:
                self._is_partial = not found.complete
                return found
        elif part is not None:
            lookup.adapt(part["error"])
        # A lookup keeps what it found and why that may not be all, so each attempt is a new one.
        found = yield from retry(
            lambda: self._lookup(lookup.fingerprint).search(),
            is_done=lambda found: found.complete or self._is_partial,
            patience=Patience(_ATTEMPTS),
        )
        self._is_partial = not found.complete
        return found

    def group_of(self, found: NearDup) -> str | None:
        """Return the group that *found* is in; ``None`` if it never was grouped."""
        return self._read(found, self._fields.group)

    def at_of(self, found: NearDup) -> str:
        """Return when *found* was grouped; empty, and so before all others, if it never was."""
        return self._read(found, self._fields.at) or ""

    def is_duplicate(self, found: NearDup) -> bool:
        """Return whether *found* is tagged as a duplicate of another document."""
        return self._read(found, self._fields.duplicate_of) is not None

    @staticmethod
    def _read(found: NearDup, name: str) -> str | None:
        return None if found.source is None else read_text(found.source, (name,))
