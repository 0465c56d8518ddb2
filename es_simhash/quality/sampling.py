"""Reads samples of an index: documents with texts, and pairs whose texts are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

import numpy as np

from es_simhash.arguments import Count, check_fields, check_options, option
from es_simhash.errors import NAME_TEXT_FIELD, InvalidInputError, Said, shorten
from es_simhash.hashing import Scheme, fingerprints
from es_simhash.lookup.fetch import fetch_texts
from es_simhash.lookup.find_many import find_many
from es_simhash.lookup.lookup_options import LookupOptions
from es_simhash.lookup.near_dups import NearDup, NearDups
from es_simhash.mapping.context import TextFields
from es_simhash.mapping.fields import text_or_none
from es_simhash.mapping.meta import IndexSettings
from es_simhash.mapping.port import Port
from es_simhash.quality.known_pairs import LETTER_EDITS, LETTER_SHINGLES, SAME_LETTERS, RealPairs
from es_simhash.texts.measures import WORD_SHINGLES, compare_pairs
from es_simhash.transport.answers import Gap, find_gaps
from es_simhash.transport.limits import Fitting, is_beyond
from es_simhash.transport.pages import Hits
from es_simhash.transport.protocol import Index, Key, Progress, document_key
from es_simhash.transport.retry import retry, search_texts

LARGEST_SAMPLE = 10_000
# Documents fetched at once; with texts of a few thousand characters, a few megabytes.
_PAGE = 1_000


def sample_option(default: int) -> Any:
    """Return the option for how many documents are drawn."""
    return option(default, Count(1, LARGEST_SAMPLE))


def seed_option(default: int) -> Any:
    """Return the option for the seed: 0 to 2**31 - 1, which servers take."""
    return option(default, Count(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleOptions:
    """
    Which documents are drawn, and where their text is, checked.

    Args:
        text_field:
            Field or fields of the text; by default those that the index records.
        sample:
            Documents drawn at random, 1 to 10,000; all if there are fewer.
        seed:
            Chooses what is drawn at random.
    """

    text_field: str | Sequence[str] = ()
    sample: int = sample_option(1_000)
    seed: int = seed_option(0)

    def __post_init__(self) -> None:
        check_fields("text_field", self.text_field, may_lack=True)
        check_options(self)

    def fields(self, settings: IndexSettings | None) -> tuple[str, ...]:
        """Return the text fields that are named, else those that *settings* record."""
        named = check_fields("text_field", self.text_field, may_lack=True)
        return named or (settings.text_fields if settings else ())

    def named_fields(self, index: Index, settings: IndexSettings | None) -> tuple[str, ...]:
        """Return them, or raise InvalidInputError if there are none."""
        if not (found := self.fields(settings)):
            raise InvalidInputError(Said(f"index {shorten(index)} does not record its text field: ", NAME_TEXT_FIELD))
        return found


async def sample_documents(
    server: Port,
    index: Index,
    size: int,
    *,
    query: Mapping[str, Any],
    text_fields: Sequence[str],
    source: Sequence[str] = (),
    docvalue_fields: Sequence[str] = (),
    seed: int = 0,
    with_text: bool = False,
) -> tuple[Hits, list[Gap], int]:
    """
    Return up to *size* random documents that match *query*, why some could not be drawn, and how many were drawn.
    The same seed returns the same documents while the index does not change. Fewer are returned if fewer match, or if
    the ``max_result_window`` of the index is smaller. *with_text*: documents are drawn until so many have a text: no
    query knows an empty text, or the texts that a mapping hides.
    """
    drawn = 0
    hits: dict[Key, Mapping[str, Any]] = {}  # copies of a shard may order equal scores otherwise from page to page
    gaps: dict[Gap, None] = {}
    page = Fitting(min(size, _PAGE), "hits")
    while len(hits) < size:
        server.tell(Progress(len(hits), size, "sampling texts"))
        # Where few of those drawn are wanted, pages stay as large as they are.
        wanted = min(page.size, size - len(hits) if drawn == len(hits) else page.size)
        body = {
            "from": drawn,
            "size": wanted,
            "query": {
                "function_score": {
                    "query": dict(query),
                    "random_score": {"seed": seed, "field": "_seq_no"},
                    "boost_mode": "replace",
                }
            },
            "docvalue_fields": list(docvalue_fields),
        }
        try:
            answer = await retry(server, partial(search_texts, server, index, body, text_fields, source=source))
        except Exception as error:
            if drawn and is_beyond(error, "hits"):
                break
            if not page.shrink(error):
                raise
            continue
        gaps |= dict.fromkeys(find_gaps(answer))
        found = answer["hits"]["hits"]
        for hit in found:
            drawn += 1
            if not with_text or text_or_none(hit, text_fields):
                hits.setdefault(document_key(hit), hit)
            if len(hits) == size:
                break
        if len(found) < wanted:
            break
    return list(hits.values()), list(gaps), drawn


LOOKUPS = 200
"""Sampled documents that are looked up."""
_TOGETHER = 20
MOST_NEAR = 250_000
"""Once so many documents near sampled ones were read, no more of these are looked up."""
# One is looked up at a time where one has more documents near it, so that no more are in memory at once.
_MANY = 10_000
# Of the documents near one, so many are compared, and as many of those farther away; each then stands for several.
_COMPARED, _NEAR = 50, 12


@dataclass(frozen=True, slots=True)
class _Pair:
    """A sampled text, by its number, and a document near it; *weight* is the number of pairs that it stands for."""

    number: int
    near_dup: NearDup
    weight: float


async def read_real_pairs(
    server: Port,
    index: Index,
    sampled: Sequence[tuple[Key, str]],
    *,
    settings: IndexSettings,
    max_distance: int,
    seed: int,
    clauses: Sequence[Mapping[str, Any]] = (),
) -> tuple[RealPairs, tuple[str, ...]]:
    """
    Return pairs of *sampled* documents and documents near them, compared by text, and what may be missing.
    A pair occurs as often as its documents are drawn, so shares of these pairs are shares of all pairs of the index.
    Cost: a lookup for each of up to 200 documents, fewer where :data:`MOST_NEAR` are near them, and a search for every
    500 that are compared. *sampled*: keys and texts, drawn at random. *max_distance*: in bits, inclusive. *seed*:
    chooses which documents are compared where one has many near it. *clauses*: queries that the documents near the
    sampled ones must match.
    """
    chance = Random(seed)
    asked = sampled[:LOOKUPS]
    texts = [text for _, text in asked]
    values = await server.compute(lambda: list(fingerprints(texts, scheme=settings.scheme)))
    pairs: list[_Pair] = []
    reasons: dict[str, None] = {}
    options = LookupOptions(max_distance=max_distance, filter=clauses or None, on_incomplete="return")
    done = near = largest = 0
    while done < len(asked) and near <= MOST_NEAR:
        part = values[done : done + (_TOGETHER if done and largest <= _MANY else 1)]
        for answer in await find_many(server, index, None, part, options):
            if isinstance(answer, Exception):
                raise answer
            reasons |= dict.fromkeys(answer.reasons)
            pairs += _draw(done, asked[done][0], answer, chance)
            done, near, largest = done + 1, near + len(answer), max(largest, len(answer))
        server.tell(Progress(done, len(asked), "looking up near-duplicates"))
    near_keys = list({each.near_dup.key: None for each in pairs})
    found = await fetch_texts(server, index, near_keys, TextFields(others=settings.text_fields))
    known = [each for each in pairs if each.near_dup.key in found.texts]
    server.tell(Progress(0, len(known), "comparing texts"))
    compared: RealPairs = await server.compute(lambda: _compare(texts[:done], known, found.texts, settings.scheme))
    return compared, tuple(reasons)


def _draw(number: int, itself: Key, answer: NearDups, chance: Random) -> list[_Pair]:
    near = [each for each in answer if each.key != itself]
    pairs = []
    # Apart, because the many that are farther away would crowd out the few that matter most.
    for part in ([each for each in near if each.distance <= _NEAR], [each for each in near if each.distance > _NEAR]):
        drawn = part if len(part) <= _COMPARED else chance.sample(part, _COMPARED)
        pairs += [_Pair(number, each, len(part) / len(drawn)) for each in drawn]
    return pairs


def _compare(texts: Sequence[str], pairs: Sequence[_Pair], others: dict[Key, str], scheme: Scheme) -> RealPairs:
    places = {key: len(texts) + place for place, key in enumerate(others)}
    left = np.array([each.number for each in pairs], np.int64)
    right = np.array([places[each.near_dup.key] for each in pairs], np.int64)
    every = [*texts, *others.values()]
    similarity, _ = compare_pairs(every, left, right, measure=WORD_SHINGLES.after(scheme))
    letters, _ = compare_pairs(every, left, right, measure=LETTER_EDITS.after(scheme), bound=SAME_LETTERS)
    edited, _ = compare_pairs(every, left, right, measure=LETTER_SHINGLES.after(scheme))
    distance = np.array([each.near_dup.distance for each in pairs], np.int64)
    weight = np.array([each.weight for each in pairs], np.float64)
    return RealPairs(distance, similarity, weight, left, letters, edited, len(texts))
