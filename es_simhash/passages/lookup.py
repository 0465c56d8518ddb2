"""One lookup of passages: its options, what it compares and finds, and why something may be missing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from es_simhash.arguments import Count, option
from es_simhash.errors import InvalidInputError
from es_simhash.lookup.lookup_options import SearchOptions, check_complete
from es_simhash.lookup.query import Query
from es_simhash.mapping.context import TextFields
from es_simhash.mapping.fields import Fields, is_masked, read_hit
from es_simhash.mapping.meta import IndexSettings
from es_simhash.passages.found import Overlap, Overlaps
from es_simhash.texts.measures import check_bound
from es_simhash.transport.answers import Gap
from es_simhash.transport.pages import Hits
from es_simhash.transport.protocol import Index, Key, document_key

if TYPE_CHECKING:
    from es_simhash.passages.compare import PreparedText


SHORTEST_RUN = 100
"""Letters of the shortest run that is certain to be found (``hashing.winnowing.GUARANTEE``)."""


@dataclass(frozen=True, slots=True)
class PassageOptions(SearchOptions):
    """
    How to look up passages, checked.

    Args:
        min_contained:
            Smallest share of the shingles of the text that a document has, or the reverse, for it to be returned
            without such a run; 0 to 1.
        min_run:
            Smallest number of letters of a shared run, at least 100; 80 Chinese characters at least.
        size:
            Most documents returned, those with the largest share; ``None`` for all.
        source:
            ``False``, ``True`` or the ``_source`` fields that results carry; costs another search.
    """

    min_contained: float = option(0.8, check_bound)
    min_run: int = option(200, Count(SHORTEST_RUN))


def without_passages_query(prefix: str) -> Query:
    """Return the query of documents that have a fingerprint and no passages."""
    fields = Fields(prefix)
    written, filled = ({"exists": {"field": field}} for field in (fields.fingerprint, fields.passages))
    return {"bool": {"filter": [written], "must_not": [filled]}}


@dataclass
class PassageLookup:
    """
    One lookup of passages.
    *settings*: those on which the indices agree. *text*: set once it is known.
    """

    index: Index
    settings: IndexSettings
    text_fields: TextFields
    options: PassageOptions
    text: str = ""
    candidates: int = 0
    gaps: dict[Gap | str, None] = field(default_factory=dict)
    _seen: set[Key] = field(default_factory=set)
    _found: list[Overlap] = field(default_factory=list)
    _stale: list[str] = field(default_factory=list)

    @property
    def fields(self) -> list[str]:
        return self.text_fields.all

    @cached_property
    def terms(self) -> list[str]:
        """The terms of the text; it takes a while for a long one."""
        from es_simhash.hashing.winnowing import question_terms  # noqa: PLC0415 -- loads numpy

        return question_terms(self.text)

    @cached_property
    def _question(self) -> PreparedText:
        from es_simhash.passages.compare import PreparedText  # noqa: PLC0415 -- loads numpy

        return PreparedText(self.text, min_run=self.options.min_run)

    def note(self, reasons: Iterable[Gap | str]) -> None:
        self.gaps |= dict.fromkeys(reasons)

    def leave_out(self, keys: Iterable[Key]) -> None:
        self._seen |= set(keys)

    def compare(self, hits: Hits) -> None:
        """Compare the text with those of the *hits* that were not given before, and keep what is found."""
        from es_simhash.hashing.batches import passage_term_list  # noqa: PLC0415 -- loads numpy
        from es_simhash.passages.compare import compare_passages  # noqa: PLC0415 -- loads numpy

        fresh = {key: hit for hit in hits if (key := document_key(hit)) not in self._seen}
        if not fresh:
            return
        self._seen |= fresh.keys()
        self.candidates += len(fresh)
        options = self.options
        texts: dict[Key, str] = {}
        for key, hit in fresh.items():
            try:
                texts[key] = read_hit(hit, self.text_fields[key.index])
            except InvalidInputError as error:
                self.note([f"document {key.id!r} of {key.index!r} was not compared: {error}"])
        found = compare_passages(self._question, texts, min_contained=options.min_contained)
        self._found += found
        for overlap in found:
            del texts[overlap.key]
        terms = set(self.terms)
        for key, present in zip(texts, passage_term_list(list(texts.values())), strict=True):
            if not terms.isdisjoint(present):
                continue
            if is_masked(texts[key]):
                masked = ", ".join(self.text_fields[key.index])
                self.note([f"document {key.id!r} of {key.index!r} was not compared: this login sees {masked} masked"])
            else:
                self._stale.append(f"document {key.id!r} of {key.index!r}: its text changed since it was indexed")

    def result(self) -> Overlaps:
        """Return the answer, or raise IncompleteSearchError if it has gaps."""
        options = self.options
        answer = Overlaps(
            tuple(sorted(self._found, key=lambda overlap: overlap.order)[: options.size]),
            complete=not self.gaps,
            min_contained=options.min_contained,
            min_run=options.min_run,
            candidates=self.candidates,
            reasons=tuple(map(str, self.gaps)),
            stale=tuple(self._stale),
        )
        return check_complete(answer, what="documents with shared passages")
