"""What a pack is about: checked names of index and fields, and whether these are mapped as its panels need them."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from es_simhash.arguments import check_field, check_name
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.mapping.fields import DEFAULT_PREFIX, Fields
from es_simhash.mapping.user_fields import FieldFault, find_field_faults, not_mapped

# Ids must not change from version to version: an import then replaces the objects of an earlier pack.
_NAMESPACE = uuid.UUID("1b0c6f1e-1f0e-5c8a-9d59-7f0d2b0a6c11")

# What no name of an index, alias or pattern may have. A comma joins several names.
_FORBIDDEN = re.compile(r"[\\/?\"<>|#\s\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Subject:
    """
    The index and the fields that a pack is about.
    *index*: an index, alias or data stream, a pattern, or several of them separated by commas. *source_field*: keyword
    field that says where a document comes from. *prefix*: the object in a document that has the fields of es_simhash.
    """

    index: str
    time_field: str | None = None
    source_field: str | None = None
    text_field: str | None = None
    prefix: str = DEFAULT_PREFIX

    def __post_init__(self) -> None:
        check_name("index", self.index)
        if not all(self.index.split(",")) or _FORBIDDEN.search(self.index):
            raise InvalidInputError(
                f"index {shorten(self.index)} cannot be a name: give an index, alias, data stream or pattern, "
                "or several separated by commas without blanks"
            )
        for role in ("time_field", "source_field", "text_field"):
            name = getattr(self, role)
            if name is not None and ("*" in check_field(role, name) or not name.isprintable()):
                raise InvalidInputError(
                    f"{role} {shorten(name)} cannot be the name of one field: give the full name of one field in the "
                    "mapping"
                )
        Fields(self.prefix)

    @property
    def fields(self) -> Fields:
        return Fields(self.prefix)

    @property
    def values(self) -> dict[str, Any]:
        """The names, for the placeholders of the JSON files."""
        own = {name: getattr(self.fields, name) for name in ("fingerprint", "group", "duplicate_of", "distance")}
        given = ("index", "time_field", "source_field", "text_field")
        return own | {name: getattr(self, name) for name in given}

    def id_of(self, kind: str) -> str:
        """Return the id of the saved object *kind*; another index or prefix gives another: packs stand side by side."""
        return str(uuid.uuid5(_NAMESPACE, f"{self.index}\n{self.prefix}\n{kind}"))


def find_pack_faults(subject: Subject, mappings: Mapping[str, Mapping[str, Any]]) -> list[FieldFault]:
    """Return what is wrong with the fields of *subject*, given the ``mappings`` of each concrete index."""
    if not mappings:
        return [FieldFault("no_index", subject.index)]
    own = subject.fields
    given = (subject.time_field, subject.source_field, subject.text_field)
    found = find_field_faults(*given, mappings)
    return found + list(not_mapped((own.fingerprint, own.group, own.duplicate_of, own.distance), mappings))
