"""Reads what a report shows: numbers, and the groups that are shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from es_simhash.arguments import FilePath, check_input, check_options
from es_simhash.lookup.query import Filter, check_filter
from es_simhash.mapping.fields import Fields, now
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import read_present_settings, resolve_index
from es_simhash.mapping.rule import Grouping
from es_simhash.quality.check_sample import diagnose
from es_simhash.quality.read_searches import read_searches
from es_simhash.quality.read_stats import read_stats
from es_simhash.quality.report.report_page import IndexReport
from es_simhash.quality.sampling import SampleOptions
from es_simhash.quality.searches import read_queries
from es_simhash.quality.shown import Member, MemberReader, ShownGroup
from es_simhash.quality.stats import GroupSize
from es_simhash.removal.find_shown import KINDS, find_shown, names_of
from es_simhash.texts.measures import WORD_SHINGLES, TextMeasure
from es_simhash.transport.answers import check_whole, find_gaps
from es_simhash.transport.buckets import Clauses
from es_simhash.transport.conversation import search_texts
from es_simhash.transport.pages import Hits
from es_simhash.transport.protocol import Index, Progress

# Groups that are shown, the largest, and duplicates of each.
_GROUPS, _MEMBERS = 5, 3
# Longer texts would take long to compare.
_COMPARED = 1_000_000


async def _read_group(
    server: Port, index: Index, group: GroupSize, reader: MemberReader, clauses: Clauses, measure: TextMeasure
) -> ShownGroup:
    """Return *group* with its canonical and those of its duplicates that match *clauses* and are farthest from it."""
    fields = reader.fields
    in_group, is_duplicate = {"term": {fields.group: group.id}}, {"exists": {"field": fields.duplicate_of}}

    async def search(query: Mapping[str, Any], size: int) -> Hits:
        sort = [{fields.distance: {"order": "desc", "unmapped_type": "byte"}}]
        body = {"size": size, "query": {"bool": query}, "docvalue_fields": reader.docvalue_fields, "sort": sort}
        answer = await search_texts(server, index, body, reader.texts, source=[*reader.shown.values()])
        check_whole(find_gaps(answer))
        hits: Hits = answer["hits"]["hits"]
        return hits

    canonicals = await search({"filter": [in_group], "must_not": [is_duplicate]}, 1)
    duplicates = await search({"filter": [*clauses, in_group, is_duplicate]}, _MEMBERS)
    members: list[Member] = await server.compute(_compare, reader, canonicals, duplicates, measure)
    return ShownGroup(group.id, group.documents, next(map(reader.read, canonicals), None), tuple(members))


def _compare(reader: MemberReader, canonicals: Hits, duplicates: Hits, measure: TextMeasure) -> list[Member]:
    """Return *duplicates* with the similarity of their texts to that of the canonical, where none is too long."""
    members = list(map(reader.read, duplicates))
    text = next(map(reader.whole_text, canonicals), None)
    if text is None or len(text) > _COMPARED:
        return members
    measure = measure.noting_numbers()
    [whole] = measure.prepare([text])
    for place, hit in enumerate(duplicates):
        other = reader.whole_text(hit)
        if other is not None and len(other) <= _COMPARED:
            score = measure.compare(whole, *measure.prepare([other]))
            only = score.numbers == "only"
            members[place] = replace(members[place], similarity=score.similarity, has_other_numbers=only)
    return members


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions(SampleOptions):
    """
    What a report says, and from which samples, checked.

    Args:
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

    filter: Filter = None
    queries: FilePath | None = None

    def __post_init__(self) -> None:
        if self.queries is not None:
            check_input("queries", self.queries)
        check_filter(self.filter)
        check_options(self)


async def read_report(server: Port, index: Index, options: ReportOptions, *, version: str) -> IndexReport:
    """
    Return the report about *index*; *version* is that of this library.
    Cost: that of :func:`read_stats` and of :func:`diagnose`, of :func:`read_searches`, and two searches for each group
    that is shown.
    """
    at = now()
    queries = read_queries(options.queries) if options.queries is not None else []
    resolved = await resolve_index(server, index)
    stats = await read_stats(server, index, options.filter)
    diagnosis = await diagnose(server, index, options)
    settings = await read_present_settings(server, index)
    clauses = check_filter(options.filter)
    # The measure of the grouping; the usual one where there are several groupings, or none.
    recorded = Grouping.from_dict(stats.grouping[0]).measure if len(stats.grouping) == 1 else WORD_SHINGLES
    found = await find_shown(server, index, resolved, ()) if stats.groups.largest or queries else {}
    reader = MemberReader(
        Fields(server.prefix),
        settings.text_fields,
        {kind: name for kind in KINDS for name in names_of(kind, found)[:1]},
    )
    groups = []
    for group in stats.groups.largest[:_GROUPS]:
        groups.append(await _read_group(server, index, group, reader, clauses, recorded.after(settings.scheme)))
        server.tell(Progress(len(groups), min(_GROUPS, len(stats.groups.largest)), "reading groups"))
    searches = None
    if queries:
        searches = await read_searches(server, index, queries, reader, clauses, is_grouped=bool(stats.grouping))
    return IndexReport(stats, diagnosis, tuple(groups), at, version, options.seed, tuple(clauses), searches)
