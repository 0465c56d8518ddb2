"""Results as tables: rows, shares in percent, and data frames of pandas and polars, imported on first use."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from es_simhash.arguments import check_items
from es_simhash.errors import MissingDependencyError, WrongTypeError, shorten
from es_simhash.tables.notebook import Part, Sheet, render

# The numbers that both libraries keep exactly.
_LARGEST = 2**63


_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def for_spreadsheets(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cells of *row*; a text that a spreadsheet would compute has an apostrophe before it."""
    return {
        name: f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell for name, cell in row.items()
    }


class Tabular:
    """
    A result that has rows: dicts, data frames, and a table in a notebook.
    A subclass has ``to_dicts``; ``_title``, ``_sheets`` and ``_notes`` say what a notebook shows, and a terminal.
    """

    __slots__ = ()

    _COLUMNS: ClassVar[tuple[str, ...]] = ()

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the rows as flat dicts; fingerprints are 16 hex digits."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Return the rows as a ``pandas.DataFrame``."""
        return to_frame("pandas", self.to_dicts(), self._COLUMNS)

    def to_polars(self) -> Any:
        """Return the rows as a ``polars.DataFrame``."""
        return to_frame("polars", self.to_dicts(), self._COLUMNS)

    def _title(self) -> str:
        return type(self).__name__

    def _sheets(self) -> Sequence[Part]:
        return [Sheet("", self.to_dicts())]

    def _notes(self) -> Mapping[str, Iterable[str]]:
        """Return what else to know, by kind; the command line has messages in place of these."""
        return {}

    def _repr_html_(self) -> str:
        notes = [{"note": kind, "what": each} for kind, lines in self._notes().items() for each in lines]
        return str(render(self._title(), [*self._sheets(), *([Sheet("Notes", notes)] if notes else [])]))


def sheets_of(result: Tabular) -> tuple[str, Sequence[Part]]:
    """Return the title of a *result*, and what it shows."""
    return result._title(), result._sheets()  # noqa: SLF001


@dataclass(frozen=True, slots=True)
class Table(Tabular):
    """
    Rows of several results, such as those of all groups.

    Attributes:
        rows:
            The rows.
        items:
            How many results they are of.
    """

    rows: tuple[Mapping[str, Any], ...]
    items: int

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the rows as flat dicts; fingerprints are 16 hex digits."""
        return [dict(row) for row in self.rows]

    def _title(self) -> str:
        rows = f"{len(self.rows):,} rows"
        return rows if self.items == len(self.rows) else f"{self.items:,} results, {rows}"

    def _sheets(self) -> Sequence[Part]:
        return [Sheet("", self.rows, {"distance": 64, "similarity": 1})]


def table(results: Iterable[Any]) -> Table:
    """
    Return one table of *results*: groups, pairs, reports of ingest or removal, near-duplicates, or answers to lookups.

    A group has one row for each member. Rows of answers to lookups have a column ``lookup``, the place of the lookup;
    a lookup that failed has a row with its ``error``.

    Args:
        results:
            An iterable, such as ``simhash.groups("news")``; it is read to its end. Read an async iterable yourself:
            ``table([each async for each in simhash.groups("news")])``.

    Raises:
        TypeError: If a result has no rows.

    Examples:
        >>> table([{"a": 1}, {"a": 2, "b": "x"}]).to_dicts()
        [{'a': 1}, {'a': 2, 'b': 'x'}]
    """
    rows: list[Mapping[str, Any]] = []
    number = -1
    for number, result in enumerate(check_items("results", results, of="results")):
        rows += _rows_of(result, number)
    return Table(tuple(rows), number + 1)


def _rows_of(result: Any, number: int) -> list[Mapping[str, Any]]:
    if isinstance(result, Exception):
        return [{"lookup": number, "error": str(result)}]
    if isinstance(result, Tabular):
        rows = result.to_dicts()
        # An answer to a lookup is a sequence of near-duplicates, which do not say what was looked up.
        return [{"lookup": number, **row} for row in rows] if isinstance(result, Sequence) else [*rows]
    if isinstance(result, Mapping):
        return [result]
    if callable(to_row := getattr(result, "to_row", None) or getattr(result, "to_dict", None)):
        return [to_row()]
    raise WrongTypeError(f"{shorten(result)} has no rows: give groups, pairs, reports or near-duplicates")


def to_columns(rows: Sequence[Mapping[str, Any]], names: Sequence[str] = ()) -> dict[str, list[Any]]:
    """
    Return *rows* as columns of one type each; *names* are columns that are there also without rows.
    A column of several types, of lists or of objects becomes text, and so does one with whole numbers beyond 64 bits: a
    data frame would round them or drop them. Whole numbers among fractions become fractions.
    """
    every = dict.fromkeys([*names, *(name for row in rows for name in row)])
    return {name: _of_one_type([row.get(name) for row in rows]) for name in every}


def _of_one_type(values: list[Any]) -> list[Any]:
    types = {type(each) for each in values if each is not None}
    if types == {int, float}:
        return [None if each is None else float(each) for each in values]
    is_plain = len(types) <= 1 and types <= {str, bool, int, float}
    if is_plain and not (types == {int} and any(each is not None and abs(each) >= _LARGEST for each in values)):
        return values
    # As JSON, but for strings.
    return [
        each if each is None or isinstance(each, str) else json.dumps(each, ensure_ascii=False, default=str)
        for each in values
    ]


def to_frame(library: str, rows: Sequence[Mapping[str, Any]], names: Sequence[str] = ()) -> Any:
    """Return *rows* as a ``DataFrame`` of *library*, ``"pandas"`` or ``"polars"``."""
    try:
        module = importlib.import_module(library)
    except ImportError as error:
        raise MissingDependencyError(f"{library} is not installed: pip install {library}") from error
    return module.DataFrame(to_columns(rows, names))
