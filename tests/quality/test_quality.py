"""Explanations, edits, tuning and presets; no server."""

import pickle
import random

import pytest

from es_simhash import (
    PRESETS,
    IfSimilar,
    InvalidInputError,
    NearDup,
    get_preset,
    get_scheme,
)
from es_simhash.errors import SchemeError
from es_simhash.hashing import fingerprint, hamming_distance
from es_simhash.lookup.lookup_options import Verification, asked_rule
from es_simhash.mapping.rule import PairRule
from es_simhash.quality import edits, explain
from es_simhash.quality.edits import NOISE
from es_simhash.quality.explanation import list_features
from es_simhash.quality.tune import DISTANCES, inject, measure_preset, measure_scheme, near_in_sample, recommend
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


@pytest.mark.parametrize("scheme", ["shingles", "words", "keywords"])
def test_listed_features_make_the_fingerprint(scheme):
    """The features that explain shows, hashed and summed, are the fingerprint."""
    from es_simhash.hashing import simhash
    from es_simhash.hashing.hashes import bytes_hasher

    used, hash_bytes = get_scheme(scheme), bytes_hasher("xxh3_64")
    features = list_features(BASE, used)
    if used.name == "shingles":
        size = used.parameters["size"]
        hashes = [hash_bytes(name.ljust(size, "\0").encode("utf-32-le")) for name in features]
    else:
        hashes = [hash_bytes(name.encode()) for name in features]
    assert simhash(hashes, list(features.values())) == fingerprint(BASE, scheme=used)


def test_explanation():
    """Bits, blocks, features, similarity and words of two texts fit together."""
    found = explain(BASE, EDITED)
    assert found.distance == len(found.differing_bits) == hamming_distance(found.first, found.second)
    assert set(found.equal_blocks) == set(range(4)) - {bit // 16 for bit in found.differing_bits}
    assert {"tues", "frid"} <= {each.name for each in found.differing}
    assert "brid" in {each.name for each in found.shared}
    assert 0.9 < found.cosine < 1
    assert found.presets[-3:] == ("similar", "edited", "noisy")
    plain = found.to_dict(most=2)
    assert len(plain["features"]["differing"]) == 2
    assert {"change": "removed", "text": "Tuesday"} in plain["diff"]["excerpts"][0]


def test_explanation_of_texts_without_features():
    """A text without features has no distance, and is explained all the same."""
    found = explain("...", BASE)
    assert (found.first, found.distance, found.differing_bits, found.cosine, found.presets) == (
        None,
        None,
        (),
        None,
        (),
    )
    assert explain("", "").to_dict()["jaccard"] == 0.0
    with pytest.raises(SchemeError):
        explain("a", "b", scheme="nothing")


def test_explanation_of_enormous_and_binary_texts():
    """Nothing of a text is shown without bound, and no bytes upset it."""
    found = explain("\0\ud800" * 1000 + "word " * 100_000, "word " * 100_001)
    assert found.is_cut
    assert found.features == ()
    assert found.distance is not None
    assert sum(len(part["text"]) for part in found.to_dict()["diff"]["excerpts"][0]) < 1000


@pytest.mark.parametrize("kind", edits.EDITS)
def test_edits(kind):
    """Each edit changes a text in its own way, the same for the same seed, and leaves alone what it does not fit."""
    if kind == "traditional and simplified":
        pytest.importorskip("opencc")
    changed = edits.EDITS[kind](BASE, random.Random(1))
    assert changed not in (None, BASE)
    assert edits.EDITS[kind](BASE, random.Random(1)) == changed
    assert explain(BASE, changed).similarity.jaccard > 0.5 or kind == "traditional and simplified"
    for text in ("", " "):
        assert edits.EDITS[kind](text, random.Random(1)) is None
    for text in ("\0", "\ud800"):
        assert (edits.EDITS[kind](text, random.Random(1)) is None) != kind.startswith("boilerplate")


def test_tuning():
    """Recall grows with distance, unrelated texts are counted, and the strictest sufficient preset is recommended."""
    texts = [f"{BASE} {number} {OTHER[number:]}" for number in range(12)]
    edited = inject(texts, seed=3)
    assert inject(texts, seed=3).copies == edited.copies != inject(texts, seed=4).copies
    near = near_in_sample(edited, get_scheme())
    figures = measure_scheme(edited, get_scheme(), near, documents=1000)
    assert [each.max_distance for each in figures] == list(DISTANCES)
    assert sorted(each.recall for each in figures) == [each.recall for each in figures]
    assert figures[-1].by_edit.keys() == set(edited.kinds)
    noisy = inject(texts, seed=3, edits=NOISE)
    presets = [measure_preset(edited, noisy, preset, near, documents=1000) for preset in PRESETS.values()]
    assert presets[4].noise_recall > presets[2].noise_recall
    assert presets[2].recall >= presets[1].recall >= presets[0].recall
    assert recommend(presets) in ("identical", "near", "similar")
    assert recommend([]) is None


def test_unrelated_texts_are_counted():
    """Texts that share nothing but their fingerprint's neighbourhood count as unrelated, by the size of the index."""
    texts = [f"word{number}" for number in range(200)]
    edited = inject(texts)
    near = near_in_sample(edited, get_scheme())
    everything = measure_scheme(edited, get_scheme(), near, documents=200)
    assert everything[-1].unrelated > 0
    doubled = measure_scheme(edited, get_scheme(), near, documents=400)
    assert doubled[-1].unrelated == pytest.approx(2 * everything[-1].unrelated)


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
    with pytest.raises(TypeError):
        get_preset(3)


def test_what_verify_stands_for():
    """A flag, a bound, a function or a whole Verification; anything else is refused."""
    rule, similar = PairRule(3), TextMeasure("edit", "characters", "same")
    assert asked_rule(rule, verify=False) == asked_rule(rule) == rule
    assert asked_rule(rule, preset=PRESETS["near"], verify=True) == PairRule(8, 0.9)
    assert asked_rule(rule, verify=0) == PairRule(3, 0.0)
    assert asked_rule(rule, verify=str) == PairRule(3, 0.8)
    assert asked_rule(rule, preset="noisy", verify=0.7) == PairRule(16, 0.7, TextMeasure("edit", "characters"))
    whole = Verification(0.7, measure="edit", unit="characters", numbers="same")
    assert asked_rule(rule, verify=whole) == PairRule(3, 0.7, similar)
    with pytest.raises(InvalidInputError, match="measure"):
        Verification(measure="edits")
    for wrong, error in ((1.5, InvalidInputError), (float("nan"), InvalidInputError), ("yes", TypeError)):
        with pytest.raises(error):
            asked_rule(rule, verify=wrong)
    with pytest.raises(TypeError, match="texts"):
        Verification(texts="here")


def test_policy_that_verifies():
    """Only similar texts make a duplicate; what cannot be read is written, and a wrong policy is refused."""
    policy = IfSimilar(["title", "body"], then="replace", similarity=0.5)
    old = NearDup("1", "i", 0, 0, source={"title": "", "body": BASE})
    assert policy({"body": EDITED}, old) == "replace"
    assert policy({"body": OTHER}, old) == "write"
    noisy = IfSimilar("body", then="skip", similarity=0.9, measure="edit", unit="characters")
    assert noisy({"body": BASE.replace("o", "0", 2)}, NearDup("1", "i", 0, 0, source={"body": BASE})) == "skip"
    assert policy({"body": EDITED}, NearDup("1", "i", 0, 0)) == "write"
    assert policy({"body": 5}, old) == "write"
    assert pickle.loads(pickle.dumps(policy)) == policy  # noqa: S301 -- pickled in this line
    for arguments in ({"then": "write"}, {"similarity": 2}, {"text_field": ""}):
        with pytest.raises(InvalidInputError):
            IfSimilar(**({"text_field": "body"} | arguments))
