"""Many lookups: several in one search, and for each, in order, its answer or the exception that it failed with."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from operator import length_hint
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from es_simhash.arguments import check_items
from es_simhash.errors import SimHashError, WrongTypeError
from es_simhash.hashing import fingerprints as compute_fingerprints
from es_simhash.hashing.charikar import check_fingerprint
from es_simhash.lookup.content import Content
from es_simhash.lookup.find import Lookup, Scope, read_candidates, read_scope
from es_simhash.lookup.judge import Asker, accept
from es_simhash.lookup.lookup_options import LookupOptions, LookupRequest, check_complete
from es_simhash.lookup.near_dups import NearDups, by_fingerprint, hit_fingerprints
from es_simhash.lookup.plan import estimate, index_stats
from es_simhash.mapping.meta import IndexSettings
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import SettingsChanged, begin_anew, read_index_settings, send_confirmed
from es_simhash.transport.answers import find_gaps
from es_simhash.transport.conversation import attempt, change_for, halves
from es_simhash.transport.pages import Hits
from es_simhash.transport.protocol import MAX_CLAUSES, Call, Index, check_index, status_of
from es_simhash.transport.refusals import TOO_LARGE, is_passing

if TYPE_CHECKING:
    from es_simhash.lookup.index_table import TableLookups

Outcome: TypeAlias = NearDups | Exception
"""The answer of a lookup, or the exception that it failed with."""

# So many candidates are read one lookup after another.
MANY_CANDIDATES = 600

_T = TypeVar("_T")
_R = TypeVar("_R")


async def find_many(
    server: Port,
    index: Index,
    texts: Iterable[str] | None,
    fingerprints: Iterable[int | None] | None,
    options: LookupOptions,
    request: LookupRequest | None = None,
) -> list[Outcome]:
    """
    Return the near-duplicates, or the exception, of each of *texts* or *fingerprints*, in order. Cost: one multi-search
    for every 100 lookups, or one lookup after another if each has hundreds of candidates; with a table of fingerprints,
    one search for every 1,000 lookups. Memory: what is found, and the candidates of so many lookups.
    """
    results: list[Outcome] = []
    async with aclosing(stream_many(server, index, texts, fingerprints, options, request)) as parts:
        async for part in parts:
            results += part
    return results


async def stream_many(
    server: Port,
    index: Index,
    texts: Iterable[str] | None,
    fingerprints: Iterable[int | None] | None,
    options: LookupOptions,
    request: LookupRequest | None = None,
) -> AsyncGenerator[Sequence[Outcome], None]:
    """Yield what :func:`find_many` returns as it is found. Memory: what 1,000 lookups find."""
    from es_simhash.lookup.index_table import TableLookups  # noqa: PLC0415 -- loads numpy

    request = request or LookupRequest()
    check_index(index)
    given = _check_given(texts, fingerprints)
    asker: Asker = "fingerprint" if texts is None else "text"
    await read_index_settings(server, index)  # what is wrong with all lookups is no answer to one
    table = TableLookups(request, length_hint(given) or None)
    sizes = options.sizes
    try:
        for part in _parts(given, lambda: sizes.batch_in_memory if table.is_loaded else sizes.batch):
            yield await begin_anew(partial(_find_part, server, index, options, asker, part, table))
    finally:
        await table.close(server)


async def _find_part(
    server: Port, index: Index, options: LookupOptions, asker: Asker, part: Sequence[Any], table: TableLookups
) -> list[Outcome]:
    """Return the outcome of each text or fingerprint of *part*."""
    scope = await read_scope(server, index, options, asker)
    if asker == "text":
        given = await server.compute(_fingerprint_texts, part, scope.settings)
    else:
        given = [None if fingerprint is None else _or_error(check_fingerprint, fingerprint) for fingerprint in part]
    scope = replace(scope, stats=await index_stats(server, scope.index))
    found = iter(await _look_up(server, scope, [one for one in given if isinstance(one, int)], table))
    outcomes: list[Outcome] = []
    for one in given:
        outcomes.append(next(found) if isinstance(one, int) else one or scope.nothing)
    answers = {number: outcome for number, outcome in enumerate(outcomes) if isinstance(outcome, NearDups)}
    accepted = await accept(server, scope, list(answers.values()), (Content(part[number]) for number in answers))
    for number, answer in zip(answers, accepted, strict=True):
        outcomes[number] = _or_error(check_complete, answer)
    return outcomes


def _check_given(texts: Iterable[str] | None, fingerprints: Iterable[int | None] | None) -> Any:
    """Return what is given; raise an error unless it is exactly one list of items."""
    if (texts is None) == (fingerprints is None):
        raise WrongTypeError("give either texts or fingerprints=, not both and not neither")
    if texts is not None:
        return check_items("texts", texts, of="strings")
    return check_items("fingerprints", fingerprints, of="ints")


def _parts(items: Iterable[_T], size: Callable[[], int]) -> Iterator[list[_T]]:
    iterator = iter(items)
    while part := list(islice(iterator, size())):
        yield part


def _or_error(function: Callable[[_T], _R], item: _T) -> _R | Exception:
    try:
        return function(item)
    except Exception as error:  # noqa: BLE001 -- the exception is the element's result
        return error


def _fingerprint_texts(texts: Sequence[Any], settings: IndexSettings) -> list[int | Exception | None]:
    """Return the fingerprint of each text, or the ``TypeError`` for what is no text; the strings go in one batch."""
    computed = iter(compute_fingerprints((text for text in texts if isinstance(text, str)), scheme=settings.scheme))
    return [
        next(computed) if isinstance(text, str) else WrongTypeError(f"text must be a string, not {type(text).__name__}")
        for text in texts
    ]


async def _look_up(server: Port, scope: Scope, fingerprints: Sequence[int], table: TableLookups) -> list[Outcome]:
    """Return the outcome of each lookup: by the table where that has it, else from the server."""
    known = await table.ask(server, scope, fingerprints)
    asked = await _ask_server(server, [Lookup(scope, wanted) for wanted in fingerprints if wanted not in known])
    rest = iter(asked)
    return [known[wanted] if wanted in known else next(rest) for wanted in fingerprints]


async def _ask_server(server: Port, lookups: Sequence[Lookup]) -> list[Outcome]:
    if not lookups or estimate(lookups[0].plan, lookups[0].scope.stats).hits <= MANY_CANDIDATES:
        return await ask_together(server, lookups)
    # One after another: the candidates of many lookups at once would fill the memory.
    outcomes: list[Outcome] = []
    for lookup in lookups:
        outcomes.append(outcome := await attempt(read_candidates(server, lookup)))
        if isinstance(outcome, Exception) and status_of(outcome) is None and not isinstance(outcome, SimHashError):
            raise outcome  # a server that cannot be reached fails every element
    return outcomes


@dataclass(frozen=True, slots=True)
class MultiSearch:
    """
    Lookups of one scope, in order, that go out in one multi-search; those of a group share a search of it, which costs
    a server less than a search for each. One after the other they have the same answers.
    """

    groups: Sequence[Sequence[Lookup]]

    @property
    def lookups(self) -> list[Lookup]:
        return [lookup for group in self.groups for lookup in group]

    def call(self) -> Call:
        scope = self.groups[0][0].scope
        header = {"index": scope.index, **scope.routing}
        return Call("msearch", {"body": [line for group in self.groups for line in (header, _body_of(group))]})


def make_multi_search(lookups: Sequence[Lookup]) -> MultiSearch:
    """Return *lookups* of one scope as a multi-search, in which several share a search where that is cheaper."""
    most = _most_together(lookups[0])
    return MultiSearch([lookups[start : start + most] for start in range(0, len(lookups), most)])


def _most_together(lookup: Lookup) -> int:
    """Return how many lookups like this one are cheaper in one search than alone."""
    sizes = lookup.scope.options.sizes
    if lookup.plan.is_scan or lookup.scope.context.is_plain:
        return 1
    expected = estimate(lookup.plan, lookup.scope.stats)
    most = (
        sizes.shared,
        sizes.shared_terms // lookup.plan.terms,
        MAX_CLAUSES // (2 * lookup.plan.clauses),
        int(sizes.shared_passing / max(1.0, expected.passing)),
        int(sizes.largest_page / max(1.0, 2 * expected.hits)),
    )
    return max(1, min(most))


def _page_of(group: Sequence[Lookup]) -> int:
    """Return how many hits the search of *group* has at most."""
    return min(group[0].scope.options.sizes.largest_page, sum(lookup.page for lookup in group))


def _body_of(group: Sequence[Lookup]) -> dict[str, Any]:
    return group[0].shared_body([lookup.fingerprint for lookup in group], page=_page_of(group))


def _share(group: Sequence[Lookup], answer: Any) -> list[Any]:
    """
    Return the part of the *answer* that is for each lookup of *group*; ``None`` for each if they must be asked one by
    one: there is no answer, the search was refused or did not read everything, or a hit has no readable fingerprint.
    A search of one lookup returns the answer unchanged, also an exception.
    """
    if len(group) == 1:
        return [answer]
    one_by_one = [None] * len(group)
    if not isinstance(answer, Mapping) or "error" in answer or find_gaps(answer):
        return one_by_one
    hits: Hits = answer["hits"]["hits"]
    field = group[0].scope.fingerprint_field
    if len(hits) >= _page_of(group) or not all(hit_fingerprints(hit, field) for hit in hits):
        return one_by_one
    found_by = by_fingerprint(hits, field)
    most = group[0].scope.max_distance
    parts = []
    for lookup in group:
        near = [some for value, some in found_by.items() if (value ^ lookup.fingerprint).bit_count() <= most]
        # A document may have several fingerprints.
        parts.append({**answer, "hits": {"hits": list({id(hit): hit for some in near for hit in some}.values())}})
    return parts


async def ask_together(server: Port, lookups: Sequence[Lookup], *, is_patient: bool = False) -> list[Outcome]:
    """Return the outcome of each of *lookups*, in order; arguments and errors as :func:`take_answer`."""
    if not lookups:
        return []
    batch = make_multi_search(lookups)
    return await take_answer(server, batch, await attempt(_send(server, batch)), is_patient=is_patient)


async def take_answer(server: Port, batch: MultiSearch, answer: Any, *, is_patient: bool = False) -> list[Outcome]:
    """
    Return the outcome of each lookup of *batch*, in order, given the *answer* or exception of its call.
    A lookup that could not share a search gets a search for itself. A multi-search that is too large, or too much for
    the server now, is sent in halves. If the whole request is refused for another reason, the client's exception is
    raised.
    *is_patient*: what a busy server refused, or answered incompletely, is asked again, after waits.
    """
    outcomes: dict[Lookup, Outcome] = {}
    asked = [batch]

    async def ask() -> Sequence[Lookup]:
        """Return the lookups whose answers may become better."""
        part = asked.pop()
        came = answer if part is batch else await attempt(_send(server, part))
        answers = await _answers(server, part, came, is_patient=is_patient)
        outcomes.update(zip(part.lookups, await _read_answers(server, part.lookups, answers), strict=True))
        left = [lookup for lookup in part.lookups if _may_improve(lookup, outcomes[lookup])]
        asked.append(make_multi_search(left)) if left else None
        return left

    await (server.until(ask, lambda left: not left) if is_patient else ask())
    return [outcomes[lookup] for lookup in batch.lookups]


def _may_improve(lookup: Lookup, outcome: Outcome) -> bool:
    """Return whether the same lookup may have a better outcome: a document without a fingerprint stays without it."""
    return is_passing(outcome) if isinstance(outcome, Exception) else lookup.has_gaps


async def _send(server: Port, batch: MultiSearch) -> Any:
    """Return the answer to the call of *batch*."""
    scope = batch.groups[0][0].scope
    return await send_confirmed(server, scope.index, batch.call(), settings=scope.settings)


async def _answers(server: Port, batch: MultiSearch, answer: Any, *, is_patient: bool) -> list[Any]:
    """Return for each lookup of *batch* the answer to its search, or the exception of the request."""

    async def send(groups: Sequence[Sequence[Lookup]]) -> Any:
        return await _send(server, MultiSearch(groups))

    def splits(error: BaseException) -> bool:
        return is_passing(error) or TOO_LARGE.meets(error)

    parts: list[Any] = []
    for groups, came in await halves(server, batch.groups, answer, send=send, splits=splits, waits=is_patient):
        if isinstance(came, BaseException) and not splits(came):
            raise came
        answers = [came] if isinstance(came, BaseException) else came["responses"]
        parts += [part for group, one in zip(groups, answers, strict=True) for part in _share(group, one)]
    again = [lookup for lookup, part in zip(batch.lookups, parts, strict=True) if _must_ask_again(lookup, part)]
    if not again:
        return parts
    one_by_one = MultiSearch([[lookup] for lookup in again])
    came = await _answers(server, one_by_one, await attempt(_send(server, one_by_one)), is_patient=is_patient)
    answer_of = dict(zip(again, came, strict=True))
    return [answer_of.get(lookup, part) for lookup, part in zip(batch.lookups, parts, strict=True)]


def _must_ask_again(lookup: Lookup, answer: Any) -> bool:
    """Return whether *lookup* has no answer yet, or can be asked in another way after a refusal, and do so."""
    is_refused = isinstance(answer, Mapping) and "error" in answer
    return answer is None or (is_refused and change_for(answer["error"], lookup.changes))


async def _read_answers(server: Port, lookups: Sequence[Lookup], answers: Sequence[Any]) -> list[Outcome]:
    """Return the outcomes of *lookups*, from their first *answers* and the searches after them."""
    outcomes: list[Outcome] = []
    for lookup, answer in zip(lookups, answers, strict=True):
        outcomes.append(outcome := await attempt(_read_one(server, lookup, answer)))
        if isinstance(outcome, SettingsChanged):
            raise outcome  # no matter of one element
    return outcomes


async def _read_one(server: Port, lookup: Lookup, answer: Any) -> Outcome:
    if isinstance(answer, Exception):
        return answer
    # Refused alone, as for a full queue, it gets a search of its own, or the error of the client.
    return await read_candidates(server, lookup, None if "error" in answer else answer)
