"""
Lookup plans to search bodies: plain query DSL that both products understand.

Pure: no request is made here, and nothing given is changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from es_simhash.errors import InvalidInputError, shorten
from es_simhash.hashing import block_neighbours, split_blocks, to_hex
from es_simhash.index.fields import DEFAULT_PREFIX, Fields
from es_simhash.index.plan import DEFAULT_MAX_DISTANCE, LookupPlan, check_max_distance, plan_lookup

__all__ = ["build_query", "candidate_clause", "check_filter"]

Query = dict[str, Any]


def check_filter(given: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None) -> list[Query]:
    """
    Return the caller's *given* filter as a list of query clauses.

    Raises:
        TypeError: If it is neither a mapping nor a list of mappings.
        InvalidInputError: If a clause is not one query (a mapping with exactly one key).
    """
    if given is None:
        return []
    clauses = [given] if isinstance(given, Mapping) else list(given) if isinstance(given, Sequence) else None
    if clauses is None or isinstance(given, (str, bytes)) or not all(isinstance(c, Mapping) for c in clauses):
        raise TypeError(f"filter must be a query or a list of queries, not {shorten(given)}")
    for clause in clauses:
        if len(clause) != 1:
            raise InvalidInputError(
                f"filter {shorten(clause)} is not one query: give a mapping with one key, such as "
                '{"range": {"date": {"gte": "now-7d"}}}'
            )
    return [dict(clause) for clause in clauses]


def candidate_clause(fingerprint: int, plan: LookupPlan, *, prefix: str = DEFAULT_PREFIX) -> Query:
    """
    Return the query clause that every fingerprint within the plan's distance matches.
    """
    fields = Fields(prefix)
    if plan.is_scan:
        return {"exists": {"field": fields.fingerprint}}
    should: list[Query] = [
        {"terms": {field: [f"{term:04x}" for term in block_neighbours(block, radius)]}}
        for radius in plan.radii
        for field, block in zip(fields.blocks, split_blocks(fingerprint), strict=True)
    ]
    return {"bool": {"should": should, "minimum_should_match": plan.minimum_should_match}}


def build_query(
    fingerprint: int,
    *,
    max_distance: int = DEFAULT_MAX_DISTANCE,
    filter: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,  # noqa: A002 -- the DSL's own word
    exclude_ids: Iterable[str] = (),
    prefix: str = DEFAULT_PREFIX,
    plan: LookupPlan | None = None,
    size: int = 1000,
    source: bool | Sequence[str] = False,
) -> Query:
    """
    Return the search body whose hits are the candidates for *fingerprint*.

    The hits are candidates, not near-duplicates: give them to ``rescore``. Where more than *size* candidates
    exist, one page does not hold them all; ``find_near_dups`` reads on.

    Args:
        fingerprint:
            Unsigned 64-bit SimHash to look up.
        max_distance:
            Largest Hamming distance that must not be lost, in bits, inclusive.
        filter:
            A query, or a list of queries, that candidates also match; in filter context.
        exclude_ids:
            Ids of documents that are not candidates.
        prefix:
            Name of the object that holds the fields.
        plan:
            Lookup plan to use; by default the cheapest for the distance.
        size:
            Most candidates on the page.
        source:
            ``False``, ``True`` or the ``_source`` fields that hits carry.

    Returns:
        A body for the search API of Elasticsearch and OpenSearch.

    Raises:
        TypeError: If an argument has the wrong type.
        InvalidInputError: If max_distance, the fingerprint, the filter or the prefix cannot be used, or the plan
            is for a smaller distance.

    Examples:
        >>> body = build_query(0x0123456789abcdef, max_distance=3, plan=plan_lookup(3, documents=1000))
        >>> body["query"]["bool"]["filter"][0]["bool"]["should"][0]
        {'terms': {'simhash.block0': ['0123']}}
    """
    to_hex(fingerprint)  # checks type and range
    check_max_distance(max_distance)
    if isinstance(exclude_ids, (str, bytes)):
        raise TypeError(f"exclude_ids must be a list of ids, not one string {shorten(exclude_ids)}")
    plan = plan or plan_lookup(max_distance)
    if plan.max_distance < max_distance:
        raise InvalidInputError(
            f"plan {plan.name} is exact up to distance {plan.max_distance}, not {max_distance}: plan for {max_distance}"
        )
    query: Query = {"filter": [candidate_clause(fingerprint, plan, prefix=prefix), *check_filter(filter)]}
    if excluded := [str(each) for each in exclude_ids]:
        query["must_not"] = [{"ids": {"values": excluded}}]
    return {
        "size": size,
        "query": {"bool": query},
        "docvalue_fields": [Fields(prefix).fingerprint],
        "_source": list(source) if isinstance(source, Sequence) else source,
        # The number of hits on the page tells whether there may be more; counting the rest would cost.
        "track_total_hits": False,
    }
