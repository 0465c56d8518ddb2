"""Reads a sample of an index to measure schemes and distances with it; ``quality.tuning`` computes the figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import NamedTuple

from es_simhash.arguments import check_items
from es_simhash.errors import InvalidInputError, MappingError, shorten
from es_simhash.hashing import Scheme, get_scheme
from es_simhash.lookup.find_flow import index_stats
from es_simhash.lookup.plan import estimate, plan_lookup
from es_simhash.mapping.context import Context, IndexStats
from es_simhash.mapping.fields import text_or_none
from es_simhash.mapping.resolve_flow import read_present_settings
from es_simhash.quality import tuning
from es_simhash.quality.edits import NOISE, conversion_is_available, count_scripts
from es_simhash.quality.known_pairs import RealPairs
from es_simhash.quality.sampling_flow import LOOKUPS, SampleOptions, read_real_pairs, sample_documents, sample_option
from es_simhash.texts.measures import PRESETS
from es_simhash.transport.answers import sentences
from es_simhash.transport.buckets_flow import count_documents
from es_simhash.transport.protocol import (
    Compute,
    Flow,
    Index,
    Key,
    Progress,
    Tell,
    check_index,
    document_key,
    index_key,
)

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


def tune(context: Context, index: Index, options: TuneOptions) -> Flow[tuning.Tuning]:
    """
    Return what schemes and presets would find in *index*, measured with edited copies of sampled texts.
    The index does not need the fields of this library; without them, the caller must name the text field. An index that
    does not exist raises IncompleteSearchError.
    """
    compared = options.compared()
    name = index_key(check_index(index))
    settings = None
    with suppress(MappingError):  # an index without our fields
        settings = yield from read_present_settings(context, index)
    fields = options.named_fields(index, settings)
    every = dict.fromkeys([*([settings.scheme] if settings else []), *compared])
    chosen = [each for each in every if each.name != "weighted"]  # that one takes features, not text
    drawn = yield from _draw(index, options, fields)
    known = (yield from index_stats(context, index)) if settings else None
    # Without our fields, as if it had random ones.
    stats = known or IndexStats(max(1, drawn.documents))
    stats = replace(stats, documents=max(drawn.documents, stats.documents))
    reasons, notes = dict.fromkeys(drawn.reasons), list(drawn.notes)
    pairs_of: tuple[Scheme, RealPairs] | None = None
    if settings is not None and settings.scheme in chosen and fields == settings.text_fields:
        farthest = max(tuning.DISTANCES)
        real, missing = yield from read_real_pairs(
            context, index, drawn.sampled, settings=settings, max_distance=farthest, seed=options.seed
        )
        pairs_of = settings.scheme, real
        reasons |= dict.fromkeys(missing)
        if len(drawn.sampled) > LOOKUPS:
            notes.append(f"the precision of {settings.scheme} is that of the documents near {LOOKUPS} of the sample")
    yield Tell(Progress(0, len(chosen), "measuring schemes"))
    found: tuning.Tuning = yield Compute(_measure, (name, drawn, chosen, stats, notes, options.seed, pairs_of))
    yield Tell(Progress(len(chosen), len(chosen), "measuring schemes"))
    return replace(found, reasons=tuple(reasons))


class _Drawn(NamedTuple):
    """Documents with text drawn from an index (key and text), and how many *documents* with text it has."""

    sampled: Sequence[tuple[Key, str]]
    documents: int
    reasons: Sequence[str]
    notes: Sequence[str]


def _draw(index: Index, options: TuneOptions, fields: Sequence[str]) -> Flow[_Drawn]:
    """Draw documents with text, or raise InvalidInputError if there is none."""
    sample = options.sample
    query = {"bool": {"should": [{"exists": {"field": field}} for field in fields]}}
    hits, gaps = yield from sample_documents(index, sample, query=query, text_fields=fields, seed=options.seed)
    sampled = [(document_key(hit), text) for hit in hits if (text := text_or_none(hit, fields))]
    yield Tell(Progress(len(sampled), sample, "sampling texts"))
    if not sampled:
        raise InvalidInputError(
            f"no document sampled from {shorten(index)} has text in {', '.join(fields)}: check the field, and that "
            "_source holds it"
        )
    documents, uncounted = yield from count_documents(index, query)
    reasons, number = sentences([*gaps, *uncounted]), len(sampled)
    notes = []
    if number < sample and not reasons:
        notes.append(f"only {number:,} of {sample:,} texts were sampled: the index has no more documents with text")
    # A text field without a word, such as "…", matches the query, but a server leaves it out when it only counts.
    return _Drawn(sampled, max(documents, number), reasons, notes)


def _measure(
    index: str,
    drawn: _Drawn,
    schemes: Sequence[Scheme],
    stats: IndexStats,
    notes: Sequence[str],
    seed: int,
    pairs_of: tuple[Scheme, RealPairs] | None,
) -> tuning.Tuning:
    documents, texts = drawn.documents, [text for _, text in drawn.sampled]
    edited = tuning.inject(texts, seed=seed)
    noisy = tuning.inject(texts, seed=seed, edits=NOISE)
    all_notes = list(notes)
    if not conversion_is_available():
        all_notes.append("traditional and simplified Chinese were not tried: pip install 'es-simhash[preprocess]'")
    scripts = count_scripts(texts, schemes[0])
    if scripts is not None and scripts.are_mixed:
        all_notes.append(tuning.note_scripts(scripts))
        schemes = list(dict.fromkeys([*schemes, get_scheme("shingles", preprocess=["t2s"])]))
    real = dict([pairs_of] if pairs_of else [])
    all_notes += [note for each in real.values() if (note := tuning.note_noise(each))]
    near = cache(partial(tuning.near_in_sample, edited))
    figures = [
        row
        for scheme in schemes
        for row in tuning.measure_scheme(edited, scheme, near(scheme), documents=documents, pairs=real.get(scheme))
    ]
    presets = []
    for preset in PRESETS.values():
        measured = tuning.measure_preset(edited, noisy, preset, near(get_scheme(preset.scheme)), documents=documents)
        cost = estimate(plan_lookup(preset.max_distance, stats=stats), stats)
        presets.append(replace(measured, candidates=round(cost.hits, 1), milliseconds=round(cost.milliseconds, 2)))
    return tuning.Tuning(
        index,
        documents,
        len(texts),
        dict(Counter(edited.kinds)),
        edited.mean_by_kind(edited.similarity),
        tuple(figures),
        tuple(presets),
        tuning.recommend(presets),
        tuple(all_notes),
    )
