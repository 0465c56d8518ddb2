"""
What each preset is worth, in one table: known pairs, edited copies, and what differs in one sign.

    python bench/measures.py DATA_FOLDER [--copies 1500]

Prints Markdown, a row for each preset. "setup" is the preset that setup chooses for 500 texts of each set.

Of each set: recall / precision of known pairs at a Jaccard similarity of .8 / the precision that forgives down to .7;
of edited copies that share .8 of the truth's shingles (three words, five characters of Chinese) the share whose
original is reported; of 1,000 pairs, half of them near in bits and known to share less than half, half drawn at
random, how many are reported. Signs: pairs that differ
in one sign, number or Roman number, with numbers "same".
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
from edited import KINDS, NUMBERS, Pair, is_reported
from harness import arguments
from sets import Pairs, Truth, pairs_within, read_set, score, shingler

from es_simhash.hashing import DEFAULT_SCHEME, fingerprint_array, get_scheme
from es_simhash.quality.tune import measure
from es_simhash.texts.measures import PRESETS, Preset, compare_pairs

SETS = {"reuters21578": 16, "xwlb_zh": 16, "laws_tw": 16, "weibo_ced": 12}
"""The sets, and the bits within which all pairs are compared: there are too many within 16 of posts."""

SHORTEST, LONGEST, WRONG = 60, 20_000, 1_000


SIGNS: tuple[Pair, ...] = (
    ("the change was -5.2 in May", "the change was +5.2 in May"),
    ("the room costs $500 a month", "the room costs €500 a month"),
    ("a share of 5 % was sold", "a share of 5 ‰ was sold"),
    ("some 10⁶ cells were counted", "some 106 cells were counted"),
    ("a loss of (5) was booked", "a loss of 5 was booked"),
    ("we look for C++ developers", "we look for C# developers"),
    ("the warranty ✓ is included", "the warranty ✗ is included"),
    ("Part I. The design of dams", "Part II. The design of dams"),
    ("arranged 1.5 billion for it", "arranged 2.5 billion for it"),
    ("paid 1 500 euros for it", "paid 1 600 euros for it"),
)


def main() -> None:
    parser = arguments(__doc__, product=False)
    parser.add_argument("data", type=Path)
    parser.add_argument("--copies", type=int, default=1_500)
    options = parser.parse_args()
    rows: dict[str, list[str]] = {name: [] for name in PRESETS}
    heads = []
    for name, bits in SETS.items():
        truth = read_set(options.data / name)
        sample = [text for text in Random(1).sample(truth.texts, 3_000) if text.strip()][:500]
        heads.append(f"{name} (setup: {measure(sample, get_scheme(DEFAULT_SCHEME), 1).recommended})")
        values, known = fingerprint_array(truth.texts)
        near = pairs_within(values, known, bits)
        copies = shared_copies(truth, options.copies)
        wrong = wrong_pairs(truth, near)
        for preset in PRESETS.values():
            cells = [known_pairs(truth, near, preset) if preset.max_distance <= bits else "-"]
            cells.append(f"{np.mean(is_reported(copies, preset)):.3f}")
            cells.append(f"{np.sum(is_reported(wrong, preset))}")
            rows[preset.name].append("; ".join(cells))
            print(name, preset.name, rows[preset.name][-1], file=sys.stderr, flush=True)
    heads.append("signs")
    parts = sign_pairs(read_set(options.data / "reuters21578").texts)
    for preset in PRESETS.values():
        rows[preset.name].append(f"{np.sum(is_reported(parts, preset, 'same'))} of {len(parts)}")
    print("| |", " | ".join(heads), "|")
    print("|---" * (len(heads) + 1) + "|")
    for name, cells in rows.items():
        print(f"| `{name}` |", " | ".join(cells), "|")


def known_pairs(truth: Truth, near: Pairs, preset: Preset) -> str:
    left, right = (side[near[2] <= preset.max_distance] for side in near[:2])
    scores = compare_pairs(truth.texts, left, right, measure=preset.text_measure(), bound=preset.similarity)
    kept = scores >= preset.similarity
    found = score(truth, zip(left[kept].tolist(), right[kept].tolist(), strict=True))
    shares = [found[name] for name in ("recall", "precision", "precision_forgiving")]
    return " / ".join("-" if share is None else f"{share:.3f}" for share in shares)


def shared_copies(truth: Truth, number: int) -> list[Pair]:
    """Return texts with an edited copy, the kinds of change in turn, that share .8 of the truth's shingles."""
    cut, chance = shingler(truth), Random(3)
    able = [text for text in truth.texts if SHORTEST <= len(text) < LONGEST]
    kinds = [edit for kind, edit in KINDS.items() if kind != NUMBERS]
    found = []
    for place, text in enumerate(chance.sample(able, min(number, len(able)))):
        changed = kinds[place % len(kinds)](text, chance)
        if changed is not None and changed != text:
            one, other = cut(text), cut(changed)
            found += [(text, changed)] if len(one & other) >= 0.8 * len(one | other) else []
    return found


def wrong_pairs(truth: Truth, near: Pairs) -> list[Pair]:
    """Return pairs that are near in bits and share less than half, and pairs drawn at random."""
    listed = set(zip(truth.left.tolist(), truth.right.tolist(), strict=True))
    chance = Random(4)
    pairs = list(zip(near[0].tolist(), near[1].tolist(), strict=True))
    drawn = [pair for pair in chance.sample(pairs, min(len(pairs), 20_000)) if pair not in listed][: WRONG // 2]
    while len(drawn) < WRONG:
        one, other = sorted(chance.sample(range(len(truth.texts)), 2))
        drawn += [] if (one, other) in listed else [(one, other)]
    return [(truth.texts[one], truth.texts[other]) for one, other in drawn]


def sign_pairs(texts: Sequence[str]) -> list[Pair]:
    """Return texts of news with a sentence in the middle that differs in one sign or number."""
    able = [text for text in texts if SHORTEST <= len(text) < LONGEST]
    found = []
    for place, text in enumerate(Random(6).sample(able, 300)):
        middle = text.find(" ", len(text) // 2) % len(text)
        found.append(tuple(f"{text[:middle]}. {part}. {text[middle:]}" for part in SIGNS[place % len(SIGNS)]))
    return [(one, other) for one, other in found]


if __name__ == "__main__":
    main()
