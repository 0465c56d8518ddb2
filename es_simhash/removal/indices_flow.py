"""Which indices a plan is for, how many documents they have now, and batch sizes. No document is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from es_simhash.errors import MappingError
from es_simhash.groups.settings_flow import find_field
from es_simhash.removal.records import Guards, Share
from es_simhash.transport.answers import check_whole, find_gaps
from es_simhash.transport.buckets_flow import count_documents
from es_simhash.transport.names import Index, local_names
from es_simhash.transport.protocol import Call, Flow, status_of
from es_simhash.transport.retry_flow import Patience, ask

VALUES = 1_000


def read_uuids(names: Sequence[str]) -> Flow[dict[str, str]]:
    """Return the UUID of each concrete index of *names*; an index that does not exist, or is an alias now, has none."""
    found: dict[str, str] = {}
    for name in names:
        try:
            answer = yield from ask(Call("get_settings", {"index": name, "name": "index.uuid"}))
        except Exception as error:
            if status_of(error) != 404:
                raise
            continue
        settings = (answer.get(name) or {}).get("settings") or {}
        if uuid := (settings.get("index") or {}).get("uuid"):
            found[name] = uuid
    return found


def check_protected(mappings: Mapping[str, Mapping[str, Any]], field: str) -> None:
    """Raise MappingError if *field* is not, in each index, a keyword with doc values."""
    for name, mapping in mappings.items():
        node = find_field(mapping, field)
        found = node.get("type") or ("object" if "properties" in node else None)
        if found not in ("keyword", "constant_keyword") or node.get("doc_values") is False:
            without = " without doc values" if node.get("doc_values") is False else ""
            state = "is not mapped" if found is None else f"is mapped as {found!r}{without}"
            raise MappingError(
                f"field {field!r} of index {name!r} {state}: only the values of a keyword field with doc "
                "values can be protected: name another field"
            )


def count_shares(index: Index, names: Sequence[str], guards: Guards, removals: Mapping[str, int]) -> Flow[Guards]:
    """
    Return *guards* with the present numbers of the documents that *index* shows of the indices *names*.

    What an alias does not show is not counted. *removals* are counts by value of the protected field.
    """
    query = {"match_all": {}} if local_names(index) == list(names) else {"terms": {"_index": list(names)}}
    documents, gaps = yield from count_documents(index, query, patience=Patience())
    check_whole(gaps)
    shares: dict[str, Share] = {}
    if guards.protect is not None:
        for part in _parts(sorted(removals), VALUES):
            counts = yield from _count_values(index, query, guards.protect, part)
            shares |= {value: Share(removals[value], counts.get(value, 0)) for value in part}
    return Guards(guards.max_share, guards.protect, documents, shares)


def _count_values(index: Index, query: Mapping[str, Any], field: str, values: Sequence[str]) -> Flow[dict[str, int]]:
    terms = {"field": field, "include": list(values), "size": len(values)}
    body = {"size": 0, "track_total_hits": False, "query": query, "aggs": {"values": {"terms": terms}}}
    answer = yield from ask(Call("search", {"index": index, "body": body}))
    # OpenSearch reports that it counted without looking at documents.
    check_whole(find_gaps(answer, ignore=["terminated_early"]))
    return {bucket["key"]: bucket["doc_count"] for bucket in answer["aggregations"]["values"]["buckets"]}


def _parts(values: Iterable[str], size: int) -> Iterable[list[str]]:
    waiting = iter(values)
    while part := list(islice(waiting, size)):
        yield part


@dataclass(frozen=True, slots=True)
class RemovalSizes:
    """
    How much a removal or a restore does at once.

    *removed*: documents archived and deleted together. *restored*, *characters*: most documents put back
    together, and about how many characters they may have. *few*: up to so many restored documents, only the
    groups that these may have changed are judged. *common*: documents are not compared for a term of passages
    that more documents have.
    """

    removed: int = 200
    restored: int = 500
    characters: int = 8_000_000
    few: int = 1_000
    common: int = 1_000


SIZES = RemovalSizes()
"""The sizes that are used where none are given."""
