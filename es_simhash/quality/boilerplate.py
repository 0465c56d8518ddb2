"""
Learns passages of template text from the grams that many texts share, and reads the texts: of an index, of a hot
block term, of a group.

A document counts by what is left of it without these grams: if the same or nearly the same is left, documents
are copies and count once. If less than a passage is left, the document does not count, because nothing shows
that what it shares is not its content.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from es_simhash.arguments import Count, check_count, check_field, check_items, check_number, option
from es_simhash.errors import InvalidInputError, MappingError, WrongTypeError, count, shorten
from es_simhash.groups.assign import group_fingerprints
from es_simhash.hashing import Scheme, fingerprint_array
from es_simhash.hashing.characters import is_unspaced, normalise_batch
from es_simhash.hashing.compute import text_scheme
from es_simhash.hashing.mask import FEWEST_LETTERS, Grams, MaskPassage, count_worth, mask_json, runs_of
from es_simhash.hashing.preprocess import preprocessor
from es_simhash.hashing.winnowing import gram_hashes, normalise_with_positions
from es_simhash.mapping.fields import Fields, text_or_none
from es_simhash.mapping.mapping import exist_clauses
from es_simhash.mapping.meta import IndexSettings
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import agree, resolve_index
from es_simhash.mapping.user_fields import countable_field, find_field_faults
from es_simhash.quality.health import Finding, FindingKind, Severity, Values
from es_simhash.quality.sampling import SampleOptions, sample_documents, sample_option
from es_simhash.tables.notebook import Part, Sheet
from es_simhash.tables.tabular import Tabular
from es_simhash.transport.answers import sentences
from es_simhash.transport.protocol import Index, check_index, index_key

Codes = NDArray[np.uint32]
Hashes = NDArray[np.uint64]
Flags = NDArray[np.bool_]
Places = NDArray[np.intp]
Sample = Sequence[tuple[str, Codes]]
"""Texts, each with its normalised characters; no two texts have the same characters."""

# Of a longer text the first and the last half of so many characters are read.
_LONGEST = 100_000
# What is left of two documents is nearly the same up to so many bits.
_NEAR = 3
_check_share = partial(check_number, advice="a share of the documents from 0 to 1, such as 0.01")
_TEXTS = 256
_LARGEST_TABLE = 1 << 25


@dataclass(frozen=True, slots=True)
class _GramCounts:
    """Sorted hashes of the grams that enough of the *counted* documents share, and in how many each occurs."""

    hashes: Hashes
    documents: NDArray[np.int64]
    counted: int

    def fewest(self, hashes: Hashes) -> int:
        """Return in how many documents the rarest of *hashes* stands; all of them are among these grams."""
        return int(self.documents[np.searchsorted(self.hashes, hashes)].min())


def _read_sample(texts: Sequence[str]) -> Sample:
    """Return *texts* with their normalised characters, copies left out; 4 bytes a character."""
    half = _LONGEST // 2
    cut = [text if len(text) <= _LONGEST else f"{text[:half]}\n{text[-half:]}" for text in texts]
    known: dict[bytes, tuple[str, Codes]] = {}
    for at in range(0, len(cut), _TEXTS):
        some = cut[at : at + _TEXTS]
        codes, lengths = normalise_batch(some, separators=False)
        for text, each in zip(some, np.split(codes, np.cumsum(lengths)[:-1]), strict=True):
            known.setdefault(each.tobytes(), (text, each.copy()))
    return list(known.values())


def _count_grams(sample: Sequence[Codes], *, least: int, least_share: float) -> _GramCounts:
    """
    Return the grams of at least *least*, and of at least the share *least_share*, of the counted documents.
    Hashes the texts four times. Memory: 4 bytes for each character, and 16 for each that many texts share.
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
    return _GramCounts(every[enough], documents[enough], counted)


def _shared_by(sample: Sequence[Codes], least: int) -> Callable[[Hashes], Flags]:
    """Return a function that says which grams at least *least* texts share; it may say so of a few others."""
    size = 1 << min(sum(each.size for each in sample), _LARGEST_TABLE).bit_length()
    counts = np.zeros(size, np.uint32)
    bits = np.uint64(size - 1)
    for codes in sample:
        # A place that stands twice in such an assignment is counted once: each text counts once.
        counts[gram_hashes(codes) & bits] += 1

    def is_shared(hashes: Hashes) -> Flags:
        shared: Flags = counts.take(hashes & bits) >= least
        return shared

    return is_shared


def _contents(sample: Sequence[Codes], is_shared: Callable[[Hashes], Flags]) -> NDArray[np.int64]:
    """Return for each document a number of its content, from 0 on; -1 where too little is left to count."""
    left = [_keep_unshared(codes, is_shared) for codes in sample]
    is_enough = np.array([count_worth(codes) >= FEWEST_LETTERS for codes in left], np.bool_)
    places = np.flatnonzero(is_enough)
    groups = np.full(len(sample), -1, np.int64)
    if places.size:
        texts = [left[place].astype("<u4").tobytes().decode("utf-32-le") for place in places]
        values, _ = fingerprint_array(texts)
        canonical = group_fingerprints(values, _NEAR, rule="connected")
        groups[places] = np.unique(canonical, return_inverse=True)[1]
    return groups


def _keep_unshared(codes: Codes, is_shared: Callable[[Hashes], Flags]) -> Codes:
    """Return *codes* without the runs that consist of shared grams."""
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
        return f"{count(len(self.passages), 'passage')} of template text in {count(self.sampled, 'sampled text')}"

    def _sheets(self) -> Sequence[Part]:
        return [Sheet("", self.to_dicts(), {"share": 1}, folded=("text",))]

    def _notes(self) -> Mapping[str, Sequence[str]]:
        return {"not every document was looked at": self.reasons}


def learn_boilerplate(
    texts: Iterable[str],
    *,
    sources: Iterable[str | None] | None = None,
    scheme: str | Scheme | None = None,
    min_documents: int = 20,
    min_share: float = 0.01,
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
    _check_share("min_share", min_share)
    whole = list(check_items("texts", texts, of="strings"))
    for text in whole:
        if not isinstance(text, str):
            raise WrongTypeError(f"text must be a str, not {type(text).__name__} {shorten(text)}")
    names = _names(sources, len(whole))
    if scheme is not None and (prepare := preprocessor(text_scheme(scheme).without_boilerplate())) is not None:
        whole = prepare(whole)
    learner = _Learner(min_documents, min_share)
    sample = _read_sample(whole)
    counted = learner.learn(sample, None)
    for name in sorted({name for name in names if name is not None}):
        learner.learn(_read_sample([text for text, own in zip(whole, names, strict=True) if own == name]), name)
    passages = sorted(learner.passages, key=lambda each: (-(each.documents or 0), -len(each.text), each.text))
    return Boilerplate(tuple(passages), len(whole), counted, learner.masked_share(sample))


def _names(sources: Iterable[str | None] | None, count: int) -> list[str | None]:
    names: list[str | None] = [None] * count if sources is None else list(check_items("sources", sources, of="names"))
    if len(names) != count:
        raise InvalidInputError(f"there are {len(names):,} sources for {count:,} texts: give one for each text")
    for name in names:
        if not (name is None or isinstance(name, str)):
            raise WrongTypeError(f"a source must be a str or None, not {type(name).__name__} {shorten(name)}")
    return names


class _Learner:
    """Collects passages: first those of all documents, then those that are frequent within one source only."""

    def __init__(self, least: int, least_share: float) -> None:
        self._least, self._least_share = least, least_share
        self._known: set[int] = set()
        self.passages: list[MaskPassage] = []

    def learn(self, sample: Sample, source: str | None) -> int:
        """Add the passages of *sample* that are not known yet, and return how many of its documents count."""
        if len(sample) < self._least:
            return 0
        counts = _count_grams([codes for _, codes in sample], least=self._least, least_share=self._least_share)
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
        total = sum(codes.size for _, codes in sample)
        if not self._known or not total:
            return 0.0
        grams = Grams(np.array(sorted(self._known), np.uint64))
        return 1 - sum(_keep_unshared(codes, grams.contain).size for _, codes in sample) / total

    def _are_new(self, hashes: Hashes) -> Flags:
        return np.fromiter((value not in self._known for value in hashes.tolist()), np.bool_, hashes.size)


def _common_runs(sample: Sample, contain: Callable[[Hashes], Flags]) -> list[str]:
    """Return the different runs of *sample* whose grams are contained: those of most texts first, then the longest."""
    numbers: Counter[bytes] = Counter()
    texts: dict[bytes, str] = {}
    for text, codes in sample:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class BoilerplateOptions(SampleOptions):
    """
    What counts as template text, checked.

    Args:
        source_field:
            Keyword field that says where a document comes from: passages are also counted within each of its
            values, where a footer of a small source is frequent.
        min_documents:
            Fewest sampled documents that have a passage, at least 2.
        min_share:
            Their smallest share of the sampled documents, or of those of one source, 0 to 1.
    """

    sample: int = sample_option(5_000)
    source_field: str | None = option(None, check_field)
    min_documents: int = option(20, Count(2))
    min_share: float = option(0.01, _check_share)


async def read_boilerplate(server: Port, index: Index, options: BoilerplateOptions) -> Boilerplate:
    """Return the passages that many sampled documents of *index*, which need not have our fields, share."""
    resolved = await resolve_index(server, check_index(index))
    settings = scheme = None
    with suppress(MappingError):  # no fingerprints yet
        settings = agree(resolved, server.context)
        scheme = None if settings.scheme.name == "weighted" else settings.scheme
    fields = options.named_fields(index, settings)
    source_field = countable_field(options.source_field, resolved.mappings)
    for fault in find_field_faults(None, source_field, None, resolved.mappings):
        if fault.is_fatal:
            raise InvalidInputError(f"{fault}: give the full name of one field in the mapping")
    sources = [source_field] if source_field else []
    hits, gaps, _ = await sample_documents(
        server,
        index,
        options.sample,
        query={"bool": {"filter": exist_clauses(fields, resolved.mappings.values())}},
        text_fields=fields,
        docvalue_fields=sources,
        seed=options.seed,
        with_text=True,
    )

    def judge() -> Boilerplate:
        texts = [text_or_none(hit, fields) or "" for hit in hits]
        values = [(hit.get("fields") or {}).get(source_field) for hit in hits]
        names = [str(each[0]) if each else None for each in values]
        least, share = options.min_documents, options.min_share
        return learn_boilerplate(texts, sources=names, scheme=scheme, min_documents=least, min_share=share)

    found: Boilerplate = await server.compute(judge)
    return replace(found, reasons=tuple(sentences(gaps)))


# Documents of the smallest group whose texts are examined.
_SMALLEST_GROUP = 10
# Documents of a block term or a group that are read.
_READ = 200
# How many of them, and which share, have a passage that is reported; characters of it that are shown.
_FEWEST, _LEAST_SHARE, _SHOWN = 5, 0.5, 200


async def find_shared_templates(
    server: Port,
    index: Index,
    settings: IndexSettings,
    fields: Sequence[str],
    findings: Sequence[Finding],
    largest: tuple[str, int] | None = None,
) -> list[Finding]:
    """
    Return the passages that the documents share of which *findings* say that a block term is hot, and that members of
    the *largest* group share although their contents differ.
    """
    found: list[Finding] = []
    shown: set[Any] = set()
    for each in findings:
        if each.kind not in ("hot", "hot_copies"):
            continue
        field, term = str(each.values["field"]), each.values["term"]
        values: Values = {"index": index_key(index), "field": field, "term": term}
        answer = await _examine(server, index, settings, fields, {field: term}, "hot_template", each.severity, values)
        # The documents of one template are in a hot term of each block.
        found += [finding for finding in answer if finding.values["text"] not in shown]
        shown |= {finding.values["text"] for finding in answer}
    if largest is not None and largest[1] >= _SMALLEST_GROUP:
        group, documents = largest
        values = {"index": index_key(index), "group": group, "documents": documents}
        in_group = {Fields(server.prefix).group: group}
        found += await _examine(server, index, settings, fields, in_group, "group_template", "warning", values)
    return found


async def _examine(
    server: Port,
    index: Index,
    settings: IndexSettings,
    fields: Sequence[str],
    term: Mapping[str, Any],
    kind: FindingKind,
    severity: Severity,
    values: Values,
) -> list[Finding]:
    """Return a finding about the longest passage that half of the documents with *term* share, if there is one."""
    if not fields:
        return []
    hits, _, _ = await sample_documents(server, index, _READ, query={"term": dict(term)}, text_fields=fields)

    def judge() -> list[Finding]:
        texts = [text for hit in hits if (text := text_or_none(hit, fields)) is not None]
        # What the scheme leaves out is removed first, because it cannot be the cause any more.
        if (prepare := preprocessor(settings.scheme)) is not None:
            texts = prepare(texts)
        learned = learn_boilerplate(texts, min_documents=_FEWEST, min_share=_LEAST_SHARE)
        longest = max(learned.passages, key=lambda each: len(each.text), default=None)
        if longest is None:
            return []
        text = " ".join(longest.text.split())
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        passage: Values = {"part": longest.documents or 0, "whole": learned.counted, "text": shown}
        return [Finding(severity, kind, {**values, **passage})]

    found: list[Finding] = await server.compute(judge)
    return found
