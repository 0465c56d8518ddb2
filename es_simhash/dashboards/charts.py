"""
What a pack is about, and how values are put into its template, whose charts are Vega 5 specifications.

In the template ``"${name}"`` stands for a value of any type, and within a longer string for its text. What is ``None``
is left out. An object may have four keys: ``$if`` names a value, and without it the object is left out. ``$use`` names
one of its ``parts`` that stands for the object, whose other keys are values of that part. ``$json`` stands for a text,
the JSON of what it has, with ``$indent`` for people. ``$why`` is a comment.

Expressions keep to what the checker of Dashboards allows (``tests/dashboards/test_dashboards.py``): no ``window``, no
``document``, no computed property. Text takes the styles ``guide-label`` and ``guide-title``, which both products
colour for light and dark themes. A bar alone does not fill its chart.

``%dashboard_context-..._clause%`` stands for the filters and the query bar of the dashboard, ``%timefilter%`` for
the chosen range of time, ``%autointerval%`` for an interval that fits it. Both products know all of them.
"""

from __future__ import annotations

import json
import re
import uuid
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from es_simhash.arguments import check_field, check_name
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.mapping.fields import DEFAULT_PREFIX, Fields
from es_simhash.mapping.user_fields import FieldFault, find_field_faults

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
        """What the placeholders of the template stand for in every object."""
        ours = {name: getattr(self.fields, name) for name in ("fingerprint", "group", "duplicate_of", "distance")}
        given = ("index", "time_field", "source_field", "text_field")
        text_field = self.text_field
        charts = {
            "shown_groups": SHOWN_GROUPS,
            "shown_sources": SHOWN_SOURCES,
            "listed_groups": LISTED_GROUPS,
            "precision": _PRECISION,
            "and_this_time": " and this range of time" if self.time_field else "",
            "text_field_quoted": text_field and _literal(text_field),
            "text_in_tooltip": ", 'text': truncate(datum.words, 1000)" if text_field else "",
            # Where the texts of the largest groups begin, or the bars end.
            "start": "width * 0.34" if text_field else "width - 60",
            "label_of_size": _by_size([f"'{label}'" for label in _LABELS]),
            "order_of_size": _by_size(_STARTS),
            "sizes": [
                {"order": order, "label": label, "groups": 0} for order, label in zip(_STARTS, _LABELS, strict=True)
            ],
            # What not every chart has.
            **dict.fromkeys(("signals", "scales", "axes", "legends")),
        }
        return ours | {name: getattr(self, name) for name in given} | charts

    def id_of(self, kind: str) -> str:
        """Return the id of the saved object *kind*; another index or prefix gives another: packs stand side by side."""
        return str(uuid.uuid5(_NAMESPACE, f"{self.index}\n{self.prefix}\n{kind}"))


def find_pack_faults(subject: Subject, mappings: Mapping[str, Mapping[str, Any]]) -> list[FieldFault]:
    """Return what is wrong with the fields of *subject*, given the ``mappings`` of each concrete index."""
    if not mappings:
        return [FieldFault("no_index", subject.index)]
    ours = subject.fields
    others = (subject.text_field, ours.fingerprint, ours.group, ours.duplicate_of, ours.distance)
    return find_field_faults(subject.time_field, subject.source_field, others, mappings)


_PLACEHOLDER = re.compile(r"\$\{(\w+)\}")


@cache
def read() -> Any:
    """Return the template as it is; do not change what this returns."""
    return json.loads(read_text("template.json"))


def read_text(name: str) -> str:
    return files("es_simhash.dashboards").joinpath(name).read_text(encoding="utf-8")


def fill(part: Any, values: Mapping[str, Any]) -> Any:
    """Return a copy of *part*, a part of a file, with *values*."""
    if isinstance(part, str):
        # Values are not read for placeholders: they may be names of any kind.
        whole = _PLACEHOLDER.fullmatch(part)
        return values[whole[1]] if whole else _PLACEHOLDER.sub(lambda found: str(values[found[1]]), part)
    if isinstance(part, list):
        return [filled_item for filled_item in (fill(item, values) for item in part) if filled_item is not None]
    if not isinstance(part, dict):
        return part
    if "$if" in part and values[part["$if"]] is None:
        return None
    if "$json" in part:
        separators = (",", ":") if part.get("$indent") is None else None
        return json.dumps(
            fill(part["$json"], values), ensure_ascii=False, indent=part.get("$indent"), separators=separators
        )
    filled = {
        fill(name, values): fill(inner, values) for name, inner in part.items() if name not in {"$if", "$use", "$why"}
    }
    if "$use" in part:
        return fill(read()["parts"][part["$use"]], {**values, **filled})
    return {name: inner for name, inner in filled.items() if inner is not None}


SHOWN_GROUPS, SHOWN_SOURCES = 10, 12
LISTED_GROUPS = 1_000
"""Groups whose sizes are read one by one; those below are counted together, whatever the number of groups."""

# The largest value that servers accept: up to that many groups the count is close to exact.
_PRECISION = 40_000

# Sizes from which a column begins, and its label.
_STARTS = (2, 3, 4, 5, 10, 20, 50, 100, 1_000)
_LABELS = ("2", "3", "4", "5–9", "10–19", "20–49", "50–99", "100–999", "1,000+")


def size_rows(sizes: Mapping[int, int]) -> list[dict[str, Any]]:
    """
    Return the rows of a chart of *sizes*: for each number of documents, how many groups have it.

    Examples:
        >>> [(row["label"], row["groups"]) for row in size_rows({2: 9, 6: 1, 8: 1})]
        [('2', 9), ('3', 0), ('4', 0), ('5–9', 2)]
    """
    counted: Counter[int] = Counter()
    for size, groups in sizes.items():
        counted[bisect_right(_STARTS, size) - 1] += groups
    if not counted:
        return []
    # A size between others that no group has is a column too, without height.
    columns = range(min(counted), max(counted) + 1)
    return [{"order": _STARTS[n], "label": _LABELS[n], "groups": counted[n]} for n in columns]


def _by_size(results: Sequence[Any]) -> str:
    """Return the expression that chooses the one of *results* that belongs to ``datum.size``."""
    choices = (f"datum.size < {end} ? {result} : " for end, result in zip(_STARTS[1:], results, strict=False))
    return "".join(choices) + str(results[-1])


def _literal(words: str) -> str:
    """Return *words* as a string of an expression, or as a part of a path to a column."""
    return "'" + words.replace("\\", "\\\\").replace("'", "\\'") + "'"
