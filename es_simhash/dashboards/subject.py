"""What a pack is about: checked names of index and fields, and whether these are mapped as its panels need them."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from es_simhash.arguments import check_field, check_name
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.mapping.fields import DEFAULT_PREFIX, Fields

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
        blocks = {f"block{number}": field for number, field in enumerate(self.fields.blocks)}
        given = ("index", "time_field", "source_field", "text_field")
        return own | blocks | {name: getattr(self, name) for name in given}

    def id_of(self, kind: str) -> str:
        """Return the id of the saved object *kind*; another index or prefix gives another: packs stand side by side."""
        return str(uuid.uuid5(_NAMESPACE, f"{self.index}\n{self.prefix}\n{kind}"))


FaultKind = Literal["no_index", "not_mapped", "no_date", "no_keyword", "no_doc_values"]

# Types without doc values: a server refuses to count their values.
_NOT_COUNTED = {
    *("text", "match_only_text", "annotated_text", "search_as_you_type", "semantic_text", "completion"),
    *("object", "nested", "flat_object", "binary", "percolator"),
    *("geo_point", "geo_shape", "point", "shape", "rank_feature", "rank_features", "sparse_vector"),
    *("integer_range", "long_range", "float_range", "double_range", "date_range", "ip_range"),
}


@dataclass(frozen=True, slots=True)
class PackFault:
    """
    A field that a panel cannot use, or an index that does not exist (then *field* is its name).
    *kind*: ``not_mapped``: the field is not in the mapping. ``no_date``, ``no_keyword``: the panel cannot use its type.
    ``no_doc_values``: its type fits, but the mapping turns off the doc values, by which a server counts. *everywhere*:
    whether *indices* are all of them; if not, a panel leaves out those where the field is not mapped. *instead*: a
    field below it, or below what an alias leads to, that can be used, if there is one.
    """

    kind: FaultKind
    field: str
    indices: tuple[str, ...] = ()
    everywhere: bool = True
    type: str | None = None
    instead: str | None = None

    @property
    def is_fatal(self) -> bool:
        """Whether a panel shows an error, or nothing at all."""
        return self.everywhere or self.kind != "not_mapped"

    def __str__(self) -> str:
        where = "any index" if self.everywhere else ", ".join(self.indices[:3])
        if self.kind == "no_index":
            return f"no index has the name {self.field}"
        if self.kind == "not_mapped":
            return f"the field {shorten(self.field)} is not mapped in {where}"
        advice = f": use {shorten(self.instead)}" if self.instead else ""
        where = ", ".join(self.indices[:3])
        if self.kind == "no_doc_values":
            return f"the field {shorten(self.field)} has no doc values in {where}, so it cannot be counted{advice}"
        wanted = "date" if self.kind == "no_date" else "keyword"
        return f"the field {shorten(self.field)} has the type {self.type} in {where}, not {wanted}{advice}"


def find_pack_faults(subject: Subject, mappings: Mapping[str, Mapping[str, Any]]) -> list[PackFault]:
    """Return what is wrong with the fields of *subject*, given the ``mappings`` of each concrete index."""
    if not mappings:
        return [PackFault("no_index", subject.index)]
    own = subject.fields
    given = (subject.time_field, subject.source_field, subject.text_field)
    found = find_field_faults(*given, mappings)
    return found + list(_not_mapped((own.fingerprint, own.group, own.duplicate_of, own.distance), mappings))


def find_field_faults(
    time_field: str | None,
    source_field: str | None,
    text_field: str | None,
    mappings: Mapping[str, Mapping[str, Any]],
) -> list[PackFault]:
    """
    Return what is wrong with a user's fields: a date, a field to count, a field that must be mapped.
    *mappings* has the part below ``mappings`` of each concrete index. ``None`` stands for no field.
    """
    found = list(_not_mapped(filter(None, (time_field, source_field, text_field)), mappings))
    if time_field:
        found += _wrong_type(time_field, "no_date", mappings)
    if source_field:
        found += _wrong_type(source_field, "no_keyword", mappings)
    return found


def countable_field(field: str | None, mappings: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return *field*, or the keyword below it where it is a text with one, as servers map strings by themselves."""
    found = list(_wrong_type(field, "no_keyword", mappings)) if field else []
    return found[0].instead or field if len(found) == 1 and found[0].everywhere else field


def _not_mapped(fields: Iterable[str], mappings: Mapping[str, Mapping[str, Any]]) -> Iterator[PackFault]:
    for field in fields:
        without = tuple(sorted(name for name, mapping in mappings.items() if node_of(mapping, field) is None))
        if without:
            yield PackFault("not_mapped", field, without, len(without) == len(mappings))


def _wrong_type(field: str, kind: FaultKind, mappings: Mapping[str, Mapping[str, Any]]) -> Iterator[PackFault]:
    wrong: dict[tuple[FaultKind, str, str | None], list[str]] = {}
    for name, mapping in sorted(mappings.items()):
        node, path = node_of(mapping, field), field
        if node is None:
            continue
        # What an alias leads to is another field of the same mapping, and nothing is below the alias itself.
        if node.get("type") == "alias":
            path = str(node.get("path"))
            node = node_of(mapping, path) or {}
        found = _fault_of(node, kind)
        if found is None:
            continue
        below = (sub for sub, each in (node.get("fields") or {}).items() if _fault_of(each, kind) is None)
        sub = next(below, None)
        wrong.setdefault((found, _type_of(node), sub and f"{path}.{sub}"), []).append(name)
    for (found, type_, instead), names in wrong.items():
        yield PackFault(found, field, tuple(names), len(names) == len(mappings), type_, instead)


def _fault_of(node: Mapping[str, Any], kind: FaultKind) -> FaultKind | None:
    """Return why the field of *node* cannot be counted; *kind* says what is wanted, and is the fault of its type."""
    type_ = _type_of(node)
    fits = (
        type_ in {"date", "date_nanos"}
        if kind == "no_date"
        else type_ not in _NOT_COUNTED or node.get("fielddata") is True
    )
    if not fits:
        return kind
    return "no_doc_values" if node.get("doc_values") is False else None


def _type_of(node: Mapping[str, Any]) -> str:
    return str(node.get("type", "object"))


def node_of(mapping: Mapping[str, Any], field: str) -> Mapping[str, Any] | None:
    """Return the part of *mapping* about *field*, also a multi-field or a runtime field; ``None`` if not mapped."""
    runtime = (mapping.get("runtime") or {}).get(field)
    if runtime is not None:
        return dict(runtime)
    path = field.split(".")
    for length in range(1, len(path) + 1):
        for part in ("properties", "fields"):
            node: Mapping[str, Any] | None = (mapping.get(part) or {}).get(".".join(path[:length]))
            if node is not None:
                return node if length == len(path) else node_of(node, ".".join(path[length:]))
    return None
