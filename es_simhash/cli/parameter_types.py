"""What the values of options may be: JSON, a query, a fingerprint, a delimiter, a file to write."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click

from es_simhash import InvalidInputError, from_hex
from es_simhash.errors import shorten


class _Value(click.ParamType):  # type: ignore[type-arg]  # generic only in newer clicks
    """What *read* makes of the words of an option, or refuses."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self._read(value) if isinstance(value, str) else value
        except InvalidInputError as error:
            self.fail(str(error), param, ctx)


def _read_json(value: str) -> Any:
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError) as error:
        said = f"{value[:80]!r} is not JSON ({error}); quote it for the shell: '{{\"term\": ...}}'"
        raise InvalidInputError(said) from error
    if not isinstance(parsed, (dict, list)):
        raise InvalidInputError(f"{value[:80]!r} is neither an object nor a list")
    return parsed


def _read_query(value: str) -> Any:
    parsed = _read_json(value)
    if isinstance(parsed, list) and not (parsed and all(isinstance(clause, dict) for clause in parsed)):
        raise InvalidInputError(f'{value[:80]!r} is no query: give one such as \'{{"term": {{"lang": "en"}}}}\'')
    return parsed


def _read_delimiter(value: str) -> str:
    character = value.replace("\\t", "\t")  # as people type a tab
    if len(character) != 1 or character in '"\r\n':
        raise InvalidInputError(f"{shorten(value)} is not one character: give one such as ';' or '\\t'")
    return character


JSON = _Value("json", _read_json)
QUERY = _Value("query", _read_query)
FINGERPRINT = _Value("fingerprint", from_hex)
DELIMITER = _Value("character", _read_delimiter)
FILE = click.Path(exists=True, dir_okay=False)
INPUT_FILE = click.Path(exists=True, dir_okay=False, allow_dash=True)
NEW_FILE = click.Path(dir_okay=False, writable=True)
REPORT_FILE = click.Path(dir_okay=False, allow_dash=True)
