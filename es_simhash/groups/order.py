"""The canonical order of documents, and the resources for finding all pairs: plain values, checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import IO, Any, Literal, TypeAlias

from es_simhash.arguments import check_count, check_field, check_sendable
from es_simhash.errors import InvalidInputError, WrongTypeError, shorten

BY_ID = "id"
LONGEST = "longest"
OTHERS = "*"
Canonical: TypeAlias = str | Sequence[str]
"""What a caller gives: one key, or a list of them."""


@dataclass(frozen=True, slots=True)
class OrderKey:
    """
    One key of a canonical order.

    *kind*: ``"preference"`` compares values of a keyword field, ``"field"`` a date or number. *values* has the
    preferred one first; ``"*"`` stands for all that are not named.
    """

    kind: Literal["id", "longest", "preference", "field"]
    field: str = ""
    is_descending: bool = False
    values: tuple[str, ...] = ()

    def rank(self, values: Iterable[Any]) -> float:
        """Return the rank of a document: smallest is preferred, no value is last. Dates are in milliseconds."""
        if self.kind == "preference":
            return float(min(map(self._place, values), default=inf))
        numbers = [float(value) for value in values]
        return min((-each if self.is_descending else each for each in numbers), default=inf)

    def _place(self, value: str) -> int:
        for each in (value, OTHERS):
            if each in self.values:
                return self.values.index(each)
        return len(self.values)


def parse_key(text: str) -> OrderKey:
    """
    Return the key that *text* names.

    >>> parse_key("source:xinhua>reuters>*").values
    ('xinhua', 'reuters', '*')
    >>> parse_key("-views").is_descending
    True
    """
    if not isinstance(text, str):
        raise WrongTypeError(f"canonical must be a string or a list of strings, not {type(text).__name__}")
    if text in (BY_ID, LONGEST):
        return OrderKey("id" if text == BY_ID else "longest")
    if ":" in text:
        field, _, listed = text.partition(":")
        values = tuple(listed.split(">"))
        if not field or field.startswith("-") or not all(values) or len(set(values)) < len(values):
            raise InvalidInputError(
                f"canonical {shorten(text)} is no preference: give FIELD:VALUE>VALUE>*, each value once"
            )
        check_sendable("canonical", text)
        check_field("canonical", field)
        return OrderKey("preference", field, values=values)
    field = text.removeprefix("-")
    if not field:
        raise InvalidInputError(
            "canonical names no order: give 'id', 'longest', a field, '-field' or 'field:value>value>*'"
        )
    check_field("canonical", field)
    return OrderKey("field", field, is_descending=text.startswith("-"))


def check_order(canonical: Canonical) -> tuple[str, ...]:
    """Return the keys of *canonical* as recorded, without a last ``"id"``: the id always decides last."""
    if not isinstance(canonical, (str, list, tuple)):
        raise WrongTypeError(f"canonical must be a string or a list of strings, not {type(canonical).__name__}")
    keys = (canonical,) if isinstance(canonical, str) else tuple(canonical)
    parsed = [parse_key(each) for each in keys]
    if not keys:
        raise InvalidInputError("canonical names no order: give 'id', 'longest' or a field")
    subjects = [(each.kind, each.field) for each in parsed]
    if len(set(subjects)) < len(subjects):
        raise InvalidInputError(f"canonical {shorten(list(keys))} names a key twice: name each once")
    if BY_ID in keys[:-1]:
        raise InvalidInputError(f"canonical {shorten(list(keys))} names a key after 'id': no two ids are equal")
    return keys[:-1] if len(keys) > 1 and keys[-1] == BY_ID else keys


MOST_THREADS = 1_024
LEAST_BYTES = 1 << 20
MOST_BYTES = 1 << 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """
    What finding all pairs may use; ``None``: one thread a core, 2 GiB, no file.

    *memory_bytes* is what all threads together sort at once; fingerprints, ids and the pairs of a grouping need
    memory in addition. *spill* opens an empty temporary file for the pairs that memory cannot keep.
    """

    threads: int | None = None
    memory_bytes: int | None = None
    spill: Callable[[], IO[bytes]] | None = None

    def __post_init__(self) -> None:
        if self.threads is not None:
            check_count("threads", self.threads, 1, MOST_THREADS)
        if self.memory_bytes is not None:
            check_count("memory_bytes", self.memory_bytes, LEAST_BYTES, MOST_BYTES)
