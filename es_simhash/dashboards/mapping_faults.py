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

__all__ = ["PackFault", "find_field_faults", "find_pack_faults", "node_of"]

FaultKind = Literal["no_index", "not_mapped", "no_date", "no_keyword"]

_DATES = {"date", "date_nanos"}
# Types without doc values: a server refuses to count their values.
_NOT_COUNTED = {"text", "match_only_text", "annotated_text", "object", "nested", "binary", "search_as_you_type"}


@dataclass(frozen=True, slots=True)
class PackFault:
    """
    A field that a panel cannot use.

    Attributes:
        kind:
            ``no_index``: no index has the name. ``not_mapped``: the field is not in the mapping. ``no_date``,
            ``no_keyword``: it has a type that the panel cannot use.
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
        wanted = "a date" if self.kind == "no_date" else "a keyword"
        advice = f": use {shorten(self.instead)}" if self.instead else ""
        return (
            f"the field {shorten(self.field)} is a {self.type} in {', '.join(self.indices[:3])}, not {wanted}{advice}"
        )


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
    wrong: dict[tuple[str, str | None], list[str]] = {}
    for name, mapping in sorted(mappings.items()):
        node = node_of(mapping, field)
        if node is None:
            continue
        type_ = str(node.get("type", "object"))
        # What an alias leads to is another field of the same mapping.
        if type_ == "alias":
            node = node_of(mapping, str(node.get("path"))) or {}
            type_ = str(node.get("type", "object"))
        if _is_usable(type_, node, kind):
            continue
        below = (sub for sub, each in (node.get("fields") or {}).items() if _is_usable(each.get("type"), each, kind))
        sub = next(below, None)
        wrong.setdefault((type_, sub and f"{field}.{sub}"), []).append(name)
    for (type_, instead), names in wrong.items():
        yield PackFault(kind, field, tuple(names), len(names) == len(mappings), type_, instead)


def _is_usable(type_: str, node: Mapping[str, Any], kind: FaultKind) -> bool:
    if kind == "no_date":
        return type_ in _DATES
    return type_ not in _NOT_COUNTED or node.get("fielddata") is True


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
