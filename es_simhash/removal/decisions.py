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
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from es_simhash.errors import InvalidInputError, shorten
from es_simhash.record import Record, read_record
from es_simhash.transport.protocol import Key
from es_simhash.transport.raw_json import why_unreadable

VERSION = 1
DECIDE_AGAIN = "make the file again on the review page of its plan"
LONGEST_NAME = 200
LONGEST_REASON = 1_000
"""Characters."""

# Letters that show as nothing.
_BLANK = "\u115f\u1160\u3164\uffa0"


@dataclass(frozen=True, slots=True)
class _Entry(Record):
    index: str
    id: str
    routing: str | None


@dataclass(frozen=True, slots=True)
class _File(Record):
    format: Literal["es-simhash-decisions"]
    version: int
    plan_sha256: str
    by: str
    at: str
    reason: str
    keep: tuple[_Entry, ...]
    remove: tuple[_Entry, ...]


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
        raise unusable(name, why_unreadable(error)) from error


def _to_decisions(plain: Any) -> Decisions:
    found = read_record(_File, plain)
    if found.version != VERSION:
        raise ValueError(f"it has version {shorten(found.version)}, and this program reads version {VERSION}")
    entries = [(entry, _Entry.__slots__) for entry in (*plain["keep"], *plain["remove"])]
    for part, names in ((plain, _File.__slots__), *entries):
        if odd := part.keys() ^ set(names):
            raise ValueError(f"{min(map(shorten, odd))} is missing, or not known")
    by, at, reason = (text.strip() for text in (found.by, found.at, found.reason))
    for name, text, longest in (("by", by, LONGEST_NAME), ("at", at, LONGEST_NAME), ("reason", reason, LONGEST_REASON)):
        if len(text) > longest:
            raise ValueError(f"{name!r} has more than {longest:,} characters")
    if not any(character.isalnum() and character not in _BLANK for character in by):
        raise ValueError("'by' is empty, and must say who decides")
    zone = None
    with suppress(ValueError):
        zone = datetime.fromisoformat(at).tzinfo
    if zone is None:
        raise ValueError("'at' is no moment with a time zone, such as 2026-11-27T10:00:00Z")
    keep, remove = ([Key(*entry.to_dict().values()) for entry in part] for part in (found.keep, found.remove))
    if twice := next((key for key, number in Counter(keep + remove).items() if number > 1), None):
        raise ValueError(f"it decides about {shown(twice)} twice")
    return Decisions(by, at, reason, frozenset(keep), frozenset(remove), found.plan_sha256)


def _once(pairs: Collection[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return plain


def shown(key: Key) -> str:
    """Return *key* for people."""
    return f"{shorten(key.index)}/{shorten(key.id)}"
