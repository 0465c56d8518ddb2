"""Documents that add nothing, held against an oracle that compares every document with every other."""

import random

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from es_simhash.hashing.batches import passage_term_list
from es_simhash.passages import contained as join
from es_simhash.passages.contained import AddsNothing, ContainmentMeasure, SharedTerms, find_container, find_containers
from es_simhash.texts.shingle_sets import run_shingles
from tests import reference
from tests.passages.test_passages_property import _covered

BOUND = 0.95


def words(seed, count):
    """Return so many invented words of five letters."""
    chance = random.Random(seed)
    return ["".join(chance.choices("aeioulmnrst", k=5)) for _ in range(count)]


PARTS = [words(seed, 24) for seed in range(5)]


@st.composite
def documents(draw):
    """Draw texts of parts that others have too, some with a changed word, some too short for a run of 100 letters."""
    texts = []
    for _ in range(draw(st.integers(2, 7))):
        chosen = draw(st.lists(st.sampled_from(PARTS), min_size=1, max_size=4))
        text = [word for part in chosen for word in part][: draw(st.sampled_from([15, 24, 60, 200]))]
        for place in draw(st.lists(st.integers(0, len(text) - 1), max_size=2)):
            text[place] = draw(st.sampled_from(["other", "words"]))
        texts.append(draw(st.sampled_from([" ", ", ", "  "])).join(text))
    return texts


def contains(one, other):
    """Whether *other* has enough of the shingles of *one*, and enough of its characters in runs of 100 letters."""
    first, second = reference.long_runs(one), reference.long_runs(other)
    letters = ["".join(filter(str.isalpha, text)) for text in (one, other)]
    has_shingles = len(first & second) >= BOUND * len(first)
    return has_shingles and len(_covered(*letters, 100)) >= BOUND * len(letters[0])


def oracle(texts):
    """Which of *texts* go: the longest is decided about first, and whatever contains another one must stay."""
    order = sorted(
        range(len(texts)), key=lambda place: (-len(reference.long_runs(texts[place])), -len(texts[place]), place)
    )
    staying, gone = [], set()
    for place in order:
        if any(contains(texts[place], texts[other]) for other in staying):
            gone.add(place)
        else:
            staying.append(place)
    return gone


class Sets(list):
    """Shingles of texts, by number."""

    @property
    def sizes(self):
        return np.array([each.size for each in self], np.int64)


def rule_of(texts, *, common=1_000):
    """Return the rule over *texts* after all was judged, and the number of judgements."""
    shared = SharedTerms(common=common)
    for begin in range(0, len(texts), 3):
        shared.add(passage_term_list(texts[begin : begin + 3]))
    sets = Sets(run_shingles(texts))
    order = np.lexsort((np.arange(len(texts)), [-len(text) for text in texts], -sets.sizes))
    ranks = np.empty(len(texts), np.int64)
    ranks[order] = np.arange(len(texts))
    numbers = np.arange(len(texts))
    found = [find_containers(pairs, ranks, numbers, sets, BOUND) for pairs in shared.pairs()]
    empty = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float64))
    rule = AddsNothing(*(np.concatenate(each) for each in zip(empty, *found, strict=True)), ranks)
    measure = ContainmentMeasure()
    judged = 0
    while pairs := rule.unjudged():
        for pair in pairs:
            judged += 1
            if measure.compare(*measure.prepare([texts[place] for place in pair]), bound=BOUND).similarity >= BOUND:
                rule.confirm(pair)
            else:
                rule.refute(pair, "not_similar")
    return rule, judged


@given(documents())
@settings(max_examples=60)
def test_what_adds_nothing(texts):
    """What goes is what the oracle says; each names a document that stays and contains it."""
    rule, _ = rule_of(texts)
    gone = rule.decide()
    assert set(gone) == oracle(texts)
    assert not set(gone.values()) & gone.keys()
    assert all(contains(texts[place], texts[container]) for place, container in gone.items())


@given(
    st.lists(st.sets(st.sampled_from(["aaaaaa", "bbbbbb", "cccccc", "-_zzzz", "AAAAAA"])), max_size=9),
    st.integers(1, 5),
)
def test_pairs_that_share_a_term(documents, common):
    """Every pair that shares a term which is not common comes once, in parts of any size."""
    shared = SharedTerms(common=common)
    shared.add(documents[:4])
    shared.add(documents[4:])
    counts = {term: sum(term in each for each in documents) for each in documents for term in each}
    kept = [{term for term in each if counts[term] <= common} for each in documents]
    wanted = [(a, b) for a in range(len(kept)) for b in range(a + 1, len(kept)) if kept[a] & kept[b]]
    for chunk in (1, 7, 1 << 20):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(join, "_CHUNK", chunk)
            found = [pair for left, right in shared.pairs() for pair in zip(left.tolist(), right.tolist(), strict=True)]
        assert sorted(found) == wanted
    assert shared.with_common().tolist() == [any(counts[term] > common for term in each) for each in documents]


def test_what_is_no_term_is_left_out():
    """Another program may have written anything there."""
    shared = SharedTerms(common=9)
    shared.add([["aaaaaa", 7, None, "short", "ééééééé"], ["aaaaaa", "aaaaaa"], [], [["aaaaaa"]]])
    assert [(left.tolist(), right.tolist()) for left, right in shared.pairs()] == [([0], [1])]
    assert len(shared) == 4


@settings(deadline=None)
@given(documents())
def test_the_container_of_one_text(texts):
    """It is at least as long, and has the largest share; of equal shares the shortest is preferred, then the first."""

    def size(text):
        return len(reference.long_runs(text)), len(text)

    first, *others = texts
    own = reference.long_runs(first)
    right = {
        number: (-len(own & reference.long_runs(other)) / len(own), size(other), number)
        for number, other in enumerate(others)
        if contains(first, other) and size(other) >= size(first)
    }
    found = find_container(first, others, dict(zip(texts, run_shingles(texts), strict=True)), BOUND)
    best = min(right.values(), default=None)
    assert found == (None if best is None else (best[2], -best[0]))


def test_a_chain_ends_at_a_document_that_stays():
    """A stands in B, and B in C: both go for C, also where C has less than the bound of A: then A stays."""
    long = [" ".join(word for part in PARTS[:n] for word in part) for n in (1, 2, 3)]
    assert rule_of(long)[0].decide() == {0: 2, 1: 2}
    # One word of the first is not in the others, and two of the third are not.
    base = words(9, 200)
    a, b = list(base[:120]), list(base[:160])
    a[50] = "changed"
    c = list(base)
    c[100], c[101] = "other", "other"
    texts = [" ".join(each) for each in (a, b, c)]
    assert contains(texts[0], texts[1])
    assert contains(texts[1], texts[2])
    assert not contains(texts[0], texts[2])
    assert rule_of(texts)[0].decide() == {1: 2}


def test_equal_texts():
    """Of equal texts the longest stays, then the first in canonical order; an empty one neither goes nor contains."""
    text = " ".join(words(3, 40))
    assert rule_of([text, text.upper(), text + " !!", "", "...", text])[0].decide() == {0: 2, 1: 2, 5: 2}
    assert rule_of([text, text])[0].decide() == {1: 0}


def test_shingles_that_stand_apart_are_no_containment():
    """Forms of one template: every shingle of one stands somewhere in a file of many, and yet it is not in there."""
    chance = random.Random(4)
    fields = ["smoker", "diabetes", "asthma", "allergy", "surgery", "fracture", "anaemia", "migraine"] * 4

    def form(number):
        chance.seed(number)
        return " ".join(f"{field}{place} {chance.choice(['yes', 'no'])}" for place, field in enumerate(fields))

    file = " ".join(map(form, range(12)))
    new = next(text for text in map(form, range(100, 200)) if reference.long_runs(text) <= reference.long_runs(file))
    assert rule_of([file, new])[0].decide() == {}
    assert rule_of([file, form(7)])[0].decide() == {1: 0}


def test_why_a_document_stays():
    """The best container that was refuted says why; a document that is kept in any case says its own reason."""
    ranks = np.arange(5)
    rule = AddsNothing(np.array([2, 2, 3, 4]), np.array([0, 1, 2, 2]), np.array([1.0, 0.96, 1.0, 1.0]), ranks)
    assert rule.unjudged() == [(2, 0)]
    rule.refute((2, 0), "unreadable")
    assert rule.unjudged() == [(2, 1)]
    rule.refute((2, 1), "not_similar")
    assert rule.unjudged() == [(3, 2), (4, 2)]
    rule.confirm((3, 2))
    rule.keep(4, "filtered")
    assert rule.unjudged() == []
    assert rule.decide() == {3: 2}
    assert rule.left_out() == {"unreadable": 1, "filtered": 1}
