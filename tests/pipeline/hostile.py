"""Texts of all of Unicode, at random."""

from __future__ import annotations

import random
from functools import cache

import numpy as np

from es_simhash.hashing.characters import BASE, FIRST_EXPANSION, MARK, SEPARATOR, UNASSIGNED, character_entries

_LENGTHS = (0, 1, 2, 3, 4, 5, 8, 20, 60, 200, 200, 500)
_LONG = (3_000, 9_000, 30_000)
# Composed letters, whose parts make every kind of run; and letters whose case or form is special.
_SPECIAL = "abc XYZ ßẞ İıſ ςΣ ΐᾳᾈᾺ Ǆǅ ﬁﷺ ｶﾞ 각힣ᄀᆨ が か゚ à\u0301\u0323\u0345\u0338\u3099\u094d\u0e4e"


@cache
def _classes() -> tuple[list[int], ...]:
    """Return code points: marks, those that expand, letters and digits, all known, all but surrogates."""
    every = np.concatenate([np.arange(0xD800), np.arange(0xE000, 0x110000)]).astype(np.uint32)
    entries = character_entries(every)
    expands, is_letter = (entries >= FIRST_EXPANSION) & (entries <= BASE), (entries > SEPARATOR) & (entries < MARK)
    chosen = (entries >= MARK, expands, is_letter, entries > UNASSIGNED, entries >= 0)
    return tuple(every[members].tolist() for members in chosen)


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
