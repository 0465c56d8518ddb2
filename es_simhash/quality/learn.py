"""
From the grams that many documents share to passages, as people read them.

What ``doctor`` says of the template text that some documents share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from es_simhash.arguments import check_count, check_items, check_number
from es_simhash.errors import InvalidInputError, WrongTypeError, shorten
from es_simhash.hashing import Scheme
from es_simhash.hashing.compute import text_scheme
from es_simhash.hashing.mask import FEWEST_LETTERS, Grams, MaskPassage, count_worth, gram_hashes, runs_of
from es_simhash.hashing.preprocess import preprocessor
from es_simhash.hashing.scripts import is_unspaced
from es_simhash.hashing.winnowing import normalise_with_positions
from es_simhash.quality.health import Finding, Severity, Values
from es_simhash.quality.health_words import FindingKind
from es_simhash.quality.templates import Boilerplate, Codes, Hashes, Sample, count_grams, keep_unshared, read_sample

Flags = NDArray[np.bool_]


Places = NDArray[np.intp]


LEAST_DOCUMENTS = 20


LEAST_SHARE = 0.01


def learn_boilerplate(
    texts: Iterable[str],
    *,
    sources: Iterable[str | None] | None = None,
    scheme: str | Scheme | None = None,
    min_documents: int = LEAST_DOCUMENTS,
    min_share: float = LEAST_SHARE,
) -> Boilerplate:
    """
    Return the passages that stand in many of *texts* with different contents: headers, footers, disclaimers.

    A passage is worth at least 50 letters (40 characters of Chinese). Texts that are the same without what many share
    count once, and those of which less than a passage is left do not count, so that copies of an article make no
    template. All texts are kept in memory, and some 30 bytes for each of their characters.

    Args:
        texts:
            A sample of texts; of one longer than 100,000 characters the two ends are read.
        sources:
            For each text a name of where it comes from, or ``None``: passages are also counted within each source,
            where a footer of a small source is frequent.
        scheme:
            Name, id or :class:`Scheme`, whose steps ``html`` and ``t2s`` the texts go through first; by default none.
        min_documents:
            Fewest documents that have a passage, at least 2.
        min_share:
            Their smallest share of all documents that count, or of those of one source, 0 to 1.

    Raises:
        TypeError: If an argument has the wrong type.
        InvalidInputError: If it has a value that cannot be used, or there are not as many sources as texts.

    Examples:
        >>> texts = [" ".join(str(base**power) for power in range(2, 20)) for base in range(2, 40)]
        >>> notes = [f"{text}. Sent by the office of records; please print it only if you have to." for text in texts]
        >>> [(passage.text, passage.documents) for passage in learn_boilerplate(notes).passages]
        [('Sent by the office of records; please print it only if you have to', 38)]
    """
    check_count("min_documents", min_documents, 2)
    check_number("min_share", min_share, advice="a share of the documents from 0 to 1, such as 0.01")
    whole = _checked(texts)
    names = _names(sources, len(whole))
    if scheme is not None and (prepare := preprocessor(text_scheme(scheme).without_boilerplate())) is not None:
        whole = prepare(whole)
    learner = _Learner(min_documents, min_share)
    sample = read_sample(whole)
    counted = learner.learn(sample, None)
    for name in sorted({name for name in names if name is not None}):
        learner.learn(read_sample([text for text, own in zip(whole, names, strict=True) if own == name]), name)
    passages = sorted(learner.passages, key=lambda each: (-(each.documents or 0), -len(each.text), each.text))
    return Boilerplate(tuple(passages), len(whole), counted, learner.masked_share(sample))


def _checked(texts: Iterable[str]) -> list[str]:
    whole = list(check_items("texts", texts, of="strings"))
    for text in whole:
        if not isinstance(text, str):
            raise WrongTypeError(f"text must be a str, not {type(text).__name__} {shorten(text)}")
    return whole


def _names(sources: Iterable[str | None] | None, count: int) -> list[str | None]:
    names: list[str | None] = [None] * count if sources is None else list(check_items("sources", sources, of="names"))
    if len(names) != count:
        raise InvalidInputError(f"there are {len(names):,} sources for {count:,} texts: give one for each text")
    for name in names:
        if not (name is None or isinstance(name, str)):
            raise WrongTypeError(f"a source must be a str or None, not {type(name).__name__} {shorten(name)}")
    return names


class _Learner:
    """
    Collects passages: first those of all documents, then those that are frequent within one source only.
    """

    def __init__(self, least: int, least_share: float) -> None:
        self._least, self._least_share = least, least_share
        self._known: set[int] = set()
        self.passages: list[MaskPassage] = []

    def learn(self, sample: Sample, source: str | None) -> int:
        """Add the passages of *sample* that are not known yet, and return how many of its documents count."""
        if len(sample.texts) < self._least:
            return 0
        counts = count_grams(sample.codes, least=self._least, least_share=self._least_share)
        frequent = Grams(counts.hashes)
        for run in _common_runs(sample, frequent.contain):
            for text, codes in list(_runs(run, normalise_with_positions(run)[0], self._are_new)):
                hashes = gram_hashes(codes)
                documents = counts.fewest(hashes)
                self.passages.append(MaskPassage(text, documents, round(documents / counts.counted, 4), source))
                self._known.update(hashes.tolist())
        return counts.counted

    def masked_share(self, sample: Sample) -> float:
        """Return the share of the letters of *sample* that the passages leave out."""
        total = sum(codes.size for codes in sample.codes)
        if not self._known or not total:
            return 0.0
        grams = Grams(np.array(sorted(self._known), np.uint64))
        return 1 - sum(keep_unshared(codes, grams.contain).size for codes in sample.codes) / total

    def _are_new(self, hashes: Hashes) -> Flags:
        return np.fromiter((value not in self._known for value in hashes.tolist()), np.bool_, hashes.size)


def _common_runs(sample: Sample, contain: Callable[[Hashes], Flags]) -> list[str]:
    """Return the different runs of *sample* whose grams are contained: those of most texts first, then the longest."""
    numbers: Counter[bytes] = Counter()
    texts: dict[bytes, str] = {}
    for text, codes in zip(sample.texts, sample.codes, strict=True):
        found = {run.tobytes(): shown for shown, run in _runs(text, codes, contain)}
        numbers.update(found.keys())
        texts |= {run: shown for run, shown in found.items() if run not in texts}
    order = sorted(numbers, key=lambda run: (-numbers[run], -len(run), run))
    return [texts[run] for run in order]


def _runs(text: str, codes: Codes, contain: Callable[[Hashes], Flags]) -> Iterator[tuple[str, Codes]]:
    """Yield the runs of *text* whose grams are contained, cut at whole words, as they stand and normalised."""
    firsts, stops = runs_of(codes, contain)
    if not firsts.size:
        return
    codes, starts, ends = normalise_with_positions(text)
    borders = _word_borders(codes, starts, ends)
    firsts = borders[np.searchsorted(borders, firsts)]
    stops = borders[np.searchsorted(borders, stops, side="right") - 1]
    for first, stop in zip(firsts.tolist(), stops.tolist(), strict=True):
        if first < stop and count_worth(codes[first:stop]) >= FEWEST_LETTERS:
            yield text[starts[first] : ends[stop - 1]], codes[first:stop]


def _word_borders(codes: Codes, starts: Places, ends: Places) -> Places:
    """Return where a word may begin or end: beside a separator, or a character of a script without spaces."""
    unspaced = is_unspaced(codes)
    inside = (starts[1:] > ends[:-1]) | ((unspaced[1:] | unspaced[:-1]) & (starts[1:] > starts[:-1]))
    return np.flatnonzero(np.concatenate(([True], inside, [True])))


_FEWEST, _LEAST_SHARE = 5, 0.5


_SHOWN = 200


def judge_template(
    kind: FindingKind, texts: Sequence[str], *, scheme: Scheme, severity: Severity, values: Values
) -> list[Finding]:
    """
    Return a finding about the longest passage that at least half of *texts* share although their contents differ.

    Args:
        kind:
            The kind of the finding.
        texts:
            Texts of documents that are near each other.
        scheme:
            Scheme of the index; what it leaves out is no cause any more.
        severity:
            Severity of the finding.
        values:
            What the finding says beside the passage.
    """
    prepare = preprocessor(scheme)
    found = learn_boilerplate(
        texts if prepare is None else prepare(texts), min_documents=_FEWEST, min_share=_LEAST_SHARE
    )
    longest = max(found.passages, key=lambda each: len(each.text), default=None)
    if longest is None:
        return []
    text = " ".join(longest.text.split())
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    passage: Values = {"part": longest.documents or 0, "whole": found.counted, "text": shown}
    return [Finding(severity, kind, {**values, **passage})]
