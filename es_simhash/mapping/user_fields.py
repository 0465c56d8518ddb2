"""How an index maps the user's own fields, what a document has in them, and whether they can be counted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from es_simhash.errors import InvalidInputError, shorten
from es_simhash.mapping.dates import milliseconds_of
from es_simhash.mapping.fields import read_values

_DATES = ("date", "date_nanos")


@dataclass(frozen=True, slots=True)
class Way:
    """
    What a mapping maps on the way to a field: *nodes*, from the mapping itself on, and the *rest* of the name that it
    does not map. *path*: the name, without that of a multi-field. *is_multi*: whether a multi-field was passed.
    """

    nodes: list[Mapping[str, Any]]
    path: str
    rest: str
    is_multi: bool = False

    @classmethod
    def to(cls, mapping: Mapping[str, Any], field: str) -> Way:
        """Return the way to *field*; an object may be written with dots in its name."""
        nodes, parts, path = [mapping], field.split("."), field
        at = multi_at = 0
        while at < len(parts):
            found = _next_node(nodes[-1], parts[at:])
            if found is None:
                break
            kind, length, node = found
            if kind == "fields" and not multi_at:
                path, multi_at = ".".join(parts[:at]), at
            nodes.append(node)
            at += length
        return cls(nodes, path, ".".join(parts[at:]), multi_at > 0)


def _next_node(node: Mapping[str, Any], parts: Sequence[str]) -> tuple[str, int, Mapping[str, Any]] | None:
    for length in range(1, len(parts) + 1):
        for kind in ("properties", "fields"):
            found: Mapping[str, Any] | None = (node.get(kind) or {}).get(".".join(parts[:length]))
            if found is not None:
                return kind, length, found
    return None


@dataclass(frozen=True, slots=True)
class MappedField:
    """
    How an index maps a field; *path* of a multi-field is that of the field that it belongs to.
    *is_copied*: whether the server copies other fields into it.
    """

    path: str
    node: Mapping[str, Any]
    is_copied: bool = False

    @classmethod
    def find(cls, mapping: Mapping[str, Any], field: str) -> MappedField:
        """Return how *mapping* maps *field*, a path that may end with the name of a multi-field."""
        way = Way.to(mapping, field)
        is_copied = any(way.path in copy_targets(node) for _, node in walk_fields(mapping))
        return cls(way.path, {} if way.rest else way.nodes[-1], is_copied)

    def keywords(self, document: Mapping[str, Any]) -> Iterator[str]:
        """Yield the values of a keyword field in *document*; the server keeps none that is longer than ignore_above."""
        longest = self.node.get("ignore_above")
        for value in read_values(document, self.path):
            if value is None or isinstance(value, Mapping):
                continue
            text = value if isinstance(value, str) else json.dumps(value, default=str)
            if longest is None or len(text.encode("utf-16-le", "surrogatepass")) // 2 <= int(longest):
                yield text

    def exact_keywords(self, document: Mapping[str, Any]) -> Iterator[str]:
        """Yield :meth:`keywords`; raise where the server may index others: a rewritten source has other fractions."""
        self._check_copied()
        for value in read_values(document, self.path):
            if isinstance(value, float):
                raise InvalidInputError(f"the number {value} of field {self.path!r}")
        yield from self.keywords(document)

    def _check_copied(self) -> None:
        if self.is_copied:
            raise InvalidInputError(f"the field {self.path!r}, into which the index copies others (copy_to),")

    def drops(self, document: Mapping[str, Any]) -> bool:
        """Return whether *document* has a value that is longer than ignore_above."""
        given = MappedField(self.path, {}).keywords(document)
        return sum(1 for _ in given) > sum(1 for _ in self.keywords(document))

    def moments(self, document: Mapping[str, Any]) -> Iterator[int]:
        """Yield the dates in *document*, in milliseconds since 1970; raise if one cannot be read."""
        self._check_copied()
        for value in read_values(document, self.path):
            given = self.node.get("null_value") if value is None else value
            if given is None:
                continue
            date_format = self.node.get("format")
            found = milliseconds_of(given, date_format, of_nanos=self.node.get("type") == "date_nanos")
            if found is None:
                raise InvalidInputError(
                    f"the date {shorten(given)} of field {self.path!r} (format {date_format or 'default'})"
                )
            yield found


FieldFaultKind = Literal["no_index", "not_mapped", "no_date", "no_keyword", "no_doc_values"]

# Types without doc values: a server refuses to count their values.
_NOT_COUNTED = {
    *("text", "match_only_text", "annotated_text", "search_as_you_type", "semantic_text", "completion"),
    *("object", "nested", "flat_object", "binary", "percolator"),
    *("geo_point", "geo_shape", "point", "shape", "rank_feature", "rank_features", "sparse_vector"),
    *("integer_range", "long_range", "float_range", "double_range", "date_range", "ip_range"),
}


@dataclass(frozen=True, slots=True)
class FieldFault:
    """
    A field that a panel cannot use, or an index that does not exist (then *field* is its name).
    *kind*: ``not_mapped``: the field is not in the mapping. ``no_date``, ``no_keyword``: the panel cannot use its type.
    ``no_doc_values``: its type fits, but the mapping turns off the doc values, by which a server counts. *everywhere*:
    whether *indices* are all of them; if not, a panel leaves out those where the field is not mapped. *instead*: a
    field below it, or below what an alias leads to, that can be used, if there is one.
    """

    kind: FieldFaultKind
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


def find_field_faults(
    time_field: str | None,
    source_field: str | None,
    text_field: str | None,
    mappings: Mapping[str, Mapping[str, Any]],
) -> list[FieldFault]:
    """
    Return what is wrong with a user's fields: a date, a field to count, a field that must be mapped.
    *mappings* has the part below ``mappings`` of each concrete index. ``None`` stands for no field.
    """
    found = list(not_mapped(filter(None, (time_field, source_field, text_field)), mappings))
    if time_field:
        found += _wrong_type(time_field, "no_date", mappings)
    if source_field:
        found += _wrong_type(source_field, "no_keyword", mappings)
    return found


def countable_field(field: str | None, mappings: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return *field*, or the keyword below it where it is a text with one, as servers map strings by themselves."""
    found = list(_wrong_type(field, "no_keyword", mappings)) if field else []
    return found[0].instead or field if len(found) == 1 and found[0].everywhere else field


def not_mapped(fields: Iterable[str], mappings: Mapping[str, Mapping[str, Any]]) -> Iterator[FieldFault]:
    for field in fields:
        without = tuple(sorted(name for name, mapping in mappings.items() if node_of(mapping, field) is None))
        if without:
            yield FieldFault("not_mapped", field, without, len(without) == len(mappings))


def _wrong_type(field: str, kind: FieldFaultKind, mappings: Mapping[str, Mapping[str, Any]]) -> Iterator[FieldFault]:
    wrong: dict[tuple[FieldFaultKind, str, str | None], list[str]] = {}
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
        yield FieldFault(found, field, tuple(names), len(names) == len(mappings), type_, instead)


def _fault_of(node: Mapping[str, Any], kind: FieldFaultKind) -> FieldFaultKind | None:
    """Return why the field of *node* cannot be counted; *kind* says what is wanted, and is the fault of its type."""
    type_ = _type_of(node)
    fits = type_ in _DATES if kind == "no_date" else type_ not in _NOT_COUNTED or node.get("fielddata") is True
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
    way = Way.to(mapping, field)
    return None if way.rest else way.nodes[-1]


def copy_targets(node: Mapping[str, Any]) -> set[str]:
    """Return the fields into which the server copies the field of *node*."""
    targets = node.get("copy_to") or ()
    return {targets} if isinstance(targets, str) else set(targets)


def walk_fields(mapping: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the full name of each field of *mapping*, and its part of it; an object comes before what is below it."""
    for name, node in (mapping.get("properties") or {}).items():
        yield f"{above}{name}", node
        yield from walk_fields(node, f"{above}{name}.")
