"""The mapping of the fingerprint fields, and templates for new indices: plain dicts, no requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from es_simhash.arguments import check_count, check_name, check_names, check_object
from es_simhash.errors import OTHER_PREFIX, Argument, InvalidInputError, Said, shorten
from es_simhash.hashing import DEFAULT_SCHEME, Scheme
from es_simhash.mapping.fields import DEFAULT_PREFIX, Fields
from es_simhash.mapping.meta import (
    META_KEY,
    IndexSettings,
    build_settings,
    for_derived_source,
    marker_properties,
    merge_meta,
)
from es_simhash.mapping.user_fields import Way, copy_targets, walk_fields

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
    derived_source: bool = False,
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
        derived_source:
            Whether it is for indices of OpenSearch with derived source. They take no field alias, so the marker of the
            settings is left out; they would show the signed copy as a number, which JavaScript rounds, so that is left
            out too; and passages have doc values.

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
        value=value and not derived_source,
        passages=passages,
    )
    mapping = mapping_of(settings, prefix=prefix)
    return for_derived_source(mapping, prefix=prefix) if derived_source else mapping


def mapping_of(settings: IndexSettings, *, prefix: str = DEFAULT_PREFIX) -> dict[str, Any]:
    _refuse_own_fields(settings.text_fields, prefix)
    optional = {"value": settings.value, "passages": settings.passages is not None}
    properties = {name: dict(type_) for name, type_ in FIELD_TYPES.items() if optional.get(name, True)}
    properties |= marker_properties(settings, prefix=prefix)
    return {
        "_meta": {META_KEY: {prefix: settings.to_dict()}},
        # Not strict: a document of another version of this library must not be refused for a field more.
        "properties": {prefix: {"dynamic": "false", "properties": properties}},
    }


def _refuse_own_fields(text_fields: Sequence[str], prefix: str) -> None:
    Fields(prefix)
    for field in text_fields:
        if field.split(".")[0] == prefix:
            raise InvalidInputError(
                Said(
                    Argument("text_field"),
                    f" {shorten(field)} is below {prefix!r}, where our fields are: name the field of the text, or "
                    "choose ",
                    OTHER_PREFIX,
                )
            )


def check_own_mapping(mapping: Any, *, prefix: str, text_fields: Sequence[str] = ()) -> dict[str, Any]:
    """Return a copy of the caller's *mapping* if it leaves *prefix* free and takes the *text_fields*."""
    _check_fields(mapping, "mappings")
    for part in ("_meta", "_source", "runtime"):
        if mapping.get(part) is not None:
            check_object(f"mappings.{part}", mapping[part])
    for name in (*(mapping.get("properties") or {}), *(mapping.get("runtime") or {})):
        if name.split(".")[0] == prefix:
            raise InvalidInputError(
                f"the mappings given already have a field {shorten(name)}: choose another prefix than {prefix!r}"
            )
    for field in text_fields:
        if _treatment(mapping, field) == "strict":
            raise InvalidInputError(
                f"the mappings given are strict and lack the text field {shorten(field)}, so every document would be "
                "refused: map the field too"
            )
    return dict(mapping)


def _check_fields(mapping: Any, name: str) -> None:
    if (properties := check_object(name, mapping).get("properties")) is None:
        return
    for field, type_ in check_object(f"{name}.properties", properties).items():
        _check_fields(type_, f"{name}.properties.{shorten(field)}")


def mapping_update(mapping: Mapping[str, Any], settings: IndexSettings, *, prefix: str) -> dict[str, Any]:
    """Return the body that adds our fields and the record of *settings* to an index that has *mapping*."""
    ours = mapping_of(settings, prefix=prefix)
    ours["properties"][prefix]["properties"] |= marker_properties(settings, prefix=prefix, mapping=mapping)
    return ours | {"_meta": merge_meta(mapping.get("_meta"), settings, prefix=prefix)}


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
    return str(mode).lower() == "synthetic" or has_derived_source(index_settings)


def has_derived_source(index_settings: Mapping[str, Any]) -> bool:
    """Return whether ``_source`` is OpenSearch's derived source, which takes no field alias."""
    return str(_flat(index_settings).get("derived_source.enabled")).lower() == "true"


def with_source_mode(mapping: Mapping[str, Any], index_settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return *mapping*, which names the mode of ``_source`` too where only *index_settings* do."""
    mode = _flat(index_settings).get("mapping.source.mode")
    return mapping if mode is None else {**mapping, "_source": {"mode": mode, **(mapping.get("_source") or {})}}


def _flat(tree: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Return index settings by their full names without ``index.``, however they are nested."""
    found: dict[str, Any] = {}
    for key, value in tree.items():
        name = f"{above}{key}"
        found |= _flat(value, f"{name}.") if isinstance(value, Mapping) else {name.removeprefix("index."): value}
    return found


# Types of fields whose values may be objects with keys that the mapping does not name.
_OPEN_TYPES = ("object", "nested", "flattened", "flat_object")


def may_hold(mapping: Mapping[str, Any], field: str) -> bool:
    """
    Return whether a document of an index with *mapping* may have a value in *field* in its ``_source``.
    ``False`` is certain: a server adds each new field to a dynamic mapping, and refuses it if the mapping is strict. A
    multi-field takes its value from another field, and has none in ``_source``.
    """
    treatment = _treatment(mapping, field)
    return treatment == _MAPPED or treatment.startswith(("false", "runtime"))


def exist_clauses(fields: Sequence[str], mappings: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """
    Return the clause for documents with a value in one of *fields*; none where *mappings* show that such a query cannot
    see each of them: below ``nested``, not indexed, not mapped, or above ``ignore_above``.
    """
    if not fields or not all(_is_seen(mapping, field) for mapping in mappings for field in fields):
        return []
    return [{"bool": {"should": [{"exists": {"field": field}} for field in fields]}}]


def _is_seen(mapping: Mapping[str, Any], field: str) -> bool:
    way = Way.to(mapping, field)
    _, *below = way.nodes
    objects = below if way.rest else below[:-1]
    if way.is_multi or not all(_is_object(node) for node in objects):
        return False
    if way.rest:
        return not _dynamic(way).startswith(("false", "runtime"))
    node = below[-1]
    type_, is_indexed = node.get("type", "object"), node.get("index") not in (False, "false")
    is_kept = is_indexed or node.get("doc_values") not in (False, "false")
    is_short = type_ == "keyword" and "ignore_above" not in node and is_kept
    return is_short or (type_ in ("text", "match_only_text") and is_indexed)


def _is_object(node: Mapping[str, Any]) -> bool:
    return node.get("type", "object") == "object" and node.get("enabled") not in (False, "false")


def _dynamic(way: Way) -> str:
    """Return what happens to a new field at the end of a *way*."""
    return str(next((node["dynamic"] for node in reversed(way.nodes) if "dynamic" in node), True)).lower()


# Types of values that are no text, whatever they are written as.
_NO_TEXTS = {
    *("date", "date_nanos", "boolean", "ip", "long", "integer", "short", "byte", "double", "float", "half_float"),
    *("scaled_float", "unsigned_long", "binary", "geo_point", "geo_shape", "dense_vector", "knn_vector"),
}


def check_texts(index: str, mapping: Mapping[str, Any], fields: Sequence[str]) -> None:
    """Raise InvalidInputError if one of *fields* is an object, no text, or filled from others, not by documents."""
    check_held(index, mapping, fields)
    for field in fields:
        way = Way.to(mapping, field)
        node = {"type": "text"} if way.rest or way.is_multi else way.nodes[-1]
        type_ = node.get("type", "object")
        # An object that is not enabled may hold anything, such as a caller's features.
        if type_ in _OPEN_TYPES and node.get("enabled", True):
            known = ", ".join(islice(mapped_texts(node, f"{field}."), 10)) or f"{field}.NAME"
            raise InvalidInputError(
                Said(
                    Argument("text_field"),
                    f" {shorten(field)} is an object in index {shorten(index)}: name a text inside it, {known}",
                )
            )
        if type_ in _NO_TEXTS:
            raise InvalidInputError(
                Said(
                    Argument("text_field"),
                    f" {shorten(field)} is mapped as {type_!r} in index {shorten(index)}, and is no text: name another "
                    f"field{say_texts(mapping)}",
                )
            )


def check_held(index: str, mapping: Mapping[str, Any], fields: Iterable[str]) -> None:
    """Raise InvalidInputError if *mapping* fills one of *fields* from others, so that no document holds it."""
    for field in fields:
        if real := real_fields(mapping, field):
            raise InvalidInputError(
                Said(
                    Argument("text_field"),
                    f" {shorten(field)} is filled by index {shorten(index)} from {', '.join(real)}, and no document "
                    f"holds it: name {real[0] if len(real) == 1 else 'these'}",
                )
            )


def real_fields(mapping: Mapping[str, Any], field: str) -> list[str]:
    """Return the fields that *mapping* takes the values of *field* from: an alias, a multi-field, or by copy_to."""
    way = Way.to(mapping, field)
    if way.is_multi and not way.rest:
        return [way.path]
    if not way.rest and way.nodes[-1].get("type") == "alias":
        return [str(way.nodes[-1].get("path"))]
    return [name for name, each in walk_fields(mapping) if field in copy_targets(each)]


def mapped_texts(mapping: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Yield the full name of each field that *mapping* maps as text."""
    return (name for name, node in walk_fields(mapping, above) if node.get("type") in ("text", "match_only_text"))


def no_such_field(index: str, field: str, mapping: Mapping[str, Any]) -> InvalidInputError:
    return InvalidInputError(
        f"no document of index {shorten(index)} has a field {field!r}: check the name of the text field"
        f"{say_texts(mapping)}"
    )


def say_texts(mapping: Mapping[str, Any]) -> str:
    """Return the first fields that *mapping* maps as text, as the end of a message; empty if there are none."""
    known = ", ".join(islice(mapped_texts(mapping), 10))
    return f" (mapped as text: {known})" if known else ""


_MAPPED = "mapped"


def _treatment(mapping: Mapping[str, Any], field: str) -> str:
    """Return ``"mapped"`` where documents of an index with *mapping* may have *field*, else its ``dynamic`` there."""
    way = Way.to(mapping, field)
    *above, last = way.nodes
    if any(node.get("enabled") in (False, "false") for node in way.nodes[1:]):
        return _MAPPED
    if way.is_multi or not way.rest:
        return "true" if way.is_multi else _MAPPED
    if above and "properties" not in last:
        return _MAPPED if last.get("type", "object") in _OPEN_TYPES else "true"
    return _MAPPED if way.rest in (last.get("runtime") or {}) else _dynamic(way)
