"""
Decisions about a plan of removal: which documents stay, who decided, when, and why. The review page makes a file.

    {"format": "es-simhash-decisions", "version": 1, "plan_sha256", "by", "at", "reason",
     "keep": [{"index", "id", "routing"}], "remove": [{"index", "id", "routing"}]}

A file that is not exactly this is refused whole: whoever edited it may have meant to keep more. "by" is required,
"reason" may be empty, and the lists too: the plan is then approved as it is. "remove" names documents that the plan
holds back. Files are taken into that of the removal, which keeps all of them; what one of them keeps is kept, whatever
another one removes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from es_simhash.errors import InvalidInputError, shorten
from es_simhash.record import Record
from es_simhash.transport.protocol import Key

FORMAT = "es-simhash-decisions"
VERSION = 1
DECIDE_AGAIN = "make the file again on the review page of its plan"
LONGEST_NAME = 200
LONGEST_REASON = 1_000
"""Characters."""

# Letters that show as nothing.
_BLANK = "\u115f\u1160\u3164\uffa0"
_NAMES = ("format", "version", "plan_sha256", "by", "at", "reason", "keep", "remove")
_KEYS = ("index", "id", "routing")


@dataclass(frozen=True, slots=True)
class Decisions(Record):
    """
    What a person decided about a plan.

    Attributes:
        by:
            Who decided.
        at:
            When, ISO 8601, by the clock of that person's computer.
        reason:
            Why.
        keep:
            Documents that stay.
        remove:
            Documents that go, though the plan holds them back.
        plan_sha256:
            SHA-256 of the plan.
        taken_in:
            When the file was taken in, ISO 8601.
    """

    by: str
    at: str
    reason: str
    keep: frozenset[Key]
    remove: frozenset[Key]
    plan_sha256: str = ""
    taken_in: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        values = {name: getattr(self, name) for name in self.__slots__}
        keys = {name: [key._asdict() for key in sorted(values[name], key=str)] for name in ("keep", "remove")}
        return values | keys


def approvals(log: Iterable[Decisions]) -> tuple[tuple[str, str], ...]:
    """Return who decided, and why."""
    return tuple(dict.fromkeys((decisions.by, decisions.reason) for decisions in log))


def in_words(approved: Iterable[tuple[str, str]]) -> str:
    return "; ".join(": ".join(filter(None, words)) for words in approved)


def unusable(name: str, why: object) -> InvalidInputError:
    return InvalidInputError(f"{name} is not a file of decisions that can be used ({why}): {DECIDE_AGAIN}")


def parse_decisions(data: bytes, name: str) -> Decisions:
    """Return what *data* says; raise InvalidInputError if that is not clear."""
    try:
        return _to_decisions(json.loads(data.decode("utf-8-sig"), object_pairs_hook=_once))
    except (ValueError, RecursionError) as error:
        raise unusable(name, error) from error


def _to_decisions(plain: Any) -> Decisions:
    if not isinstance(plain, dict) or plain.get("format") != FORMAT:
        raise ValueError(f"'format' is not {FORMAT!r}")
    if (version := _take(plain, "version", int)) != VERSION:
        raise ValueError(f"it has version {shorten(version)}, and this program reads version {VERSION}")
    _refuse_other(plain, _NAMES)
    texts = []
    for name, longest in (("by", LONGEST_NAME), ("at", LONGEST_NAME), ("reason", LONGEST_REASON)):
        texts.append(_take(plain, name, str).strip())
        if len(texts[-1]) > longest:
            raise ValueError(f"{name!r} has more than {longest:,} characters")
    by, at, reason = texts
    if not any(character.isalnum() and character not in _BLANK for character in by):
        raise ValueError("'by' is empty, and must say who decides")
    if datetime.fromisoformat(at).tzinfo is None:
        raise ValueError("'at' has no time zone")
    keep, remove = ([_parse_key(key, name) for key in _take(plain, name, list)] for name in ("keep", "remove"))
    if twice := next((key for key, number in Counter(keep + remove).items() if number > 1), None):
        raise ValueError(f"it decides about {shown(twice)} twice")
    return Decisions(by, at, reason, frozenset(keep), frozenset(remove), _take(plain, "plan_sha256", str))


def _once(pairs: Collection[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return plain


def _refuse_other(plain: Mapping[str, Any], names: Collection[str]) -> None:
    if other := sorted(plain.keys() - set(names)):
        raise ValueError(f"{shorten(other[0])} is not known")


def _parse_key(plain: Any, name: str) -> Key:
    if not isinstance(plain, dict):
        raise ValueError(f"an entry of {name!r} is no object")  # noqa: TRY004 -- the text is wrong, not its type
    _refuse_other(plain, _KEYS)
    if "routing" not in plain:
        raise ValueError(f"'routing' is missing in an entry of {name!r}")
    return Key(_take(plain, "index", str), _take(plain, "id", str), _take(plain, "routing", str, type(None)))


def _take(plain: Mapping[str, Any], name: str, *types: type) -> Any:
    """Return the value of *name*; raise ValueError if it is missing or of none of *types* (a bool is no int)."""
    value = plain.get(name)
    if not isinstance(value, types) or isinstance(value, bool):
        raise ValueError(f"{name!r} is missing or of a wrong type")  # noqa: TRY004 -- the text is wrong
    return value


def shown(key: Key) -> str:
    """Return *key* for people."""
    return f"{shorten(key.index)}/{shorten(key.id)}"
