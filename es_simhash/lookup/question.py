"""
One lookup as data: what is asked, the plan, the bodies of its searches, and what may be asked after a refusal.

It sends nothing. No answer depends on an estimate: a wrong one makes a lookup slower.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from es_simhash.hashing import to_hex
from es_simhash.lookup.judge import Read
from es_simhash.lookup.lookup_options import LookupOptions
from es_simhash.lookup.plan import LookupPlan, estimate, plan_lookup
from es_simhash.lookup.query import Query, build_body, candidate_clauses
from es_simhash.mapping.context import Context, IndexStats
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.meta import DEFAULT_MAX_DISTANCE, IndexSettings
from es_simhash.transport.protocol import Index
from es_simhash.transport.refusals import NO_SCRIPT, NO_SOURCE, VIEW_ENDED, Refusal

# Most texts that come with hits, and their characters: more are read by themselves, once they are known to be wanted.
_TEXTS, _CHARACTERS = 300, 4_000_000

# So many candidates are read one lookup after another.
MANY = 600

# The plan for an index that was not measured suits a large and skewed one. It costs little more in a small one.
ASSUMED = IndexStats(documents=64_000_000, density=8.0)


@dataclass(frozen=True, slots=True)
class Subject:
    """
    The common part of several questions; *stats* are ``None`` if they were not measured.
    *read*: where the texts go that hits bring with them, if few are expected; ``None`` if none are wanted.
    *is_one_page*: what one page does not answer is not answered.
    """

    context: Context
    index: Index
    settings: IndexSettings
    stats: IndexStats | None
    options: LookupOptions
    read: Read | None = None
    is_one_page: bool = False

    @property
    def max_distance(self) -> int:
        return DEFAULT_MAX_DISTANCE if self.options.max_distance is None else self.options.max_distance

    @property
    def field(self) -> str:
        return Fields(self.context.prefix).fingerprint

    @property
    def routing(self) -> dict[str, str]:
        return {} if self.options.routing is None else {"routing": self.options.routing}

    @property
    def milliseconds(self) -> float:
        """How long one lookup by block terms is expected to take the server."""
        return estimate(Question(self, 0).plan, self.stats or ASSUMED).milliseconds

    def fingerprints_body(self, fingerprints: Iterable[int], *, page: int, reads_texts: bool = False) -> dict[str, Any]:
        """Return the body of a search for the documents that have one of *fingerprints*, and for no others."""
        clause = {"terms": {self.field: sorted(map(to_hex, fingerprints))}}
        return self.body([clause], page=page, reads_texts=reads_texts)

    def body(self, clauses: Sequence[Query], *, page: int, reads_texts: bool = False) -> dict[str, Any]:
        """Return the body of a search for the documents that match all *clauses*, with at most *page* hits."""
        options = self.options
        body = build_body(clauses, options.filter, options.exclude_ids, self.context.prefix, page, options.source)
        if reads_texts and self.read is not None:
            body["docvalue_fields"] += self.read.judging.docvalue_fields
            body["_source"] = options.source or self.read.judging.text_fields.all
        return body

    @property
    def most_texts(self) -> int:
        """Most hits of a search that bring their texts with them: few, and fewer the longer texts were seen."""
        source = self.options.source
        if self.read is None or not (isinstance(source, bool) or set(self.read.judging.text_fields.all) <= {*source}):
            return 0
        longest = self.context.longest_text(self.index)  # not known before one was read
        return min(_TEXTS, _CHARACTERS // longest) if longest else 0


class Question:
    """
    The question of one lookup, with its plan. ``while True:`` ``with question:`` is a search for it; a refusal ends the
    block, and the loop begins anew where another search is possible.
    *may_script*: whether a script may filter, as far as is known. *page*: most hits of the first search. *expected*:
    candidates by the cost model; 0 if not measured. *is_full*: the first page was full.
    """

    __slots__ = (
        *("_is_again", "expected", "field", "fingerprint", "is_full", "may_script"),
        *("max_distance", "page", "plan", "reads_texts", "subject"),
    )

    def __init__(self, subject: Subject, fingerprint: int) -> None:
        self.subject = subject
        self.fingerprint = fingerprint
        self.field = subject.field
        self.max_distance = subject.max_distance
        self.may_script = subject.settings.allows_scripts and subject.context.may_script(subject.index)
        self.is_full = self._is_again = False
        self._choose_plan()

    def __enter__(self) -> None:
        """Begin a search."""

    def __exit__(self, _: object, error: BaseException | None, __: TracebackType | None) -> bool:
        return isinstance(error, Exception) and self.adapt(error)

    def _choose_plan(self) -> None:
        """Choose the plan, and with it the size of the first page."""
        sizes, stats = self.subject.options.sizes, self.subject.stats
        self.plan: LookupPlan = plan_lookup(self.max_distance, stats=stats or ASSUMED, scripts=self.may_script)
        hits = estimate(self.plan, stats or ASSUMED).hits
        self.page = int(min(max(2 * hits, sizes.first_page), sizes.largest_page))
        self.expected = 0.0 if stats is None else hits
        most = self.subject.most_texts
        # A page that is full shows that more were found than that: then they are read without texts.
        self.reads_texts = most > 0 and 2 * hits <= most
        if self.reads_texts:
            self.page = min(self.page, most)

    @property
    def expects_many(self) -> bool:
        """Whether so many candidates are expected that those of many lookups at once would fill the memory."""
        return self.expected > MANY

    def adapt(self, refusal: Refusal) -> bool:
        """
        Return whether another search is possible after a *refusal*; nothing else decides that.
        It has no script, or hits without texts, or reads all once more.
        """
        if not refusal:
            return False
        if self.is_full and not self._is_again and VIEW_ENDED.meets(refusal):
            self._is_again = True  # an index was made anew while it was read
            return True
        if self.subject.most_texts and NO_SOURCE.meets(refusal):  # an index keeps none
            self.subject.context.note_text(self.subject.index, _CHARACTERS + 1)
            self._choose_plan()
            return True
        if self.plan.script and NO_SCRIPT.meets(refusal):
            self.may_script = False
            self._choose_plan()
            return True
        return False

    def body(self) -> dict[str, Any]:
        return self.shared_body([self], page=self.page)

    def shared_body(self, questions: Sequence[Question], *, page: int) -> dict[str, Any]:
        """Return the body of one search for several *questions* like this one, with its plan."""
        prefix = self.subject.context.prefix
        clauses = candidate_clauses([each.fingerprint for each in questions], self.plan, prefix=prefix)
        return self.subject.body(clauses, page=page, reads_texts=self.reads_texts and not self.is_full)
