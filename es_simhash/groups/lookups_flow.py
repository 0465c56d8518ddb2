"""
Lookups in one index for those who group documents: many at once, with the group fields of what is found.

The multi-searches live in ``lookup.batch``. No decision and no write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from es_simhash.lookup.batch_flow import Batch, make_batch, take_answer
from es_simhash.lookup.index_stats_flow import index_stats
from es_simhash.lookup.near_dups import NearDup, NearDups
from es_simhash.lookup.options import Options
from es_simhash.lookup.question import Question, Subject
from es_simhash.mapping.confirmation_flow import check_unchanged, while_unchanged
from es_simhash.mapping.context import Context
from es_simhash.mapping.documents import read_text
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.limits import IndexStats
from es_simhash.mapping.meta import IndexSettings
from es_simhash.transport.names import Index
from es_simhash.transport.protocol import Flow
from es_simhash.transport.retry_flow import Patience, attempt

# A writer plans for at least so many documents: a small index may grow before its size is read again.
SMALLEST = 1_000_000
ATTEMPTS = 8
# Documents with more fingerprints than these are asked for by block terms.
MOST_KNOWN = 1_000


class GroupLookups:
    """
    Lookups in one index for one max_distance, many at once.

    Args:
        context:
            What the client object knows.
        index:
            What to search.
        settings:
            The settings that the index records.
        max_distance:
            Largest distance in bits, inclusive.
        canonicals_only:
            Leave out documents that are tagged as duplicates.
        source:
            Whether to read whole documents; else only the group fields are read.

    Attributes:
        documents:
            How many documents with fingerprints the index had when its size was read.
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
    ) -> None:
        names = self._fields = Fields(context.prefix)
        self._patience = Patience(ATTEMPTS)
        options = Options(
            max_distance=max_distance,
            filter={"bool": {"must_not": [{"exists": {"field": names.duplicate_of}}]}} if canonicals_only else None,
            source=source or [names.group, names.duplicate_of, names.at],
            on_incomplete="return",
        )
        self.documents = 0
        self._subject = Subject(context, index, settings, IndexStats(), options)

    def prepare(self) -> Flow[None]:
        """Learn the size that plans are made for; repeat it now and then, since the index grows under a writer."""
        found = (yield from index_stats(self._subject.context, self._subject.index, again=True)) or IndexStats()
        self.documents = found.documents
        stats = replace(found, documents=max(found.documents, SMALLEST))
        self._subject = replace(self._subject, stats=stats)

    def batch(self, fingerprints: Sequence[int], *, known: Mapping[int, Sequence[int]] | None = None) -> Batch:
        """
        Return the request for the documents near each of *fingerprints*, one or more.

        *known* has the fingerprints of the index that are near them, where these are known; a long list is not used.
        """
        near = {wanted: each for wanted, each in (known or {}).items() if len(each) <= MOST_KNOWN}
        ordered = sorted(fingerprints, key=lambda each: each not in near)  # those asked alike share searches
        return make_batch([Question(self._subject, each, known=near.get(each)) for each in ordered])

    @property
    def milliseconds(self) -> float:
        """How long one lookup by block terms is expected to take the server."""
        return self._subject.milliseconds

    def take(self, batch: Batch, answer: Any) -> Flow[dict[int, NearDups]]:
        """
        Return the documents near each fingerprint, given the *answer* to the batch, or its exception.

        What a busy server refuses, or answers incompletely, is asked again with growing waits. What is incomplete
        even then is returned and says so; a refusal for another reason raises.
        """
        subject = self._subject
        outcomes = yield from while_unchanged(
            subject.context,
            subject.index,
            subject.settings,
            lambda: take_answer(batch, answer, patience=self._patience),
        )
        found: dict[int, NearDups] = {}
        for question, outcome in zip(batch.questions, outcomes, strict=True):
            if isinstance(outcome, Exception):
                raise outcome
            found[question.fingerprint] = outcome
        return found

    def ask(
        self, fingerprints: Sequence[int], *, known: Mapping[int, Sequence[int]] | None = None
    ) -> Flow[dict[int, NearDups]]:
        """Return the documents near each of *fingerprints*, in one request; *known* as for :meth:`batch`."""
        if not fingerprints:
            return {}
        yield from check_unchanged(self._subject.context, self._subject.index, self._subject.settings)
        batch = self.batch(fingerprints, known=known)
        return (yield from self.take(batch, (yield from attempt(batch.call()))))

    def group_of(self, found: NearDup) -> str | None:
        """Return the group that *found* is in; ``None`` if it never was grouped."""
        return self._read(found, self._fields.group)

    def at_of(self, found: NearDup) -> str:
        """Return when *found* was grouped; empty, and so before all others, if it never was."""
        return self._read(found, self._fields.at) or ""

    @staticmethod
    def _read(found: NearDup, name: str) -> str | None:
        return None if found.source is None else read_text(found.source, (name,))
