"""Explanations, edits, tuning and presets; no server."""

from __future__ import annotations

import itertools
import random

import pytest

from es_simhash import PRESETS, InvalidInputError, get_preset, get_scheme
from es_simhash.hashing import fingerprint, hamming_distance
from es_simhash.lookup.lookup_options import Verification, asked_rule
from es_simhash.mapping.rule import PairRule
from es_simhash.quality import edits, explain
from es_simhash.quality.steps import measure_steps
from es_simhash.quality.tune import DISTANCES, measure, recommend
from es_simhash.texts.measures import TextMeasure

SENTENCES = [
    "The council approved the new bridge over the river on Tuesday after a long debate about its cost.",
    "Residents had asked for a crossing for twenty years, and the mayor called the vote a victory.",
    "Work is to begin in spring and to last 18 months, during which the ferry will run every hour.",
    "长江是中华民族的母亲河，也是中华民族发展的重要支撑。",
    "党的十八大以来，把长江经济带发展上升为重大国家战略，2022年取得历史性成就。",
]
BASE = " ".join(SENTENCES)
EDITED = BASE.replace("Tuesday", "Friday")
PART = " ".join(SENTENCES[:4])
OTHER = "Nobody expected the harbour to freeze in October, least of all the crew of the small blue ferry."


def test_explanation():
    """Distance, similarity and words of two texts; the same as the library's own functions."""
    found = explain(BASE, EDITED)
    assert found.distance == hamming_distance(fingerprint(BASE), fingerprint(EDITED)) > 0
    assert 0.8 < found.similarity < 1
    assert "Tuesday" in {part.text.strip() for excerpt in found.diff.excerpts for part in excerpt}
    assert found.verdict == f"near-duplicates by the default rule ({found.rule.words})"
    assert (found.because, found.numbers, explain(BASE, OTHER).because) == (None, "same", "distance")
    assert explain(BASE, BASE.replace("18", "19")).numbers == "only"
    assert explain("N/A", "n/a.").because == "short"
    enormous = explain("word " * 20_000, "other " * 20_000)
    assert enormous.distance is not None
    bare = explain("\0\ud800...", BASE)
    assert (bare.first, bare.distance, bare.similarity, bare.because) == (None, None, 0.0, "fingerprint")
    assert bare.to_dict()["fingerprints"][0] is None
    [row] = found.to_dicts()
    assert (row["distance"], row["similarity"]) == (found.distance, round(found.similarity, 4))


@pytest.mark.parametrize("kind", edits.EDITS)
def test_edits(kind):
    """Each edit changes a text in its own way, the same for the same seed, and leaves alone what it does not fit."""
    changed = edits.EDITS[kind](BASE, random.Random(1))
    assert changed not in (None, BASE)
    assert edits.EDITS[kind](BASE, random.Random(1)) == changed
    assert explain(BASE, changed).similarity > 0.5
    for text in ("", " "):
        assert edits.EDITS[kind](text, random.Random(1)) is None
    for text in ("\0", "\ud800"):
        assert (edits.EDITS[kind](text, random.Random(1)) is None) != kind.startswith("boilerplate")


def test_tuning():
    """The same copies for a seed; recall grows with the preset, and the strictest sufficient one is recommended."""
    texts = [f"{BASE} {number} {OTHER[number:]}" for number in range(12)]
    first, again, others = (list(edits.edit_texts(texts, seed)) for seed in (3, 3, 4))
    assert first == again != others
    found = measure(texts, get_scheme(), 3)
    identical, near, similar, *_ = found.presets
    assert similar.recall >= near.recall >= identical.recall
    assert {preset.copies for preset in found.presets} == {len(first)}
    assert found.recommended in ("identical", "near", "similar")
    assert found.enough_distance in DISTANCES
    assert (recommend([]), measure(["…"], get_scheme(), 3).enough_distance) == (None, None)


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("{} &quot;{}&quot; said AT&amp;T&#39;s office to the mayor: &laquo;{}&raquo; &eacute;t&eacute;.", "html"),
        ("<p>{} went <b>to</b> the <a href='/a/b'>office</a></p><p>and {} came back with {}</p>", "html"),
        ("{} and {} went to see {}: https://t.co/aBcDeFgHiJ", "links"),
        ("{} said that 3 < 5 and R&D of AT&T, {} not; see example.org, {}", None),
    ],
)
def test_steps_that_a_sample_asks_for(text, step):
    """Copies without tags and references, or with another link: those are told that a step finds, and no others."""
    names = ["The harbour office", "a council of nine", "the old tram driver", "one more ferry crew", "some new guests"]
    texts = [text.format(*chosen) for chosen in itertools.permutations(names, 3)]
    found = list(measure_steps(texts, get_scheme(), PRESETS["similar"], seed=1))
    assert [(each.step, each.preprocess) for each in found] == ([(step, (step,))] if step else [])
    assert all(each.found_after == each.texts == len(texts) > each.found for each in found)
    if step:
        assert not list(measure_steps(texts, get_scheme("shingles", preprocess=step), PRESETS["similar"]))
        assert str(found[0]).endswith(f"--preprocess {step}")
        few = [*texts[:2], *map(str, range(98))]
        assert not list(measure_steps(few, get_scheme(), PRESETS["similar"]))


@pytest.mark.parametrize(
    ("traditional", "simplified", "japanese", "is_told"),
    [(5, 95, 0, True), (95, 5, 0, True), (2, 98, 0, False), (96, 4, 0, False), (0, 50, 50, False), (50, 0, 50, False)],
)
def test_both_forms_of_chinese_in_a_sample(traditional, simplified, japanese, is_told):
    """They are told without OpenCC, too; Japanese is neither."""
    texts = ["臺北市議會第{}次會議通過這個計畫，並從應有的經費中實際撥款。"] * traditional
    texts += ["北京市人大第{}次会议通过这个计划，并对经费使用情况进行说明。"] * simplified
    texts += ["東京都議会は{}日、新しい橋の建設を承認した。国の予算で、一個ずつ這うように開通する。"] * japanese
    texts = [text.format(number) for number, text in enumerate(texts)]
    found = list(measure_steps(texts, get_scheme(), PRESETS["similar"]))
    assert [(step.step, step.texts, step.preprocess) for step in found] == [("t2s", traditional, ("t2s",))] * is_told
    assert all("--preprocess t2s" in str(step) for step in found)
    assert not list(measure_steps(texts, get_scheme("shingles", preprocess="t2s"), PRESETS["similar"]))


def test_presets():
    """Presets grow from strict to loose, and an unknown one is refused with the names there are."""
    distances = [each.max_distance for each in PRESETS.values()]
    bounds = [each.similarity for each in PRESETS.values()]
    assert list(PRESETS) == ["identical", "near", "similar", "edited", "noisy"]
    assert distances == sorted(distances)
    assert bounds[:4] == sorted(bounds[:4], reverse=True)
    assert get_preset(PRESETS["near"]) is get_preset("near")
    with pytest.raises(InvalidInputError, match="identical, near, similar, edited, noisy"):
        get_preset("exact")


def test_what_verify_stands_for():
    """A flag, a bound or a whole Verification."""
    rule, similar = PairRule(3), TextMeasure(numbers="same")
    assert asked_rule(rule, verify=False) == asked_rule(rule) == rule
    assert asked_rule(rule, preset=PRESETS["near"], verify=True) == PairRule(8, 0.9)
    assert asked_rule(rule, verify=0) == PairRule(3, 0.0)
    assert asked_rule(rule, preset="noisy", verify=0.7) == PairRule(16, 0.7, TextMeasure("edit", "characters", "most"))
    whole = Verification(0.7, numbers="same")
    assert asked_rule(rule, verify=whole) == PairRule(3, 0.7, similar)
    with pytest.raises(InvalidInputError, match="numbers"):
        Verification(numbers="some")
    with pytest.raises(InvalidInputError, match="a similarity of 0 accepts every text"):
        Verification(0, numbers="same")
