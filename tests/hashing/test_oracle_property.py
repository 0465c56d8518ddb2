"""The fast code against the slow oracle of tests/reference.py, on generated text and numbers."""

import math
import re
import subprocess
import sys
import unicodedata

import numpy as np
import pytest
import xxhash
from hypothesis import example, given, settings, strategies as st

from es_simhash.errors import InvalidInputError
from es_simhash.hashing import (
    block_terms,
    fingerprint,
    fingerprints,
    from_hex,
    get_scheme,
    hamming_distance,
    simhash,
    to_hex,
)
from es_simhash.hashing.characters import join_codes, reduce_codes
from es_simhash.hashing.charikar import neighbour_terms
from es_simhash.hashing.kernels import count_bits
from es_simhash.hashing.scheme import HASHES
from es_simhash.hashing.shingles import hash_runs
from tests import reference

WORDS64 = st.integers(0, 2**64 - 1)
WEIGHTS = st.one_of(st.integers(0, 1000), st.floats(0, 1e6, allow_nan=False), st.sampled_from([0.5, 1, 2**-20, 2**30]))

# Hypothesis draws from all of Unicode; the samples add what it seldom finds side by side: marks, jamo, kana with
# voicing, ligatures, wide forms, scripts with vowel signs, surrogates, and few enough letters for shingles to repeat.
TRICKY = "aab ßſŞ̸́̈ÅİıΣς각한ㄱｶﾞがㅤ①㎡½…ﬁ京都中国，。नमस्तेक़ไทยที่ລາວကျွန်ខ្មែរبَّתّ🙂‍️ー々\0\ud800\udfff￿͸"
TEXTS = st.one_of(
    st.text(),
    st.text(st.sampled_from(TRICKY), max_size=60),
    st.text(st.sampled_from("abc "), max_size=200),
    st.text(st.characters(max_codepoint=0x24F)),
    st.text(st.characters(), max_size=5).map(lambda text: text * 20),
)


@given(st.lists(st.tuples(WORDS64, WEIGHTS), max_size=40))
def test_simhash_is_the_sign_of_the_exact_sum(pairs):
    """simhash() equals a sum of exact fractions, bit by bit."""
    hashes, weights = [value for value, _ in pairs], [weight for _, weight in pairs]
    assert simhash(hashes, weights) == reference.simhash(hashes, weights)
    assert simhash(hashes) == reference.simhash(hashes)


@given(st.lists(WORDS64, min_size=1, max_size=3), st.integers(250, 1200))
@settings(max_examples=15)
def test_counts_beyond_a_byte(values, repeats):
    """More features than the 255 that one byte can count are still counted exactly."""
    hashes = values * repeats + values[:1]
    assert simhash(hashes) == reference.simhash(hashes)


@given(TEXTS)
@example("e" + "\u0301" * 200)
@example("क" + "\u093c\u094d" * 100)
@example("a\u0378\u0301")
def test_letters(text):
    """The letters and their marks, in arrays, are those of the table applied to one character at a time."""
    assert tuple(reduce_codes(*join_codes([text]))[0].tolist()) == reference.letters_of(text)


@given(TEXTS, st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_letters_do_not_depend_on_composition(text, form):
    """Nor on the order of marks, or compatibility forms; parts of Hangul that people write alone stay as they are."""
    known = "".join(letter for letter in text if unicodedata.category(letter) not in {"Cn", "Cs"})
    if form.startswith("NFK"):
        known = re.sub("[\u3131-\u318e\uffa0-\uffdc]", "", known)
    other = unicodedata.normalize(form, known)
    for one, another in zip(reduce_codes(*join_codes([known])), reduce_codes(*join_codes([other])), strict=True):
        assert one.tolist() == another.tolist()


@given(TEXTS, st.integers(1, 16), st.sampled_from(["log", "linear", "set"]), st.sampled_from(list(HASHES)))
def test_shingles(text, size, weighting, name):
    """Shingles of any size, weighting and hash equal the oracle's."""
    scheme = get_scheme("shingles", size=size, weighting=weighting, hash=name)
    expected = reference.fingerprint(text, size=size, weighting=weighting, hash=name)
    assert fingerprint(text, scheme=scheme) == expected


@given(st.lists(TEXTS, max_size=12), st.sampled_from(["shingles", "keywords"]))
def test_batches(texts, name):
    """A text's fingerprint does not depend on the other texts of its batch."""
    assert fingerprints(texts, scheme=name) == [fingerprint(text, scheme=name) for text in texts]


@given(st.lists(st.integers(0, 0x10FFFF), min_size=16, max_size=24))
@settings(max_examples=20)
def test_windows(codes):
    """Windows hashed in arrays equal the xxhash library, for every size."""
    array = np.array(codes, np.uint32)
    data = array.astype("<u4").tobytes()
    for size in range(1, 17):
        expected = [xxhash.xxh3_64_intdigest(data[4 * at : 4 * (at + size)]) for at in range(len(codes) - size + 1)]
        assert hash_runs(array, size, "xxh3_64").tolist() == expected


@given(WORDS64, st.lists(WORDS64, max_size=20))
def test_distances(value, others):
    """Distances in arrays equal those of single pairs; hex digits spell a fingerprint."""
    expected = [reference.distance(value, other) for other in others]
    assert count_bits(np.array(others, np.uint64) ^ np.uint64(value)).tolist() == expected
    assert [hamming_distance(value, other) for other in others] == expected
    # Hex digits, and block terms, spell the same fingerprint.
    assert from_hex(to_hex(value)) == value
    assert "".join(block_terms(value)) == to_hex(value)


@given(st.integers(0, 65535), st.integers(0, 3))
@settings(max_examples=15)
def test_neighbours(block, radius):
    """The neighbours of a block are exactly the blocks within the radius, nearest first."""
    found = [int(term, 16) for term in neighbour_terms(f"{block:04x}", radius)]
    assert len(found) == len(set(found))
    assert set(found) == {other for other in range(65536) if (block ^ other).bit_count() <= radius}
    assert [reference.distance(block, other) for other in found] == sorted(
        reference.distance(block, other) for other in found
    )


def test_large_weights_are_summed_exactly():
    """A sum too large for 32 bits a lane takes the wide path, to the last unit."""
    big = 2.0**40
    assert simhash([0b1, 0b0], [big, big + 1]) == 0
    assert simhash([0b1, 0b0], [big + 1, big]) == 1


@pytest.mark.parametrize("weight", [-1, -1e-9, math.nan, math.inf, -math.inf, 2**42, 1e300, 10**400])
def test_weights_that_cannot_be_used(weight):
    """A weight that is negative, not finite or too large is refused, and weights that are so together."""
    with pytest.raises((InvalidInputError, TypeError), match="weight"):
        simhash([1, 2], [1, weight])
    with pytest.raises(InvalidInputError):
        simhash([1], [1, 2])
    with pytest.raises(TypeError):
        simhash([1], ["heavy"])
    with pytest.raises(InvalidInputError, match=r"2\*\*42"):
        simhash([1, 2], [2**41, 2**41])


def test_numpy_integers_are_integers():
    """Fingerprints that come out of an array can be handed on as they are."""
    value = np.uint64(2**64 - 1)
    assert to_hex(value) == "f" * 16
    assert hamming_distance(value, np.uint64(0)) == 64
    assert simhash(np.array([2**63], np.uint64)) == 2**63


def test_distances_without_bitwise_count(monkeypatch):
    """Numpy 1.26, which lacks bitwise_count, gives the same distances."""
    values = np.array([0, 1, 2**63, 2**64 - 1, 0x0123456789ABCDEF], np.uint64)
    monkeypatch.delattr(np, "bitwise_count", raising=False)
    assert count_bits(values).tolist() == [int(value).bit_count() for value in values]


def test_importing_loads_neither_numpy_nor_jieba():
    """Importing the package, and handling fingerprints, loads no arrays and no dictionary."""
    code = (
        "import sys, es_simhash.hashing as h; h.to_hex(1); h.block_terms(1); h.get_scheme('keywords');"
        "from es_simhash import SimHashClient;"
        "slow = ('numpy', 'jieba', 'jinja2', 'rjieba', 'opencc', 'multiprocessing', 'asyncio', 'email');"
        "print([name for name in slow if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
