"""
Lookups by text, by fingerprint and by document, from the arguments to the answer: check, settings, rule, fingerprint,
plan, candidates, texts, answer, in this order.

No answer depends on an estimate: a wrong one makes a lookup slower.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from es_simhash.errors import WrongTypeError
from es_simhash.hashing import fingerprint as compute_fingerprint, to_hex
from es_simhash.lookup.content import Content, docvalue_fields, read_content
from es_simhash.lookup.documents import check_id, differing, read_documents, shared_fingerprint
from es_simhash.lookup.judge import Asker, LookupRule, accept, choose_rule
from es_simhash.lookup.lookup_options import LookupOptions, check_complete
from es_simhash.lookup.near_dups import NearDup, NearDups, hit_fingerprints, no_fingerprint_shown, rescore
from es_simhash.lookup.plan import UNMEASURED, LookupPlan, estimate, index_stats, plan_lookup
from es_simhash.lookup.query import Query, build_body, candidate_clauses
from es_simhash.mapping.context import Context, IndexStats, TextFields
from es_simhash.mapping.fields import Fields, read_fingerprint
from es_simhash.mapping.meta import IndexSettings
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import confirm, read_known, send_confirmed
from es_simhash.transport.answers import Gap, find_gaps, sentences
from es_simhash.transport.conversation import Changes, change_for, changing
from es_simhash.transport.pages import Hits, Reading
from es_simhash.transport.protocol import Call, Index, Key, check_index, document_key
from es_simhash.transport.refusals import NO_SCRIPT, VIEW_ENDED


async def find(
    server: Port,
    index: Index,
    options: LookupOptions,
    *,
    text: str | None = None,
    fingerprint: int | None = None,
    id: str | None = None,
) -> NearDups:
    """
    Return the near-duplicates in *index* of *text* or of its document *id* by the rule, or of *fingerprint* by bits.
    A document is not in its own answer. Of several with its id, the one with the caller's routing value is meant, else
    all of them; InvalidInputError is raised if there is none, it has no fingerprint, or they differ.
    Cost: one search if the candidates fit on a page, one for every 500 of their texts, and one for a document; before
    the first lookup in an index, one request for its mapping, and beyond distance 2 two for its size.
    """
    check_index(index)
    asker = _check_asked(text, fingerprint, id)
    scope = await read_scope(server, index, options, asker)
    asked, gaps = Content(text), list[Gap]()
    if id is not None:
        scope, fingerprint, asked, gaps = await _read_asked(server, scope, id)
    elif text is not None:
        fingerprint = await server.compute(compute_fingerprint, text, scheme=scope.settings.scheme)
    if fingerprint is None:
        return scope.nothing
    scope = replace(scope, stats=await index_stats(server, index, scope.max_distance))
    found = await read_candidates(server, Lookup(scope, fingerprint))
    [answer] = await accept(server, scope, [found], [asked])
    # A copy of the document that was not read may have another fingerprint.
    reasons = tuple(dict.fromkeys((*answer.reasons, *sentences(gaps))))
    return check_complete(replace(answer, complete=not reasons, reasons=reasons))


def _check_asked(text: str | None, fingerprint: int | None, id: str | None) -> Asker:
    """Return what is asked with; raise an error unless it is exactly one thing that can be used."""
    if id is not None:
        check_id(id)
        return "document"
    if (text is None) == (fingerprint is None):
        raise WrongTypeError("give either a text or fingerprint=, not both and not neither")
    if fingerprint is not None:
        to_hex(fingerprint)
        return "fingerprint"
    if not isinstance(text, str):
        raise WrongTypeError(f"text must be a string, not {type(text).__name__}")
    return "text"


async def read_scope(server: Port, index: Index, options: LookupOptions, asker: Asker) -> Scope:
    """Return the scope of lookups in *index*. Cost: one request for its mapping, remembered for a minute."""
    settings, resolved = await read_known(server, index)
    rule, text_fields = choose_rule(settings, resolved.settings_of, options, asker)
    return Scope(server.context, index, settings, options, rule, text_fields)


async def _read_asked(server: Port, scope: Scope, id: str) -> tuple[Scope, int, Content, list[Gap]]:
    """Return the scope of lookups of the document *id*, its fingerprint and content, and why copies may be missing."""
    rule, field = scope.rule, scope.fingerprint_field
    itself, gaps = await read_documents(
        server,
        scope.index,
        id,
        scope.options.routing,
        text_fields=() if rule.similarity is None else scope.text_fields.all,
        docvalue_fields=[field, *docvalue_fields(rule)],
    )
    fingerprint = shared_fingerprint(itself, id, field)
    content, *others = [read_content(hit, rule, scope.text_fields) for hit in itself]
    if any(other.key != content.key for other in others):
        raise differing(id, itself)
    # The routing value says which document is meant: its near-duplicates are found in all shards.
    everywhere = replace(scope.options, routing=None)
    return replace(scope, options=everywhere, leave=frozenset(map(document_key, itself))), fingerprint, content, gaps


@dataclass(frozen=True, slots=True)
class Scope:
    """
    What lookups in one index have in common: its settings, the caller's options, and the rule that decides.
    *text_fields*: where the texts are of which the fingerprints are. *stats*: the size that plans are made for.
    *leave*: documents that are not found. *is_one_page*: what one page does not answer is not answered.
    """

    context: Context
    index: Index
    settings: IndexSettings
    options: LookupOptions
    rule: LookupRule
    text_fields: TextFields = field(default_factory=TextFields)
    stats: IndexStats = UNMEASURED
    leave: frozenset[Key] = frozenset()
    is_one_page: bool = False

    @property
    def max_distance(self) -> int:
        return self.rule.max_distance

    @property
    def fingerprint_field(self) -> str:
        return Fields(self.context.prefix).fingerprint

    @property
    def routing(self) -> dict[str, str]:
        return {} if self.options.routing is None else {"routing": self.options.routing}

    @property
    def nothing(self) -> NearDups:
        """The answer for a text without features, which has no near-duplicates."""
        return NearDups(scheme=self.settings.scheme, max_distance=self.max_distance, rule=self.rule)

    @property
    def may_script(self) -> bool:
        """Whether a script may filter, as far as is known."""
        return self.settings.allows_scripts and not self.context.scriptless.recall(self.index)

    def plan(self, *, scripts: bool) -> LookupPlan:
        return plan_lookup(self.max_distance, stats=self.stats, scripts=scripts)

    @property
    def milliseconds(self) -> float:
        """How long one lookup by block terms is expected to take the server."""
        return estimate(self.plan(scripts=self.may_script), self.stats).milliseconds

    @property
    def nearest(self) -> int | None:
        """How many near-duplicates are kept, the nearest; ``None`` for all, as where texts decide too."""
        return self.options.size if self.rule.is_by_distance_alone else None

    def body(self, clauses: Sequence[Query], *, page: int) -> dict[str, Any]:
        """Return the body of a search for the documents that match all *clauses*, with at most *page* hits."""
        options, prefix = self.options, self.context.prefix
        return build_body(clauses, options.filter, options.exclude_ids, prefix=prefix, size=page, source=options.source)

    def fingerprints_body(self, fingerprints: Iterable[int], *, page: int) -> dict[str, Any]:
        """Return the body of a search for the documents that have one of *fingerprints*, and for no others."""
        return self.body([{"terms": {self.fingerprint_field: sorted(map(to_hex, fingerprints))}}], page=page)


class Crowded(Exception):  # noqa: N818 -- caught where such a lookup is asked
    """A lookup that is to be answered by one page has more candidates."""


class Lookup:
    """
    The lookup of one fingerprint: the plan and page of its next search, the candidates read so far, and the
    near-duplicates among them. *changes*: what is asked after a refusal: without a script, or all anew.
    *may_script*: whether a script may filter, as far as is known. *page*: most hits of the first search.
    *is_full*: the first page was full. *has_gaps*: shards did not answer, or not whole.
    """

    __slots__ = (
        *("_is_again", "count", "fingerprint", "has_gaps", "is_full", "may_script", "near_dups", "page", "plan"),
        *("reasons", "scope", "unreadable"),
    )

    def __init__(self, scope: Scope, fingerprint: int) -> None:
        self.scope = scope
        self.fingerprint = fingerprint
        self.may_script = scope.may_script
        self.is_full = self._is_again = False
        self._choose_plan()
        self.forget()

    def _choose_plan(self) -> None:
        """Choose the plan, and with it the size of the first page."""
        scope, sizes = self.scope, self.scope.options.sizes
        self.plan = scope.plan(scripts=self.may_script)
        hits = estimate(self.plan, scope.stats).hits
        self.page = int(min(max(2 * hits, sizes.first_page), sizes.largest_page))

    def forget(self) -> None:
        """Begin to read candidates."""
        self.count = 0
        self.has_gaps = False
        self.near_dups: list[NearDup] = []
        self.reasons: dict[str, None] = {}  # why the answer is incomplete
        self.unreadable: set[str | None] = set()  # what candidates have in place of a fingerprint

    @property
    def changes(self) -> Changes:
        return {VIEW_ENDED: self._read_again, NO_SCRIPT: self._leave_script}

    def _read_again(self) -> bool:
        """Read all once more: an index was made anew while it was read."""
        may_read = self.is_full and not self._is_again
        self._is_again |= self.is_full
        return may_read

    def _leave_script(self) -> bool:
        if not self.plan.script:
            return False
        self.may_script = False
        self._choose_plan()
        return True

    def body(self) -> dict[str, Any]:
        return self.shared_body([self.fingerprint], page=self.page)

    def shared_body(self, fingerprints: Sequence[int], *, page: int) -> dict[str, Any]:
        """Return the body of one search for several *fingerprints*, with the plan of this one."""
        clauses = candidate_clauses(fingerprints, self.plan, prefix=self.scope.context.prefix)
        return self.scope.body(clauses, page=page)

    def add(self, hits: Hits) -> None:
        """
        Keep the near-duplicates among *hits*, a page of candidates; only the nearest if so many are wanted.
        Note what those without a fingerprint have in its place.
        """
        self.count += len(hits)
        scope, field = self.scope, self.scope.fingerprint_field
        readable: list[Mapping[str, Any]] = []
        for hit in hits:
            if scope.leave and document_key(hit) in scope.leave:
                continue
            if hit_fingerprints(hit, field):
                readable.append(hit)
                continue
            values = hit.get("fields", {}).get(field) or [None]
            self.unreadable.update(value for value in values if read_fingerprint(value) is None)
        prefix = scope.context.prefix
        self.near_dups += rescore(readable, self.fingerprint, max_distance=scope.max_distance, prefix=prefix)
        if scope.nearest is not None:
            self.near_dups = sorted(self.near_dups, key=lambda near_dup: near_dup.order)[: scope.nearest]

    def result(self, gaps: Sequence[Gap]) -> NearDups:
        """Return the answer, incomplete if there are *gaps* in what was read."""
        scope = self.scope
        self.has_gaps = bool(gaps)
        self.reasons |= dict.fromkeys(sentences(gaps))
        if not self.reasons and scope.may_script and not self.may_script:
            # A search that is refused for the caller's filter does not get here, and teaches other lookups nothing.
            # A refusal of before is not noted again, so that it ends after its ten minutes.
            scope.context.scriptless.learn(scope.index, value=True)
        found = {near_dup.key: near_dup for near_dup in self.near_dups}
        return NearDups(
            tuple(sorted(found.values(), key=lambda near_dup: near_dup.order)[: scope.nearest]),
            complete=not self.reasons,
            scheme=scope.settings.scheme,
            max_distance=scope.max_distance,
            plan=self.plan,
            candidates=self.count,
            reasons=tuple(self.reasons),
        )


async def read_candidates(server: Port, lookup: Lookup, answer: Mapping[str, Any] | None = None) -> NearDups:
    """
    Return the candidates within the distance, from one page, or from all pages if that is full.
    *answer*: that to the first search, if it was sent.
    """
    scope, changes = lookup.scope, lookup.changes
    lookup.forget()

    def ask() -> Coroutine[Any, Any, Mapping[str, Any]]:
        call = Call("search", {"index": scope.index, "body": lookup.body(), **scope.routing})
        return send_confirmed(server, scope.index, call, settings=scope.settings)

    # Where shards refused what others accepted, nothing is known of their documents.
    if answer is None or change_for(find_gaps(answer), changes):
        answer = await changing(ask, changes, find_gaps)
    gaps = find_gaps(answer)
    if len(hits := answer["hits"]["hits"]) < lookup.page:
        lookup.add(hits)
    elif scope.is_one_page:
        raise Crowded
    else:
        lookup.is_full = True
        gaps = await changing(lambda: _read_pages(server, lookup), changes, list)
    return lookup.result([*gaps, *await _name_unreadable(server, lookup)])


async def _read_pages(server: Port, lookup: Lookup) -> list[Gap]:
    """Read all candidates, page by page."""
    lookup.forget()
    scope, options = lookup.scope, lookup.scope.options
    started = scope.context.clock()
    reading = Reading(server, scope.index, lookup.body(), page=options.sizes.next_page, routing=options.routing)
    async with aclosing(reading.steps()) as steps:
        async for step in steps:
            lookup.add(step.hits)
    await confirm(server, scope.index, settings=scope.settings, since=started)
    return reading.gaps


async def _name_unreadable(server: Port, lookup: Lookup) -> list[Gap]:
    """
    Note as reasons the documents without a readable fingerprint that are near by their block terms, which are its
    digits: the same ones with every plan. Those where these are none either are found by no lookup.
    """
    if not lookup.unreadable:
        return []
    scope, field = lookup.scope, lookup.scope.fingerprint_field
    blocks = Fields(scope.context.prefix).blocks
    shown = sorted(value for value in lookup.unreadable if value is not None)
    clauses: list[Query] = [{"terms": {field: shown}}]
    if None in lookup.unreadable:
        there = [{"exists": {"field": block}} for block in blocks]
        clauses.append({"bool": {"filter": there, "must_not": {"exists": {"field": field}}}})
    page = scope.options.sizes.next_page
    body = scope.body([{"bool": {"should": clauses, "minimum_should_match": 1}}], page=page)
    body |= {"_source": False, "docvalue_fields": [field, *blocks]}
    reading = Reading(server, scope.index, body, page=page, routing=scope.options.routing)
    is_masked = bool(shown)  # until a search for what is shown finds it
    async with aclosing(reading.pages()) as pages:
        async for hits in pages:
            for hit in hits:
                is_masked &= field not in hit["fields"]
                terms = [str(term) for block in blocks for term in hit["fields"].get(block, ())]
                value = read_fingerprint("".join(terms))
                if value is None or hit_fingerprints(hit, field):
                    continue
                if (value ^ lookup.fingerprint).bit_count() <= scope.max_distance:
                    said = f"document {hit['_id']!r} of {hit['_index']!r} has block terms but no {field}"
                    lookup.reasons[f"{said}: run setup(index)"] = None
    if is_masked:
        lookup.reasons[no_fingerprint_shown(scope.index, field)] = None
    return reading.gaps


async def read_rule(server: Port, index: Index) -> LookupRule:
    """Return the rule by which a document is looked up in *index*."""
    return (await read_scope(server, index, LookupOptions(), "document")).rule
