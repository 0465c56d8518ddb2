"""Results as tables: rows, shares in percent, and data frames of pandas and polars, imported on first use."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar, overload

from es_simhash.errors import MissingDependencyError
from es_simhash.tables.notebook import Part, Sheet, render

_T_co = TypeVar("_T_co", covariant=True)

# The numbers that both libraries keep exactly.
_LARGEST = 2**63


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
        notes = [{"note": kind, "what": line} for kind, lines in self._notes().items() for line in lines]
        return render(self._title(), [*self._sheets(), *([Sheet("Notes", notes)] if notes else [])])


class Items(Sequence[_T_co], Tabular):
    """A result that is the sequence of its *items*."""

    __slots__ = ()

    items: tuple[_T_co, ...]

    @overload
    def __getitem__(self, position: int) -> _T_co: ...
    @overload
    def __getitem__(self, position: slice) -> tuple[_T_co, ...]: ...
    def __getitem__(self, position: int | slice) -> _T_co | tuple[_T_co, ...]:
        return self.items[position]

    def __len__(self) -> int:
        return len(self.items)


def sheets_of(result: Tabular) -> tuple[str, Sequence[Part]]:
    """Return the title of a *result*, and what it shows."""
    return result._title(), result._sheets()  # noqa: SLF001


def to_columns(rows: Sequence[Mapping[str, Any]], names: Sequence[str] = ()) -> dict[str, list[Any]]:
    """
    Return *rows* as columns of one type each; *names* are columns that are there also without rows. What a data frame
    would round, drop or mix becomes text; whole numbers among fractions become fractions.
    """
    every = dict.fromkeys([*names, *(name for row in rows for name in row)])
    return {name: _of_one_type([row.get(name) for row in rows]) for name in every}


def _of_one_type(values: list[Any]) -> list[Any]:
    types = {type(value) for value in values if value is not None}
    if types == {int, float}:
        return [None if value is None else float(value) for value in values]
    is_plain = len(types) <= 1 and types <= {str, bool, int, float}
    if is_plain and not (types == {int} and any(value is not None and abs(value) >= _LARGEST for value in values)):
        return values
    # As JSON, but for strings.
    return [
        value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        for value in values
    ]


def to_frame(library: str, rows: Sequence[Mapping[str, Any]], names: Sequence[str] = ()) -> Any:
    """Return *rows* as a ``DataFrame`` of *library*, ``"pandas"`` or ``"polars"``."""
    try:
        module = importlib.import_module(library)
    except ImportError as error:
        raise MissingDependencyError(f"{library} is not installed: pip install {library}") from error
    return module.DataFrame(to_columns(rows, names))
