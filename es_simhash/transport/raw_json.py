"""JSON that keeps its text wherever nothing is changed: a number that is read and written again may change."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from json.decoder import WHITESPACE, scanstring  # type: ignore[attr-defined]
from typing import Any, NoReturn

from es_simhash.errors import InvalidInputError, shorten

# The values are thrown away, so no number is converted; a conversion would refuse very long numbers.
_SKIP = json.JSONDecoder(strict=False, parse_int=str, parse_float=str)
_ABSENT = object()


class JsonText(str):
    """The text of a JSON object, as clients send it unchanged in place of a dict."""

    __slots__ = ()


# The bulk helpers of both clients take what is under _source in an update for the body only if it is a mapping.
Mapping.register(JsonText)


class JsonObject(dict[str, Any]):
    """
    A JSON object with the text that it was read from.
    A value that is the very same object (``is``) in *given*, which was read, is written as its text.
    """

    __slots__ = ("_given", "_text")

    def __init__(self, values: Mapping[str, Any], given: Mapping[str, Any], text: str) -> None:
        super().__init__(values)
        self._given = given
        self._text = text

    def part(self, key: str) -> JsonObject:
        """Return the object at *key*, as it was read."""
        given = self._given[key]
        return JsonObject(given, given, split_members(self._text)[key])

    def with_values(self, values: Mapping[str, Any]) -> JsonObject:
        return JsonObject(values, self._given, self._text)

    def to_json(self) -> JsonText:
        text = _write(self._given, self, self._text)
        return JsonText(text.replace("\r", " ").replace("\n", " "))


quoted = json.encoder.encode_basestring
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_SIMPLE = frozenset({str, int})


def as_sent(values: Mapping[str, Any]) -> str:
    """
    Return *values* as the clients write them: three times as fast as :mod:`json` where all are texts or whole numbers.
    TypeError or ValueError is raised for what only a client can write.
    """
    if not _SIMPLE.issuperset(map(type, values.values())):
        return _encode(values)
    members = [f"{quoted(name)}:{quoted(value) if type(value) is str else value}" for name, value in values.items()]
    return f"{{{','.join(members)}}}"


def keep_text(given: Mapping[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """
    Return *values*, which were made of *given*, with the text of *given* if that has one.
    >>> given = read_json('{"price": 1.10}')
    >>> keep_text(given, {**given, "n": 1}).to_json()
    '{"price": 1.10, "n": 1}'
    """
    return given.with_values(values) if isinstance(given, JsonObject) else values


def _write(given: Mapping[str, Any], now: Mapping[str, Any], text: str) -> str:
    """Return *now* as JSON: what it has of *given* as it stands in *text*, the rest written anew."""
    more = {key: value for key, value in now.items() if key not in given}
    if all(now.get(key, _ABSENT) is value for key, value in given.items()):
        if not more:
            return text.strip()
        return f"{text.rstrip()[:-1].rstrip()}, {json.dumps(more)[1:]}" if given else json.dumps(more)
    members = {key: member for key, member in split_members(text).items() if key in now}
    for key, member in members.items():
        before, value = given[key], now[key]
        if value is before:
            continue
        is_object = isinstance(before, Mapping) and isinstance(value, Mapping)
        members[key] = _write(before, value, member) if is_object else json.dumps(value)
    return join_members(members | {key: json.dumps(value) for key, value in more.items()})


def read_json(text: str | bytes) -> Any:
    """
    Return the JSON value of *text*; an object remembers its text.
    ValueError is raised also for what a server would refuse: a key twice in an object, NaN, Infinity.
    """
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text), "surrogatepass")
    value = _READ.decode(text)
    return JsonObject(value, value, text) if isinstance(value, dict) else value


def why_unreadable(error: Exception) -> str:
    """Return why something is no JSON, or no document, where Python's words say nothing to whoever gave it."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8 at byte {error.start + 1}"
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for place, key in enumerate(keys) if key in keys[:place])
        raise InvalidInputError(f"the key {shorten(twice)} stands twice in one object: leave one of them out")
    return found


def _refuse_constant(name: str) -> NoReturn:
    # Python reads NaN and Infinity. A server does not: it would refuse the whole bulk request.
    raise InvalidInputError(f"{name} is not a JSON number")


_READ = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_constant)


def split_members(text: str) -> dict[str, str]:
    """Return the text of each value of the JSON object *text*; for a key that stands there twice, the last."""
    return dict(_scan(text, "{}"))


def split_items(text: str) -> Iterator[str]:
    """Yield the text of each item of the JSON array *text*; raise ValueError if it is not an array."""
    return (item for _, item in _scan(text, "[]"))


def _scan(text: str, ends: str) -> Iterator[tuple[str, str]]:
    """Yield the key and the text of each value between *ends*; those of an array have no key."""
    at = _expect(text, 0, ends[0])
    if text[at : at + 1] == ends[1]:
        return
    while True:
        key = ""
        if ends == "{}":
            key, at = scanstring(text, _expect(text, at, '"', skip=False), False)
            at = _expect(text, at, ":")
        _, end = _SKIP.raw_decode(text, at)
        yield key, text[at:end]
        at = _skip_space(text, end)
        if text[at : at + 1] == ends[1]:
            return
        at = _expect(text, at, ",")


def join_members(members: Mapping[str, str]) -> str:
    """
    Return the JSON object with these values, which are JSON themselves, on one line.
    Line feeds and carriage returns become spaces: in valid JSON they stand only between values.
    """
    text = ", ".join(f"{json.dumps(key)}: {value}" for key, value in members.items())
    return "{" + text.replace("\r", " ").replace("\n", " ") + "}"


def _expect(text: str, at: int, character: str, *, skip: bool = True) -> int:
    """Return where *text* goes on after the *character* that must stand at the position *at*."""
    at = _skip_space(text, at)
    if text[at : at + 1] != character:
        raise json.JSONDecodeError(f"Expecting {character!r}", text, at)
    return _skip_space(text, at + 1) if skip else at + 1


def _skip_space(text: str, at: int) -> int:
    """Return where the next character stands that is no white space."""
    found: Any = WHITESPACE.match(text, at)
    return int(found.end())
