"""
JSON objects whose values keep their text: a number that is read and written again may change, its text does not.

Only splitting and joining is here; what the values mean is decided elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from json.decoder import WHITESPACE, scanstring  # type: ignore[attr-defined]
from typing import Any

__all__ = ["end_of_value", "join_members", "split_items", "split_members"]

# The values are thrown away, so no number is converted; a conversion would refuse very long numbers.
_SKIP = json.JSONDecoder(strict=False, parse_int=str, parse_float=str)


def split_members(text: str) -> dict[str, str]:
    r"""
    Return the text of each value of the JSON object *text*.

    Of a key that stands there twice, the last value is returned, as by JSON libraries.

    Raises:
        ValueError: If it is not an object.

    Examples:
        >>> split_members('{"a": 1.10, "b": {"c": [1, 2]}}')
        {'a': '1.10', 'b': '{"c": [1, 2]}'}
    """
    members: dict[str, str] = {}
    at = _expect(text, 0, "{")
    if text[at : at + 1] == "}":
        return members
    while True:
        key, at = scanstring(text, _expect(text, at, '"', skip=False), False)
        at = _expect(text, at, ":")
        end = end_of_value(text, at)
        members[key] = text[at:end]
        at = _skip_space(text, end)
        if text[at : at + 1] == "}":
            return members
        at = _expect(text, at, ",")


def end_of_value(text: str, at: int) -> int:
    """
    Return where the JSON value ends that begins at the position *at*.

    Raises:
        ValueError: If there is none.

    Examples:
        >>> end_of_value('[{"a": 1.10}, 2]', 1)
        12
    """
    return _SKIP.raw_decode(text, at)[1]


def split_items(text: str) -> Iterator[str]:
    """
    Yield the text of each item of the JSON array *text*.

    Raises:
        ValueError: If it is not an array.

    Examples:
        >>> list(split_items('[1.0, {"a": 2}]'))
        ['1.0', '{"a": 2}']
    """
    at = _expect(text, 0, "[")
    if text[at : at + 1] == "]":
        return
    while True:
        end = end_of_value(text, at)
        yield text[at:end]
        at = _skip_space(text, end)
        if text[at : at + 1] == "]":
            return
        at = _expect(text, at, ",")


def join_members(members: Mapping[str, str]) -> str:
    """
    Return the JSON object with these values, which are JSON themselves, on one line.

    Line feeds and carriage returns stand only between the values of valid JSON; they become spaces.
    """
    text = ", ".join(f"{json.dumps(key)}: {value}" for key, value in members.items())
    return "{" + text.replace("\r", " ").replace("\n", " ") + "}"


def _expect(text: str, at: int, character: str, *, skip: bool = True) -> int:
    at = _skip_space(text, at)
    if text[at : at + 1] != character:
        raise json.JSONDecodeError(f"Expecting {character!r}", text, at)
    return _skip_space(text, at + 1) if skip else at + 1


def _skip_space(text: str, at: int) -> int:
    found: Any = WHITESPACE.match(text, at)
    return int(found.end())
