"""
How much of two texts is the same by their shingles of words, and how units become shingles.

A word of a script with spaces counts 5, a character of a script without spaces counts 3, and a shingle is the shortest
run that reaches 15: three words of English or five characters of Chinese; texts may mix both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import xxhash

from es_simhash.hashing.characters import (
    PIECE,
    SEPARATOR,
    Codes,
    Flags,
    Hashes,
    Places,
    is_unspaced,
    normalise_batch,
    split_long,
    text_parts,
)

Shingles = Hashes

# What a word counts, what a character of a script without spaces counts, and the length of a shingle.
WORD, CHARACTER, SHINGLE = 5, 3, 15
# Texts are cut together up to so many characters.
_BATCH = 1 << 18


def shingle_sets(texts: Sequence[str], *, piece: int = PIECE) -> list[Shingles]:
    """
    Return the distinct shingles of each text as sorted 64-bit hashes; empty for a text without words.
    A text shorter than a shingle is one shingle. The chance that two different shingles of a pair of texts share
    a hash is below one in a million even for texts of a million words. *piece*: characters of a long text that are
    normalised at once. Memory: some 60 bytes for each of 262,144 characters at a time, or of a longer text.
    """
    return [part for batch in text_batches(texts) for part in cut_units(*_hash_batch(batch, piece))]


def word_hashes(texts: Sequence[str]) -> list[Shingles]:
    hashed = map(_hash_batch, text_batches(texts))
    return [part for hashes, _, ends in hashed for part in np.split(hashes, ends[:-1])]


def share_shingles(first: Shingles, second: Shingles) -> tuple[float, float, float]:
    """Return the share of each set that the other has, and the Jaccard similarity; 0 where either is empty."""
    if not first.size or not second.size:
        return 0.0, 0.0, 0.0
    shared = int(np.intersect1d(first, second, assume_unique=True).size)
    return shared / first.size, shared / second.size, shared / (first.size + second.size - shared)


def text_batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield *texts* in parts of 262,144 characters at most; a longer text is a part alone."""
    return (texts[part] for part in text_parts(texts, _BATCH, _BATCH))


def _hash_batch(texts: Sequence[str], piece: int = PIECE) -> tuple[Shingles, Places, Places]:
    """Return the hash of every word, what it counts, and for each text the number of the word after its last."""
    if len(texts) == 1:
        hashes, counts = _hash_words(texts[0], piece)
        return hashes, counts, np.array([hashes.size])
    codes, sizes = normalise_batch(texts, separators=True)
    # A separator after each text, so that no word begins in one and ends in the next.
    codes = np.insert(codes, np.cumsum(sizes), SEPARATOR)
    hashes, counts, places = _hash_piece(codes, is_unspaced(codes))
    return hashes, counts, np.searchsorted(places, np.cumsum(sizes + 1))


def cut_units(hashes: Shingles, counts: Places, ends: Places) -> list[Shingles]:
    """
    Return the distinct shingles of texts that stand one after the other, each as sorted 64-bit hashes.
    A shingle is the shortest run of units (words or characters) whose *counts* reach 15; a text without such a
    run is one shingle. *ends*: for each text the number of the unit after its last.
    """
    if not hashes.size:
        return [hashes] * ends.size
    starts, lengths = unit_runs(counts, np.repeat(ends, np.diff(ends, prepend=0)))
    # A text without a run is one shingle, if it has units.
    first_units = np.concatenate(([0], ends[:-1]))
    is_short = (np.diff(np.searchsorted(starts, ends), prepend=0) == 0) & (ends > first_units)
    mixed = _mix(hashes, starts, lengths)
    if is_short.any():
        begins, sizes = first_units[is_short], (ends - first_units)[is_short]
        places = np.searchsorted(starts, begins)
        starts, mixed = np.insert(starts, places, begins), np.insert(mixed, places, _mix(hashes, begins, sizes))
    stops = np.searchsorted(starts, ends).tolist()
    return [_distinct(mixed[begin:end]) for begin, end in pairwise([0, *stops])]


def unit_runs(counts: Places, ends: Places) -> tuple[Places, Places]:
    """Return the start and length of each shingle, in units; *ends* has for each unit the end of its text."""
    passed = np.cumsum(counts)
    wanted = passed - counts + SHINGLE
    # The first unit whose end lies a shingle's length beyond each start; a start without one begins no shingle.
    last = np.full(counts.size, counts.size)
    most, fewest = (-(-SHINGLE // max(1, int(each))) for each in (counts.min(), counts.max()))
    for beyond in range(min(most, counts.size) - 1, fewest - 2, -1):
        is_beyond = passed[beyond:] >= wanted[: counts.size - beyond]
        np.copyto(last[: counts.size - beyond], np.arange(beyond, counts.size), where=is_beyond)
    starts = np.flatnonzero(last < ends)
    return starts, last[starts] - starts + 1


def _distinct(shingles: Shingles) -> Shingles:
    if not shingles.size:
        return shingles
    shingles.sort()
    kept = np.empty(shingles.size, np.bool_)
    kept[0] = True
    np.not_equal(shingles[1:], shingles[:-1], out=kept[1:])
    distinct: Shingles = shingles[kept]
    return distinct


def _hash_words(text: str, piece: int) -> tuple[Shingles, Places]:
    """Return the hash of every word of *text*, and what the word counts."""
    found = []
    rest = np.empty(0, np.uint32)
    for part in split_long(text, piece=piece):
        codes = np.concatenate([rest, part])
        # A long text comes in pieces, and a word may continue in the next piece.
        ends = np.flatnonzero((codes == SEPARATOR) | is_unspaced(codes))
        cut = int(ends[-1]) + 1 if ends.size else 0
        found.append(_hash_piece(codes[:cut], is_unspaced(codes[:cut]))[:2])
        rest = codes[cut:]
    found.append(_hash_piece(rest, np.zeros(rest.size, np.bool_))[:2])
    hashes, counts = zip(*found, strict=True)
    return np.concatenate(hashes), np.concatenate(counts)


def _hash_piece(codes: Codes, unspaced: Flags) -> tuple[Shingles, Places, Places]:
    """Return the hash of every word, what it counts, and where it starts."""
    spaced = ~unspaced & (codes != SEPARATOR)
    starts = spaced.copy()
    starts[1:] &= ~spaced[:-1]
    places = np.flatnonzero(unspaced | starts)
    single = unspaced[places]
    hashes = codes[places].astype(np.uint64)
    words = np.where(spaced, codes, np.uint32(SEPARATOR)).astype("<u4").tobytes().decode("utf-32-le").split()
    hashes[~single] = np.fromiter(map(xxhash.xxh3_64_intdigest, map(str.encode, words)), np.uint64, len(words))
    return hashes, np.where(single, CHARACTER, WORD), places


def _mix(hashes: Shingles, starts: Places, lengths: Places) -> Shingles:
    """Return one hash for each run of units; it depends on the units and on their order."""
    result = lengths.astype(np.uint64)
    shortest, longest = (int(lengths.min()), int(lengths.max())) if lengths.size else (0, 0)
    for place in range(longest):
        inside = slice(None) if place < shortest else np.flatnonzero(lengths > place)
        value = result[inside] * np.uint64(0x9E37_79B9_7F4A_7C15) + hashes[starts[inside] + place]
        value ^= value >> np.uint64(32)
        value *= np.uint64(0xD6E8_FEB8_6659_FD93)
        value ^= value >> np.uint64(29)
        result[inside] = value
    return result
