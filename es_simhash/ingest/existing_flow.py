"""
Looks up the documents that new documents may duplicate, and what these are compared by.

The requests are made in ``ingest_lookups``, the fetch of texts in ``contents``. No decision and no write.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any

from es_simhash.groups.content import Content, milliseconds_of
from es_simhash.groups.contents_flow import TextFields, fetch_contents
from es_simhash.groups.lookups_flow import ATTEMPTS, GroupLookups
from es_simhash.groups.rule import Grouping
from es_simhash.hashing import from_hex
from es_simhash.ingest.in_flight import ExistingDocument
from es_simhash.ingest.item import Item
from es_simhash.ingest.lookups_flow import Asked, IngestLookups
from es_simhash.lookup.memory_options import LookupRequest
from es_simhash.lookup.near_dups import NearDups
from es_simhash.mapping.context import Context
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.meta import IndexSettings
from es_simhash.transport.keys import Key
from es_simhash.transport.pages_flow import read_each
from es_simhash.transport.protocol import Flow, Together
from es_simhash.transport.refresh_flow import refresh
from es_simhash.transport.retry_flow import Patience, attempt, retry
from es_simhash.transport.view import Hits

PAGE = 1_000


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
        request:
            How to look up.
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
        request: LookupRequest,
    ) -> None:
        self._text_fields = text_fields
        self._patience = Patience(ATTEMPTS)
        self._prefix = context.prefix
        self._index = index
        self._grouping = grouping
        self._group_lookups = GroupLookups(
            context,
            index,
            settings,
            max_distance=grouping.max_distance,
            canonicals_only=grouping.rule == "star",
            source=with_source,
        )
        self._lookups = IngestLookups(
            context, index, self._group_lookups, max_distance=grouping.max_distance, request=request
        )

    def prepare(self) -> Flow[None]:
        """Make everything written so far visible to lookups, and read the statistics that their plan needs."""
        yield from refresh(self._index)
        yield from self._lookups.prepare()

    def note_written(self, items: Iterable[Item]) -> None:
        """Note which *items* were written, all of which are in flight until :meth:`prepare`."""
        self._lookups.note_written(Counter(filter(None, map(_written_to, items))))

    def ask(self, items: Iterable[Item]) -> Flow[Asked | None]:
        """Return what to ask about *items*; ``None`` where none has a fingerprint."""
        wanted = _fingerprints_of(items)
        return (yield from self._lookups.ask(wanted)) if wanted else None

    def take(self, asked: Asked, answers: Sequence[Any]) -> Flow[Existing]:
        """Return what the *answers* to the calls of *asked* show; each may be the exception that it failed with."""
        return (yield from self._read((yield from self._lookups.take(asked, answers))))

    def look_up_first(self, items: Iterable[Item]) -> Flow[Existing]:
        """Return what searches show near *items* now, while nothing else is asked."""
        asked = yield from self.ask(items)
        return Existing() if asked is None else (yield from self.take(asked, (yield Together(asked.calls))))

    def look_up(self, items: Iterable[Item]) -> Flow[Existing]:
        """Return what searches show near *items* now; the server is asked, whatever else is being asked."""
        wanted = _fingerprints_of(items)
        if not wanted:
            return Existing()
        batch = self._group_lookups.batch(wanted)
        answer = yield from attempt(batch.call())
        return (yield from self._read((yield from self._group_lookups.take(batch, answer))))

    def _read(self, found: Mapping[int, NearDups]) -> Flow[Existing]:
        """Return the documents *found*, with what they are compared by."""
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
                self._group_lookups.group_of(each) or each.id,
                each.index,
                each.source,
                each.routing,
                content=None if contents is None else contents[each.key],
                at=int(milliseconds_of(self._group_lookups.at_of(each)) or 0),
            )
            for each in sorted(there, key=lambda each: (self._group_lookups.at_of(each), each.id, each.index))
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


def _written_to(item: Item) -> str | None:
    """Return the index of *item*, if it was written whole and under the id by which it is in flight."""
    outcome, operation = item.outcome, item.operation
    if outcome is None or outcome.version is None or operation is None or operation.kind not in ("index", "create"):
        return None
    return None if item.draft is None or item.is_renamed else outcome.index


def _fingerprints_of(items: Iterable[Item]) -> list[int]:
    """Return the fingerprints of *items*, each once."""
    drafts = (item.draft for item in items if item.draft is not None)
    return list(dict.fromkeys(each.fingerprint for each in drafts if each.fingerprint is not None))
