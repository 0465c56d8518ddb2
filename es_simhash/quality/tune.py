"""Measures which preset finds edited copies of texts that are sampled from an index: each copy should be found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from es_simhash.arguments import check_fields, check_options
from es_simhash.errors import InvalidInputError, MappingError, count, shorten
from es_simhash.groups.all_pairs import distances_between
from es_simhash.groups.assign import Documents, near_pairs
from es_simhash.hashing import DEFAULT_SCHEME, Scheme, fingerprint_array, get_scheme
from es_simhash.mapping.fields import text_or_none
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import read_present_settings, resolve_index
from es_simhash.mapping.user_fields import check_texts, exist_clauses
from es_simhash.quality.edits import edit_texts
from es_simhash.quality.sampling import SampleOptions, sample_documents, sample_option
from es_simhash.quality.steps import StepFigures, measure_steps
from es_simhash.record import Record
from es_simhash.tables.notebook import Part, Sheet
from es_simhash.tables.tabular import Tabular
from es_simhash.texts.letters import have_fewer
from es_simhash.texts.measures import (
    DEFAULT_PRESET,
    DEFAULT_SIMILARITY,
    FEWEST_LETTERS,
    PRESETS,
    WORD_SHINGLES,
    Preset,
    TextMeasure,
    compare_pairs,
)
from es_simhash.transport.answers import sentences
from es_simhash.transport.buckets import count_documents
from es_simhash.transport.protocol import Index, Progress, check_index, index_key

DISTANCES = (0, 3, 5, 8, 10, 12, 16)
"""The distances, in bits, of which one is enough by bits alone."""

MOST_PAIRS = 5_000
"""Most pairs of sampled texts that are compared: more are of one form."""

LONGEST = 100_000
"""The letters of a text that are measured; what is longer is cut."""

ENOUGH_RECALL = 0.98
"""The share of the copies with a similarity of 0.8 that a recommended preset reports. What it reports was compared."""


@dataclass(frozen=True, slots=True)
class PresetFigures(Record):
    """
    What a preset finds.
    *recall*: share of the edited copies that it reports; ``None`` without copies. *recall_similar*: the same among the
    copies that share 80 % of their shingles with the original. *found*, *copies*: the numbers behind *recall*. *pairs*:
    how many pairs of the sampled texts themselves it takes for near-duplicates that share less than 80 %: edited much,
    or of one form.
    """

    preset: str
    max_distance: int
    similarity: float
    recall: float | None
    recall_similar: float | None = None
    found: int = 0
    copies: int = 0
    pairs: int = 0

    def __str__(self) -> str:
        """Return what it finds, in numbers of the index."""
        pairs = f", and {count(self.pairs, 'pair')} of these texts that share less than 80 %" if self.pairs else ""
        return f"{self.preset} finds {self.found:,} of {self.copies:,} copies{pairs}"


@dataclass(frozen=True, slots=True)
class Tuning(Tabular, Record):
    """
    What each preset finds of edited copies of texts like those of an index, and the recommended preset.
    *documents*: those with a text. *presets*: each measured with the scheme of the index where that has the preset's
    features, else with the preset's own. *recommended*: what
    :func:`recommend` chose; ``None`` without copies. *enough_distance*: the smallest distance by bits alone whose
    recall is 0.02 below the best at most, with the scheme of the index: for a scheme that no preset has. *reasons*: why
    some documents could not be drawn or counted; empty if all could. *steps*: those before features by which the
    recommended preset, else ``similar``, finds more copies. *short*: texts that were left out as too short to compare.
    """

    index: str
    documents: int
    sampled: int
    presets: tuple[PresetFigures, ...]
    recommended: str | None
    enough_distance: int | None = None
    reasons: tuple[str, ...] = ()
    steps: tuple[StepFigures, ...] = ()
    short: int = 0

    def remarks(self, chosen: Sequence[str] = ()) -> tuple[str, ...]:
        """Return what the sample shows beside: texts too short to compare, and steps, some *chosen*, that find more."""
        short = f"{count(self.short, 'text')} of fewer than {FEWEST_LETTERS} letters left out: they are near nothing"
        steps = (f"{step}{' (chosen)' if step.step in chosen else ''}" for step in self.steps)
        return (*([short] if self.short else []), *steps)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a row for each preset."""
        return [preset.to_dict() for preset in self.presets]

    def _title(self) -> str:
        advice = f"recommended preset: {self.recommended}" if self.recommended else "no preset is recommended"
        return f"{self.index}: {advice}, from a sample of {self.sampled:,} of {self.documents:,} documents"

    def _sheets(self) -> Sequence[Part]:
        presets = [
            {
                "preset": preset.preset,
                "max distance": preset.max_distance,
                "similarity": preset.similarity,
                "share found": preset.recall,
                "share of those 80 % alike": preset.recall_similar,
            }
            for preset in self.presets
        ]
        return [Sheet("Found of the edited copies", presets, {"share of those 80 % alike": 1.0, "share found": 1.0})]

    def _notes(self) -> Mapping[str, Sequence[str]]:
        return {"not every document was looked at": self.reasons, "beside": self.remarks()}


def recommend(figures: Sequence[PresetFigures]) -> str | None:
    """
    Return the strictest preset that reports 98 % of the copies that share 80 % of their shingles; *figures* are
    strictest first. Where none does, the strictest whose recall of all copies is at most 0.02 below the best.
    """
    # Presets that compare letters are left out: no sample can tell whether other letters are errors or other numbers.
    known = [
        figure
        for figure in figures
        if figure.recall is not None and PRESETS[figure.preset].text_measure() == WORD_SHINGLES
    ]
    best = max((figure.recall or 0.0 for figure in known), default=0.0)
    enough = [figure for figure in known if (figure.recall_similar or 0.0) >= ENOUGH_RECALL]
    enough = enough or [figure for figure in known if (figure.recall or 0.0) >= best - 0.02]
    return enough[0].preset if enough else None


def _find_enough(distance: NDArray[np.int64]) -> int | None:
    """Return the smallest distance whose recall is 0.02 below the best at most; ``None`` where nothing is near."""
    recalls = {wanted: float((distance <= wanted).mean()) for wanted in DISTANCES if distance.size}
    best = max(recalls.values(), default=0.0)
    return next((wanted for wanted, recall in recalls.items() if best and recall >= best - 0.02), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneOptions(SampleOptions):
    """
    What is measured, checked.

    Args:
        text_field:
            Field or fields of the text; by default those that the index records.
    """

    text_field: str | Sequence[str] = ()
    sample: int = sample_option(500)

    def __post_init__(self) -> None:
        check_fields("text_field", self.text_field, may_lack=True)
        check_options(self)


async def tune(server: Port, index: Index, options: TuneOptions, *, scheme: Scheme | None = None) -> Tuning:
    """
    Return which presets would find edited copies of the texts of *index*, which are sampled.
    The index does not need the fields of this library; without them, the caller must name the text field, and *scheme*
    is the one that it is to have. An index that does not exist raises IncompleteSearchError.
    """
    name = index_key(check_index(index))
    settings = None
    mappings = (await resolve_index(server, index)).mappings
    with suppress(MappingError):  # an index without our fields
        settings = await read_present_settings(server, index)
    named = check_fields("text_field", options.text_field, may_lack=True)
    if not (fields := named or (settings.text_fields if settings else ())):
        raise InvalidInputError(f"index {shorten(index)} does not record its text field: give text_field=FIELD")
    for concrete, mapping in mappings.items():
        check_texts(concrete, mapping, named)
    used = settings.scheme if settings else scheme or get_scheme(server.context.wanted or DEFAULT_SCHEME)
    query = {"bool": {"filter": exist_clauses(fields, mappings.values())}}
    hits, gaps, drawn = await sample_documents(
        server, index, options.sample, query=query, text_fields=fields, seed=options.seed, with_text=True
    )
    texts = [text for hit in hits if (text := text_or_none(hit, fields))]
    if not texts:
        raise InvalidInputError(
            f"no document sampled from {shorten(index)} has text in {', '.join(fields)}: check the field, and that "
            "_source holds it"
        )
    documents, uncounted = await count_documents(server, index, query)
    # A text field without a word, such as "…", matches the query, but a server leaves it out when it only counts.
    documents = max(round(documents * len(hits) / drawn), len(texts))
    reasons = [*gaps, *uncounted]
    if any(len(text) > LONGEST for text in texts):
        reasons.append(f"texts were measured by their first {LONGEST:,} letters")
    are_short = have_fewer(texts, FEWEST_LETTERS)
    texts = [text[:LONGEST] for text, is_short in zip(texts, are_short.tolist(), strict=True) if not is_short]
    server.tell(Progress(0, None, "measuring presets"))
    found: Tuning = await server.compute(measure, texts, used, options.seed)
    server.tell(Progress(len(texts), len(texts), "measuring presets"))
    preset = PRESETS[found.recommended or DEFAULT_PRESET.name]
    if used.has_features_of(get_scheme(preset.scheme)):
        steps = await server.compute(tuple, measure_steps(texts, used, preset, seed=options.seed))
        found = replace(found, steps=steps)
    short = int(are_short.sum())
    return replace(found, index=name, documents=documents, reasons=sentences(reasons), short=short)


def measure(texts: Sequence[str], scheme: Scheme, seed: int) -> Tuning:
    """Return what each preset finds of edited copies of *texts*, the same ones for the same *seed*."""
    copies = list(edit_texts(texts, seed))
    both = [*texts, *(text for _, text in copies)]
    origins, places = np.array([place for place, _ in copies], np.int64), np.arange(len(texts), len(both))

    @cache
    def distances(used: Scheme) -> NDArray[np.int64]:
        """Return the distance of each copy to its original; 65 where either has no fingerprint."""
        values, known = fingerprint_array(both, scheme=used)
        distance = distances_between(values[origins], values[places]).astype(np.int64)
        return np.where(known[origins] & known[places], distance, 65)

    by_words = compare_pairs(both, origins, places)
    is_alike = by_words >= DEFAULT_SIMILARITY
    presets = []
    for preset in PRESETS.values():
        own = get_scheme(preset.scheme)
        used = scheme if scheme.has_features_of(own) else own
        compared, bound = preset.text_measure().after(used), preset.similarity
        similarity = by_words
        if compared != WORD_SHINGLES or compared.scheme is not None:
            similarity = compare_pairs(both, origins, places, measure=compared, bound=bound)
        found = (distances(used) <= preset.max_distance) & (similarity >= bound)
        shares = _share(found), _share(found[is_alike])
        numbers = int(found.sum()), len(copies), _count_pairs(texts, used, preset, compared)
        presets.append(PresetFigures(preset.name, preset.max_distance, preset.similarity, *shares, *numbers))
    enough = _find_enough(distances(scheme))
    return Tuning("", 0, len(texts), tuple(presets), recommend(presets), enough)


def _count_pairs(texts: Sequence[str], scheme: Scheme, preset: Preset, compared: TextMeasure) -> int:
    """Return how many pairs of *texts* the *preset* accepts that share less than 80 % of their shingles."""
    if preset.similarity >= DEFAULT_SIMILARITY:
        return 0
    values, known = fingerprint_array(texts, scheme=scheme)
    places = np.flatnonzero(known)
    found = list(map(np.stack, near_pairs(Documents(values[places]), preset.max_distance)))
    left, right = places[np.concatenate([np.empty((2, 0), np.int64), *found], axis=1)[:, :MOST_PAIRS]]
    similarity = compare_pairs(texts, left, right, measure=compared, bound=preset.similarity)
    by_words = compare_pairs(texts, left, right)
    return int(((similarity >= preset.similarity) & (by_words < DEFAULT_SIMILARITY)).sum())


def _share(found: NDArray[np.bool_]) -> float | None:
    return float(found.mean()) if found.size else None
