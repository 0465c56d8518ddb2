"""
The slow, obvious oracle of passages: every window of a text, and the smallest hash of a gram in it.

It shares with ``tests.reference`` how texts are normalised and which script a character has; the rest of the rules is
spelt out here, from docs/passages.md.
"""

import functools

from tests.reference import letters, normalise

GRAM, GUARANTEE = 12 * 25, 12 * 100


def worth(character):
    """What a character is worth for passages, in twelfths of a letter: 5/4 letters a logograph, 4/3 a kana."""
    return {6: 15, 4: 16, 3: 12}[letters(character)]


def run_of(text, least):
    """The shortest beginning of *text* whose characters are worth *least* or more, or None."""
    total = 0
    for end, character in enumerate(text, 1):
        total += worth(character)
        if total >= least:
            return text[:end]
    return None


def run_of_letters(text, least):
    """The shortest beginning of *text* of at least so many letters, and no shorter than a window of passages."""
    lengths = {6: 30, 4: 16, 3: 12}
    total, window = 0, run_of(text, GUARANTEE)
    for end, character in enumerate(text, 1):
        total += lengths[letters(character)]
        if total >= 12 * least:
            return None if window is None else text[: max(end, len(window))]
    return None


@functools.cache
def run_hash(run):
    """A polynomial modulo 2**64, mixed by the last steps of splitmix64."""
    value = sum(ord(character) * pow(0x9E3779B97F4A7C15, place, 2**64) for place, character in enumerate(run)) % 2**64
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ value >> 27) * 0x94D049BB133111EB % 2**64
    return value ^ value >> 31


def grams(stripped):
    """The hash of each gram of a normalised text without separators."""
    found = [run_of(stripped[start : start + GRAM], GRAM) for start in range(len(stripped))]
    return [run_hash(gram) for gram in found if gram is not None]


def windows(stripped):
    """The shortest runs worth the guarantee, one for each place at which such a run begins."""
    found = [run_of(stripped[start : start + GUARANTEE], GUARANTEE) for start in range(len(stripped))]
    return [window for window in found if window is not None]


def passage_terms(text):
    """The terms that winnowing keeps of a text: the smallest hash of each window, in base 64, sorted."""
    stripped = normalise(text).replace(" ", "")
    if not stripped:
        return []
    kept = {min(grams(window)) for window in windows(stripped)}
    kept = kept or {min(grams(stripped), default=run_hash(stripped))}
    digits = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
    return sorted({"".join(digits[value >> 6 * place & 63] for place in range(5, -1, -1)) for value in kept})
