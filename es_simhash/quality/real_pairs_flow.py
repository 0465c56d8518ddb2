"""
Reads pairs of documents near each other that an index really has, for ``quality.real_pairs``.

The documents near a sample of documents are looked up, and some of them are read and compared by text. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from es_simhash.hashing import Scheme, fingerprints
from es_simhash.lookup.find_many_flow import find_many
from es_simhash.lookup.near_dups import NearDup, NearDups
from es_simhash.lookup.options import Options
from es_simhash.lookup.verify_flow import fetch_texts
from es_simhash.mapping.context import Context
from es_simhash.texts.measures import WORD_SHINGLES
from es_simhash.transport.keys import Key
from es_simhash.transport.names import Index
from es_simhash.transport.protocol import Compute, Flow

if TYPE_CHECKING:
    from es_simhash.quality.real_pairs import RealPairs


LOOKUPS = 200
"""Sampled documents that are looked up."""
_TOGETHER = 20
# Of the documents near one, so many are compared, and as many of those farther away; each then stands for several.
_COMPARED, _NEAR = 50, 12


@dataclass(frozen=True, slots=True)
class _Pair:
    """A sampled text, by its number, and a document near it; *weight* is the number of pairs that it stands for."""

    number: int
    near_dup: NearDup
    weight: float


def read_real_pairs(
    context: Context,
    index: Index,
    sampled: Sequence[tuple[Key, str]],
    *,
    scheme: Scheme,
    text_fields: Sequence[str],
    max_distance: int,
    seed: int,
    clauses: Sequence[Mapping[str, Any]] = (),
) -> Flow[tuple[RealPairs, tuple[str, ...]]]:
    """
    Return pairs of *sampled* documents and documents within *max_distance*, compared by text, and why some may lack.

    A pair occurs as often as its documents are drawn, so shares of these pairs are shares of all pairs of the index.
    Cost: a lookup for each of up to 200 documents, and a search for every 500 documents near them.

    Args:
        context:
            What the client object knows.
        index:
            What to search.
        sampled:
            Key and text of documents drawn at random.
        scheme:
            The scheme of the index.
        text_fields:
            Fields of the text.
        max_distance:
            Largest distance of a pair in bits, inclusive.
        seed:
            Decides which documents are compared where one has many near it.
        clauses:
            Queries that the documents near them match.
    """
    chance = Random(seed)
    asked = sampled[:LOOKUPS]
    texts = [text for _, text in asked]
    values = yield Compute(lambda: list(fingerprints(texts, scheme=scheme)))
    pairs: list[_Pair] = []
    reasons: dict[str, None] = {}
    options = Options(max_distance=max_distance, filter=clauses or None, on_incomplete="return")
    for begin in range(0, len(asked), _TOGETHER):
        part = values[begin : begin + _TOGETHER]
        answers = yield from find_many(context, index, None, part, options)
        for number, answer in enumerate(answers, begin):
            if isinstance(answer, Exception):
                raise answer
            reasons |= dict.fromkeys(answer.reasons)
            pairs += _draw(number, asked[number][0], answer, chance)
    found = yield from fetch_texts(index, list({each.near_dup.key: None for each in pairs}), text_fields)
    known = [each for each in pairs if each.near_dup.key in found.texts]
    compared: RealPairs = yield Compute(lambda: _compare(texts, known, found.texts, scheme))
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
    import numpy as np  # noqa: PLC0415 -- takes longer to load than all the rest

    from es_simhash.quality.real_pairs import LETTER_EDITS, SAME_LETTERS, RealPairs  # noqa: PLC0415
    from es_simhash.texts.compare_pairs import compare_pairs  # noqa: PLC0415

    places = {key: len(texts) + place for place, key in enumerate(others)}
    left = np.array([each.number for each in pairs], np.int64)
    right = np.array([places[each.near_dup.key] for each in pairs], np.int64)
    every = [*texts, *others.values()]
    similarity, _ = compare_pairs(every, left, right, measure=WORD_SHINGLES.after(scheme))
    letters, _ = compare_pairs(every, left, right, measure=LETTER_EDITS.after(scheme), bound=SAME_LETTERS)
    distance = np.array([each.near_dup.distance for each in pairs], np.int64)
    return RealPairs(distance, similarity, np.array([each.weight for each in pairs], np.float64), left, letters)
