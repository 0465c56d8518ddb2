"""
Lookups in ES|QL, the language of Elasticsearch: as text, and as a tool for agents. Nothing is sent.

The text follows the documentation and grammar of Elasticsearch 9, the tool those of Kibana 9.4; the tests run a model
of the language and check the form of a tool, without a server.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from es_simhash.arguments import check_count, check_ids, check_name
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.hashing import to_hex
from es_simhash.lookup.paste import Exists, block_condition, esql_name, esql_string, plan_to_paste, write
from es_simhash.lookup.plan import LookupPlan, check_plan
from es_simhash.mapping.fields import DEFAULT_PREFIX, Fields
from es_simhash.mapping.meta import DEFAULT_MAX_DISTANCE, check_max_distance
from es_simhash.mapping.rule import PairRule

DISTANCE_COLUMN = "near_dup_distance"
"""The column of the result that has the distance in bits."""

MOST_ROWS = 10_000
"""Most rows that Elasticsearch returns for one query, unless ``esql.query.result_truncation_max_size`` is changed."""

_GROUP_COLUMN = "near_dup_group"

_ORDER = f"{DISTANCE_COLUMN}, _index, _id"

# About 40 kB of text; Elasticsearch takes a million characters.
_MOST_ESQL_TERMS = 5_000


def build_esql(
    index: str,
    fingerprint: int,
    *,
    max_distance: int = DEFAULT_MAX_DISTANCE,
    exclude_ids: Iterable[str] = (),
    one_per_group: bool = False,
    prefix: str = DEFAULT_PREFIX,
    plan: LookupPlan | None = None,
    documents: int = 1_000_000,
    size: int = MOST_ROWS,
) -> str:
    """
    Return a query in ES|QL whose rows are the near-duplicates of *fingerprint*, nearest first.

    It needs Elasticsearch 9.3 or later, with *one_per_group* 9.4. The block terms of the lookup plan stand in
    ``WHERE``, and ``V_HAMMING`` computes the distance of what they let pass.

    Args:
        index:
            Name of an index, alias, data stream or pattern, or several of them separated by commas.
        fingerprint:
            Unsigned 64-bit SimHash to look up.
        max_distance:
            Largest Hamming distance in bits, inclusive. No index is asked: give the distance that yours records.
        exclude_ids:
            Ids of documents that are left out.
        one_per_group:
            Whether to return only the nearest document of each group. A document without group stands for itself.
        prefix:
            Name of the object that holds the fields.
        plan:
            Lookup plan to use; by default the cheapest whose text is not too long to paste.
        documents:
            Number of fingerprinted documents in the index; the cheapest plan depends on it.
        size:
            Most rows. Without a ``LIMIT`` Elasticsearch would return 1,000, and it never returns more than 10,000.

    Raises:
        TypeError: If an argument has the wrong type.
        InvalidInputError: If an argument cannot be used.

    Examples:
        >>> print(build_esql("news", 0x0123456789abcdef, max_distance=3).splitlines()[2])
        FROM "news" METADATA _index, _id
    """
    check_max_distance(max_distance)
    if plan is None:
        plan = plan_to_paste(max_distance, documents=documents, most_terms=_MOST_ESQL_TERMS, is_checked=True)
    check_plan(plan, max_distance)
    check_count("size", size, 1, MOST_ROWS)
    excluded = [esql_string(each) for each in check_ids("exclude_ids", exclude_ids)]
    wanted = to_hex(fingerprint)
    conditions = [f"_id NOT IN ({', '.join(excluded)})"] if excluded else []
    conditions.append(write(block_condition(fingerprint, plan, prefix=prefix), "esql"))
    steps = _esql_steps(index, conditions, f'"{wanted}"', max_distance, Fields(prefix), one_per_group=one_per_group)
    what = "the nearest document of each group" if one_per_group else "documents"
    comments = [
        f"// {what} near {wanted}: {PairRule(max_distance).words}; lookup plan {replace(plan, script=False).name}",
        f"// {size} rows mean that there may be more. To count them, end the text with STATS COUNT(*) after WHERE",
    ]
    return "\n".join([*comments, *steps, f"| LIMIT {size}", f"| KEEP {_ORDER}, *"])


def _esql_steps(
    index: str, conditions: Sequence[str], wanted: str, max_distance: int, fields: Fields, *, one_per_group: bool
) -> list[str]:
    """Return the lines up to the order of the rows; *wanted* is an expression."""
    vectors = f"TO_DENSE_VECTOR({esql_name(fields.fingerprint)}), TO_DENSE_VECTOR({wanted})"
    steps = [
        *(f"WHERE {each}" for each in conditions),
        f"EVAL {DISTANCE_COLUMN} = V_HAMMING({vectors})",
        f"WHERE {DISTANCE_COLUMN} <= {max_distance}",
    ]
    if one_per_group:
        # Without a value of their own, all documents without group would count as one group.
        own = 'CONCAT("not grouped: ", _index, " ", _id)'
        steps += [
            f"EVAL {_GROUP_COLUMN} = COALESCE({esql_name(fields.group)}, {own})",
            f"SORT {_ORDER}",
            f"LIMIT 1 BY {_GROUP_COLUMN}",
        ]
    return [f"FROM {_sources(index)} METADATA _index, _id", *(f"| {each}" for each in [*steps, f"SORT {_ORDER}"])]


def build_esql_tool(
    index: str,
    *,
    max_distance: int = DEFAULT_MAX_DISTANCE,
    one_per_group: bool = False,
    prefix: str = DEFAULT_PREFIX,
    size: int = 100,
) -> dict[str, Any]:
    """
    Return an ES|QL tool for agents in Kibana's Agent Builder: the body of ``POST /api/agent_builder/tools``.

    It needs Kibana 9.4 or later. The agent gives a fingerprint that it read from a document. The rows are those of
    :func:`build_esql`, without the fields of the documents. ES|QL has no neighbours of a block term: above 3 bits it
    compares every fingerprint.

    Args:
        index:
            As for :func:`build_esql`.
        max_distance:
            Largest Hamming distance in bits, inclusive. No index is asked: give the distance that yours records.
        one_per_group:
            Whether to return only the nearest document of each group.
        prefix:
            Name of the object that holds the fields.
        size:
            Most rows, 1 to 10,000. They take up the context of the agent.

    Raises:
        TypeError: If an argument has the wrong type.
        InvalidInputError: If an argument cannot be used.

    Examples:
        >>> tool = build_esql_tool("news")
        >>> tool["id"], list(tool["configuration"]["params"])
        ('near_duplicates_news', ['fingerprint'])
    """
    check_max_distance(max_distance)
    check_count("size", size, 1, MOST_ROWS)
    fields = Fields(prefix)
    where = write(Exists(fields.fingerprint), "esql")
    if max_distance < len(fields.blocks):  # then near-duplicates have a block in common
        terms = (f"TO_LOWER(SUBSTRING(?fingerprint, {4 * n + 1}, 4))" for n in range(4))
        where = " OR ".join(f"{esql_name(block)} == {term}" for block, term in zip(fields.blocks, terms, strict=True))
    steps = _esql_steps(index, [where], "?fingerprint", max_distance, fields, one_per_group=one_per_group)
    fingerprint = {"type": "string", "description": f"{fields.fingerprint} of a document: 16 hexadecimal digits."}
    return {
        # Kibana allows 64 of these characters, of which the first and the last are letters or digits.
        "id": re.sub("[^a-z0-9]+", "_", f"near_duplicates_{index}".lower())[:64].strip("_"),
        "type": "esql",
        "description": f"Find the near-duplicates of a document in {index}: the same texts, or nearly so. Bits decide, "
        f"texts are not compared. It needs the document's {fields.fingerprint}. Rows: index, id, and differing bits of "
        f"the fingerprints, {max_distance} at most; nearest first, "
        f"{'one of each group' if one_per_group else 'the document itself too'}. {size} rows mean that there may be "
        "more.",
        "tags": ["es_simhash"],
        "configuration": {
            "query": "\n".join([*steps, f"| LIMIT {size}", f"| KEEP {_ORDER}"]),
            "params": {"fingerprint": fingerprint},
        },
    }


def _sources(index: str) -> str:
    names = check_name("index", index).split(",")
    if not all(names):
        raise InvalidInputError(f"index {shorten(index)} has an empty name: give names separated by commas")
    return ", ".join(map(esql_string, names))
