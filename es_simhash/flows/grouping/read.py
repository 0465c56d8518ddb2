"""
Reading the documents with fingerprints of an index into a table: all of them, or those that a change may concern.

Nothing is grouped and nothing is written here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from es_simhash.errors import IncompleteSearchError
from es_simhash.flows.context import Context, Index
from es_simhash.flows.grouping.group_lookups import GroupLookups
from es_simhash.flows.protocol import Call, Compute, Flow, Progress, Tell
from es_simhash.flows.resolve import read_index_settings
from es_simhash.flows.transfer.answers import check_whole, find_gaps
from es_simhash.flows.transfer.pages import Hits, read_each, read_pages
from es_simhash.index.fields import Fields
from es_simhash.index.grouping.rule import Grouping
from es_simhash.index.keys import Key, document_key

if TYPE_CHECKING:
    from es_simhash.index.grouping.table import Table

__all__ = ["grouped_without_fingerprint", "lost_canonicals", "read_all", "read_touched"]

PAGE = 5_000
ASKED = 200
BUCKETS = 1_000


def read_all(context: Context, index: Index, table: Table, query: Mapping[str, Any] | None = None) -> Flow[None]:
    """
    Add every document of *index* that has a fingerprint and matches *query* to *table*.

    Raises:
        IncompleteSearchError: If some documents could not be read.
    """

    def add(hits: Hits) -> Flow[bool]:
        yield Compute(table.add, (hits,))
        yield Tell(Progress(len(table), None, "reading documents"))
        return False

    clauses = [{"exists": {"field": Fields(context.prefix).fingerprint}}, *([query] if query else [])]
    body = {**table.search_body(), "query": {"bool": {"filter": clauses}}}
    check_whole((yield from read_pages(index, body, add, page=PAGE)))


def read_touched(
    context: Context,
    index: Index,
    table: Table,
    grouping: Grouping,
    query: Mapping[str, Any],
    *,
    may_lack: bool = True,
) -> Flow[None]:
    """
    Add to *table* the documents that match *query*, and all whose groups these may change.

    Without *may_lack*, no canonical was deleted, and none is looked for.

    These are the documents connected with them, or with documents that lost their canonical, by steps of max_distance.
    Groups lie within connected components, so grouping these documents alone gives the same as grouping all.
    """
    fields = Fields(context.prefix)
    seeds = _Seeds(fields)
    yield from _read(index, query, seeds)
    # If the text of a canonical was changed, or emptied, its members may belong elsewhere now.
    for ids in _parts(sorted(seeds.matching), BUCKETS):
        yield from _read(index, {"terms": {fields.duplicate_of: ids}}, seeds)
    lost = (yield from lost_canonicals(index, fields)) if may_lack else []
    for ids in _parts(lost, BUCKETS):
        yield from _read(index, {"terms": {fields.duplicate_of: ids}}, seeds)
    reached = yield from _flood(context, index, grouping, seeds)
    for part in _parts(sorted(reached), BUCKETS):
        yield from read_all(context, index, table, {"ids": {"values": part}})


class _Seeds:
    """Ids and fingerprints of documents to start from, and the ids of those without a fingerprint too."""

    def __init__(self, fields: Fields) -> None:
        self.matching: set[str] = set()
        self.ids: set[str] = set()
        self.fingerprints: set[str] = set()
        self.name = fields.fingerprint

    def add(self, hits: Hits) -> None:
        for hit in hits:
            self.matching.add(hit["_id"])
            if values := hit.get("fields", {}).get(self.name):
                self.ids.add(hit["_id"])
                self.fingerprints.add(values[0])


def _read(index: Index, query: Mapping[str, Any], seeds: _Seeds) -> Flow[None]:
    body = {"query": query, "docvalue_fields": [seeds.name], "_source": False}
    check_whole((yield from read_each(index, body, seeds.add, page=PAGE)))


def _parts(items: Sequence[str], size: int) -> list[list[str]]:
    return [list(items[begin : begin + size]) for begin in range(0, len(items), size)]


def _flood(context: Context, index: Index, grouping: Grouping, seeds: _Seeds) -> Flow[set[str]]:
    """Return the ids of all documents that steps of max_distance reach from the seeds."""
    settings = yield from read_index_settings(context, index)
    lookups = GroupLookups(context, index, settings, max_distance=grouping.max_distance)
    yield from lookups.prepare()
    known = {int(digits, 16) for digits in seeds.fingerprints}
    ids, waiting = set(seeds.ids), sorted(known)
    while waiting:
        asked, waiting = waiting[:ASKED], waiting[ASKED:]
        for found in (yield from lookups.ask(asked)).values():
            if not found.complete:
                raise IncompleteSearchError(
                    f"near-duplicates may be missing: {'; '.join(found.reasons)}", reasons=found.reasons
                )
            ids.update(each.id for each in found)
            fresh = {each.fingerprint for each in found} - known
            known |= fresh
            waiting += sorted(fresh)
    return ids


def grouped_without_fingerprint(index: Index, fields: Fields) -> Flow[list[Key]]:
    """Return the documents that are tagged as duplicates, and have no fingerprint."""
    found: list[Key] = []

    def note(hits: Hits) -> None:
        found.extend(map(document_key, hits))

    tagged = [{"exists": {"field": field}} for field in (fields.duplicate_of, fields.distance)]
    rule = {"should": tagged, "minimum_should_match": 1, "must_not": [{"exists": {"field": fields.fingerprint}}]}
    check_whole((yield from read_each(index, {"query": {"bool": rule}, "_source": False}, note, page=PAGE)))
    return found


def lost_canonicals(index: Index, fields: Fields) -> Flow[list[str]]:
    """Return the ids that documents name as their canonical, and that are missing or no canonicals."""
    lost: list[str] = []
    after: Any = None
    while True:
        source = {"sources": [{"id": {"terms": {"field": fields.duplicate_of}}}], "size": BUCKETS}
        composite = source if after is None else source | {"after": after}
        body = {"size": 0, "aggs": {"canonicals": {"composite": composite}}, "track_total_hits": False}
        answer = yield Call("search", {"index": index, "body": body})
        # OpenSearch ends a composite aggregation early once its page is full, and says so.
        check_whole(find_gaps(answer, ignore=["terminated_early"]))
        found = answer["aggregations"]["canonicals"]
        named = [bucket["key"]["id"] for bucket in found["buckets"]]
        if not named:
            return lost
        query = {
            "bool": {
                "filter": [{"ids": {"values": named}}, {"exists": {"field": fields.fingerprint}}],
                "must_not": [{"exists": {"field": fields.duplicate_of}}],
            }
        }
        there: set[str] = set()

        def note(hits: Hits, there: set[str] = there) -> None:
            there.update(hit["_id"] for hit in hits)

        check_whole((yield from read_each(index, {"query": query, "_source": False}, note, page=PAGE)))
        lost += [each for each in named if each not in there]
        after = found.get("after_key")
        if after is None:
            return lost
