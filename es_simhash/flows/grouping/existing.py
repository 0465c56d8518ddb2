"""
Looks up the documents that new documents may duplicate. Nothing is decided and nothing is written here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from es_simhash.flows.context import Context
from es_simhash.flows.grouping.lookups import GroupLookups
from es_simhash.flows.lookup.batch import Batch
from es_simhash.flows.protocol import Flow
from es_simhash.flows.transfer.pages import Hits, read_pages
from es_simhash.flows.transfer.refresh import refresh
from es_simhash.flows.transfer.retry import retry
from es_simhash.hashing import from_hex
from es_simhash.index.fields import Fields
from es_simhash.index.grouping.in_flight import ExistingDocument
from es_simhash.index.grouping.item import Item
from es_simhash.index.grouping.rule import Grouping
from es_simhash.index.meta import IndexSettings
from es_simhash.index.rescore import NearDups

__all__ = ["Existing", "ExistingLookup"]

PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Existing:
    """
    The documents near those of one batch, as searches show them.

    Attributes:
        near:
            For each fingerprint looked up, the documents near it in the order in which they are preferred: the one
            that was grouped first comes first.
        canonicals:
            Fingerprints of canonicals that are not near themselves, by id; only for ``connected``.
        gaps:
            For a fingerprint whose lookup was incomplete, why.
    """

    near: Mapping[int, Sequence[ExistingDocument]] = field(default_factory=dict)
    canonicals: Mapping[str, int] = field(default_factory=dict)
    gaps: Mapping[int, tuple[str, ...]] = field(default_factory=dict)


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
            The rule and max_distance.
        with_source:
            Whether the policy wants to see whole documents.
    """

    def __init__(
        self, context: Context, index: str, *, settings: IndexSettings, grouping: Grouping, with_source: bool
    ) -> None:
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
        try:
            answer = yield batch.call()
        except Exception as error:  # noqa: BLE001 -- judged by take
            answer = error
        return (yield from self.take(batch, answer))

    def take(self, batch: Batch, answer: Any) -> Flow[Existing]:
        """Return what the *answer* to *batch* shows; it may be the exception that the request failed with."""
        found = yield from self._lookups.take(batch, answer)
        near = {fingerprint: self._documents(each) for fingerprint, each in found.items()}
        canonicals = {} if self._grouping.rule == "star" else (yield from self._other_canonicals(near.values()))
        gaps = {fingerprint: each.reasons for fingerprint, each in found.items() if not each.complete}
        return Existing(near, canonicals, gaps)

    def _documents(self, found: NearDups) -> list[ExistingDocument]:
        ordered = sorted(found, key=lambda each: (self._lookups.at_of(each), each.id, each.index))
        return [
            ExistingDocument(
                each.id, each.fingerprint, self._lookups.group_of(each) or each.id, each.index, each.source
            )
            for each in ordered
        ]

    def _other_canonicals(self, found: Iterable[Sequence[ExistingDocument]]) -> Flow[dict[str, int]]:
        """Return the fingerprints of the canonicals of members that were found."""
        groups = {each.group for near in found for each in near if each.group != each.id}
        if not groups:
            return {}
        name = Fields(self._prefix).fingerprint
        body = {"query": {"ids": {"values": sorted(groups)}}, "docvalue_fields": [name], "_source": False}
        known: dict[str, int] = {}

        def note(hits: Hits) -> Flow[bool]:
            yield from ()
            known.update({h["_id"]: from_hex(h["fields"][name][0]) for h in hits if name in h.get("fields", ())})
            return False

        yield from retry(lambda: read_pages(self._index, body, note, page=PAGE))
        return known
