"""Lookups by text, by fingerprint and by document: the order of requests for one of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from es_simhash.arguments import check_key
from es_simhash.errors import InvalidInputError, WrongTypeError, shorten
from es_simhash.hashing import BLOCK_BITS, fingerprint as compute_fingerprint, from_hex, to_hex
from es_simhash.lookup.content import Content
from es_simhash.lookup.fetch import meant_hits, search_hits
from es_simhash.lookup.judge import Read, judge
from es_simhash.lookup.lookup_options import LookupOptions, check_complete
from es_simhash.lookup.near_dups import NearDups, hit_fingerprints
from es_simhash.lookup.question import Question, Subject
from es_simhash.lookup.rules import Asker, Judging, LookupRule, judging_for
from es_simhash.lookup.search import search
from es_simhash.mapping.context import ASSUMED, IndexStats
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.meta import IndexSettings
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import Attempts, read_index_settings, read_settings_by_index
from es_simhash.transport.answers import Gap, check_whole, find_gaps, sentences
from es_simhash.transport.pages import Hits
from es_simhash.transport.protocol import Index, Key, check_index, document_key, status_of


async def find(
    server: Port, index: Index, text: str | None, fingerprint: int | None, options: LookupOptions
) -> NearDups:
    """
    Return the near-duplicates of *text* by the rule, or those of *fingerprint* by bits alone, in *index*.
    Cost: one search if few candidates are expected and they fit on a page; before the first lookup in an index, one
    request for its mapping, and beyond distance 2 two for its size. One search more for every 500 texts that did not
    come with the candidates.
    """
    check_index(index)
    check_question(text, fingerprint)

    asker: Asker = "fingerprint" if text is None else "text"
    attempts = Attempts(server, index)
    while True:
        with attempts:
            settings = await attempts.settings()
            judging = await read_judging(server, index, settings, options, asker)
            wanted = fingerprint if text is None else await server.compute(_fingerprint, text, settings)
            if wanted is None:
                return nothing_for(settings, judging)
            answer = await _find_judged(server, index, settings, options, judging, wanted, Content(text))
            return check_complete(answer)


async def read_judging(
    server: Port, index: Index, settings: IndexSettings, options: LookupOptions, asker: Asker
) -> Judging:
    """Return how a lookup in *index* judges; no request, since *settings* were just learned."""
    return judging_for(settings, await read_settings_by_index(server, index), options, asker)


async def read_rule(server: Port, index: Index) -> LookupRule:
    """Return the rule by which a document is looked up in *index*."""
    settings = await read_index_settings(server, index)
    return (await read_judging(server, index, settings, LookupOptions(), "document")).used


# Documents that are looked at first, for each that is wanted: most rules reject some of them.
_AHEAD, _FEWEST, _MORE = 4, 100, 10


async def _find_judged(
    server: Port,
    index: Index,
    settings: IndexSettings,
    options: LookupOptions,
    judging: Judging,
    fingerprint: int,
    asked: Content,
    leave: Collection[Key] = (),
) -> NearDups:
    """Return what the rule accepts near *fingerprint*, without the documents to *leave*."""
    size = options.size
    read = None if judging.rule.is_by_distance_alone else Read(judging)
    # There may be very many copies. Where few are wanted, the nearest are read first, and more if too few are accepted.
    most = size if size is None or read is None else max(_AHEAD * size, _FEWEST)
    while True:
        searched = replace(searching(options, judging), size=None if most is None else most + len(leave))
        subject = replace(await read_subject(server, index, settings, searched), read=read)
        found = await search(server, Question(subject, fingerprint))
        is_all = most is None or len(found) < most + len(leave)
        others = replace(found, items=tuple(each for each in found if each.key not in leave))
        how: Any = {"judging": judging, "scheme": settings.scheme, "size": size, "read": read}
        [answer] = await judge(server, index, [others], [asked], **how)
        if read is not None and read.texts:
            server.context.note_text(index, max(map(len, read.texts.values())))
        if is_all or size is None or len(answer) >= size:
            return answer
        most = _MORE * (most or 0) if (most or 0) < _FEWEST * _MORE * _MORE else None


def searching(options: LookupOptions, judging: Judging) -> LookupOptions:
    """Return the options of the search for candidates: as far as the rule reaches."""
    return replace(options, max_distance=judging.used.max_distance, verify=None, preset=None)


async def read_subject(
    server: Port, index: Index, settings: IndexSettings, options: LookupOptions, *, many: bool = False
) -> Subject:
    """Return the subject of one lookup, or of *many*, with the size of the index."""
    stats = await index_stats(server, index, None if many else options.max_distance)
    return Subject(server.context, index, settings, stats, options)


def nothing_for(settings: IndexSettings, judging: Judging) -> NearDups:
    """Return the answer for a text without features, which has no near-duplicates."""
    return NearDups(scheme=settings.scheme, max_distance=judging.used.max_distance, rule=judging.used)


def check_question(text: str | None, fingerprint: int | None) -> None:
    """Raise an error unless exactly one of *text* and *fingerprint* is given and it can be used."""
    if (text is None) == (fingerprint is None):
        raise WrongTypeError("give either a text or fingerprint=, not both and not neither")
    if text is not None and not isinstance(text, str):
        raise WrongTypeError(f"text must be a string, not {type(text).__name__}")
    if fingerprint is not None:
        to_hex(fingerprint)


def _fingerprint(text: str, settings: IndexSettings) -> int | None:
    return compute_fingerprint(text, scheme=settings.scheme)


# One id may stand in several indices, and in several shards of one.
COPIES = 100


def check_id(id: str) -> None:
    """Raise an error if *id* cannot be the ``_id`` of a document, or cannot be sent."""
    check_key("id", id, wanted="the id of a document")


async def find_of(server: Port, index: Index, id: str, options: LookupOptions) -> NearDups:
    """
    Return the near-duplicates of the document *id* of *index*, without the document itself.
    If several documents have that id, the one with the caller's routing value is meant, else all of them. The routing
    value does not restrict the search: near-duplicates are found in all shards. InvalidInputError is raised if there is
    no such document, it has no fingerprint, or the documents of that id have different ones.
    Cost: one search for the document's fingerprint, then as :func:`find`.
    """
    check_index(index)
    check_id(id)
    routing, options = options.routing, replace(options, routing=None)

    attempts = Attempts(server, index)
    while True:
        with attempts:
            settings = await attempts.settings()
            judging = await read_judging(server, index, settings, options, "document")
            itself, gaps = await _read_stored(server, index, id, routing, judging)
            if not itself:
                check_whole(gaps)
            fingerprint = _fingerprint_of(itself, id, index, Fields(server.prefix).fingerprint)
            asked = _asked(judging, id, itself)
            how: Any = {"leave": set(map(document_key, itself))}
            found = await _find_judged(server, index, settings, options, judging, fingerprint, asked, **how)
            # A copy of the document that was not read may have another fingerprint.
            reasons = tuple(dict.fromkeys((*found.reasons, *sentences(gaps))))
            answer = replace(found, complete=found.complete and not gaps, reasons=reasons)
            return check_complete(answer)


def _asked(judging: Judging, id: str, itself: Hits) -> Content:
    """Return what the document *id* is compared by; raise if the documents of that id differ in it."""
    asked = [judging.content(hit) for hit in itself]
    if len({content.key for content in asked}) > 1:
        raise InvalidInputError(
            f"document {shorten(id)} cannot be compared: several documents of that id differ in what the rule "
            "compares: name one index, or the document's routing"
        )
    return asked[0]


async def read_fingerprint(server: Port, index: Index, id: str, routing: str | None = None) -> int:
    """
    Return the fingerprint that *index* has for the document *id*; errors as :func:`find_of`.
    IncompleteSearchError is raised if a shard did not answer: a copy of the document there may have another
    fingerprint.
    """
    check_id(id)
    if routing is not None:
        check_key("routing", routing)
    hits, gaps = await _read_stored(server, check_index(index), id, routing)
    check_whole(gaps)
    return _fingerprint_of(hits, id, index, Fields(server.prefix).fingerprint)


async def _read_stored(
    server: Port, index: Index, id: str, routing: str | None, judging: Judging | None = None
) -> tuple[Hits, list[Gap]]:
    """Return the documents of that id, with fingerprints and what the rule compares, and why some may be missing."""
    name = Fields(server.prefix).fingerprint
    names = [name, *([] if judging is None else judging.docvalue_fields)]
    body: dict[str, Any] = {"size": COPIES, "query": {"ids": {"values": [id]}}, "docvalue_fields": names}
    has_texts = judging is not None and judging.rule.similarity is not None
    answer = await search_hits(server, index, body, judging.text_fields.all if judging and has_texts else ())
    return meant_hits(answer["hits"]["hits"], routing), find_gaps(answer)


def no_document(id: str, index: Index) -> InvalidInputError:
    return InvalidInputError(f"no document {shorten(id)} in {shorten(index)}: check the id; new ones need a refresh")


def _fingerprint_of(hits: Hits, id: str, index: Index, name: str) -> int:
    if not hits:
        raise no_document(id, index)
    values = {value for hit in hits for value in hit_fingerprints(hit, name)}
    if not values:
        raise InvalidInputError(
            f"document {shorten(id)} has no fingerprint: its text has no features, or it was never backfilled"
        )
    if len(values) > 1:
        where = ", ".join(sorted(map(_place_of, hits)))
        raise InvalidInputError(
            f"document {shorten(id)} differs between {where}: name one index, or the document's routing"
        )
    return from_hex(values.pop())


def _place_of(hit: Mapping[str, Any]) -> str:
    routing = hit.get("_routing")
    return str(hit["_index"]) if routing is None else f"{hit['_index']} (routing {shorten(routing)})"


SAMPLE = 40
# Up to this distance the plan for a large and skewed index costs little more in a small one.
STATS_FROM_DISTANCE = 2


async def index_stats(
    server: Port, index: Index, max_distance: int | None = None, *, again: bool = False
) -> IndexStats | None:
    """
    Return the size and skew of *index*, or ``None`` if a lookup does not need them.
    Cost: two requests, once in ten minutes; with *again* in any case. None within a small *max_distance*, where the
    size of the index decides little; *max_distance* is ``None`` for many lookups. If the server refuses, a million
    random fingerprints are assumed.
    """
    if max_distance is not None and max_distance <= STATS_FROM_DISTANCE:
        return None
    known = None if again else server.context.recall_stats(index)
    if known is None:
        try:
            known = await sample_stats(server, index)
        except Exception as error:
            if status_of(error) is None:
                raise
            known = ASSUMED
        server.context.learn_stats(index, known)
    return known


async def sample_stats(server: Port, index: Index) -> IndexStats:
    """Return the size and skew of *index*, by two requests."""
    fields = Fields(server.prefix)
    body = {
        "size": SAMPLE,
        "query": {"exists": {"field": fields.fingerprint}},
        "docvalue_fields": list(fields.blocks),
        "_source": False,
        "track_total_hits": True,
    }
    answer = await server.search(index=index, body=body)
    hits = answer["hits"]["hits"]
    documents = answer["hits"]["total"]["value"]
    sampled = {
        field: [hit["fields"][field][0] for hit in hits if field in hit.get("fields", ())] for field in fields.blocks
    }
    asked = {field: [sorted(set(terms)), *([each] for each in _repeated(terms))] for field, terms in sampled.items()}
    lines: list[Any] = []
    for field, parts in asked.items():
        for part in parts:
            lines += [{"index": index}, {"size": 0, "query": {"terms": {field: part}}, "track_total_hits": True}]
    answers = iter((await server.msearch(body=lines))["responses"])
    lengths = []
    for field, terms in sampled.items():
        own = [next(answers) for _ in asked[field]]
        if terms and not any("error" in each for each in own):
            together, *alone = (each["hits"]["total"]["value"] for each in own)
            lengths.append(mean_length(terms, together, dict(zip(_repeated(terms), alone, strict=True))))
    # A posting list has the document's own entry, or as many entries as chance would put there.
    chance = max(documents / 2**BLOCK_BITS, 1.0)
    mean = sum(lengths) / len(lengths) if lengths else 0.0
    return IndexStats(max(1, documents), max(1.0, mean / chance))


def _repeated(terms: Sequence[str]) -> list[str]:
    """Return the terms that several of the sampled documents have, each once."""
    return [term for term, count in Counter(terms).items() if count > 1]


def mean_length(terms: Sequence[str], together: int, alone: Mapping[str, int]) -> float:
    """
    Return the mean length of the posting lists of *terms*, one term for each sampled document.
    *together*: number of documents with any of the terms. *alone*: number of documents with each term that is repeated
    among *terms*; the other terms share the rest. The sample cannot show *alone*: a term of two documents out of 40 may
    be that of a twentieth of the index, or of these two only.
    """
    rest = len(set(terms)) - len(alone)
    ordinary = max(1.0, (together - sum(alone.values())) / rest) if rest else 0.0
    return sum(alone.get(term, ordinary) for term in terms) / len(terms)
