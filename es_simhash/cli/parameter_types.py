"""What the values of options may be: JSON, a query, a fingerprint, a delimiter, a file to write."""

from __future__ import annotations

import json
from typing import Any

import click

from es_simhash import InvalidInputError, from_hex
from es_simhash.errors import shorten


class _Json(click.ParamType):  # type: ignore[type-arg]  # generic only in newer clicks
    name = "json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError) as error:
            self.fail(f"{value[:80]!r} is not JSON ({error}); quote it for the shell: '{{\"term\": ...}}'", param, ctx)
        if not isinstance(parsed, (dict, list)):
            self.fail(f"{value[:80]!r} is neither an object nor a list", param, ctx)
        return parsed


class _Query(_Json):
    name = "query"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        parsed = super().convert(value, param, ctx)
        if isinstance(parsed, list) and not (parsed and all(isinstance(each, dict) for each in parsed)):
            self.fail(f'{value[:80]!r} is no query: give one such as \'{{"term": {{"lang": "en"}}}}\'', param, ctx)
        return parsed


class _Fingerprint(click.ParamType):  # type: ignore[type-arg]  # generic only in newer clicks
    name = "fingerprint"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return value if isinstance(value, int) else from_hex(value)
        except InvalidInputError as error:
            self.fail(str(error), param, ctx)


class _Delimiter(click.ParamType):  # type: ignore[type-arg]  # generic only in newer clicks
    name = "character"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        character = str(value).replace("\\t", "\t")  # as people type a tab
        if len(character) != 1 or character in '"\r\n':
            self.fail(f"{shorten(value)} is not one character: give one such as ';' or '\\t'", param, ctx)
        return character


JSON = _Json()
QUERY = _Query()
FINGERPRINT = _Fingerprint()
DELIMITER = _Delimiter()
FILE = click.Path(exists=True, dir_okay=False)
INPUT_FILE = click.Path(exists=True, dir_okay=False, allow_dash=True)
NEW_FILE = click.Path(dir_okay=False, writable=True)
REPORT_FILE = click.Path(dir_okay=False, allow_dash=True)
