"""
Looks up the documents that new documents may duplicate, and what these are compared by.

The multi-searches live in ``lookup.batch``, the fetch of texts in ``contents``. No decision and no write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any

from es_simhash.flows.confirmation import check_unchanged, while_unchanged
from es_simhash.flows.context import Context, Index
from es_simhash.flows.grouping.contents import TextFields, fetch_contents
from es_simhash.flows.lookup.batch import Batch, make_batch, take_answer
from es_simhash.flows.lookup.index_stats import index_stats
from es_simhash.flows.lookup.options import Options
from es_simhash.flows.lookup.question import Question, Subject
from es_simhash.flows.protocol import Flow
from es_simhash.flows.transfer.pages import Hits, read_each
from es_simhash.flows.transfer.refresh import refresh
from es_simhash.flows.transfer.retry import Patience, attempt, retry
from es_simhash.hashing import from_hex
from es_simhash.index.documents import read_text
from es_simhash.index.fields import Fields
from es_simhash.index.grouping.content import Content
from es_simhash.index.grouping.dates import milliseconds_of
from es_simhash.index.grouping.in_flight import ExistingDocument
from es_simhash.index.grouping.item import Item
from es_simhash.index.grouping.rule import Grouping
from es_simhash.index.keys import Key
from es_simhash.index.meta import IndexSettings
from es_simhash.index.plan_cost import IndexStats
from es_simhash.index.rescore import NearDup, NearDups

__all__ = ["Existing", "ExistingLookup", "GroupLookups"]

PAGE = 1_000
# A writer plans for at least so many documents: a small index may grow before its size is read again.
SMALLEST = 1_000_000
ATTEMPTS = 8


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
        self._subject = Subject(context, index, settings, IndexStats(), options)

    def prepare(self) -> Flow[None]:
        """Learn the size that plans are made for; repeat it now and then, since the index grows under a writer."""
        found = (yield from index_stats(self._subject.context, self._subject.index, again=True)) or IndexStats()
        stats = replace(found, documents=max(found.documents, SMALLEST))
        self._subject = replace(self._subject, stats=stats)

    def batch(self, fingerprints: Sequence[int]) -> Batch:
        """Return the request for the documents near each of *fingerprints*, one or more."""
        return make_batch([Question(self._subject, each) for each in fingerprints])

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

    def ask(self, fingerprints: Sequence[int]) -> Flow[dict[int, NearDups]]:
        """Return the documents near each of *fingerprints*, in one request."""
        if not fingerprints:
            return {}
        yield from check_unchanged(self._subject.context, self._subject.index, self._subject.settings)
        batch = self.batch(fingerprints)
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


@dataclass(frozen=True, slots=True)
class Existing:
    """
    The documents near those of one batch, as searches show them.

    Attributes:
        near:
            For each fingerprint looked up, the documents within max_distance of it in the order in which they are
            preferred: the one that was grouped first comes first.
        canonicals:
            Fingerprints of canonicals that are not near themselves, by id; only for ``connected``.
        gaps:
            For a fingerprint whose lookup was incomplete, why.
        is_compared:
            Whether texts are compared.
    """

    near: Mapping[int, Sequence[ExistingDocument]] = field(default_factory=dict)
    canonicals: Mapping[str, int] = field(default_factory=dict)
    gaps: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    is_compared: bool = False

    def without(self, ids: AbstractSet[str]) -> Existing:
        """Return it without the documents with these *ids*."""
        near = {fingerprint: [each for each in found if each.id not in ids] for fingerprint, found in self.near.items()}
        return replace(self, near=near)


class ExistingLookup:
    """
    Looks up batch after batch of one ingest.

    Args:
        context:
            What the client object knows.
        index:
            What is searched.
        settings:
            Settings of the index.
        grouping:
            Which documents are neighbours, and the rule.
        text_fields:
            The text fields of the indices that are searched.
        with_source:
            Whether the policy wants to see whole documents.
    """

    def __init__(
        self,
        context: Context,
        index: str,
        *,
        settings: IndexSettings,
        grouping: Grouping,
        text_fields: TextFields,
        with_source: bool,
    ) -> None:
        self._text_fields = text_fields
        self._patience = Patience(ATTEMPTS)
        self._prefix = context.prefix
        self._index = index
        self._grouping = grouping
        self._lookups = GroupLookups(
            context,
            index,
            settings,
            max_distance=grouping.max_distance,
            canonicals_only=grouping.rule == "star",
            source=with_source,
        )

    def prepare(self) -> Flow[None]:
        """Make everything written so far visible to lookups, and read the statistics that their plan needs."""
        yield from refresh(self._index)
        yield from self._lookups.prepare()

    def batch(self, items: Iterable[Item]) -> Batch | None:
        """Return the lookups for *items*; ``None`` where none has a fingerprint."""
        prints = (item.draft.fingerprint for item in items if item.draft is not None)
        wanted = dict.fromkeys(each for each in prints if each is not None)
        return self._lookups.batch(list(wanted)) if wanted else None

    def look_up(self, items: Iterable[Item]) -> Flow[Existing]:
        """Return what searches show near *items* now."""
        batch = self.batch(items)
        if batch is None:
            return Existing()
        return (yield from self.take(batch, (yield from attempt(batch.call()))))

    def take(self, batch: Batch, answer: Any) -> Flow[Existing]:
        """Return what the *answer* to *batch* shows; it may be the exception that the request failed with."""
        found = yield from self._lookups.take(batch, answer)
        contents = yield from self._contents(found.values())
        near = {fingerprint: self._documents(each, contents) for fingerprint, each in found.items()}
        canonicals = {} if self._grouping.rule == "star" else (yield from self._other_canonicals(near.values()))
        gaps = {fingerprint: each.reasons for fingerprint, each in found.items() if not each.complete}
        return Existing(near, canonicals, gaps, is_compared=self._grouping.similarity is not None)

    def _contents(self, found: Iterable[NearDups]) -> Flow[dict[Key, Content] | None]:
        """Return what the documents *found* are compared by; ``None`` where only distances count."""
        if self._grouping.is_by_distance_alone:
            return None
        wanted = list({each.key: None for answer in found for each in answer})
        contents = yield from fetch_contents(
            self._index, wanted, grouping=self._grouping, text_fields=self._text_fields, patience=self._patience
        )
        return contents

    def _documents(self, found: NearDups, contents: Mapping[Key, Content] | None) -> list[ExistingDocument]:
        # A document that was deleted since the lookup has no content.
        there = [each for each in found if contents is None or each.key in contents]
        return [
            ExistingDocument(
                each.id,
                each.fingerprint,
                self._lookups.group_of(each) or each.id,
                each.index,
                each.source,
                each.routing,
                content=None if contents is None else contents[each.key],
                at=int(milliseconds_of(self._lookups.at_of(each)) or 0),
            )
            for each in sorted(there, key=lambda each: (self._lookups.at_of(each), each.id, each.index))
        ]

    def _other_canonicals(self, found: Iterable[Sequence[ExistingDocument]]) -> Flow[dict[str, int]]:
        """Return the fingerprints of the canonicals of members that were found."""
        groups = {each.group for near in found for each in near if each.group != each.id}
        if not groups:
            return {}
        name = Fields(self._prefix).fingerprint
        body = {"query": {"ids": {"values": sorted(groups)}}, "docvalue_fields": [name], "_source": False}
        known: dict[str, int] = {}

        def note(hits: Hits) -> None:
            known.update({h["_id"]: from_hex(h["fields"][name][0]) for h in hits if name in h.get("fields", ())})

        yield from retry(lambda: read_each(self._index, body, note, page=PAGE))
        return known
