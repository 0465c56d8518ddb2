"""
Lookups in ES|QL, the piped language of Elasticsearch, and distances as fields that a server computes.

The ES|QL follows the documentation and grammar of Elasticsearch 9; the tests run a model of it, not a server.
The script of the lookup plans is in ``query``. Nothing is sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from es_simhash.arguments import check_choice, check_count, check_name, check_names
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.hashing import to_hex
from es_simhash.lookup.paste import (
    AllOf,
    AnyOf,
    Condition,
    Exists,
    NearBlock,
    Not,
    OneOf,
    block_condition,
    plan_to_paste,
)
from es_simhash.lookup.plan import LookupPlan, check_plan
from es_simhash.mapping.fields import DEFAULT_PREFIX, Fields, to_signed
from es_simhash.mapping.meta import DEFAULT_MAX_DISTANCE, check_max_distance

DISTANCE_COLUMN = "near_dup_distance"
"""The column of the result that has the distance in bits."""


MOST_ROWS = 10_000
"""Most rows that Elasticsearch returns for one query, unless ``esql.query.result_truncation_max_size`` is changed."""


_GROUP_COLUMN = "near_dup_group"


_ORDER = f"{DISTANCE_COLUMN}, _index, _id"


# About 40 kB of text; Elasticsearch takes a million characters.
_MOST_TERMS = 5_000


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
            Largest Hamming distance in bits, inclusive.
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
        plan = plan_to_paste(max_distance, documents=documents, most_terms=_MOST_TERMS, is_checked=True)
    check_plan(plan, max_distance)
    check_count("size", size, 1, MOST_ROWS)
    excluded = [_string(each) for each in check_names("exclude_ids", exclude_ids, of="ids")]
    fields, wanted = Fields(prefix), to_hex(fingerprint)
    vectors = f'TO_DENSE_VECTOR({_name(fields.fingerprint)}), TO_DENSE_VECTOR("{wanted}")'
    steps = [f"FROM {_sources(index)} METADATA _index, _id"]
    if excluded:
        steps.append(f"WHERE _id NOT IN ({', '.join(excluded)})")
    steps += [
        f"WHERE {write_condition(block_condition(fingerprint, plan, prefix=prefix))}",
        f"EVAL {DISTANCE_COLUMN} = V_HAMMING({vectors})",
        f"WHERE {DISTANCE_COLUMN} <= {max_distance}",
    ]
    if one_per_group:
        # Without a value of their own, all documents without group would count as one group.
        own = 'CONCAT("not grouped: ", _index, " ", _id)'
        steps += [
            f"EVAL {_GROUP_COLUMN} = COALESCE({_name(fields.group)}, {own})",
            f"SORT {_ORDER}",
            f"LIMIT 1 BY {_GROUP_COLUMN}",
        ]
    steps += [f"SORT {_ORDER}", f"LIMIT {size}", f"KEEP {_ORDER}, *"]
    what = "the nearest document of each group" if one_per_group else "documents"
    comments = [
        f"// {what} within {max_distance} bits of {wanted}, lookup plan {replace(plan, script=False).name}",
        f"// {size} rows mean that there may be more. To count them, end the text with STATS COUNT(*) after WHERE",
    ]
    return "\n".join([*comments, steps[0], *(f"| {step}" for step in steps[1:])])


def write_condition(condition: Condition) -> str:
    """Return *condition* in ES|QL."""
    match condition:
        case Exists(field=field):
            return f"{_name(field)} IS NOT NULL"
        case OneOf(field=field, values=values) | NearBlock(field=field, values=values):
            return f"{_name(field)} IN ({', '.join(map(_string, values))})"
        case Not(part=part):
            return f"NOT ({write_condition(part)})"
        case AllOf(parts=parts):
            return " AND ".join(map(_grouped, parts))
        case AnyOf(parts=parts):
            return " OR ".join(map(_grouped, parts))


def _grouped(condition: Condition) -> str:
    written = write_condition(condition)
    return f"({written})" if isinstance(condition, (AllOf, AnyOf)) else written


def _name(field: str) -> str:
    """Return the name of one of our fields, quoted where it could be read as something else than a name."""
    prefix, _, name = field.partition(".")
    return f"{prefix}.{name}" if prefix == DEFAULT_PREFIX else f"`{prefix}`.{name}"


def _string(text: str) -> str:
    for plain, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        text = text.replace(plain, escaped)
    return f'"{text}"'


def _sources(index: str) -> str:
    names = check_name("index", index).split(",")
    if not all(names):
        raise InvalidInputError(f"index {shorten(index)} has an empty name: give names separated by commas")
    return ", ".join(map(_string, names))


DISTANCE_FIELD = "near_dup_distance"
"""The name of the field, as :func:`with_distances` names it."""


FieldKind: TypeAlias = Literal["runtime", "script"]
"""A runtime field emits its value (so does a derived field of OpenSearch); a script field returns it."""


# A document without a fingerprint, or of an index that lacks the field, has no distance.
_HAS_ONE = "doc.containsKey(params.field) && doc[params.field].size() == 1"


_DISTANCE = "Long.bitCount(doc[params.field].value ^ params.wanted)"


_SOURCES = {
    "runtime": f"if ({_HAS_ONE}) {{ emit({_DISTANCE}); }}",
    "script": f"if ({_HAS_ONE}) {{ return {_DISTANCE}; }} return null;",
}


def build_distance_field(kind: FieldKind, fingerprint: int, *, prefix: str = DEFAULT_PREFIX) -> dict[str, Any]:
    """
    Return the definition of a field with the distance of each document to *fingerprint*, in bits.

    The index must have the field ``value`` (``value=True``, the default). Documents without a fingerprint have no
    distance.

    Args:
        kind:
            "runtime": for ``runtime_mappings`` of Elasticsearch, or ``derived`` of OpenSearch. "script": for
            ``script_fields`` of both products.
        fingerprint:
            Unsigned 64-bit SimHash to compare with.
        prefix:
            Name of the object that holds the fields.

    Raises:
        InvalidInputError: If an argument cannot be used.

    Examples:
        >>> body = {"script_fields": {"bits": build_distance_field("script", 0x0123456789abcdef)}}
        >>> body["script_fields"]["bits"]["script"]["params"]
        {'field': 'simhash.value', 'wanted': 81985529216486895}
    """
    script = {"lang": "painless", "source": _source(kind), "params": _parameters(fingerprint, prefix)}
    # OpenSearch refuses a derived field that names a language.
    return {"script": script} if kind == "script" else {"type": "long", "script": script}


def distance_source(kind: FieldKind, fingerprint: int, *, prefix: str = DEFAULT_PREFIX) -> str:
    """Return the distance script with its parameters written in, as Kibana's and Dashboards' editors need it."""
    source = _source(kind)
    parameters = _parameters(fingerprint, prefix)
    return source.replace("params.field", f"'{parameters['field']}'").replace(
        "params.wanted", f"{parameters['wanted']}L"
    )


def with_distances(
    body: dict[str, Any], kind: FieldKind, fingerprint: int, *, prefix: str = DEFAULT_PREFIX
) -> dict[str, Any]:
    """Return the search *body* with the distance to *fingerprint* in each hit."""
    field = build_distance_field(kind, fingerprint, prefix=prefix)
    if kind == "script":
        return body | {"script_fields": {DISTANCE_FIELD: field}}
    return body | {
        "runtime_mappings": {DISTANCE_FIELD: field},
        "fields": [DISTANCE_FIELD],
        "sort": [{DISTANCE_FIELD: "asc"}],
    }


def _source(kind: FieldKind) -> str:
    return _SOURCES[check_choice("kind", kind, _SOURCES)]


def _parameters(fingerprint: int, prefix: str) -> dict[str, Any]:
    to_hex(fingerprint)  # checks type and range
    return {"field": Fields(prefix).value, "wanted": to_signed(fingerprint)}
