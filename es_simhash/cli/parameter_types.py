"""What the values of options may be: JSON, a query, a fingerprint, ``2GiB``, a delimiter, a file to write."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import click

from es_simhash import InvalidInputError, from_hex
from es_simhash.cli.output_files import open_text, refuse_output
from es_simhash.errors import shorten

_SIZES = {
    "": 1,
    "b": 1,
    **{f"{letter}{end}": 1000**power for power, letter in enumerate("kmgt", 1) for end in ("", "b")},
    **{f"{letter}i{end}": 1024**power for power, letter in enumerate("kmgt", 1) for end in ("", "b")},
}
_NUMBER = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?) ?([a-z]*)", re.IGNORECASE)


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


class _Bytes(click.ParamType):  # type: ignore[type-arg]  # generic only in newer clicks
    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = value if isinstance(value, int) else parse_bytes(value)
        except InvalidInputError as error:
            self.fail(str(error), param, ctx)
        if number < 1:
            self.fail(f"{shorten(value)} is out of range: give 1 or more", param, ctx)
        return number


class _Delimiter(click.ParamType):  # type: ignore[type-arg]  # generic only in newer clicks
    name = "character"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        character = str(value).replace("\\t", "\t")  # as people type a tab
        if len(character) != 1 or character in '"\r\n':
            self.fail(f"{shorten(value)} is not one character: give one such as ';' or '\\t'", param, ctx)
        return character


class _Report(click.File):
    """A file to write, which must not be a removal."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and value != "-":
            try:
                refuse_output(value)
                if ctx is not None and ctx.params.get("dry_run"):
                    refuse_in_dry_run(value)
                file = open_text(value, "kept")
            except InvalidInputError as error:
                self.fail(str(error), param, ctx)
            except OSError as error:
                self.fail(f"{error.strerror}: {error.filename}", param, ctx)
            if ctx is not None:
                ctx.call_on_close(file.close)  # click would hide an error of what is written last
            return file
        return super().convert(value, param, ctx)


def refuse_in_dry_run(path: str) -> None:
    """Raise InvalidInputError if a dry run that writes to *path* would replace what is there."""
    file = Path(path)
    if file.is_file() and file.stat().st_size:
        raise InvalidInputError(f"{path} exists, and a dry run replaces no file: give another name")


def parse_bytes(text: str) -> int:
    """Return the number of bytes that *text* means: kB, MB, GB are thousands, KiB, MiB, GiB are 1,024s."""
    found = _NUMBER.fullmatch(text)
    factor = _SIZES.get(found[2].lower()) if found else None
    number = Decimal(found[1]) * factor if found and factor else Decimal("0.5")
    if number != int(number):
        raise InvalidInputError(f"{shorten(text)} is not a number of bytes: give one such as 4GB or 512MiB")
    return int(number)


JSON = _Json()
QUERY = _Query()
FINGERPRINT = _Fingerprint()
BYTES = _Bytes()
DELIMITER = _Delimiter()
FILE = click.Path(exists=True, dir_okay=False)
INPUT_FILE = click.Path(exists=True, dir_okay=False, allow_dash=True)
NEW_FILE = click.Path(dir_okay=False, writable=True)
REPORT_FILE = _Report("w", encoding="utf-8", errors="backslashreplace", lazy=False)
