"""Rows as data frames of pandas and polars, which are imported on first use."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from es_simhash.errors import MissingDependencyError

# The numbers that both libraries keep exactly.
_LARGEST = 2**63


def column_names(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of all columns, in the order in which the rows have them first."""
    return list(dict.fromkeys(name for row in rows for name in row))


def is_number(value: Any) -> bool:
    """Return whether a cell with *value* belongs to a column of numbers; an empty cell does."""
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def to_text(value: Any) -> str:
    """Return *value* as text: nothing for ``None``, lists and objects as JSON."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, (dict, list, tuple)):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def to_columns(rows: Sequence[Mapping[str, Any]], names: Sequence[str] = ()) -> dict[str, list[Any]]:
    """
    Return *rows* as columns of one type each; *names* are columns that are there also without rows.

    A column of several types, of lists or of objects becomes text, and so does one with whole numbers beyond 64
    bits: a data frame would round them or drop them. Whole numbers among fractions become fractions.
    """
    every = list(dict.fromkeys([*names, *column_names(rows)]))
    return {name: _of_one_type([row.get(name) for row in rows]) for name in every}


def _of_one_type(values: list[Any]) -> list[Any]:
    types = {type(each) for each in values if each is not None}
    if types == {int, float}:
        return [None if each is None else float(each) for each in values]
    is_plain = len(types) <= 1 and types <= {str, bool, int, float}
    if is_plain and not (types == {int} and any(each is not None and abs(each) >= _LARGEST for each in values)):
        return values
    return [None if each is None else _json_text(each) for each in values]


def _json_text(value: Any) -> str:
    """Return a string as it is, and anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def to_frame(library: str, rows: Sequence[Mapping[str, Any]], names: Sequence[str] = ()) -> Any:
    """Return *rows* as a ``DataFrame`` of *library*, ``"pandas"`` or ``"polars"``."""
    try:
        module = importlib.import_module(library)
    except ImportError as error:
        raise MissingDependencyError(f"{library} is not installed: pip install {library}") from error
    return module.DataFrame(to_columns(rows, names))
