"""
Measures what schemes and distances find in a sample of an index, and how much of it is right.

Recall is measured with edited copies of a sample, because each of them should be found; precision with pairs that the
index really has (``quality.known_pairs``), because its share of duplicates is not that of the copies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from es_simhash.arguments import check_items
from es_simhash.errors import InvalidInputError, MappingError, shorten
from es_simhash.groups.all_pairs import distances_between, near_pairs
from es_simhash.hashing import Scheme, fingerprint_array, get_scheme
from es_simhash.hashing.preprocess import preprocessor
from es_simhash.lookup.find import index_stats
from es_simhash.lookup.plan import PlanEstimate, explain_plan
from es_simhash.mapping.context import IndexStats
from es_simhash.mapping.fields import text_or_none
from es_simhash.mapping.mapping import check_texts, exist_clauses
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import read_present_settings, resolve_index
from es_simhash.quality.edits import EDITS, NOISE, REVISIONS, Edit, Scripts, conversion_is_available, count_scripts
from es_simhash.quality.known_pairs import SAME_LETTERS, RealPairs
from es_simhash.quality.sampling import SampleOptions, read_real_pairs, sample_documents, sample_option
from es_simhash.tables.notebook import Part, Sheet
from es_simhash.tables.tabular import Tabular
from es_simhash.texts.measures import DEFAULT_SIMILARITY, PRESETS, WORD_SHINGLES, Preset, compare_pairs
from es_simhash.transport.answers import sentences
from es_simhash.transport.buckets import count_documents
from es_simhash.transport.protocol import (
    Index,
    Key,
    Progress,
    check_index,
    document_key,
    index_key,
)

DISTANCES = (0, 3, 5, 8, 10, 12, 16)
"""The distances, in bits, that figures are given for."""

ENOUGH_RECALL = 0.98
"""The share of the copies with a similarity of 0.8 that a recommended preset reports. What it reports was compared."""

_RELATED = 0.5
"""Two sampled texts at least this similar are related; others count as unrelated."""


@dataclass(frozen=True, slots=True)
class Edited:
    """
    A sample of texts and edited copies of them.
    *origins*, *kinds*, *similarity*: for each copy the position of its original, the kind of its edit, and the shingle
    Jaccard similarity of the two.
    """

    originals: tuple[str, ...]
    copies: tuple[str, ...]
    origins: NDArray[np.int64]
    kinds: tuple[str, ...]
    similarity: NDArray[np.float64]

    def mean_by_kind(self, values: NDArray[Any]) -> dict[str, float]:
        return {kind: float(values[[each == kind for each in self.kinds]].mean()) for kind in dict.fromkeys(self.kinds)}


def inject(texts: Sequence[str], *, seed: int = 0, edits: Mapping[str, Edit] = EDITS) -> Edited:
    """Return *texts* with one edited copy of each kind of *edits* that applies; the same for the same seed."""
    chance = Random(seed)
    copies, origins, kinds = [], [], []
    for place, text in enumerate(texts):
        for kind, edit in edits.items():
            changed = edit(text, chance)
            if changed is not None and changed != text:
                copies.append(changed)
                origins.append(place)
                kinds.append(kind)
    owners = np.array(origins, np.int64)
    both = [*texts, *copies]
    similarity, _ = compare_pairs(both, owners, np.arange(len(texts), len(both)))
    return Edited(tuple(texts), tuple(copies), owners, tuple(kinds), similarity)


@dataclass(frozen=True, slots=True)
class SchemeFigures:
    """
    What a scheme finds at a distance, in bits, before verification.
    *recall*: share of the edited copies within the distance; ``None`` without copies. *by_edit*: the same by kind of
    edit. *unrelated*: how many unrelated documents of the whole index are expected within the distance of a text.
    *precision*: share of the real pairs within the distance whose texts are at least 80 % the same, so what the bits
    alone would get right; ``None`` if no such pair was seen. *pairs*: how many pairs were compared for the precision.
    """

    scheme: str
    max_distance: int
    recall: float | None
    by_edit: Mapping[str, float]
    unrelated: float
    precision: float | None
    pairs: int = 0


@dataclass(frozen=True, slots=True)
class PresetFigures:
    """
    What a preset finds, verified.
    *recall*: share of the edited copies that it reports. *noise_recall*: the same for copies with 2 % wrong letters.
    *recall_above_bound*: the same among copies at or above the preset's similarity: what the distance alone costs.
    *unrelated*: documents expected to be fetched for verification and dropped, at each lookup. *candidates*,
    *milliseconds*: the planner's estimate for a lookup; ``None`` without an index. *recall_similar*: recall among the
    copies that share 80 % of their shingles with the original; ``None`` without any. *by_edit*: recall by kind of edit,
    with 2 % wrong letters and what editors change.
    """

    preset: str
    max_distance: int
    similarity: float
    recall: float | None
    recall_above_bound: float | None
    unrelated: float
    noise_recall: float | None = None
    candidates: float | None = None
    milliseconds: float | None = None
    recall_similar: float | None = None
    by_edit: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tuning(Tabular):
    """
    Figures for texts like those of an index, and the recommended preset.
    *documents*: those with a text. *copies*, *similarity*: by kind of edit, the copies made and their mean similarity.
    *presets*: each measured with the preset's scheme, whatever scheme the index has. *recommended*: what
    :func:`recommend` chose; ``None`` without copies. *reasons*: why some documents could not be drawn or counted; empty
    if all could.
    """

    index: str
    documents: int
    sampled: int
    copies: Mapping[str, int]
    similarity: Mapping[str, float]
    schemes: tuple[SchemeFigures, ...]
    presets: tuple[PresetFigures, ...]
    recommended: str | None
    notes: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return asdict(self)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a row for each preset, and one for each scheme and distance."""
        rows = []
        for each in self.presets:
            shares = {f"recall.{kind}": share for kind, share in each.by_edit.items()}
            rows.append(
                {"kind": "preset", "name": each.preset, **_without(asdict(each), "preset", "by_edit"), **shares}
            )
        for figures in self.schemes:
            shares = {f"recall.{kind}": share for kind, share in figures.by_edit.items()}
            row = _without(asdict(figures), "scheme", "by_edit")
            rows.append({"kind": "scheme", "name": figures.scheme, **row, **shares})
        return rows

    def _title(self) -> str:
        advice = f"recommended preset: {self.recommended}" if self.recommended else "no preset is recommended"
        return f"{self.index}: {advice}, from a sample of {self.sampled:,} of {self.documents:,} documents"

    def _sheets(self) -> Sequence[Part]:
        presets = [
            {
                "preset": each.preset,
                "max distance": each.max_distance,
                "similarity": each.similarity,
                "recall": each.recall,
                "recall above bound": each.recall_above_bound,
                "recall above 0.8": each.recall_similar,
                "wrong letters": each.noise_recall,
                "candidates": each.candidates,
                "milliseconds": each.milliseconds,
            }
            for each in self.presets
        ]
        schemes = [
            {"scheme": each.scheme, "max distance": each.max_distance}
            | {"recall": each.recall, "precision": each.precision, "pairs": each.pairs, "unrelated": each.unrelated}
            | dict(each.by_edit)
            for each in self.schemes
        ]
        copies = [
            {"edit": kind, "copies": each, "similarity": self.similarity[kind]} for kind, each in self.copies.items()
        ]
        bars = {"recall": 1.0, "recall above bound": 1.0, "precision": 1.0}
        return [
            Sheet(_OF_PRESETS, presets, bars),
            Sheet("Edited copies", copies),
            Sheet(_OF_SCHEMES, schemes, bars, keys=("scheme", "max distance")),
        ]

    def _notes(self) -> Mapping[str, Sequence[str]]:
        return {"not every document was looked at": self.reasons, "note": self.notes}


_OF_PRESETS = "Presets, after verification. wrong letters: recall of copies in which 2 % of the letters are wrong"
_OF_SCHEMES = (
    "By bits alone. recall: share of the edited copies; precision: share of the pairs of documents near each other in "
    "the index whose texts are 80 % the same; unrelated: unrelated documents to expect in each lookup; then the recall "
    "of each kind of edit"
)


def _without(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


def measure_scheme(
    edited: Edited, scheme: Scheme, near: RealPairs, *, documents: int, pairs: RealPairs | None = None
) -> list[SchemeFigures]:
    """
    Return what *scheme*, which takes text, finds at each of :data:`DISTANCES`.
    *documents*: documents in the whole index, for what a lookup there would return. *pairs*: pairs that the index has
    with this scheme; by default those that the sampled texts have among themselves. *near*: what :func:`near_in_sample`
    gave for this scheme.
    """
    distance = _distances(edited, scheme)
    unrelated = _unrelated(near, count=len(edited.originals), documents=documents)
    real = near if pairs is None else pairs
    figures = []
    for wanted in DISTANCES:
        found = distance <= wanted
        recall = float(found.mean()) if found.size else None
        by_edit = edited.mean_by_kind(found)
        figures.append(SchemeFigures(str(scheme), wanted, recall, by_edit, unrelated[wanted], *real.within(wanted)))
    return figures


def measure_preset(
    edited: Edited,
    noisy: Edited,
    preset: Preset,
    near: RealPairs,
    *,
    documents: int,
    scheme: Scheme | None = None,
    revised: Edited | None = None,
) -> PresetFigures:
    """
    Return what *preset* reports in an index of so many *documents*; *near*: the pairs of *scheme*, by default its own.
    *revised*: copies that editors changed much, which count by kind alone.
    """
    scheme = scheme or get_scheme(preset.scheme)
    found, similar = _report(edited, preset, scheme)
    recall = float((found & similar).mean()) if found.size else None
    above = float(found[similar].mean()) if similar.any() else None
    at = preset.max_distance
    wanted = edited.similarity >= DEFAULT_SIMILARITY
    recall_similar = float((found & similar)[wanted].mean()) if wanted.any() else None
    unrelated = _unrelated(near, count=len(edited.originals), documents=documents)
    near_noise, similar_noise = _report(noisy, preset, scheme)
    noise_recall = float((near_noise & similar_noise).mean()) if near_noise.size else None
    by_edit = edited.mean_by_kind(found & similar) | noisy.mean_by_kind(near_noise & similar_noise)
    if revised is not None:
        by_edit |= revised.mean_by_kind(np.logical_and(*_report(revised, preset, scheme)))
    return PresetFigures(
        preset.name,
        at,
        preset.similarity,
        recall,
        above,
        unrelated[at],
        noise_recall,
        recall_similar=recall_similar,
        by_edit=by_edit,
    )


def _report(edited: Edited, preset: Preset, scheme: Scheme) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which copies are within the distance of *preset*, and which are similar enough."""
    measure = preset.text_measure()
    near = _distances(edited, scheme) <= preset.max_distance
    if measure == WORD_SHINGLES and not scheme.changes_texts:
        return near, edited.similarity >= preset.similarity
    measure = measure.after(scheme)
    both = [*edited.originals, *edited.copies]
    places = np.arange(len(edited.originals), len(both))
    scores, _ = compare_pairs(both, edited.origins, places, measure=measure, bound=preset.similarity)
    return near, scores >= preset.similarity


def recommend(figures: Sequence[PresetFigures]) -> str | None:
    """
    Return the strictest preset that reports 98 % of the copies that share 80 % of their shingles; *figures* are
    strictest first. Where none does, the strictest whose recall of all copies is at most 0.02 below the best.
    """
    # Presets that compare letters are left out: no sample can tell whether other letters are errors or other numbers.
    known = [
        each for each in figures if each.recall is not None and PRESETS[each.preset].text_measure() == WORD_SHINGLES
    ]
    best = max((each.recall or 0.0 for each in known), default=0.0)
    enough = [each for each in known if (each.recall_similar or 0.0) >= ENOUGH_RECALL]
    enough = enough or [each for each in known if (each.recall or 0.0) >= best - 0.02]
    return enough[0].preset if enough else None


def enough_distance(figures: Sequence[SchemeFigures]) -> int | None:
    """Return the smallest distance whose recall is 0.02 below the best at most; ``None`` without copies."""
    best = max((each.recall or 0.0 for each in figures), default=0.0)
    return next((each.max_distance for each in figures if best and (each.recall or 0.0) >= best - 0.02), None)


def note_noise(pairs: RealPairs) -> str | None:
    """Return what to know about texts that are the same by their letters and not by their words, if there are any."""
    same, by_letters = pairs.count_by_letters()
    if not by_letters:
        return None
    return (
        f"of {same:,} compared pairs of documents with the same text, {by_letters:,} have the same letters to "
        f"{SAME_LETTERS:.0%} but not the same words: wrong letters, as in scans, or forms with other numbers; look at "
        "some (explain), and if they are errors use the preset noisy"
    )


_SCRIPTS_APART = (
    "traditional and simplified are not found as near-duplicates of each other, unless the scheme has the preprocess "
    "step t2s"
)


def note_scripts(scripts: Scripts) -> str:
    return (
        f"of the sampled texts {scripts.traditional:,} are in traditional and {scripts.simplified:,} in simplified "
        f"Chinese, {scripts.pairs:,} pairs of them the same text; {_SCRIPTS_APART}"
    )


# From this share of the characters on, half of the texts are mostly told apart by numbers, times and ids.
_MANY_NUMBERS = 0.2


def note_numbers(texts: Sequence[str], scheme: Scheme) -> str | None:
    """Return what to know about texts with many numbers, such as log lines, if *scheme* leaves them in."""
    if "numbers" in scheme.preprocess:
        return None
    convert = preprocessor(get_scheme("shingles", preprocess="numbers"))
    left = convert(texts) if convert is not None else texts
    sizes = [tuple(len("".join(each.split())) for each in pair) for pair in zip(texts, left, strict=True)]
    share = float(np.median([1 - after / before for before, after in sizes if before] or [0.0]))
    if share < _MANY_NUMBERS:
        return None
    return (
        f"in half of the sampled texts numbers, times and ids are {share:.0%} of the characters or more: if texts that "
        "differ in these alone are the same for you, such as log lines, use a scheme with the preprocess step numbers"
    )


def near_in_sample(edited: Edited, scheme: Scheme) -> RealPairs:
    """Return the pairs of sampled texts that *scheme* finds near. The words of each are compared: call it once."""
    values, known = fingerprint_array(edited.originals, scheme=scheme)
    places = np.flatnonzero(known)
    none = np.empty((3, 0), np.int64)
    found = [(each.left, each.right, each.distance) for each in near_pairs(values[places], max(DISTANCES))]
    left, right, distance = np.concatenate([none, *map(np.array, found)], axis=1)
    left, right = places[left], places[right]
    similarity, _ = compare_pairs(edited.originals, left, right, measure=WORD_SHINGLES.after(scheme))
    unknown = np.zeros(distance.size)
    return RealPairs(distance, similarity, np.ones(distance.size), left, unknown, unknown, len(values))


def _unrelated(near: RealPairs, *, count: int, documents: int) -> dict[int, float]:
    """Return, by distance, how many documents that are no duplicates a lookup finds, by a sample of *count* texts."""
    counts = np.bincount(near.distance[near.similarity < _RELATED], minlength=max(DISTANCES) + 1)
    # Each pair of the sample counts for two lookups; each lookup compares with count - 1 others.
    share = 2 * np.cumsum(counts) / max(1, count * (count - 1))
    return {wanted: float(share[wanted] * documents) for wanted in range(counts.size)}


def _distances(edited: Edited, scheme: Scheme) -> NDArray[np.int64]:
    """Return the distance of each copy to its original; 65 where either has no fingerprint."""
    values, known = fingerprint_array([*edited.originals, *edited.copies], scheme=scheme)
    count = len(edited.originals)
    distance = distances_between(values[edited.origins], values[count:]).astype(np.int64)
    distance[~(known[edited.origins] & known[count:])] = 65
    return distance


# The schemes that are compared by default, in addition to the scheme of the index.
_SCHEMES = ("shingles", "words")


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneOptions(SampleOptions):
    """
    What is measured, checked.

    Args:
        schemes:
            Schemes to compare; by default ``shingles`` and ``words``. The index's own is always among them.
    """

    sample: int = sample_option(500)
    schemes: Sequence[str | Scheme] = ()

    def compared(self) -> list[Scheme]:
        return [get_scheme(each) for each in tuple(check_items("schemes", self.schemes, of="schemes")) or _SCHEMES]


async def tune(server: Port, index: Index, options: TuneOptions) -> Tuning:
    """
    Return what schemes and presets would find in *index*, measured with edited copies of sampled texts.
    The index does not need the fields of this library; without them, the caller must name the text field. An index that
    does not exist raises IncompleteSearchError.
    """
    compared = options.compared()
    name = index_key(check_index(index))
    settings = None
    mappings = (await resolve_index(server, index)).mappings
    with suppress(MappingError):  # an index without our fields
        settings = await read_present_settings(server, index)
    for each, mapping in mappings.items():
        check_texts(each, mapping, options.fields(None))
    fields = options.named_fields(index, settings)
    every = dict.fromkeys([*([settings.scheme] if settings else []), *compared])
    chosen = [each for each in every if each.name != "weighted"]  # that one takes features, not text
    sampled, documents, drawn_reasons, notes = await _draw(server, index, options, fields, mappings.values())
    known = await index_stats(server, index) if settings else None
    # Without our fields, as if it had random ones.
    stats = known or IndexStats(max(1, documents))
    stats = replace(stats, documents=max(documents, stats.documents))
    reasons = dict.fromkeys(drawn_reasons)
    pairs_of: tuple[Scheme, RealPairs] | None = None
    if settings is not None and settings.scheme in chosen and fields == settings.text_fields:
        farthest = max(DISTANCES)
        real, missing = await read_real_pairs(
            server, index, sampled, settings=settings, max_distance=farthest, seed=options.seed
        )
        pairs_of = settings.scheme, real
        reasons |= dict.fromkeys(missing)
        if len(sampled) > real.looked_up:
            near = f"the documents near {real.looked_up} of the sample"
            notes.append(f"the precision of {settings.scheme} is that of {near}")
    server.tell(Progress(0, len(chosen), "measuring schemes"))
    texts = [text for _, text in sampled]
    limits = server.context.limits(index)
    costs = [explain_plan(each.max_distance, stats=stats, limits=limits)[0] for each in PRESETS.values()]
    found: Tuning = await server.compute(_measure, texts, documents, chosen, costs, notes, options.seed, pairs_of)
    server.tell(Progress(len(chosen), len(chosen), "measuring schemes"))
    return replace(found, index=name, reasons=tuple(reasons))


async def _draw(
    server: Port, index: Index, options: TuneOptions, fields: Sequence[str], mappings: Collection[Mapping[str, Any]]
) -> tuple[list[tuple[Key, str]], int, Sequence[str], list[str]]:
    """
    Return documents with text (key and text), how many the index has, why not all could be drawn or counted, and notes;
    raise InvalidInputError if there is none.
    """
    sample = options.sample
    query = {"bool": {"filter": exist_clauses(fields, mappings)}}
    hits, gaps, drawn = await sample_documents(
        server, index, sample, query=query, text_fields=fields, seed=options.seed, with_text=True
    )
    sampled = [(document_key(hit), text) for hit in hits if (text := text_or_none(hit, fields))]
    if not sampled:
        raise InvalidInputError(
            f"no document sampled from {shorten(index)} has text in {', '.join(fields)}: check the field, and that "
            "_source holds it"
        )
    documents, uncounted = await count_documents(server, index, query)
    documents = round(documents * len(hits) / drawn)
    reasons, number = sentences([*gaps, *uncounted]), len(sampled)
    notes = []
    if number < sample and not reasons:
        notes.append(f"only {number:,} of {sample:,} texts were sampled: no other document that was drawn has a text")
    # A text field without a word, such as "…", matches the query, but a server leaves it out when it only counts.
    return sampled, max(documents, number), reasons, notes


def _measure(
    texts: Sequence[str],
    documents: int,
    schemes: Sequence[Scheme],
    costs: Sequence[PlanEstimate],
    notes: Sequence[str],
    seed: int,
    pairs_of: tuple[Scheme, RealPairs] | None,
) -> Tuning:
    edited = inject(texts, seed=seed)
    noisy = inject(texts, seed=seed, edits=NOISE)
    all_notes = list(notes)
    if not conversion_is_available():
        all_notes.append("traditional and simplified Chinese were not tried: pip install 'es-simhash[preprocess]'")
    scripts = count_scripts(texts, schemes[0])
    if scripts is not None and scripts.are_mixed:
        all_notes.append(note_scripts(scripts))
        schemes = list(dict.fromkeys([*schemes, get_scheme("shingles", preprocess=["t2s"])]))
    elif scripts is not None:
        all_notes.append(f"the texts are in one Chinese script; {_SCRIPTS_APART}")
    all_notes += [note] if (note := note_numbers(texts, schemes[0])) else []
    real = dict([pairs_of] if pairs_of else [])
    all_notes += [note for each in real.values() if (note := note_noise(each))]
    near = cache(partial(near_in_sample, edited))
    figures = [
        row
        for scheme in schemes
        for row in measure_scheme(edited, scheme, near(scheme), documents=documents, pairs=real.get(scheme))
    ]
    presets, revised = [], inject(texts, seed=seed, edits=REVISIONS)
    for preset, cost in zip(PRESETS.values(), costs, strict=True):
        own = get_scheme(preset.scheme)
        own = next((each for each in schemes if each.has_features_of(own)), own)
        measured = measure_preset(edited, noisy, preset, near(own), documents=documents, scheme=own, revised=revised)
        presets.append(replace(measured, candidates=round(cost.passing, 1), milliseconds=round(cost.milliseconds, 2)))
    return Tuning(
        "",
        documents,
        len(texts),
        dict(Counter(edited.kinds)),
        edited.mean_by_kind(edited.similarity),
        tuple(figures),
        tuple(presets),
        recommend(presets),
        tuple(all_notes),
    )
