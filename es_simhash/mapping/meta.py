"""
The record of our fields in the ``_meta`` of a mapping: the scheme, the text fields and the default distance.

Reads, writes and checks that record. Pure: no request is made here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from es_simhash.arguments import check_fields
from es_simhash.errors import InvalidInputError, MappingError, SchemeError, shorten
from es_simhash.hashing import DEFAULT_SCHEME, Scheme, get_scheme
from es_simhash.mapping.fields import DEFAULT_PREFIX
from es_simhash.mapping.limits import check_max_distance

META_KEY = "es_simhash"

ValueType: TypeAlias = Literal["string", "number"]
PassageState: TypeAlias = Literal["complete", "partial"] | None

# What decides the terms of passages: another record is of another version of this library.
_PASSAGES = {"scheme": "passages-1", "guarantee": 100, "gram": 25, "hash": "polynomial-64", "bits": 36}


def check_text_fields(text_field: str | Sequence[str]) -> tuple[str, ...]:
    """
    Return the names in *text_field* as a tuple.

    Raises:
        TypeError: If it is neither a string nor a list of strings.
        InvalidInputError: If a name is empty or stands twice, or none is given.
    """
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
        value_type:
            How ``_source`` holds that copy. A ``"number"``, as earlier versions wrote it, may have been rounded by a
            program that reads numbers as doubles; a backfill makes a ``"string"`` of it.
        passages:
            ``"complete"`` if documents carry the terms of their passages; ``"partial"`` if those that were there
            before are still to be backfilled; ``None`` without passages.
    """

    scheme: Scheme
    text_fields: tuple[str, ...] = ()
    max_distance: int | None = None
    value: bool = True
    extra: Mapping[str, Any] | None = None
    value_type: ValueType = "string"
    passages: PassageState = None

    @property
    def allows_scripts(self) -> bool:
        """Whether scripts may read the signed copy: every document has it, and none has a rounded one."""
        return self.value and self.value_type == "string"

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON values that stand in ``_meta``."""
        passages = {} if self.passages is None else {"passages": {**_PASSAGES, "state": self.passages}}
        return {
            **(self.extra or {}),
            **passages,
            "scheme": self.scheme.to_dict(),
            "text_fields": list(self.text_fields),
            "max_distance": self.max_distance,
            "value": "string" if self.allows_scripts else self.value,
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
            value = rest.pop("value", True)
            value_type: ValueType = "number" if value is True else "string"
            passages = _read_passages(rest.pop("passages", None))
            return cls(scheme, text_fields, max_distance, bool(value), rest or None, value_type, passages)
        except SchemeError:
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise MappingError(
                f"the mapping's _meta.{META_KEY} entry {shorten(recorded)} cannot be read ({error}): "
                "write it again (put_mapping, or es-simhash create --existing)"
            ) from error


def _read_passages(recorded: Any) -> PassageState:
    if recorded is None:
        return None
    state: PassageState = recorded["state"]
    if state not in ("complete", "partial") or {**recorded, "state": state} != {**_PASSAGES, "state": state}:
        raise InvalidInputError(f"its passages are {shorten(recorded)}, which this version cannot use")
    return state


def build_settings(
    *,
    scheme: str | Scheme = DEFAULT_SCHEME,
    text_field: str | Sequence[str] = (),
    max_distance: int | None = None,
    value: bool = True,
    passages: bool = False,
) -> IndexSettings:
    """
    Return checked settings for a new index or prefix; an unversioned scheme name means its newest version.

    Raises:
        TypeError: If an argument has the wrong type.
        InvalidInputError: If the scheme is unknown, or max_distance or a field name cannot be used.
    """
    if max_distance is not None:
        check_max_distance(max_distance)
    names = check_fields("text_field", text_field, may_lack=True)
    chosen = get_scheme(scheme)
    if passages and chosen.name == "weighted":
        raise InvalidInputError(
            f"scheme {chosen} takes features, not text, so nothing would write the passages of documents: choose "
            "another scheme, or no passages"
        )
    if passages and chosen.preprocess:
        raise InvalidInputError(
            f"scheme {chosen} changes texts first ({', '.join(chosen.preprocess)}), and passages are places in the "
            "original text: choose a scheme without preprocess, or no passages"
        )
    return IndexSettings(chosen, names, max_distance, bool(value), passages="complete" if passages else None)


def unfilled(settings: IndexSettings) -> IndexSettings:
    """
    Return *settings* for an index that may have documents already: these have no passages until a backfill.
    """
    return settings if settings.passages is None else replace(settings, passages="partial")


def merge_meta(
    existing: Mapping[str, Any] | None, settings: IndexSettings | None, *, prefix: str = DEFAULT_PREFIX
) -> dict[str, Any]:
    """
    Return a copy of the ``_meta`` *existing* with the entry of *prefix* set, or removed if *settings* is ``None``.

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


def text_fields_of(settings: IndexSettings, given: str | Sequence[str] | None, *, index: str = "") -> tuple[str, ...]:
    """
    Return the text fields *given*, else those that the index records.

    Args:
        settings:
            What the index records.
        given:
            What the caller names.
        index:
            Name of the index, for the message.

    Raises:
        TypeError: If *given* is neither a string nor a list of strings.
        InvalidInputError: If neither names any, or they differ.
    """
    which = f"index {index!r}" if index else "the index"
    if names := check_fields("text_field", given, may_lack=True):
        if settings.text_fields and names != settings.text_fields:
            raise InvalidInputError(
                f"text_field {shorten(given)} differs from {list(settings.text_fields)}, which {which} records: "
                "fingerprints of different fields cannot be compared; leave text_field out, or use another prefix"
            )
        return names
    if not settings.text_fields:
        raise InvalidInputError(f"{which} does not record its text field: name the text field")
    return settings.text_fields


def no_text_field(so: str, instead: str = "", *, index: str = "") -> InvalidInputError:
    """
    Return the error for an index that does not record which field has the text.

    Args:
        so:
            What cannot be done therefore.
        instead:
            What the caller may do instead of recording the field; empty for nothing.
        index:
            Name of the index, where it is known.
    """
    which = f"index {index!r}" if index else "the index"
    advice = "record it (put_mapping, or es-simhash create --existing --text-field)"
    return InvalidInputError(
        f"{which} does not record which field has the text, so {so}: {advice}{', or ' if instead else ''}{instead}"
    )


def require_text_fields(text_fields: Mapping[str, Sequence[str]], so: str, instead: str = "") -> None:
    """
    Refuse indices of which one does not record which field has the text.

    Args:
        text_fields:
            What each concrete index records, by name; empty where nothing is known.
        so:
            What cannot be done therefore.
        instead:
            What the caller may do instead.

    Raises:
        InvalidInputError: If one of them records none, or there are none.
    """
    unknown = [name for name, fields in text_fields.items() if not fields]
    if unknown or not text_fields:
        raise no_text_field(so, instead, index=unknown[0] if unknown else "")
