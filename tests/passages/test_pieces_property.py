"""Pieces of short texts against texts in which words were changed."""

from hypothesis import given, strategies as st

from es_simhash.passages.compare import cut_pieces

EDITS = st.lists(st.tuples(st.sampled_from(["replace", "add", "drop"]), st.integers(0, 100)), max_size=5)


def runs(words, length):
    return {tuple(words[start : start + length]) for start in range(len(words) - length + 1)}


@given(st.integers(1, 48), EDITS, st.sampled_from([0.7, 0.8, 0.9, 1.0]), st.booleans())
def test_a_text_that_has_enough_of_the_shingles_has_enough_of_the_pieces(count, edits, share, is_han):
    """Whatever words were replaced, added and left out; a piece is whole or not, as a phrase is."""
    count = min(80, 2 * count) if is_han else count
    length, gap = (5, "") if is_han else (3, " ")
    words = [chr(0x4E00 + number) if is_han else f"w{number}" for number in range(count)]
    found = cut_pieces(gap.join(words), min_contained=share)
    assert (found is None) == (count < length)
    if found is None:
        return
    pieces = [tuple(piece if is_han else piece.split()) for piece in found.pieces]
    assert [word for word in words if not any(word in piece for piece in pieces)] == []
    other = list(words)
    for number, (kind, drawn) in enumerate(edits):
        place = drawn % (len(other) + 1)
        other[place : place + (kind != "add")] = [] if kind == "drop" else [f"new{number}"]
    shingles = runs(words, length)
    if len(shingles & runs(other, length)) >= share * len(shingles):
        has = sum(piece in runs(other, len(piece)) for piece in pieces)
        assert has >= found.least
