"""
Sampled texts as normalised characters, and in how many of them each gram stands.

A document counts by what is left of it without the grams that many documents share. Documents of which the same is
left, or nearly the same, are copies and count once. A document of which less than a passage is left does not count,
because nothing shows that what it shares is not its content.

What was learned about the template text of an index or of texts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from es_simhash.groups.assign import group_fingerprints
from es_simhash.hashing import fingerprint_array
from es_simhash.hashing.characters import normalise_batch
from es_simhash.hashing.mask import FEWEST_LETTERS, MaskPassage, count_worth, gram_hashes, mask_json, runs_of
from es_simhash.tables.notebook import Sheet
from es_simhash.tables.tabular import Tabular

Codes = NDArray[np.uint32]


Hashes = NDArray[np.uint64]


LONGEST = 100_000
"""Of a longer text the first and the last half of so many characters are read."""


# What is left of two documents is nearly the same up to so many bits.
_NEAR = 3


_TEXTS = 256


_LARGEST_TABLE = 1 << 25


@dataclass(frozen=True, slots=True)
class Sample:
    """
    Texts, and the normalised characters of each; no two texts have the same characters.
    """

    texts: Sequence[str]
    codes: Sequence[Codes]


@dataclass(frozen=True, slots=True)
class GramCounts:
    """
    The grams that enough documents share.

    Attributes:
        hashes:
            Their hashes, sorted.
        documents:
            In how many of the documents that were counted each stands.
        counted:
            How many documents were counted.
    """

    hashes: Hashes
    documents: NDArray[np.int64]
    counted: int

    def fewest(self, hashes: Hashes) -> int:
        """Return in how many documents the rarest of *hashes* stands; all of them are among these grams."""
        return int(self.documents[np.searchsorted(self.hashes, hashes)].min())


def read_sample(texts: Sequence[str]) -> Sample:
    """
    Return *texts* with their normalised characters, copies left out; 4 bytes a character.
    """
    half = LONGEST // 2
    cut = [text if len(text) <= LONGEST else f"{text[:half]}\n{text[-half:]}" for text in texts]
    known: dict[bytes, tuple[str, Codes]] = {}
    for at in range(0, len(cut), _TEXTS):
        some = cut[at : at + _TEXTS]
        codes, lengths = normalise_batch(some, separators=False)
        for text, each in zip(some, np.split(codes, np.cumsum(lengths)[:-1]), strict=True):
            known.setdefault(each.tobytes(), (text, each.copy()))
    return Sample(*map(list, zip(*known.values(), strict=True))) if known else Sample([], [])


def count_grams(sample: Sequence[Codes], *, least: int, least_share: float) -> GramCounts:
    """
    Return the grams that stand in at least *least* of the documents that count, and in at least *least_share* of them.

    Hashes the texts four times; memory is 4 bytes for each character, and 16 for each that many texts share.
    """
    is_shared = _shared_by(sample, max(least, int(least_share * len(sample))))
    groups = _contents(sample, is_shared)
    counted = int(groups.max(initial=-1)) + 1
    found = [np.empty(0, np.uint64)]
    order = np.argsort(groups, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1):
        # The grams of all documents of one content count once.
        if members.size and groups[members[0]] >= 0:
            hashes = np.concatenate([gram_hashes(sample[place]) for place in members])
            found.append(np.unique(hashes[is_shared(hashes)]))
    every, documents = np.unique(np.concatenate(found), return_counts=True)
    enough = documents >= max(least, least_share * counted)
    return GramCounts(every[enough], documents[enough], counted)


def _shared_by(sample: Sequence[Codes], least: int) -> Callable[[Hashes], NDArray[np.bool_]]:
    """
    Return a function that says which grams at least *least* texts share; it may say so of a few others.
    """
    size = 1 << min(sum(each.size for each in sample), _LARGEST_TABLE).bit_length()
    counts = np.zeros(size, np.uint32)
    bits = np.uint64(size - 1)
    for codes in sample:
        # A place that stands twice in such an assignment is counted once: each text counts once.
        counts[gram_hashes(codes) & bits] += 1

    def is_shared(hashes: Hashes) -> NDArray[np.bool_]:
        shared: NDArray[np.bool_] = counts.take(hashes & bits) >= least
        return shared

    return is_shared


def _contents(sample: Sequence[Codes], is_shared: Callable[[Hashes], NDArray[np.bool_]]) -> NDArray[np.int64]:
    """
    Return for each document a number of its content, from 0 on; -1 where too little is left to count.
    """
    left = [keep_unshared(codes, is_shared) for codes in sample]
    is_enough = np.array([count_worth(codes) >= FEWEST_LETTERS for codes in left], np.bool_)
    places = np.flatnonzero(is_enough)
    groups = np.full(len(sample), -1, np.int64)
    if places.size:
        texts = [left[place].astype("<u4").tobytes().decode("utf-32-le") for place in places]
        values, _ = fingerprint_array(texts)
        canonical = group_fingerprints(values, _NEAR, rule="connected")
        groups[places] = np.unique(canonical, return_inverse=True)[1]
    return groups


def keep_unshared(codes: Codes, is_shared: Callable[[Hashes], NDArray[np.bool_]]) -> Codes:
    """
    Return *codes* without the runs that consist of shared grams.
    """
    keeps = np.ones(codes.size, np.bool_)
    for first, stop in zip(*(each.tolist() for each in runs_of(codes, is_shared)), strict=True):
        keeps[first:stop] = False
    return codes[keeps]


@dataclass(frozen=True, slots=True)
class Boilerplate(Tabular):
    """
    Passages of template text, those in most documents first.

    Attributes:
        passages:
            The passages, each a ``MaskPassage`` with its text, documents, share and source.
        sampled:
            How many texts were read.
        counted:
            How many of them were counted: texts whose contents are the same or nearly the same count once, and texts
            that are nothing but template do not count.
        masked:
            Share of the letters of all sampled texts that the passages leave out, 0 to 1.
        reasons:
            Why not every document could be sampled; empty if each could.
    """

    passages: tuple[MaskPassage, ...] = ()
    sampled: int = 0
    counted: int = 0
    masked: float = 0.0
    reasons: tuple[str, ...] = ()

    def to_json(self) -> str:
        """Return the content of a mask file, which ``get_scheme(..., boilerplate=PATH)`` reads."""
        return mask_json(self.passages)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return {
            "sampled": self.sampled,
            "counted": self.counted,
            "masked": round(self.masked, 4),
            "passages": self.to_dicts(),
            "reasons": list(self.reasons),
        }

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a row for each passage."""
        return [each.to_dict() for each in self.passages]

    def _title(self) -> str:
        return f"{len(self.passages):,} passages of template text in {self.sampled:,} sampled texts"

    def _sheets(self) -> Sequence[Sheet]:
        return [Sheet("", self.to_dicts(), {"share": 1})]
