"""
Whether the fields of a pack are mapped as its panels need them, as data.

Reads mappings that somebody else has read. Nothing here sends a request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from es_simhash.dashboards.subject import Subject
from es_simhash.errors import shorten

FaultKind = Literal["no_index", "not_mapped", "no_date", "no_keyword", "no_doc_values"]

_DATES = {"date", "date_nanos"}
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
    A field that a panel cannot use.

    Attributes:
        kind:
            ``no_index``: no index has the name. ``not_mapped``: the field is not in the mapping. ``no_date``,
            ``no_keyword``: it has a type that the panel cannot use. ``no_doc_values``: its type fits, but the mapping
            turns off the doc values, by which a server counts.
        field:
            Name of the field, or of the index.
        indices:
            The concrete indices concerned.
        everywhere:
            Whether that is all of them. If not, the panel leaves these indices out.
        type:
            The type that the field has.
        instead:
            A field below it that can be used, if there is one.
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
    """
    Return what is wrong with the fields of *subject*.

    Args:
        subject:
            The index and the fields of a pack.
        mappings:
            The part below ``mappings`` of each concrete index.
    """
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
    Return what is wrong with the fields of a user, where ``None`` stands for no field.

    Args:
        time_field:
            Must be a date.
        source_field:
            Must be a field whose values can be counted.
        text_field:
            Must be mapped.
        mappings:
            The part below ``mappings`` of each concrete index.
    """
    found = list(_not_mapped(filter(None, (time_field, source_field, text_field)), mappings))
    if time_field:
        found += _wrong_type(time_field, "no_date", mappings)
    if source_field:
        found += _wrong_type(source_field, "no_keyword", mappings)
    return found


def _not_mapped(fields: Iterable[str], mappings: Mapping[str, Mapping[str, Any]]) -> Iterator[PackFault]:
    for field in fields:
        without = tuple(sorted(name for name, mapping in mappings.items() if node_of(mapping, field) is None))
        if without:
            yield PackFault("not_mapped", field, without, len(without) == len(mappings))


def _wrong_type(field: str, kind: FaultKind, mappings: Mapping[str, Mapping[str, Any]]) -> Iterator[PackFault]:
    wrong: dict[tuple[FaultKind, str, str | None], list[str]] = {}
    for name, mapping in sorted(mappings.items()):
        node = node_of(mapping, field)
        if node is None:
            continue
        # What an alias leads to is another field of the same mapping.
        if node.get("type") == "alias":
            node = node_of(mapping, str(node.get("path"))) or {}
        found = _fault_of(node, kind)
        if found is None:
            continue
        below = (sub for sub, each in (node.get("fields") or {}).items() if _fault_of(each, kind) is None)
        sub = next(below, None)
        wrong.setdefault((found, _type_of(node), sub and f"{field}.{sub}"), []).append(name)
    for (found, type_, instead), names in wrong.items():
        yield PackFault(found, field, tuple(names), len(names) == len(mappings), type_, instead)


def _fault_of(node: Mapping[str, Any], kind: FaultKind) -> FaultKind | None:
    """Return why the field of *node* cannot be counted; *kind* says what is wanted, and is the fault of its type."""
    type_ = _type_of(node)
    fits = type_ in _DATES if kind == "no_date" else type_ not in _NOT_COUNTED or node.get("fielddata") is True
    if not fits:
        return kind
    return "no_doc_values" if node.get("doc_values") is False else None


def _type_of(node: Mapping[str, Any]) -> str:
    return str(node.get("type", "object"))


def node_of(mapping: Mapping[str, Any], field: str) -> Mapping[str, Any] | None:
    """
    Return the part of *mapping* about *field*, also a multi-field or a runtime field; ``None`` if it is not mapped.
    """
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
