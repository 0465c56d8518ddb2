"""The mapping of the fingerprint fields, and templates for new indices: plain dicts, no requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from es_simhash.arguments import check_count, check_name, check_names, check_object
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.hashing import DEFAULT_SCHEME, Scheme
from es_simhash.mapping.fields import DEFAULT_PREFIX, Fields
from es_simhash.mapping.meta import (
    IndexSettings,
    build_settings,
    marker_properties,
    merge_meta,
)
from es_simhash.mapping.user_fields import treatment_of, walk_fields

# Lookups read the block terms; dashboards read their doc values. Group fields serve collapse and aggregations.
FIELD_TYPES: dict[str, dict[str, Any]] = {
    "fingerprint": {"type": "keyword"},
    "block0": {"type": "keyword"},
    "block1": {"type": "keyword"},
    "block2": {"type": "keyword"},
    "block3": {"type": "keyword"},
    # A decimal string in _source, which a server turns into a number.
    "value": {"type": "long", "index": False, "coerce": True},
    "group": {"type": "keyword"},
    "duplicate_of": {"type": "keyword"},
    "distance": {"type": "byte"},
    "at": {"type": "date"},
    # Terms of winnowed hashes, which only lookups of passages read. Only indices that were asked for passages have it.
    "passages": {"type": "keyword", "doc_values": False},
    # Written by an ingest pipeline, where it can make no fingerprint.
    "error": {"type": "keyword"},
}
"""The mapping of each of our fields, by its name below the prefix."""

NEEDED_FIELDS = ("fingerprint", "block0", "block1", "block2", "block3")
"""The fields that every lookup reads."""


def build_mapping(
    *,
    scheme: str | Scheme = DEFAULT_SCHEME,
    prefix: str = DEFAULT_PREFIX,
    text_field: str | Sequence[str] = (),
    max_distance: int | None = None,
    value: bool = True,
    passages: bool = False,
) -> dict[str, Any]:
    """
    Return the mapping of our fields, with the ``_meta`` that names their scheme.

    It maps nothing else: the user's own fields stay as they are mapped, or dynamic. Give it as ``mappings`` when
    an index is created. For an index that exists use ``put_mapping``, which keeps the ``_meta`` that is there.

    Args:
        scheme:
            Name of a scheme, or a scheme.
        prefix:
            Name of the object that holds the fields.
        text_field:
            Field or fields that the text comes from, recorded so that backfill and ingest find it.
        max_distance:
            The max_distance of lookups in this index that give none, in bits.
        value:
            Whether to map the signed 64-bit copy for script filters.
        passages:
            Whether documents carry the terms of their passages, for ``find_passages``.

    Returns:
        ``{"_meta": ..., "properties": ...}``.

    Raises:
        TypeError: If an argument has the wrong type.
        InvalidInputError: If the scheme is unknown, or another argument cannot be used.

    Examples:
        >>> build_mapping()["properties"]["simhash"]["properties"]["block0"]
        {'type': 'keyword'}
    """
    settings = build_settings(
        scheme=scheme,
        text_field=text_field,
        max_distance=max_distance,
        value=value,
        passages=passages,
    )
    return mapping_of(settings, prefix=prefix)


def mapping_of(
    settings: IndexSettings, *, prefix: str = DEFAULT_PREFIX, mapping: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return our fields and the record of *settings*, also as the body that adds them to an index with *mapping*."""
    _refuse_our_fields(settings.text_fields, prefix)
    optional = {"value": settings.value, "passages": settings.passages is not None}
    properties = {name: dict(type_) for name, type_ in FIELD_TYPES.items() if optional.get(name, True)}
    properties |= marker_properties(settings, prefix=prefix, mapping=mapping)
    return {
        "_meta": merge_meta((mapping or {}).get("_meta"), settings, prefix=prefix),
        # Not strict: a document of another version of this library must not be refused for a field more.
        "properties": {prefix: {"dynamic": "false", "properties": properties}},
    }


def _refuse_our_fields(text_fields: Sequence[str], prefix: str) -> None:
    Fields(prefix)
    for field in text_fields:
        if field.split(".")[0] == prefix:
            raise InvalidInputError(
                f"text_field {shorten(field)} is below {prefix!r}, where our fields are: name the field of the text, "
                "or choose another prefix"
            )


def check_users_mapping(mapping: Any, *, prefix: str, text_fields: Sequence[str] = ()) -> dict[str, Any]:
    """Return a copy of the caller's *mapping* if it leaves *prefix* free and takes the *text_fields*."""
    given = {str(name): part for name, part in check_object("mappings", mapping).items() if part is not None}
    for part in given.keys() & {"properties", "_meta", "_source", "runtime"}:
        check_object(f"mappings.{part}", given[part])
    for path, node in walk_fields(given):
        if check_object(f"mappings of {shorten(path)}", node).get("properties") is not None:
            check_object(f"mappings.properties of {shorten(path)}", node["properties"])
    for name in (*given.get("properties", {}), *given.get("runtime", {})):
        if name.split(".")[0] == prefix:
            raise InvalidInputError(
                f"the mappings given already have a field {shorten(name)}: choose another prefix than {prefix!r}"
            )
    for field in text_fields:
        if treatment_of(given, field) == "strict":
            raise InvalidInputError(
                f"the mappings given are strict and lack the text field {shorten(field)}, so every document would be "
                "refused: map the field too"
            )
    return given


def build_component_template(**options: Any) -> dict[str, Any]:
    """Return a component template that carries :func:`build_mapping` with the same *options*."""
    return {"template": {"mappings": build_mapping(**options)}, "version": 1}


def build_index_template(
    index_patterns: Sequence[str], *, component: str = "es-simhash", priority: int = 200
) -> dict[str, Any]:
    """
    Return an index template that gives new indices matching *index_patterns* the fields of a component template.

    Args:
        index_patterns:
            Patterns of index names.
        component:
            Name under which :func:`build_component_template` was stored.
        priority:
            Priority against other templates; the highest that matches is used, alone.
    """
    patterns = check_names("index_patterns", index_patterns, of="patterns")
    if not patterns:
        raise InvalidInputError("index_patterns is empty: give a pattern")
    check_name("component", component)
    return {
        "index_patterns": list(patterns),
        "composed_of": [component],
        "priority": check_count("priority", priority, 0),
    }


# Modes of an index whose _source is put together from the other fields where nothing else is said.
_SYNTHETIC_MODES = ("logsdb", "time_series")


def has_synthetic_source(mapping: Mapping[str, Any], index_settings: Mapping[str, Any]) -> bool:
    """Return whether ``_source`` is built from the other fields; it then shows a ``long`` as a number."""
    usual = "synthetic" if _flat(index_settings).get("mode") in _SYNTHETIC_MODES else "stored"
    mode = (with_source_mode(mapping, index_settings).get("_source") or {}).get("mode") or usual
    return str(mode).lower() == "synthetic"


def with_source_mode(mapping: Mapping[str, Any], index_settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return *mapping*, which names the mode of ``_source`` too where only *index_settings* do."""
    mode = _flat(index_settings).get("mapping.source.mode")
    return mapping if mode is None else {**mapping, "_source": {"mode": mode, **mapping.get("_source", {})}}


def _flat(tree: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Return index settings by their full names without ``index.``, however they are nested."""
    found: dict[str, Any] = {}
    for key, value in tree.items():
        name = f"{above}{key}"
        found |= _flat(value, f"{name}.") if isinstance(value, Mapping) else {name.removeprefix("index."): value}
    return found
