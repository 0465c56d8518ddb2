"""Texts of all of Unicode, and features with weights, at random, with what Python makes of them."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import numpy as np

from es_simhash import InvalidInputError, Scheme, fingerprint_features, to_hex
from es_simhash.errors import has_lone_surrogate
from es_simhash.hashing.characters import COMBINES, EXPANDS, UNASSIGNED, WORD, character_entries, character_kinds

_LENGTHS = (0, 1, 2, 3, 4, 5, 8, 20, 60, 200, 200, 500)
_LONG = (3_000, 9_000, 30_000)
# Composed letters, whose parts make every kind of run; and letters whose case or form is special.
_SPECIAL = "abc XYZ ßẞ İıſ ςΣ ΐᾳᾈᾺ Ǆǅ ﬁﷺ ｶﾞ 각힣ᄀᆨ が か゚ à\u0301\u0323\u0345\u0338\u3099\u094d\u0e4e"


@cache
def _classes() -> tuple[list[int], ...]:
    """Return code points: such as combine, expand, are letters or digits, are assigned, and all but surrogates."""
    every = np.concatenate([np.arange(0xD800), np.arange(0xE000, 0x110000)]).astype(np.uint32)
    entries, kinds = character_entries(every), character_kinds(every)
    chosen = (entries == COMBINES, entries == EXPANDS, kinds == WORD, entries != UNASSIGNED, entries >= 0)
    return tuple(every[each].tolist() for each in chosen)


def hostile_texts(count: int, *, seed: int) -> list[str]:
    """Return *count* texts; each has its own mixture of classes of characters, some runs of marks, some repetitions."""
    chance = random.Random(seed)
    return [_text(chance) for _ in range(count)]


def _text(chance: random.Random) -> str:
    classes = _classes()
    weights = [chance.random() ** 3 for _ in range(len(classes) + 1)]
    length = chance.choice(_LENGTHS) if chance.random() < 0.99 else chance.choice(_LONG)
    kinds = chance.choices(range(len(weights)), weights, k=length)
    text = "".join(
        chr(chance.choice(classes[kind])) if kind < len(classes) else chance.choice(_SPECIAL) for kind in kinds
    )
    if chance.random() < 0.1:
        marks = chance.choices(classes[0], k=chance.choice((63, 64, 65, 130, 200)))
        text += "".join(map(chr, marks)) + text[:10]
    if chance.random() < 0.2:
        text += text[: length // 2] + text[: length // 3]
    return text


# Features are hashed in another way from each of these lengths (of bytes) on.
_BYTES = (
    0,
    1,
    2,
    3,
    4,
    5,
    8,
    9,
    16,
    17,
    32,
    33,
    64,
    65,
    96,
    97,
    128,
    129,
    144,
    239,
    240,
    241,
    320,
    1024,
    1025,
    1089,
)
_ALPHABETS = ("a", "ab", "é", "北京", "🙂𠮷", "a\ud800", "\udc00", "\x00.", "a é北🙂")
_USABLE = (0, 1, 2, 3, 5, 0.5, 1e-300, 2.0**-21, 2.0**-20 * 1.5, 2.0**-20 * 2.5, 1e6, 2**40, 2**41 - 1, 1.0, 3.0)
_OTHER = (-1, -1e-300, -0.5, 2**42, 2**63 - 1, 2.0**64, 1e300, True, False, None, "1", "NaN", "", [], [1], {}, {"a": 1})


def hostile_features(count: int, *, seed: int) -> list[Any]:
    """Return *count* objects of features and weights; some are lists of features, and one in five cannot be used."""
    chance = random.Random(seed)
    texts = hostile_texts(200, seed=seed)
    return [_features(chance, texts) for _ in range(count)]


def _features(chance: random.Random, texts: list[str]) -> Any:
    names = [_name(chance, texts) for _ in range(chance.choice((0, 1, 1, 2, 3, 8, 30)))]
    if chance.random() < 0.1:
        return names
    # A server itself refuses half a character in a name, and names of more than 50,000 bytes of JSON.
    names = [name[:4_000] for name in names if not has_lone_surrogate(name)]
    features: dict[str, Any] = {name: _weight(chance) for name in names}
    if features and chance.random() < 0.2:
        features[chance.choice(list(features))] = chance.choice(_OTHER)
    return features


def _name(chance: random.Random, texts: list[str]) -> str:
    if chance.random() < 0.3:
        name = chance.choice(texts)
    else:
        alphabet = chance.choice(_ALPHABETS)
        length = max(0, chance.choice(_BYTES) // len(alphabet[-1].encode("utf-8", "surrogatepass")))
        name = "".join(chance.choices(alphabet, k=length))
    # As JSON says it: halves of a character that stand together are one.
    return name.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _weight(chance: random.Random) -> float:
    return chance.choice((chance.choice(_USABLE), chance.randint(0, 9), chance.random(), chance.expovariate(1) * 1e3))


def expected_of(features: Any, scheme: Scheme) -> str | None:
    """Return the fingerprint that Python computes of *features*, as hex digits, or the error of the pipeline."""
    try:
        found = fingerprint_features(features, scheme=scheme)
    except (TypeError, InvalidInputError):
        return "not_features"
    return None if found is None else to_hex(found)
