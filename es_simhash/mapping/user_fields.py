"""How an index maps the user's fields, what a document has in them as a server reads it, and what cannot be used."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from math import floor
from typing import Any, Literal

from es_simhash.errors import InvalidInputError, shorten
from es_simhash.mapping.fields import read_values

_DATES = ("date", "date_nanos")


def walk_fields(
    mapping: Mapping[str, Any], above: str = "", *, toward: str | None = None
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """
    Yield the full name of each field of *mapping*, or of each on the way *toward* one, and its part of the mapping.
    An object comes before what is below it; its name may be written with dots. Multi-fields are left out.
    """
    for name, node in (mapping.get("properties") or {}).items():
        path = f"{above}{name}"
        if toward is None or f"{toward}.".startswith(f"{path}."):
            yield path, node
            yield from walk_fields(node, f"{path}.", toward=toward)


def is_off(node: Mapping[str, Any], parameter: str) -> bool:
    """Return whether a part of a mapping turns *parameter* off, such as ``enabled``: no field of it is then indexed."""
    return node.get(parameter) in (False, "false")


@dataclass(frozen=True, slots=True)
class Way:
    """
    What a mapping maps on the way to a field: *nodes*, from the mapping itself on, and the *rest* of the name that it
    does not map. *path*: the name, without that of a multi-field.
    """

    nodes: list[Mapping[str, Any]]
    path: str
    rest: str
    is_multi: bool = False

    @classmethod
    def to(cls, mapping: Mapping[str, Any], field: str) -> Way:
        passed = [("", mapping), *walk_fields(mapping, toward=field)]
        path, nodes = passed[-1][0], [node for _, node in passed]
        rest = field.removeprefix(path).removeprefix(".")
        multi_field = (nodes[-1].get("fields") or {}).get(rest)
        if multi_field is not None:
            return cls([*nodes, multi_field], path, "", is_multi=True)
        return cls(nodes, field, rest)

    @property
    def node(self) -> Mapping[str, Any]:
        """The part of the mapping about the field; empty if it is not mapped."""
        return {} if self.rest else self.nodes[-1]

    @property
    def above(self) -> list[Mapping[str, Any]]:
        """The mapping, and the objects that the field is in."""
        return self.nodes if self.rest else self.nodes[:-1]

    @property
    def dynamic(self) -> str:
        """What happens to a new field at the end."""
        return str(next((node["dynamic"] for node in reversed(self.nodes) if "dynamic" in node), True)).lower()


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
        return cls(way.path, way.node, is_copied)

    def exact_keywords(self, document: Mapping[str, Any]) -> Iterator[str]:
        """
        Yield the values of a keyword field in *document*; the server keeps none that is longer than ignore_above.
        Raise where it may index others: a rewritten source has other fractions.
        """
        self._check_copied()
        longest = self.node.get("ignore_above")
        for value in read_values(document, self.path):
            if isinstance(value, float):
                raise InvalidInputError(f"the number {value} of field {self.path!r}")
            if value is None or isinstance(value, Mapping):
                continue
            text = value if isinstance(value, str) else json.dumps(value, default=str)
            if longest is None or len(text.encode("utf-16-le", "surrogatepass")) // 2 <= int(longest):
                yield text

    def _check_copied(self) -> None:
        if self.is_copied:
            raise InvalidInputError(f"the field {self.path!r}, into which the index copies others (copy_to),")

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


FieldFaultKind = Literal["no_index", "not_mapped", "no_date", "no_keyword"]

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
    *kind*: ``not_mapped``: the field is not in the mapping. ``no_date``, ``no_keyword``: the panel cannot use its type,
    or the mapping turns off its doc values, by which a server counts. *everywhere*: whether *indices* are all of them;
    if not, a panel leaves out those where the field is not mapped. *instead*: a field below it, or below what an alias
    leads to, that can be used, if there is one.
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
        wanted = "date" if self.kind == "no_date" else "keyword"
        return f"the field {shorten(self.field)} has the type {self.type} in {where}, not {wanted}{advice}"


def find_field_faults(
    time_field: str | None,
    source_field: str | None,
    others: Iterable[str | None],
    mappings: Mapping[str, Mapping[str, Any]],
) -> list[FieldFault]:
    """
    Return what is wrong with a user's fields: a date, a field to count, *others* that must be mapped.
    *mappings* has the part below ``mappings`` of each concrete index. ``None`` stands for no field.
    """
    found: list[FieldFault] = []
    wanted: list[tuple[str | None, FieldFaultKind | None]] = [(time_field, "no_date"), (source_field, "no_keyword")]
    wanted += [(field, None) for field in others]
    for field, kind in wanted:
        if field is None:
            continue
        wrong: dict[FieldFault, list[str]] = {}
        for index, mapping in sorted(mappings.items()):
            if (fault := _fault_in(mapping, field, kind)) is not None:
                wrong.setdefault(fault, []).append(index)
        for fault, indices in wrong.items():
            found.append(replace(fault, indices=tuple(indices), everywhere=len(indices) == len(mappings)))
    return found


def countable_field(field: str, mapping: Mapping[str, Any]) -> str:
    """Return *field*, or the keyword below it where it is a text with one, as servers map strings by themselves."""
    fault = _fault_in(mapping, field, "no_keyword")
    return field if fault is None else fault.instead or field


def _fault_in(mapping: Mapping[str, Any], field: str, kind: FieldFaultKind | None) -> FieldFault | None:
    """Return what is wrong with *field* in an index, whatever the others have."""
    node, path = node_of(mapping, field), field
    if node is None:
        return FieldFault("not_mapped", field)
    # What an alias leads to is another field of the same mapping, and nothing is below the alias itself.
    if node.get("type") == "alias":
        path = str(node.get("path"))
        node = node_of(mapping, path) or {}
    if kind is None or _is_counted(node, kind):
        return None
    multi_fields = node.get("fields", {}).items()
    fitting = next((f"{path}.{name}" for name, below in multi_fields if _is_counted(below, kind)), None)
    has_none = " without doc values" if is_off(node, "doc_values") else ""
    return FieldFault(kind, field, type=f"{_type_of(node)}{has_none}", instead=fitting)


def _is_counted(node: Mapping[str, Any], kind: FieldFaultKind) -> bool:
    """Return whether a server can count the field of *node*; *kind*: the fault of another type than is wanted."""
    type_ = _type_of(node)
    fits = type_ in _DATES if kind == "no_date" else type_ not in _NOT_COUNTED or node.get("fielddata") is True
    return fits and not is_off(node, "doc_values")


def _type_of(node: Mapping[str, Any]) -> str:
    return str(node.get("type", "object"))


def node_of(mapping: Mapping[str, Any], field: str) -> Mapping[str, Any] | None:
    """Return the part of *mapping* about *field*, also a multi-field or a runtime field; ``None`` if not mapped."""
    runtime = mapping.get("runtime", {}).get(field)
    if runtime is not None:
        return dict(runtime)
    way = Way.to(mapping, field)
    return None if way.rest else way.nodes[-1]


def copy_targets(node: Mapping[str, Any]) -> set[str]:
    """Return the fields into which the server copies the field of *node*."""
    targets = node.get("copy_to") or ()
    return {targets} if isinstance(targets, str) else set(targets)


# Types of fields whose values may be objects with keys that the mapping does not name.
_OPEN_TYPES = ("object", "nested", "flattened", "flat_object")


def may_hold(mapping: Mapping[str, Any], field: str) -> bool:
    """
    Return whether a document of an index with *mapping* may have a value in *field* in its ``_source``.
    ``False`` is certain: a server adds each new field to a dynamic mapping, and refuses it if the mapping is strict. A
    multi-field takes its value from another field, and has none in ``_source``.
    """
    treatment = treatment_of(mapping, field)
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
    if way.is_multi or any(_type_of(node) != "object" or is_off(node, "enabled") for node in way.above[1:]):
        return False
    if way.rest:
        return not way.dynamic.startswith(("false", "runtime"))
    is_indexed = not is_off(way.node, "index")
    if _type_of(way.node) == "keyword":
        return "ignore_above" not in way.node and (is_indexed or not is_off(way.node, "doc_values"))
    return _type_of(way.node) in _TEXTS and is_indexed


_TEXTS = ("text", "match_only_text")
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
        type_ = "text" if way.rest or way.is_multi else _type_of(way.node)
        # An object that is not enabled may hold anything, such as a caller's features.
        if type_ in _OPEN_TYPES and way.node.get("enabled", True):
            known = _first_texts(way.node, f"{field}.") or f"{field}.NAME"
            raise _no_text(field, f"is an object in index {shorten(index)}: name a text inside it, {known}")
        if type_ in _NO_TEXTS:
            where = f"is mapped as {type_!r} in index {shorten(index)}"
            raise _no_text(field, f"{where}, and is no text: name another field{say_texts(mapping)}")


def check_held(index: str, mapping: Mapping[str, Any], fields: Iterable[str]) -> None:
    """Raise InvalidInputError if *mapping* fills one of *fields* from others, so that no document holds it."""
    for field in fields:
        if real := _real_fields(mapping, field):
            where = f"is filled by index {shorten(index)} from {', '.join(real)}, and no document holds it"
            raise _no_text(field, f"{where}: name {real[0] if len(real) == 1 else 'these'}")


def _no_text(field: str, why: str) -> InvalidInputError:
    return InvalidInputError(f"text_field {shorten(field)} {why}")


def _real_fields(mapping: Mapping[str, Any], field: str) -> list[str]:
    """Return the fields that *mapping* takes the values of *field* from: an alias, a multi-field, or by copy_to."""
    way = Way.to(mapping, field)
    if way.is_multi:
        return [way.path]
    if way.node.get("type") == "alias":
        return [str(way.node.get("path"))]
    return [name for name, node in walk_fields(mapping) if field in copy_targets(node)]


def _first_texts(mapping: Mapping[str, Any], above: str = "") -> str:
    """Return the full names of the first fields that *mapping* maps as text."""
    return ", ".join(islice((name for name, node in walk_fields(mapping, above) if node.get("type") in _TEXTS), 10))


def no_such_field(index: str, field: str, mapping: Mapping[str, Any]) -> InvalidInputError:
    return InvalidInputError(
        f"no document of index {shorten(index)} has a field {field!r}: check the name of the text field"
        f"{say_texts(mapping)}"
    )


def say_texts(mapping: Mapping[str, Any]) -> str:
    """Return the first fields that *mapping* maps as text, as the end of a message; empty if there are none."""
    known = _first_texts(mapping)
    return f" (mapped as text: {known})" if known else ""


_MAPPED = "mapped"


def treatment_of(mapping: Mapping[str, Any], field: str) -> str:
    """Return ``"mapped"`` where documents of an index with *mapping* may have *field*, else its ``dynamic`` there."""
    way = Way.to(mapping, field)
    *above, last = way.nodes
    if any(is_off(node, "enabled") for node in way.nodes[1:]):
        return _MAPPED
    if way.is_multi or not way.rest:
        return "true" if way.is_multi else _MAPPED
    if above and "properties" not in last:
        return _MAPPED if _type_of(last) in _OPEN_TYPES else "true"
    return _MAPPED if way.rest in last.get("runtime", {}) else way.dynamic


# Dates as a server reads them from documents. A date in a format that is not known here is never guessed.

# The formats of a field whose mapping names none.
_USUAL_FORMAT = "date_optional_time||epoch_millis"
_USUAL_NANOS_FORMAT = "date_optional_time_nanos||epoch_millis"
# The last millisecond of a date_nanos, which is a number of nanoseconds in 63 bits.
_LAST_NANOS_MILLISECONDS = (2**63 - 1) // 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Later moments have no four digits of the year.
_LAST = datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
# A server reads no digits of other scripts, so no \d here.
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_HOUR = "(?:[01][0-9]|2[0-3])"
_TIME = f"{_HOUR}:[0-9]{{2}}:[0-9]{{2}}"
_FRACTION = "[.,][0-9]{1,9}"
_ZONE = "(?:Z|[+-](?:18(?::?00)?|(?:0[0-9]|1[0-7])(?::?[0-5][0-9])?))"

# Formats by their names without "strict_", and what they read; the names with it accept shorter numbers too, such as
# 2026-1-2, which are not read here. A year before 1 fits and is not read: the next format would take it for a number.
# Hours with a zone and without minutes are only read by the strict one of the first two.
_PATTERNS = {
    "date_optional_time": (
        f"-?[0-9]{{4}}(?:-[0-9]{{2}}(?:-[0-9]{{2}}(?:T{_HOUR}(?::[0-9]{{2}}(?::[0-9]{{2}}(?:{_FRACTION})?)?"
        f"(?:{_ZONE})?)?)?)?)?"
    ),
    "date_optional_time_nanos": (
        f"-?[0-9]{{4}}(?:-[0-9]{{2}}(?:-[0-9]{{2}}(?:T{_TIME}(?:{_FRACTION})?(?:{_ZONE})?)?)?)?"
    ),
    "date": _DAY,
    "yyyy-MM-dd": _DAY,
    "yyyy-MM-dd HH:mm:ss": f"{_DAY} {_TIME}",
    "epoch_millis": r"-?[0-9]{1,18}(?:\.[0-9]{1,6})?",
    # What servers make of "-0" and "-1.5" is no moment, or another one.
    "epoch_second": r"[0-9]{1,15}(?:\.[0-9]{1,6})?|-[1-9][0-9]{0,14}",
}


def milliseconds_of(value: Any, date_format: str | None = None, *, of_nanos: bool = False) -> int | None:
    """
    Return the moment that a server reads from *value*, in whole milliseconds since 1970, or ``None``.
    ``None``: the format or value is not read here. A date without a zone is in UTC, as on the server. *date_format* is
    the ``format`` of the mapping, if it has one. *of_nanos*: the field is a ``date_nanos``.
    """
    if isinstance(value, datetime):
        value = value.isoformat()
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    # A server reads a number as the text that stands in the JSON, so 2026 is a year.
    text = value if isinstance(value, str) else repr(value)
    for written in (date_format or (_USUAL_NANOS_FORMAT if of_nanos else _USUAL_FORMAT)).split("||"):
        name = written.strip().removeprefix("strict_").replace("uuuu", "yyyy")
        if name not in _PATTERNS:
            return None  # a format before the one that fits may be the one that the server takes
        if re.fullmatch(_PATTERNS[name], text):
            found = _read_date(name, text)
            return None if found is None or (of_nanos and not 0 <= found <= _LAST_NANOS_MILLISECONDS) else found
    return None


def _read_date(name: str, text: str) -> int | None:
    if name.startswith("epoch_"):
        return floor(Decimal(text) * (1_000 if name == "epoch_second" else 1))
    try:
        moment = datetime.fromisoformat(text if len(text) >= 10 else f"{text}-01-01"[:10])
        return (moment.replace(tzinfo=moment.tzinfo or UTC) - _EPOCH) // _MILLISECOND
    except (ValueError, OverflowError):
        return None  # no day of a calendar, or one that Python does not have, such as in year 0


@lru_cache(maxsize=16)  # the documents of a batch have the same moment
def to_moment(milliseconds: int) -> str:
    """Return a number of milliseconds since 1970 as ``simhash.at`` holds moments: ISO 8601, UTC, milliseconds."""
    moment = _EPOCH + min(milliseconds, (_LAST - _EPOCH) // _MILLISECOND) * _MILLISECOND
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
