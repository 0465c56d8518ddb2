"""
Mappings and templates that hold our fields, and the ``_meta`` contract that says which scheme filled them.

Builders return plain dicts; readers compare a live mapping with what is needed. Pure: no request is made here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_simhash.errors import InvalidInputError, MappingError, SchemeError, shorten
from es_simhash.hashing import DEFAULT_SCHEME, Scheme, get_scheme
from es_simhash.index.fields import DEFAULT_PREFIX, Fields
from es_simhash.index.plan import check_max_distance

__all__ = [
    "META_KEY",
    "IndexSettings",
    "build_component_template",
    "build_index_template",
    "build_mapping",
    "check_text_fields",
    "find_faults",
    "merge_meta",
    "read_settings",
    "text_fields_of",
]

META_KEY = "es_simhash"

# Block terms serve the lookup and, through doc values, dashboards; group fields serve collapse and aggregations.
_TYPES: dict[str, dict[str, Any]] = {
    "fingerprint": {"type": "keyword"},
    "block0": {"type": "keyword"},
    "block1": {"type": "keyword"},
    "block2": {"type": "keyword"},
    "block3": {"type": "keyword"},
    "value": {"type": "long", "index": False},
    "group": {"type": "keyword"},
    "duplicate_of": {"type": "keyword"},
    "distance": {"type": "byte"},
    "at": {"type": "date"},
}
_NEEDED = ("fingerprint", "block0", "block1", "block2", "block3")


def check_text_fields(text_field: str | Sequence[str]) -> tuple[str, ...]:
    """
    Return the names in *text_field* as a tuple.

    Raises:
        TypeError: If it is neither a string nor a list of strings.
        InvalidInputError: If a name is empty or stands twice, or none is given.
    """
    names = (text_field,) if isinstance(text_field, str) else tuple(text_field)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"text_field must be a field name or a list of them, not {shorten(text_field)}")
    if not names or not all(names) or len(set(names)) < len(names):
        raise InvalidInputError(f"text_field {shorten(text_field)} must name at least one field, and each once")
    return names


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """
    What an index's ``_meta`` says of one prefix.

    Attributes:
        scheme:
            The scheme of its fingerprints.
        text_fields:
            The fields that the text came from, in order; empty where that was not recorded.
        max_distance:
            The largest distance that lookups use unless told otherwise, in bits; ``None`` where not recorded.
        value:
            Whether documents carry the signed 64-bit copy for scripts.
        extra:
            Everything else recorded there, such as the grouping rule.
    """

    scheme: Scheme
    text_fields: tuple[str, ...] = ()
    max_distance: int | None = None
    value: bool = True
    extra: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON values that stand in ``_meta``."""
        return {
            **(self.extra or {}),
            "scheme": self.scheme.to_dict(),
            "text_fields": list(self.text_fields),
            "max_distance": self.max_distance,
            "value": self.value,
        }

    @classmethod
    def from_dict(cls, recorded: Mapping[str, Any]) -> IndexSettings:
        """
        Return the settings that :meth:`to_dict` wrote.

        Raises:
            SchemeError: If the scheme is not one that this version of the library knows.
            MappingError: If the record is not one of ours.
        """
        try:
            rest = dict(recorded)
            scheme = Scheme.from_dict(rest.pop("scheme"))
            recorded_fields = rest.pop("text_fields", None)
            text_fields = check_text_fields(recorded_fields) if recorded_fields else ()
            max_distance = rest.pop("max_distance", None)
            if max_distance is not None:
                check_max_distance(max_distance)
            return cls(scheme, text_fields, max_distance, bool(rest.pop("value", True)), rest or None)
        except SchemeError:
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise MappingError(
                f"the mapping's _meta.{META_KEY} entry {shorten(recorded)} cannot be read ({error}): "
                "write it again with put_mapping"
            ) from error


def build_settings(
    *,
    scheme: str | Scheme = DEFAULT_SCHEME,
    text_field: str | Sequence[str] = (),
    max_distance: int | None = None,
    value: bool = True,
) -> IndexSettings:
    """
    Return checked settings for a new index or prefix; an unversioned scheme name means its newest version.

    Raises:
        TypeError: If an argument has the wrong type.
        InvalidInputError: If the scheme is unknown, or max_distance or a field name cannot be used.
    """
    if max_distance is not None:
        check_max_distance(max_distance)
    names = check_text_fields(text_field) if text_field else ()
    return IndexSettings(get_scheme(scheme), names, max_distance, bool(value))


def build_mapping(
    *,
    scheme: str | Scheme = DEFAULT_SCHEME,
    prefix: str = DEFAULT_PREFIX,
    text_field: str | Sequence[str] = (),
    max_distance: int | None = None,
    value: bool = True,
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
            Largest distance that lookups in this index use unless told otherwise, in bits.
        value:
            Whether to map the signed 64-bit copy for script filters.

    Returns:
        ``{"_meta": ..., "properties": ...}``.

    Raises:
        TypeError: If an argument has the wrong type.
        InvalidInputError: If the scheme is unknown, or another argument cannot be used.

    Examples:
        >>> build_mapping()["properties"]["simhash"]["properties"]["block0"]
        {'type': 'keyword'}
    """
    settings = build_settings(scheme=scheme, text_field=text_field, max_distance=max_distance, value=value)
    return mapping_of(settings, prefix=prefix)


def mapping_of(settings: IndexSettings, *, prefix: str = DEFAULT_PREFIX) -> dict[str, Any]:
    """
    Return the mapping, with its ``_meta``, for *settings*.
    """
    Fields(prefix)
    properties = {name: dict(type_) for name, type_ in _TYPES.items() if settings.value or name != "value"}
    return {
        "_meta": {META_KEY: {prefix: settings.to_dict()}},
        # Not strict: a document of another version of this library must not be refused for a field more.
        "properties": {prefix: {"dynamic": "false", "properties": properties}},
    }


def build_component_template(**options: Any) -> dict[str, Any]:
    """
    Return a component template that carries :func:`build_mapping` with the same *options*.
    """
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
    if isinstance(index_patterns, str):
        raise TypeError(f"index_patterns must be a list of patterns, not one string {shorten(index_patterns)}")
    if not index_patterns:
        raise InvalidInputError("index_patterns is empty: give a pattern")
    return {"index_patterns": list(index_patterns), "composed_of": [component], "priority": priority}


def merge_meta(
    existing: Mapping[str, Any] | None, settings: IndexSettings | None, *, prefix: str = DEFAULT_PREFIX
) -> dict[str, Any]:
    """
    Return a copy of the ``_meta`` *existing* with the entry of *prefix* set, or taken out where *settings* is ``None``.

    A PUT of a mapping replaces ``_meta`` whole on both products, so the keys of others are carried over.

    Raises:
        MappingError: If something else stands where our entries belong.
    """
    meta = dict(existing or {})
    held = meta.pop(META_KEY, None) or {}
    if not isinstance(held, Mapping):
        raise MappingError(
            f"the mapping's _meta.{META_KEY} is {shorten(held)}, not an object of ours: move it to another key"
        )
    entries = dict(held)
    entries.pop(prefix, None)
    if settings is not None:
        entries[prefix] = settings.to_dict()
    return meta | {META_KEY: entries} if entries else meta


def read_settings(mapping: Mapping[str, Any], *, prefix: str = DEFAULT_PREFIX) -> IndexSettings | None:
    """
    Return what *mapping* (the part below ``mappings`` of one index) records of *prefix*; ``None`` if nothing.

    Raises:
        SchemeError: If the scheme recorded is not known to this version of the library.
        MappingError: If the record cannot be read.
    """
    entries = (mapping.get("_meta") or {}).get(META_KEY) or {}
    recorded = entries.get(prefix) if isinstance(entries, Mapping) else None
    if recorded is None:
        return None
    if not isinstance(recorded, Mapping):
        raise MappingError(f"the mapping's _meta.{META_KEY}.{prefix} is {shorten(recorded)}, not an object of ours")
    return IndexSettings.from_dict(recorded)


def find_faults(mapping: Mapping[str, Any], *, prefix: str = DEFAULT_PREFIX) -> list[str]:
    """
    Return what keeps lookups from being right in an index with *mapping*, one line each; empty if nothing.
    """
    held = (mapping.get("properties") or {}).get(prefix)
    if held is None:
        return [f"field {prefix!r} is not mapped"]
    properties = held.get("properties")
    if not isinstance(properties, Mapping):
        return [f"field {prefix!r} is mapped as {held.get('type', 'something else')!r}, not as an object of ours"]
    if held.get("type", "object") != "object" or held.get("enabled") is False:
        # The blocks of a nested object, or of one that is not parsed, match no query on the document.
        how = "not enabled" if held.get("enabled") is False else f"mapped as {held['type']!r}"
        return [f"field {prefix!r} is {how}; it must be a plain object"]
    faults = []
    for name in _TYPES:
        found = properties.get(name)
        if found is None:
            if name in _NEEDED:
                faults.append(f"field {prefix}.{name} is not mapped; it must be {_TYPES[name]['type']!r}")
        elif fault := _find_fault(name, found):
            faults.append(f"field {prefix}.{name} {fault}")
    return faults


def _find_fault(name: str, found: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the field *name* of ours mapped as *found*."""
    wanted = _TYPES[name]["type"]
    if found.get("type") != wanted:
        return f"is mapped as {found.get('type', 'object')!r}; it must be {wanted!r}"
    if name.startswith("block") and found.get("index") is False:
        return "is not indexed"
    if name == "fingerprint" and found.get("doc_values") is False:
        return "has no doc values"
    if found.get("normalizer") is not None:
        return "has a normalizer; its values must stay as they are"
    # Of the fields that every lookup needs the length is known; values beyond the bound are dropped silently.
    longest = found.get("ignore_above")
    if name in _NEEDED and longest is not None and int(longest) < (16 if name == "fingerprint" else 4):
        return f"ignores values above {longest} characters"
    return None


def text_fields_of(settings: IndexSettings, given: str | Sequence[str] | None) -> str | Sequence[str]:
    """
    Return the text fields *given*, else those that the index records.

    Raises:
        InvalidInputError: If neither names any, or they differ.
    """
    if given:
        names = (given,) if isinstance(given, str) else tuple(given)
        if settings.text_fields and names != settings.text_fields:
            raise InvalidInputError(
                f"text_field {shorten(given)} differs from the index's {list(settings.text_fields)}: fingerprints of "
                "different fields cannot be compared; leave text_field out, or use another prefix"
            )
        return given
    if not settings.text_fields:
        raise InvalidInputError("the index does not record which field holds the text: pass text_field=")
    return settings.text_fields
