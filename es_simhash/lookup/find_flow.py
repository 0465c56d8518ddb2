"""
Lookups by text or fingerprint: the near-duplicates, all of them, or an error that says why some may be missing.

The order of requests for one text lives here. The searches of one fingerprint live in ``search``; lookups by document
in ``find_of``, many lookups in ``find_many``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from es_simhash.errors import IncompleteSearchError, InvalidInputError, WrongTypeError
from es_simhash.hashing import fingerprint as compute_fingerprint, to_hex
from es_simhash.lookup.index_stats_flow import index_stats
from es_simhash.lookup.near_dups import NearDups
from es_simhash.lookup.options import Options, check_complete, effective_distance, usable_limits
from es_simhash.lookup.plan_cost import PlanEstimate, explain_plan
from es_simhash.lookup.question import Question, Subject
from es_simhash.lookup.search_flow import search, stream
from es_simhash.lookup.verify_flow import verify_near_dups
from es_simhash.mapping.confirmation_flow import with_settings
from es_simhash.mapping.context import Context
from es_simhash.mapping.limits import IndexStats
from es_simhash.mapping.meta import IndexSettings
from es_simhash.mapping.resolve_flow import read_index_settings
from es_simhash.transport.names import Index, check_index
from es_simhash.transport.protocol import Compute, Flow


def find(context: Context, index: Index, text: str | None, fingerprint: int | None, options: Options) -> Flow[NearDups]:
    """
    Return the near-duplicates of *text*, or of *fingerprint*, in *index*.

    Cost: one search where few candidates are expected and fit on a page; before the first lookup in an index, one
    request for its mapping, and beyond distance 2 two for its size.
    """
    check_index(index)
    check_question(text, fingerprint)
    if options.verification is not None and text is None:
        raise InvalidInputError("verify compares texts: ask with a text, not with a fingerprint")
    try:
        yield from read_index_settings(context, index)
    except IncompleteSearchError as error:
        return check_complete(NearDups(complete=False, reasons=error.reasons), options.on_incomplete)

    def look_up(settings: IndexSettings) -> Flow[NearDups]:
        wanted = fingerprint if text is None else (yield Compute(_fingerprint, (text, settings)))
        if wanted is None:
            return nothing_for(settings, options)
        subject = yield from read_subject(context, index, settings, before_verification(options))
        found = yield from search(Question(subject, wanted))
        return (yield from verify_found(index, [found], [text], settings, options))[0]

    return (yield from with_settings(context, index, look_up))


def before_verification(options: Options) -> Options:
    """
    Return the options of a lookup before verification: no size, since the nearest may not be the most similar.
    """
    return options if options.verification is None else replace(options, size=None)


def verify_found(
    index: Index,
    found: Sequence[NearDups],
    texts: Sequence[str | None],
    settings: IndexSettings,
    options: Options,
) -> Flow[list[NearDups]]:
    """
    Return the answers in *found*, each verified against its text where the caller asked for that.
    """
    if options.verification is None:
        return list(found)
    known = [text for text in texts if text is not None]
    if len(known) < len(texts):
        raise InvalidInputError("verify compares texts: ask with a text, not with a fingerprint")
    answers = yield from verify_near_dups(index, found, known, settings=settings, verification=options.verification)
    return [replace(answer, items=answer.items[: options.size]) for answer in answers]


def read_subject(
    context: Context, index: Index, settings: IndexSettings, options: Options, *, many: bool = False
) -> Flow[Subject]:
    """
    Return the subject of one lookup, or of *many*, with the size of the index unless the caller names a plan.
    """
    stats: IndexStats | None
    if options.plan is not None:
        stats = context.recall_stats(index) or IndexStats()
    else:
        stats = yield from index_stats(context, index, None if many else effective_distance(settings, options))
    return Subject(context, index, settings, stats, options)


def nothing_for(settings: IndexSettings, options: Options) -> NearDups:
    """
    Return the answer for a text without features, which has no near-duplicates.
    """
    return NearDups(scheme=settings.scheme, max_distance=effective_distance(settings, options))


def check_question(text: str | None, fingerprint: int | None) -> None:
    """
    Refuse a lookup that gives both *text* and *fingerprint*, or neither.

    Raises:
        TypeError: If both or none is given, or one has the wrong type.
        InvalidInputError: If the fingerprint does not fit in 64 bits.
    """
    if (text is None) == (fingerprint is None):
        raise WrongTypeError("give either a text or fingerprint=, not both and not neither")
    if text is not None and not isinstance(text, str):
        raise WrongTypeError(f"text must be a string, not {type(text).__name__}")
    if fingerprint is not None:
        to_hex(fingerprint)


def _fingerprint(text: str, settings: IndexSettings) -> int | None:
    return compute_fingerprint(text, scheme=settings.scheme)


def scan(context: Context, index: Index, text: str | None, fingerprint: int | None, options: Options) -> Flow[None]:
    """
    Emit the near-duplicates of *text*, or of *fingerprint*, page by page, in no order and in constant memory.

    Raises:
        IncompleteSearchError: After the last one, if some may be missing.
        InvalidInputError: If a size is asked for: the nearest are known only at the end.
    """
    check_index(index)
    check_question(text, fingerprint)
    if options.size is not None:
        raise InvalidInputError("a stream has no size: stop reading it, or use find_near_dups")

    def look_up(settings: IndexSettings) -> Flow[None]:
        wanted = fingerprint if text is None else (yield Compute(_fingerprint, (text, settings)))
        if wanted is not None:
            subject = yield from read_subject(context, index, settings, options)
            yield from stream(Question(subject, wanted))

    yield from with_settings(context, index, look_up)


def explain(context: Context, index: Index, max_distance: int | None) -> Flow[tuple[PlanEstimate, ...]]:
    """
    Return the estimates of the plans for *max_distance* in *index*, cheapest first.
    """
    options = Options(max_distance=max_distance)
    settings = yield from read_index_settings(context, check_index(index))
    distance = effective_distance(settings, options)
    stats = yield from index_stats(context, index, distance)
    return explain_plan(distance, stats=stats, limits=usable_limits(context, index, settings))
