"""
What the ``_meta`` of a mapping records of the fields, and the marker by which a search insists on these settings.

A server refuses to sort by a field that is not in the mapping, so a search that sorts by the marker fails on every
shard of an index with other settings.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from es_simhash.arguments import check_count, check_fields
from es_simhash.errors import (
    InvalidInputError,
    MappingError,
    SchemeError,
    shorten,
)
from es_simhash.hashing import BLOCK_BITS, BLOCKS, DEFAULT_SCHEME, Scheme, get_scheme
from es_simhash.mapping.fields import DEFAULT_PREFIX

if TYPE_CHECKING:
    from es_simhash.mapping.rule import PairRule

META_KEY = "es_simhash"
DEFAULT_MAX_DISTANCE = 3

PassageState: TypeAlias = Literal["complete"] | None

# What decides the terms of passages: another record is of another version of this library.
_PASSAGES = {
    "scheme": "passages-2",
    "guarantee": 100,
    "gram": 25,
    "hash": "polynomial-64",
    "bits": 36,
    "state": "complete",
}


def check_max_distance(max_distance: int) -> int:
    """Return *max_distance* if it is a whole number of bits from 0 to 64."""
    return check_count("max_distance", max_distance, 0, BLOCKS * BLOCK_BITS)


def check_text_fields(text_field: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names in *text_field* as a tuple; at least one, none empty, none twice."""
    return check_fields("text_field", text_field)


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """
    The settings that the ``_meta`` of an index records for one prefix.

    Attributes:
        scheme:
            The scheme of its fingerprints.
        text_fields:
            The fields that the text came from, in order; empty where that was not recorded.
        max_distance:
            The max_distance of lookups that give none, in bits; ``None`` if not recorded.
        value:
            Whether documents carry the signed 64-bit copy for scripts.
        extra:
            Everything else recorded there, such as the grouping rule.
        is_assumed:
            Whether they are the caller's, of an index that records nothing: it need not map the copy.
        passages:
            ``"complete"`` if documents carry the terms of their passages; ``None`` if they do not.
    """

    scheme: Scheme
    text_fields: tuple[str, ...] = ()
    max_distance: int | None = None
    value: bool = True
    extra: Mapping[str, Any] = field(default_factory=dict)
    is_assumed: bool = False
    passages: PassageState = None

    @property
    def rule(self) -> PairRule:
        """What makes two documents near-duplicates: as recorded, else the default."""
        from es_simhash.mapping.rule import rule_of  # noqa: PLC0415 -- which stands above

        return rule_of(self)

    @property
    def is_grouped(self) -> bool:
        """Whether a grouping is recorded."""
        return GROUPING_KEY in self.extra

    @property
    def is_regrouping(self) -> bool:
        """Whether the grouping was changed, and documents may still have groups of the one before."""
        return REGROUPING_KEY in self.extra

    @property
    def allows_scripts(self) -> bool:
        """Whether scripts may read the signed copy: where it is not mapped, they fail."""
        return self.value and not self.is_assumed

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON values that stand in ``_meta``."""
        passages = {} if self.passages is None else {"passages": dict(_PASSAGES)}
        return {
            **self.extra,
            **passages,
            "scheme": self.scheme.to_dict(),
            "text_fields": list(self.text_fields),
            "max_distance": self.max_distance,
            "value": self.value,
        }

    @classmethod
    def from_dict(cls, recorded: Mapping[str, Any]) -> IndexSettings:
        """
        Return the settings that :meth:`to_dict` wrote; raise SchemeError if this version does not know the scheme,
        MappingError if the record is not one of ours.
        """
        try:
            max_distance = recorded.get("max_distance")
            return cls(
                Scheme.from_dict(recorded["scheme"]),
                check_fields("text_fields", recorded.get("text_fields") or None, may_lack=True),
                None if max_distance is None else check_max_distance(max_distance),
                bool(recorded.get("value", True)),
                {key: value for key, value in recorded.items() if key not in _NAMES},
                passages=_read_passages(recorded.get("passages")),
            )
        except SchemeError as error:
            raise SchemeError(unreadable("scheme", recorded["scheme"], error)) from error
        except (KeyError, TypeError, ValueError) as error:
            raise MappingError(unreadable("settings", recorded, error)) from error


_NAMES = ("scheme", "text_fields", "max_distance", "value", "passages")
_UNREADABLE = {
    "scheme": ("a scheme", "remove its fields with remove_fields(index), then fill others with setup(index)"),
    "settings": ("settings", "write them again with setup(index), or put_mapping(index)"),
    "grouping": (
        "a grouping",
        "take its groups out with remove_fields(index, groups_only=True), then group anew with reconcile(index)",
    ),
}
"""What a mapping may have recorded that this version cannot read, as another version wrote it, and what to run."""


def unreadable(what: Literal["scheme", "settings", "grouping"], recorded: object, error: object) -> str:
    said, advice = _UNREADABLE[what]
    return f"the mapping records {said} that this version cannot read, {shorten(recorded)} ({error}): {advice}"


def _read_passages(recorded: Any) -> PassageState:
    if recorded is None:
        return None
    if recorded != _PASSAGES:
        raise InvalidInputError(f"its passages are {shorten(recorded)}")
    return "complete"


def build_settings(
    *,
    scheme: str | Scheme = DEFAULT_SCHEME,
    text_field: str | Sequence[str] = (),
    max_distance: int | None = None,
    value: bool = True,
    passages: bool = False,
) -> IndexSettings:
    """Return checked settings for a new index or prefix; a scheme name alone means its newest version."""
    if max_distance is not None:
        check_max_distance(max_distance)
    names = check_fields("text_field", text_field, may_lack=True)
    chosen = get_scheme(scheme)
    if passages and chosen.preprocess:
        raise InvalidInputError(
            f"scheme {chosen} changes texts first ({', '.join(chosen.preprocess)}), and passages are places in the "
            "original text: choose a scheme without preprocess, or no passages"
        )
    return IndexSettings(chosen, names, max_distance, bool(value), passages="complete" if passages else None)


def merge_meta(
    existing: Mapping[str, Any] | None, settings: IndexSettings | None, *, prefix: str = DEFAULT_PREFIX
) -> dict[str, Any]:
    """
    Return a copy of ``_meta`` with the entry of *prefix* set, or removed if *settings* is ``None``.
    A PUT of a mapping replaces ``_meta`` whole on both products, so all other keys are carried over.
    """
    meta = dict(existing or {})
    held = meta.pop(META_KEY, None) or {}
    if not isinstance(held, Mapping):
        raise MappingError(
            f"the mapping's _meta.{META_KEY} is {shorten(held)}, not an object of ours: move it to another key"
        )
    entries = {name: entry for name, entry in held.items() if name != prefix}
    if settings is not None:
        entries[prefix] = settings.to_dict()
    return meta | {META_KEY: entries} if entries else meta


def _entries(mapping: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what *mapping* (the part below ``mappings``) records, by prefix."""
    entries = mapping.get("_meta", {}).get(META_KEY)
    return entries if isinstance(entries, Mapping) else {}


def read_settings(mapping: Mapping[str, Any], *, prefix: str = DEFAULT_PREFIX) -> IndexSettings | None:
    """Return what *mapping* (the part below ``mappings``) records of *prefix*; ``None`` if nothing."""
    recorded = _entries(mapping).get(prefix)
    if recorded is None:
        return None
    if not isinstance(recorded, Mapping):
        raise MappingError(
            f"the mapping's _meta.{META_KEY}.{prefix} is {shorten(recorded)}, not an object of ours: use another prefix"
        )
    return IndexSettings.from_dict(recorded)


def recorded_prefixes(mapping: Mapping[str, Any]) -> list[str]:
    """Return the prefixes that *mapping* records, sorted."""
    return sorted(map(str, _entries(mapping)))


def text_fields_of(settings: IndexSettings, given: str | Sequence[str] | None, *, index: str = "") -> tuple[str, ...]:
    """Return the text fields *given*, else those that the index records; raise if none, or if they differ."""
    which = f"index {index!r}" if index else "the index"
    if names := check_fields("text_field", given, may_lack=True):
        if settings.text_fields and names != settings.text_fields:
            raise InvalidInputError(
                f"text_field {shorten(', '.join(names))} differs from {', '.join(map(repr, settings.text_fields))}, "
                f"which {which} records: fingerprints of different fields cannot be compared; leave text_field out, "
                "use another prefix, or take the fingerprints out with remove_fields(index) first"
            )
        return names
    if not settings.text_fields:
        raise InvalidInputError(f"{which} does not record its text field: give text_field=FIELD")
    return settings.text_fields


def no_text_field(so: str, instead: str = "", *, index: str = "") -> InvalidInputError:
    """Return the error of an index that does not record its text field, *so* that something is impossible."""
    which = f"index {index!r}" if index else "the index"
    advice = "record it with setup(index, text_field=FIELD)" + (f", or {instead}" if instead else "")
    return InvalidInputError(f"{which} does not record which field has the text, so {so}: {advice}")


def require_text_fields(text_fields: Mapping[str, Sequence[str]], so: str) -> None:
    """Raise :func:`no_text_field` if *text_fields*, by index name, is empty or lacks those of an index."""
    unknown = [name for name, fields in text_fields.items() if not fields]
    if unknown or not text_fields:
        raise no_text_field(so, index=unknown[0] if unknown else "")


# Where an index records the rule by which its documents are grouped.
GROUPING_KEY = "grouping"
# Stands there from the change of that rule until a reconcile has looked at all documents. No part of the marker.
REGROUPING_KEY = "regrouping"

_MARKER = re.compile(r"settings_[0-9a-f]{16}")
# The marker stands for a field that all our mappings have, with few values.
_TARGET = "distance"
# What the marker of earlier settings stands for. It has no doc values, so that a search cannot sort by it.
# It is stored, since older servers that build _source from the other fields want that.
# Each new mapping has it, so that an index whose mapping is full can still retire its marker.
_RETIRED = "retired"
_RETIRED_TYPE = {"type": "keyword", "index": False, "doc_values": False, "store": True}


def marker_name(settings: IndexSettings) -> str:
    """Return the name, below the prefix, of the marker: a digest of all *settings* that lookups use."""
    recorded = settings.to_dict()
    used = {key: recorded[key] for key in ("scheme", "text_fields", "max_distance", "value")}
    if settings.passages is not None:
        used["passages"] = recorded["passages"]["scheme"]
    if (rule := recorded.get(GROUPING_KEY)) is not None:
        used[GROUPING_KEY] = rule
    written = json.dumps(used, sort_keys=True, ensure_ascii=True).encode()
    return f"settings_{hashlib.sha256(written).hexdigest()[:16]}"


def marker_properties(
    settings: IndexSettings | None, *, prefix: str, mapping: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """
    Return the properties, below the prefix, that mark an index with *mapping* as one with *settings*, or with none.
    Other markers of the mapping are retired, because no product can take a field out of a mapping.
    """
    held = _properties(mapping or {}, prefix)
    marker = None if settings is None else marker_name(settings)
    retired = {name: _alias(prefix, _RETIRED) for name in held if _MARKER.fullmatch(name) and name != marker}
    # What markers are retired to is as the mapping has it already: it cannot be changed.
    mine = {} if marker is None else {marker: _alias(prefix, _TARGET)}
    return {_RETIRED: dict(held.get(_RETIRED, _RETIRED_TYPE))} | retired | mine


def _alias(prefix: str, name: str) -> dict[str, str]:
    return {"type": "alias", "path": f"{prefix}.{name}"}


def markers_in_use(mapping: Mapping[str, Any], *, prefix: str) -> list[str]:
    """
    Return the names, below the prefix, of all markers of *mapping* by which a search can sort.
    There are several if an index was created with one marker and a template added the marker of other settings.
    """
    used = _alias(prefix, _TARGET)
    return [name for name, type_ in _properties(mapping, prefix).items() if _MARKER.fullmatch(name) and type_ == used]


def is_marked(mapping: Mapping[str, Any], settings: IndexSettings, *, prefix: str) -> bool:
    """Return whether the only marker in use in *mapping* is that of *settings*."""
    return markers_in_use(mapping, prefix=prefix) == [marker_name(settings)]


def marker_sort(marker: str) -> list[str]:
    """
    Return the order that makes a search insist on the full name *marker*: by score, as without it.
    If a field comes first, even ``_doc``, Elasticsearch first asks all shards whether they have hits.
    """
    return ["_score", marker]


def _properties(mapping: Mapping[str, Any], prefix: str) -> Mapping[str, Any]:
    ours = mapping.get("properties", {}).get(prefix)
    properties = ours.get("properties") if isinstance(ours, Mapping) else None
    return properties if isinstance(properties, Mapping) else {}
