"""Two texts compared by part, against an oracle that looks at every pair of places, and pieces of short texts."""

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from es_simhash.hashing.characters import hashed_letters
from es_simhash.hashing.winnowing import letters_with_positions
from es_simhash.passages.compare import PreparedText, compare_passages
from es_simhash.transport.protocol import Key
from tests import reference
from tests.hashing.test_oracle_property import TEXTS
from tests.hashing.test_passages_property import PURE, texts

KEY = Key("news", "1")


def compare(text, other, *, min_run=200, min_contained=2.0):
    """Return what a document shares with *text*, or ``None``; by default runs alone count."""
    found = compare_passages(PreparedText(text, min_run=min_run), {KEY: other}, min_contained=min_contained)
    return found[0] if found else None


# A passage shows a character with its marks, of which the run may have only a part: here there are no marks.
PARTS = texts(scripts=PURE)


@given(TEXTS)
@example("")
@example("a\u0378\u0301b")
def test_places_of_normalised_characters(text):
    """Each normalised character comes from the part of the text that is named, and no other is left out or added."""
    codes, starts, ends = letters_with_positions(text)
    assert codes.tolist() == hashed_letters([text])[0].tolist()
    assert bool((starts < ends).all())
    assert bool((np.diff(starts) >= 0).all())
    for code, start, end in zip(codes.tolist(), starts.tolist(), ends.tolist(), strict=True):
        assert code in reference.hashed_letters(text[start:end])


def _covered(question, other, letters):
    """Return the normalised characters of *question* that stand in a shared run of so many letters or more."""
    signs = {letter: chr(0x4E00 + number) for number, letter in enumerate({*question, *other})}
    plain, there = ("".join(map(signs.get, text)) for text in (question, other))
    covered, end = set(), 0
    for start in range(len(question)):
        run = reference.run_of_letters(question[start:], letters)
        if run is not None and plain[start : start + len(run)] in there:
            end = max(end, start + len(run))  # what stood there from an earlier place on stands there from here on
            while end < len(plain) and plain[start : end + 1] in there:
                end += 1
            covered.update(range(start, end))
    return covered


@given(PARTS, PARTS, PARTS, PARTS, st.integers(100, 250))
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
def test_passages_cover_all_shared_runs(shared, before, middle, after, min_run):
    """The passages are equal in both texts, and cover what every shared run of the length covers, and nothing else."""
    one, other = f"{before}{shared}{middle}", f"{middle}.{shared}{after}{shared[: len(shared) // 2]}"
    found = compare(one, other, min_run=min_run)
    normal = letters_with_positions(one)[1:]
    covered = set()
    for each in found.passages if found else ():
        part = reference.hashed_letters(one[each.start : each.end])
        assert part == reference.hashed_letters(other[each.other_start : each.other_end])
        covered |= set(np.flatnonzero((normal[0] >= each.start) & (normal[1] <= each.end)).tolist())
    stripped = map(reference.hashed_letters, (one, other))
    assert covered == _covered(*stripped, min_run)
    assert (found is not None) == bool(covered)
    runs = reference.long_runs(one), reference.long_runs(other)
    shares = compare(one, other, min_contained=0)
    assert shares.contained == pytest.approx(len(runs[0] & runs[1]) / max(1, len(runs[0])))
    assert shares.similarity == pytest.approx(len(runs[0] & runs[1]) / max(1, len(runs[0] | runs[1])))


def test_shares_of_a_text_within_another():
    """A text that stands in a longer one is contained in it, and the longer one contains it."""
    part = "the quick brown fox jumps over the lazy dog and runs into the deep dark forest"
    whole = f"Yesterday evening, {part.upper()}, where nobody has ever seen it again."
    assert compare(part, whole) is None
    found = compare(part, whole, min_contained=0.8)
    assert found.contained == 1.0
    assert [(whole[each.other_start : each.other_end], each.start, each.end) for each in found.passages] == [
        (part.upper(), 0, len(part))
    ]
    back = compare(whole, part, min_contained=0.8)
    assert (back.contains, back.contained, back.similarity) == (found.contained, found.contains, found.similarity)
    assert [compare(whole, other, min_contained=0.1) for other in ("other words altogether", "")] == [None, None]


def test_a_text_that_repeats_itself_has_no_more_passages_than_cover_it():
    """A run begins at every character of such a text, and a passage at every one would be as many as characters."""
    found = compare("ab" * 50_000, "ab" * 100, min_run=100)
    ends = [0, *(each.end for each in found.passages)]
    assert all(each.start <= end < each.end for each, end in zip(found.passages, ends, strict=False))
    assert (ends[-1], len(found.passages)) == (100_000, 500)


def test_different_runs_with_one_hash():
    """The Thue-Morse sequence and its opposite, of the same short runs, have one polynomial: the equal run is found."""
    run = "".join("ab"[number.bit_count() % 2] for number in range(4_096))
    opposite = run.translate({ord("a"): "b", ord("b"): "a"})
    both = f"{opposite}c{run}"
    found, other = (compare(f"d{run}e", text, min_run=4_096) for text in (both, opposite))
    assert [(each.start, each.other_start, each.other_end) for each in found.passages] == [(1, 4_097, 8_193)]
    assert other is None
