"""Search bodies for lookup plans, in plain query DSL that both products understand. Makes no request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

from es_simhash.arguments import check_count, check_ids, check_name, check_sendable
from es_simhash.errors import InvalidInputError, WrongTypeError, shorten
from es_simhash.hashing import block_terms, to_hex
from es_simhash.hashing.charikar import neighbour_terms
from es_simhash.lookup.plan import LookupPlan, neighbour_count, plan_lookup
from es_simhash.mapping.fields import DEFAULT_PREFIX, Fields, to_signed
from es_simhash.mapping.meta import DEFAULT_MAX_DISTANCE, check_max_distance
from es_simhash.transport.protocol import ids_query

Query: TypeAlias = dict[str, Any]
Filter: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]] | None


def check_filter(given: Filter) -> list[Query]:
    """Return the caller's *given* filter as a list of query clauses; raise an error if it cannot be one."""
    if given is None:
        return []
    clauses: list[Any] = list(given) if isinstance(given, (list, tuple)) else [given]
    if not all(isinstance(clause, Mapping) for clause in clauses):
        raise WrongTypeError(f"filter must be a query or a list of queries, not {shorten(given)}")
    for clause in clauses:
        if len(clause) != 1:
            raise InvalidInputError(
                f"filter {shorten(clause)} is not one query: give a mapping with one key, such as "
                '{"range": {"date": {"gte": "now-7d"}}}'
            )
    check_sendable("filter", clauses)
    return [dict(clause) for clause in clauses]


def check_source(given: bool | str | Sequence[str]) -> bool | list[str]:  # noqa: FBT001 -- the servers' own word
    """Return which part of ``_source`` hits carry: all, nothing, or the fields *given*."""
    if isinstance(given, bool):
        return given
    names = [given] if isinstance(given, str) else list(given) if isinstance(given, (list, tuple)) else None
    if names is None or not all(isinstance(name, str) for name in names):
        raise WrongTypeError(f"source must be True, False or a list of field names, not {shorten(given)}")
    return [check_name("source", name) for name in names]


def candidate_clauses(fingerprints: Sequence[int], plan: LookupPlan, *, prefix: str = DEFAULT_PREFIX) -> list[Query]:
    """
    Return query clauses that all documents within the plan's distance of one of *fingerprints* match.
    One search for several fingerprints costs a server less than several searches. Its hits do not say which fingerprint
    they are near: ``rescore`` does.
    """
    for fingerprint in fingerprints:
        to_hex(fingerprint)  # checks type and range
    fields = Fields(prefix)
    clauses = [_block_clause(fingerprints, plan, fields)]
    return [*clauses, _distance_clause(fingerprints, plan, fields)] if plan.script else clauses


def _block_clause(fingerprints: Sequence[int], plan: LookupPlan, fields: Fields) -> Query:
    """Return the query for the block terms of at least one of *fingerprints*; for several, a few others match too."""
    if plan.is_scan:
        return {"exists": {"field": fields.fingerprint}}
    if plan.minimum_should_match > 1 and len(fingerprints) > 1:
        return {"bool": {"should": [_block_clause([one], plan, fields) for one in fingerprints]}}
    # Where one clause is enough, those of several fingerprints are one longer list of terms.
    should: list[Query] = []
    columns = zip(*map(block_terms, fingerprints), strict=True)
    for field, blocks, radii in zip(fields.blocks, columns, plan.radii, strict=True):
        nearest_first = [neighbour_terms(block, max(radii, default=0)) for block in dict.fromkeys(blocks)]
        for radius in radii:
            terms, *others = [of_block[: neighbour_count(radius)] for of_block in nearest_first]
            if others:
                terms = list(dict.fromkeys(chain(terms, *others)))
            should.append({"terms": {field: terms}})
    return {"bool": {"should": should, "minimum_should_match": plan.minimum_should_match}}


# A server needs half the time where a script reads the field once, by its name, and gives the types of numbers.
# A document without simhash.value, or with several values, passes: the client's rescore decides about it.
_VALUE = "if (held.size() != 1) { return true; } long value = held.value; int most = params.most; "
_NEAR_ONE = f"{_VALUE}long wanted = params.wanted; return Long.bitCount(value ^ wanted) <= most;"
_NEAR_SOME = (
    f"{_VALUE}for (long wanted : params.wanted) {{ if (Long.bitCount(value ^ wanted) <= most) {{ return true; }} }} "
    "return false;"
)


def _distance_clause(fingerprints: Sequence[int], plan: LookupPlan, fields: Fields) -> Query:
    signed = [to_signed(fingerprint) for fingerprint in fingerprints]
    one = len(signed) == 1
    source = f"def held = doc['{fields.value}']; {_NEAR_ONE if one else _NEAR_SOME}"
    parameters = {"wanted": signed[0] if one else signed, "most": plan.max_distance}
    return {"script": {"script": {"lang": "painless", "source": source, "params": parameters}}}


def build_query(
    fingerprint: int,
    *,
    max_distance: int = DEFAULT_MAX_DISTANCE,
    filter: Filter = None,
    exclude_ids: Iterable[str] = (),
    prefix: str = DEFAULT_PREFIX,
    size: int = 1000,
    source: bool | Sequence[str] = False,
) -> Query:
    """
    Return the search body whose hits are the candidates for *fingerprint*.

    The hits are candidates, not near-duplicates: give them to ``rescore``. If there are more than *size* candidates,
    one page does not hold them all; ``find_near_dups`` reads all pages.

    Args:
        fingerprint:
            Unsigned 64-bit SimHash to look up.
        max_distance:
            Largest Hamming distance that must not be lost, in bits, inclusive. No index is asked: give the distance
            that yours records.
        filter:
            A query, or a list of queries, that candidates also have to match; in filter context.
        exclude_ids:
            Ids of documents that are not candidates.
        prefix:
            Name of the object that holds the fields.
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
        >>> body = build_query(0x0123456789abcdef, max_distance=3)
        >>> body["query"]["bool"]["filter"][0]["bool"]["should"][0]
        {'terms': {'simhash.block0': ['0123']}}
    """
    check_max_distance(max_distance)
    check_count("size", size, 0)
    plan = plan_lookup(max_distance, scripts=False)
    clauses = candidate_clauses([fingerprint], plan, prefix=prefix)
    return build_body(clauses, filter, exclude_ids, prefix=prefix, size=size, source=source)


def build_body(
    clauses: Sequence[Query],
    filter: Filter,
    exclude_ids: Iterable[str],
    *,
    prefix: str,
    size: int,
    source: bool | Sequence[str],
) -> Query:
    """Return the search body whose hits match all *clauses*, with arguments as :func:`build_query`, for ``rescore``."""
    return {
        "size": size,
        "query": match_all_of(clauses, filter, exclude_ids),
        "docvalue_fields": [Fields(prefix).fingerprint],
        "_source": check_source(source),
        # A full page shows that there may be more hits; to count them would cost.
        "track_total_hits": False,
    }


def match_all_of(clauses: Sequence[Query], filter: Filter, exclude_ids: Iterable[str]) -> Query:
    """Return the query for what matches all *clauses* and the caller's *filter*, and has none of *exclude_ids*."""
    query: Query = {"filter": [*clauses, *check_filter(filter)]}
    if excluded := check_ids("exclude_ids", exclude_ids):
        query["must_not"] = [ids_query(excluded)]
    return {"bool": query}
