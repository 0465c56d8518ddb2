"""
The marker: a field alias whose name tells which settings an index records, so that a search can insist on them.

A server refuses to sort by a field that the mapping does not have. A search that sorts by the marker therefore fails
on every shard of an index with other settings. Pure: no request is made here.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from es_simhash.mapping.meta import IndexSettings

_MARKER = re.compile(r"settings_[0-9a-f]{16}")
# The marker stands for a field that all our mappings have, with few values.
_TARGET = "distance"
# From its doc values a server can derive a source.
_PASSAGES = "passages"
# What the marker of earlier settings stands for. It has no doc values, so that a search cannot sort by it.
# It is stored, since older servers that build _source from the other fields want that.
# Each new mapping has it, so that an index whose mapping is full can still retire its marker.
_RETIRED = "retired"
_RETIRED_TYPE = {"type": "keyword", "index": False, "doc_values": False, "store": True}


def marker_name(settings: IndexSettings) -> str:
    """
    Return the name, below the prefix, of the marker of *settings*: a digest of all of them that lookups use.

    Examples:
        >>> from es_simhash.mapping.meta import build_settings
        >>> marker_name(build_settings()) == marker_name(build_settings(scheme="words"))
        False
    """
    recorded = settings.to_dict()
    used = {key: recorded[key] for key in ("scheme", "text_fields", "max_distance", "value")}
    if settings.passages is not None:
        used["passages"] = recorded["passages"]["scheme"]
    written = json.dumps(used, sort_keys=True, ensure_ascii=True).encode()
    return f"settings_{hashlib.sha256(written).hexdigest()[:16]}"


def marker_properties(
    settings: IndexSettings, *, prefix: str, mapping: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """
    Return the properties, below the prefix, that mark an index with *mapping* as one with *settings*.

    Other markers that the mapping has are retired: no product can take a field out of a mapping.
    """
    marker = {marker_name(settings): {"type": "alias", "path": f"{prefix}.{_TARGET}"}}
    return _retired(mapping or {}, prefix) | retired_markers(mapping or {}, prefix=prefix, keep=marker) | marker


def retired_markers(
    mapping: Mapping[str, Any], *, prefix: str, keep: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """
    Return the properties, below the prefix, that retire all markers of *mapping* but those to *keep*; empty if none.
    """
    retired = {
        name: {"type": "alias", "path": f"{prefix}.{_RETIRED}"} for name in _markers(mapping, prefix, keep or {})
    }
    return _retired(mapping, prefix) | retired if retired else {}


def _retired(mapping: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the property that retired markers stand for, as *mapping* has it already: it cannot be changed."""
    return {_RETIRED: dict(_properties(mapping, prefix).get(_RETIRED, _RETIRED_TYPE))}


def markers_in_use(mapping: Mapping[str, Any], *, prefix: str) -> list[str]:
    """
    Return the names, below the prefix, of all markers of *mapping* by which a search can sort.

    There are several if an index was created with a mapping of ours and a template gave it other settings.
    """
    properties = _properties(mapping, prefix)
    return [name for name in _markers(mapping, prefix, {}) if properties[name].get("path") == f"{prefix}.{_TARGET}"]


def is_marked(mapping: Mapping[str, Any], settings: IndexSettings, *, prefix: str) -> bool:
    """
    Return whether the only marker in use in *mapping* is that of *settings*.
    """
    name, wanted = marker_name(settings), {"type": "alias", "path": f"{prefix}.{_TARGET}"}
    return markers_in_use(mapping, prefix=prefix) == [name] and dict(_properties(mapping, prefix)[name]) == wanted


def marker_sort(marker: str) -> list[str]:
    """
    Return the order of a search that insists on the full name *marker*: by score, which is the order without it.

    Elasticsearch asks all shards beforehand whether they hold something if a field comes first, even ``_doc``.
    """
    return ["_score", marker]


def is_marker_refused(text: str, marker: str, *, prefix: str) -> bool:
    """
    Return whether a server's *text* says that it could not sort by the full name *marker*: missing there, or retired.
    """
    return marker in text or f"{prefix}.{_RETIRED}" in text


def is_derived_refusal(text: str, *, prefix: str) -> bool:
    """
    Return whether a server's *text* says that an index with derived source cannot have one of our fields.
    """
    return f"not supported for [{prefix}.settings_" in text or f"derive source for [{prefix}." in text


def for_derived_source(mapping: Mapping[str, Any], *, prefix: str) -> dict[str, Any]:
    """
    Return *mapping* as an index with derived source takes it: without markers, which are aliases, and with doc values.
    """
    properties = mapping.get("properties") or {}
    kept = {name: dict(type_) for name, type_ in _properties(mapping, prefix).items() if not _MARKER.fullmatch(name)}
    kept.get(_PASSAGES, {}).pop("doc_values", None)
    ours = {**(properties.get(prefix) or {}), "properties": kept}
    return {**mapping, "properties": {**properties, prefix: ours}}


def _markers(mapping: Mapping[str, Any], prefix: str, leave: Mapping[str, Any]) -> list[str]:
    return [
        name
        for name, type_ in _properties(mapping, prefix).items()
        if _MARKER.fullmatch(name) and name not in leave and isinstance(type_, Mapping)
    ]


def _properties(mapping: Mapping[str, Any], prefix: str) -> Mapping[str, Any]:
    ours = (mapping.get("properties") or {}).get(prefix)
    properties = ours.get("properties") if isinstance(ours, Mapping) else None
    return properties if isinstance(properties, Mapping) else {}
