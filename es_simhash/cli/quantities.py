"""Numbers as people write them: ``500M`` documents, ``2GiB`` of memory; read and shown. No command is here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import click

from es_simhash.errors import InvalidInputError, shorten

_THOUSANDS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9, "t": 10**12}
_SIZES = {
    "": 1,
    "b": 1,
    **{f"{letter}{end}": 1000**power for power, letter in enumerate("kmgt", 1) for end in ("", "b")},
    **{f"{letter}i{end}": 1024**power for power, letter in enumerate("kmgt", 1) for end in ("", "b")},
}
_NUMBER = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?) ?([a-z]*)", re.IGNORECASE)


def parse_count(text: str) -> int:
    """
    Return the whole number that *text* means: digits, with k, M, B or G (10**9), or T after them.

    Examples:
        >>> parse_count("1.5B")
        1500000000
    """
    return _parse(text, _THOUSANDS, "a number: give one such as 250000, 500M or 1.5B")


def parse_bytes(text: str) -> int:
    """Return the number of bytes that *text* means: kB, MB, GB are thousands, KiB, MiB, GiB are 1,024s."""
    return _parse(text, _SIZES, "a number of bytes: give one such as 4GB or 512MiB")


def _parse(text: str, units: Mapping[str, int], wanted: str) -> int:
    found = _NUMBER.fullmatch(text)
    factor = units.get(found[2].lower()) if found else None
    number = Decimal(found[1]) * factor if found and factor else Decimal("0.5")
    if number != int(number):
        raise InvalidInputError(f"{shorten(text)} is not {wanted}")
    return int(number)


class _Quantity(click.ParamType):  # type: ignore[type-arg]  # generic only in newer clicks
    """An argument that is a quantity of 1 or more."""

    def __init__(self, name: str, parse: Any) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number."""
        try:
            number: int = value if isinstance(value, int) else self._parse(value)
        except InvalidInputError as error:
            self.fail(str(error), param, ctx)
        if number < 1:
            self.fail(f"{shorten(value)} is out of range: give 1 or more", param, ctx)
        return number


COUNT = _Quantity("count", parse_count)
BYTES = _Quantity("bytes", parse_bytes)


def show_count(number: float) -> str:
    """Return *number* in three digits or so: ``950``, ``3.29M``."""
    return _show(number, ["", "k", "M", "B", "T"])


def show_bytes(number: float) -> str:
    """Return a number of bytes in three digits or so: ``950 B``, ``3.29 GB``."""
    return _show(number, [" B", " kB", " MB", " GB", " TB", " PB"])


def _show(number: float, units: list[str]) -> str:
    power = 0
    while number >= 999.5 and power < len(units) - 1:
        number, power = number / 1000, power + 1
    digits = 0 if number >= 99.95 or number == int(number) else 1 if number >= 9.995 else 2
    return f"{number:,.{digits}f}{units[power]}"
