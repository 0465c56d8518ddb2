"""
The span of time within which documents may be neighbours. Plain values, checked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from es_simhash.arguments import check_field
from es_simhash.errors import InvalidInputError, WrongTypeError, shorten

__all__ = ["Within", "parse_within"]

# Largest first: a span is written in the largest unit that divides it.
_UNITS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_SPAN = re.compile(r"([0-9]{1,15})(d|h|m|s|ms)")


@dataclass(frozen=True, slots=True)
class Within:
    """
    Documents are neighbours only if their dates differ by at most a span of time.

    Attributes:
        field:
            The date field.
        milliseconds:
            The largest difference, inclusive.
    """

    field: str
    milliseconds: int

    @property
    def span(self) -> str:
        """The difference as text, such as ``7d``."""
        unit = next(unit for unit, size in _UNITS.items() if self.milliseconds % size == 0)
        return f"{self.milliseconds // _UNITS[unit]}{unit}"

    def __str__(self) -> str:
        """Return it as the command line takes it."""
        return f"{self.field}:{self.span}"

    def to_list(self) -> list[str]:
        """Return the plain JSON values that stand in ``_meta``."""
        return [self.field, self.span]


def parse_within(value: Within | Sequence[str]) -> Within:
    """
    Return the field and span in *value*: a pair such as ``("published", "7d")``.

    A span is a whole number and a unit: d, h, m, s or ms.

    Raises:
        TypeError: If it is not a pair of strings.
        InvalidInputError: If a part of it cannot be used.

    Examples:
        >>> parse_within(("published", "168h")).span
        '7d'
    """
    if isinstance(value, Within):
        return value
    pair: Any = value
    if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not all(isinstance(each, str) for each in pair):
        raise WrongTypeError(f'within must be a pair such as ("published", "7d"), not {shorten(value)}')
    field, span = pair
    match = _SPAN.fullmatch(span)
    if not field or match is None:
        raise InvalidInputError(
            f"within {shorten(list(pair))} cannot be used: give a date field and a span, such as 7d, 12h or 30m"
        )
    return Within(check_field("within", field), int(match[1]) * _UNITS[match[2]])
