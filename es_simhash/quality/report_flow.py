"""
Reads what a report about an index says: its numbers, its health, some of its groups, and a sample for the presets.

Nothing is written, and no page is made here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_simhash.errors import IncompleteSearchError
from es_simhash.groups.rule import Grouping
from es_simhash.hashing import get_scheme
from es_simhash.lookup.query import check_filter
from es_simhash.mapping.context import Context
from es_simhash.mapping.documents import text_or_none
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.meta import IndexSettings
from es_simhash.mapping.resolve_flow import read_index_settings
from es_simhash.quality.doctor_flow import diagnose
from es_simhash.quality.real_pairs import PresetSample, sample_presets
from es_simhash.quality.real_pairs_flow import LOOKUPS, read_real_pairs
from es_simhash.quality.report.data import IndexReport
from es_simhash.quality.sampling_flow import check_sample, check_seed, sample_documents
from es_simhash.quality.shown_groups_flow import read_shown_groups
from es_simhash.quality.stats import Stats
from es_simhash.quality.stats_flow import StatsOptions, read_stats
from es_simhash.texts.measures import WORD_SHINGLES, TextMeasure
from es_simhash.texts.presets import PRESETS
from es_simhash.transport.answers import check_whole
from es_simhash.transport.keys import document_key
from es_simhash.transport.names import Index
from es_simhash.transport.protocol import Compute, Flow
from es_simhash.transport.refresh_flow import now


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """
    What a report says, and from which samples: the keyword arguments of the client's method.

    Attributes:
        time_field:
            Date field of the documents.
        source_field:
            Keyword field that says where a document comes from.
        text_field:
            Field whose text is shown; by default those that the index records.
        filter:
            A query, or several; only documents that match all of them are counted, shown and drawn for the presets. The
            health is that of all fingerprints.
        sample:
            Documents whose fingerprints are examined, 1 to 10,000.
        seed:
            Chooses the samples.

    Raises:
        TypeError: If one has the wrong type.
        InvalidInputError: If one has a value that cannot be used.
    """

    time_field: str | None = None
    source_field: str | None = None
    text_field: str | None = None
    filter: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None
    sample: int = 1_000
    seed: int = 0

    def __post_init__(self) -> None:
        check_sample(self.sample)
        check_seed(self.seed)
        self.counted()

    def counted(self) -> StatsOptions:
        """Return the options of the numbers."""
        return StatsOptions(
            time_field=self.time_field,
            source_field=self.source_field,
            text_field=self.text_field,
            filter=self.filter,
        )


def read_report(context: Context, index: Index, options: ReportOptions, *, version: str) -> Flow[IndexReport]:
    """
    Return the report about *index*.

    Cost: that of :func:`read_stats` and of :func:`diagnose`, three searches for each group that is shown, and a lookup
    for each of up to 200 documents.

    Args:
        context:
            What the client object knows.
        index:
            What to report on.
        options:
            What is reported.
        version:
            Version of this library.
    """
    at = now()
    stats = yield from read_stats(context, index, options.counted())
    diagnosis = yield from diagnose(context, index, options.sample, (), options.seed)
    settings = yield from read_index_settings(context, index)
    texts = (options.text_field,) if options.text_field else settings.text_fields
    clauses = tuple(check_filter(options.filter))
    groups = yield from read_shown_groups(
        index,
        Fields(context.prefix),
        stats,
        texts,
        measure=_measure(stats, settings),
        source_field=options.source_field,
        time_field=options.time_field,
        clauses=clauses,
    )
    presets = yield from _sample_presets(context, index, settings, options.seed, clauses)
    return IndexReport(stats, diagnosis, presets, groups, at, version, options.seed, clauses)


def _measure(stats: Stats, settings: IndexSettings) -> TextMeasure:
    """Return the measure of the grouping; the usual one where there are several groupings, or none."""
    recorded = Grouping.from_dict(stats.grouping[0]).measure if len(stats.grouping) == 1 else WORD_SHINGLES
    return recorded.after(settings.scheme)


def _sample_presets(
    context: Context, index: Index, settings: IndexSettings, seed: int, clauses: Sequence[Mapping[str, Any]]
) -> Flow[tuple[PresetSample, ...]]:
    """Return what the presets would remove; empty where they are for another scheme, or no text is known."""
    fields = settings.text_fields
    if not fields or any(get_scheme(each.scheme) != settings.scheme for each in PRESETS.values()):
        return ()
    query = {"bool": {"filter": [*clauses, {"exists": {"field": Fields(context.prefix).fingerprint}}]}}
    hits, gaps = yield from sample_documents(index, LOOKUPS, query=query, text_fields=fields, seed=seed)
    check_whole(gaps)
    sampled = [(document_key(hit), text) for hit in hits if (text := text_or_none(hit, fields))]
    if not sampled:
        return ()
    pairs, missing = yield from read_real_pairs(
        context,
        index,
        sampled,
        scheme=settings.scheme,
        text_fields=fields,
        max_distance=max(each.max_distance for each in PRESETS.values()),
        seed=seed,
        clauses=clauses,
    )
    if missing:
        raise IncompleteSearchError(f"near-duplicates may be missing: {'; '.join(missing)}", reasons=missing)
    found: tuple[PresetSample, ...] = yield Compute(lambda: sample_presets(pairs, len(sampled), seed=seed))
    return found
