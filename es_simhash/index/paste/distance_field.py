"""
Fields that a server computes while it searches: the distance of each document to one fingerprint, in Painless.

Nothing is sent. The script of the lookup plans is in ``index/query.py``.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from es_simhash.arguments import check_choice
from es_simhash.hashing import to_hex
from es_simhash.index.fields import DEFAULT_PREFIX, Fields, to_signed

__all__ = ["DISTANCE_FIELD", "FieldKind", "build_distance_field", "distance_source", "with_distances"]

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
    """
    Return the script of :func:`build_distance_field` with its parameters written into it.

    The editors of Kibana and Dashboards take a script alone.
    """
    source = _source(kind)
    parameters = _parameters(fingerprint, prefix)
    return source.replace("params.field", f"'{parameters['field']}'").replace(
        "params.wanted", f"{parameters['wanted']}L"
    )


def with_distances(
    body: dict[str, Any], kind: FieldKind, fingerprint: int, *, prefix: str = DEFAULT_PREFIX
) -> dict[str, Any]:
    """
    Return the search *body* with the distance to *fingerprint* in each hit.
    """
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
