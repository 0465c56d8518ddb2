"""
A lookup as text to paste: a search for Dev Tools, KQL (in Dashboards DQL) for the query bar, ES|QL for Discover.

KQL and ES|QL cannot count matching clauses, so a plan becomes a tree of "any" and "all" that the same fingerprints
match. ES|QL follows the documentation and grammar of Elasticsearch 9.3; tests have a model of it. Nothing is sent.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

from es_simhash.errors import InvalidInputError
from es_simhash.hashing import block_terms, to_hex
from es_simhash.hashing.charikar import neighbour_terms
from es_simhash.lookup.plan import LookupPlan
from es_simhash.lookup.query import Filter, build_query
from es_simhash.mapping.fields import DEFAULT_PREFIX, Fields
from es_simhash.tables.hidden import shown

Form = Literal["dev-tools", "kql", "esql"]

DISTANCE_COLUMN = "near_dup_distance"
"""The column of ES|QL that has the distance in bits."""

MOST_KQL_TERMS = 1_000
"""Both products turn each value in a query bar into a clause, and allow 1,024 of them by default."""
# By distance, the steps of the cheapest plan without a script that needs no more terms than that. Of ES|QL, no more
# than 5,000: these are about 40 kB of text. A larger distance is a scan there.
_KQL_STEPS = (4, 4, 4, 6, 7, 8, 8, 9, 10, 10, 11, 12)
_ESQL_STEPS = (4, 4, 4, 6, 7, 8, 9, 11, 12, 12, 12, 13, 14, 14, 15, 16, 17)
_MOST_ROWS = 10_000
MOST_KQL_BITS = len(_KQL_STEPS) - 1
"""The largest distance that a query bar has room for."""


def paste_lookup(
    form: Form,
    index: str,
    fingerprint: int,
    *,
    max_distance: int,
    prefix: str = DEFAULT_PREFIX,
    filter: Filter = None,
    exclude_ids: Sequence[str] = (),
    size: int = 1_000,
    source: bool | Sequence[str] = False,
) -> str:
    """
    Return the lookup of *fingerprint* as text.
    ES|QL computes distances; the hits of the others are candidates, which contain all near-duplicates. *filter*, *size*
    and *source* are for a search.
    """
    if form == "dev-tools":
        body = build_query(
            fingerprint,
            max_distance=max_distance,
            prefix=prefix,
            filter=filter,
            exclude_ids=exclude_ids,
            size=size,
            source=source,
        )
        return f"POST /{shown(index)}/_search\n{json.dumps(body, ensure_ascii=False, indent=2)}"
    if form == "kql":
        if max_distance > MOST_KQL_BITS:
            raise InvalidInputError(
                f"max_distance {max_distance} needs more than the {MOST_KQL_TERMS:,} block terms that a query bar "
                f"takes: give {MOST_KQL_BITS} or less, or the form esql"
            )
        plan = LookupPlan(max_distance, _KQL_STEPS[max_distance])
        condition = block_condition(fingerprint, plan, "kql", prefix=prefix)
        ids = " or ".join(map(_string, exclude_ids))
        return f"({condition}) and not _id: ({ids})" if ids else condition
    fields, wanted = Fields(prefix), to_hex(fingerprint)
    near = f"{_esql_name(fields.fingerprint)} IS NOT NULL"
    if max_distance < len(_ESQL_STEPS):
        plan = LookupPlan(max_distance, _ESQL_STEPS[max_distance])
        near = block_condition(fingerprint, plan, "esql", prefix=prefix)
    steps = [f"FROM {', '.join(map(_string, index.split(',')))} METADATA _index, _id"]
    steps += [f"| WHERE _id NOT IN ({', '.join(map(_string, exclude_ids))})"] if exclude_ids else []
    vectors = f'TO_DENSE_VECTOR({_esql_name(fields.fingerprint)}), TO_DENSE_VECTOR("{wanted}")'
    steps += [
        f"| WHERE {near}",
        f"| EVAL {DISTANCE_COLUMN} = V_HAMMING({vectors})",
        f"| WHERE {DISTANCE_COLUMN} <= {max_distance}",
        f"| SORT {DISTANCE_COLUMN}, _index, _id",
        # Without it Elasticsearch would return 1,000; it never returns more than 10,000.
        f"| LIMIT {_MOST_ROWS}",
        f"| KEEP {DISTANCE_COLUMN}, _index, _id, *",
    ]
    return "\n".join(steps)


def _ways(needed: int, depth: int, others: Sequence[int]) -> range:
    """
    Return how many of the *needed* clauses a block may match, by its *depth* and those of the *others*.
    It matches as many as its distance is below its depth; at less than is needed, the others match the rest.
    """
    return range(max(0, needed - sum(others)), min(needed, depth) + 1)


def block_condition(
    fingerprint: int, plan: LookupPlan, form: Literal["kql", "esql"], *, prefix: str = DEFAULT_PREFIX
) -> str:
    """Return the condition that matches the same documents as the block terms of *plan*, which is no scan."""
    names = Fields(prefix).blocks
    blocks = list(zip(names, block_terms(fingerprint), plan.depths, strict=True))
    return _at_least(plan.minimum_should_match, blocks, form)


def _at_least(needed: int, blocks: list[tuple[str, str, int]], form: Literal["kql", "esql"]) -> str:
    """Return the condition that at least *needed* clauses of *blocks* match, each a field, a block and its depth."""
    every, some = (" and ", " or ") if form == "kql" else (" AND ", " OR ")
    (field, block, depth), *others = blocks
    ways: list[str] = []
    for matched in reversed(_ways(needed, depth, [depth_there for _, _, depth_there in others])):
        parts = [_near(field, block, depth - matched, form)] if matched else []
        if matched < needed:
            parts.append(_at_least(needed - matched, others, form))
        ways.append(every.join(parts))
    return ways[0] if len(ways) == 1 else f"({some.join(f'({way})' for way in ways)})"


def _near(field: str, block: str, radius: int, form: Literal["kql", "esql"]) -> str:
    """Return the condition that the block term in *field* is within *radius* bits of *block*."""
    terms = neighbour_terms(block, radius)
    if form == "esql":
        return f"{_esql_name(field)} IN ({', '.join(map(_string, terms))})"
    values = " or ".join(terms)
    return f"{field}: ({values})" if len(terms) > 1 else f"{field}: {values}"


def _esql_name(field: str) -> str:
    """Return the name of one of our fields, quoted where it could be read as something else than a name."""
    prefix, _, name = field.partition(".")
    return f"{prefix}.{name}" if prefix == DEFAULT_PREFIX else f"`{prefix}`.{name}"


def _string(text: str) -> str:
    """Return *text* as a string of both languages, in which neither reads an operator."""
    for plain, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        text = text.replace(plain, escaped)
    return f'"{text}"'
