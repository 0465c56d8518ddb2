"""Reads what a report shows: numbers, and the groups that are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from es_simhash.arguments import FilePath, check_input, check_options
from es_simhash.errors import InvalidInputError
from es_simhash.lookup.query import check_filter
from es_simhash.mapping.context import Resolved
from es_simhash.mapping.fields import Fields, now
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import read_present_settings, resolve_index
from es_simhash.mapping.rule import Grouping
from es_simhash.mapping.user_fields import countable_field, node_of
from es_simhash.quality.check_sample import diagnose
from es_simhash.quality.read_searches import read_searches
from es_simhash.quality.read_stats import StatsOptions, read_stats
from es_simhash.quality.report.report_page import IndexReport
from es_simhash.quality.sampling import SampleOptions, sample_option, seed_option
from es_simhash.quality.searches import read_queries
from es_simhash.quality.shown import Member, MemberReader, Reason, ShownGroup, WhyShown
from es_simhash.quality.stats import Stats
from es_simhash.quality.tune import TuneOptions, tune
from es_simhash.removal.find_shown import find_shown, names_of
from es_simhash.texts.measures import WORD_SHINGLES, TextMeasure
from es_simhash.transport.answers import check_whole, find_gaps
from es_simhash.transport.buckets import aggregate_named
from es_simhash.transport.conversation import search_texts
from es_simhash.transport.protocol import Index, Progress

# Groups that are shown because they are the largest, or have a distant member; members of each.
_LARGEST, _DISTANT, _MEMBERS = 4, 2, 3
# Of the duplicates with the largest distances; several may be in one group.
_FARTHEST = 50
# Texts of which edited copies are made, to see which preset finds them.
_TUNED = 200
# Longer texts would take long to compare.
_COMPARED = 1_000_000

Why = dict[str, list[WhyShown]]


@dataclass(frozen=True, slots=True)
class _Groups:
    """
    Chooses groups of *index*, and reads their documents.
    *clauses*: queries that the documents of a group must match; its canonical is shown in any case.
    """

    index: Index
    members: MemberReader
    measure: TextMeasure
    clauses: Sequence[Mapping[str, Any]]
    why: Why = field(default_factory=dict)

    @property
    def fields(self) -> Fields:
        return self.members.fields

    async def read(self, server: Port, stats: Stats) -> tuple[ShownGroup, ...]:
        """Return the largest groups, and some with a distant member."""
        if not stats.groups.largest:
            return ()
        for group in stats.groups.largest[:_LARGEST]:
            self._add(group.id, "largest", group.documents)
        await self._add_farthest(server)
        counts = await aggregate_named(server, self.index, self.clauses, self.fields.group, list(self.why))
        shown = []
        for name in self.why:
            documents = counts[name]["doc_count"] if name in counts else 0
            shown.append(await self._read_group(server, name, documents))
            server.tell(Progress(len(shown), len(self.why), "reading groups"))
        return tuple(group for group in shown if group.documents > 1)

    def _add(self, name: str, reason: Reason, number: int) -> None:
        self.why.setdefault(name, []).append(WhyShown(reason, number))

    async def _add_farthest(self, server: Port) -> None:
        """Add groups that have a duplicate with one of the largest distances to its canonical."""
        body = {
            "size": _FARTHEST,
            "query": {"bool": {"filter": [*self.clauses, {"exists": {"field": self.fields.distance}}]}},
            "sort": [{self.fields.distance: {"order": "desc", "unmapped_type": "byte"}}],
            "docvalue_fields": [self.fields.group, self.fields.distance],
            "_source": False,
            "track_total_hits": False,
        }
        answer = await server.patient.search(index=self.index, body=body)
        check_whole(find_gaps(answer, ignore=["terminated_early"]))
        found: dict[str, int] = {}
        for hit in answer["hits"]["hits"]:
            values = hit["fields"]
            if self.fields.group in values:
                found.setdefault(values[self.fields.group][0], int(values[self.fields.distance][0]))
        for name, bits in list(found.items())[:_DISTANT]:
            if bits:
                self._add(name, "farthest", bits)

    async def _read_group(self, server: Port, name: str, documents: int) -> ShownGroup:
        in_group = {"term": {self.fields.group: name}}
        is_duplicate = {"exists": {"field": self.fields.duplicate_of}}
        canonicals = await self._search(server, {"bool": {"filter": [in_group], "must_not": [is_duplicate]}}, 1)
        members = await self._search(server, {"bool": {"filter": [*self.clauses, in_group, is_duplicate]}}, _MEMBERS)
        canonical, text = canonicals[0] if canonicals else (None, None)
        if text is not None:
            members = await server.compute(_compare, text, members, self.measure)
        return ShownGroup(name, documents, tuple(self.why[name]), canonical, tuple(member for member, _ in members))

    async def _search(self, server: Port, query: Mapping[str, Any], size: int) -> list[tuple[Member, str | None]]:
        """Return documents that match *query*, with their whole texts; those with the largest distance first."""
        sort = [{self.fields.distance: {"order": "desc", "unmapped_type": "byte"}}]
        body = {"size": size, "query": query, "docvalue_fields": self.members.docvalue_fields, "sort": sort}
        source = [*self.members.shown.values()]
        answer = await search_texts(server, self.index, body, self.members.texts, source=source)
        check_whole(find_gaps(answer))
        return [(self.members.read(hit), self.members.whole_text(hit)) for hit in answer["hits"]["hits"]]


def _compare(
    text: str, members: Sequence[tuple[Member, str | None]], measure: TextMeasure
) -> list[tuple[Member, str | None]]:
    """Return *members* with the similarity of their texts to *text*, as far as both are short enough."""
    if len(text) > _COMPARED:
        return list(members)
    measure = measure.noting_numbers()
    [whole] = measure.prepare([text])
    found: list[tuple[Member, str | None]] = []
    for member, other in members:
        if other is not None and len(other) <= _COMPARED:
            score = measure.compare(whole, measure.prepare([other])[0])
            compared = replace(member, similarity=score.similarity, has_other_numbers=score.numbers == "only")
            found.append((compared, other))
        else:
            found.append((member, other))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions(StatsOptions):
    """
    What a report says, and from which samples, checked.

    Args:
        text_field:
            Field whose text is shown; by default those that the index records.
        time_field:
            Date field to count by; by default the one that the index records as its order of canonicals.
        filter:
            A query, or a list of queries; only documents that match all of them are counted and shown.
            The health is that of all fingerprints.
        sample:
            Documents drawn at random whose fingerprints are examined, 1 to 10,000.
        seed:
            Chooses what is drawn at random.
        queries:
            File of searches that people make, one a line: words, which are looked for in the text, or the JSON of a
            search body. The report says how many of their first ten hits repeat an earlier one.
    """

    sample: int = sample_option(1_000)
    seed: int = seed_option(0)
    queries: FilePath | None = None

    def __post_init__(self) -> None:
        if self.queries is not None:
            check_input("queries", self.queries)
        check_options(self)
        StatsOptions.__post_init__(self)  # super() does not know a class with slots


async def read_report(server: Port, index: Index, options: ReportOptions, *, version: str) -> IndexReport:
    """
    Return the report about *index*; *version* is that of this library.
    Cost: that of :func:`read_stats` and of :func:`diagnose`, of a sample for :func:`tune`, of :func:`read_searches`,
    and three searches for each group that is shown.
    """
    at = now()
    queries = read_queries(options.queries) if options.queries is not None else []
    resolved = await resolve_index(server, index)
    options = replace(
        options,
        source_field=countable_field(options.source_field, resolved.mappings),
        time_field=options.time_field or _recorded_time(resolved),
    )
    stats = await read_stats(server, index, options)
    diagnosis = await diagnose(server, index, SampleOptions(sample=options.sample, seed=options.seed))
    settings = await read_present_settings(server, index)
    texts = (options.text_field,) if options.text_field else settings.text_fields
    clauses = tuple(check_filter(options.filter))
    # The measure of the grouping; the usual one where there are several groupings, or none.
    recorded = Grouping.from_dict(stats.grouping[0]).measure if len(stats.grouping) == 1 else WORD_SHINGLES
    found = await find_shown(server, index, resolved, ()) if stats.groups.largest or queries else {}
    shown = {kind: name for kind in ("title", "url") for name in names_of(kind, found)[:1]}
    members = MemberReader(Fields(server.prefix), texts, shown, options.source_field, options.time_field)
    groups = await _Groups(index, members, recorded.after(settings.scheme), clauses).read(server, stats)
    searches = None
    if queries:
        searches = await read_searches(server, index, queries, members, clauses, is_grouped=bool(stats.grouping))
    tuning = None
    with suppress(InvalidInputError):  # no text can be read
        tuning = await tune(server, index, TuneOptions(text_field=texts, sample=_TUNED, seed=options.seed))
    return IndexReport(stats, diagnosis, groups, at, version, options.seed, clauses, tuning, searches)


def _recorded_time(resolved: Resolved) -> str | None:
    """Return the date by which the canonical is chosen in every index, if that is recorded."""
    found: set[str | None] = set()
    for name, settings in resolved.settings_of.items():
        grouping, mapping = Grouping.read(settings), resolved.mappings.get(name, {})
        fields = [key.field for key in grouping.order_keys if key.kind == "field"] if grouping is not None else []
        dates = [
            field_name
            for field_name in fields
            if (node_of(mapping, field_name) or {}).get("type") in ("date", "date_nanos")
        ]
        found.add(next(iter(dates), None))
    return found.pop() if len(found) == 1 else None
