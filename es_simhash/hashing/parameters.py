"""
The parameters of each scheme version: their defaults and what they may be. No features are made here.

Adding a parameter to a released version is allowed only with a default that leaves its bits as they were.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from es_simhash.arguments import check_integer
from es_simhash.errors import SchemeError, WrongTypeError, shorten
from es_simhash.hashing.hashes import HASHES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = [
    "MAX_LEVELS",
    "MAX_TOP",
    "WEIGHTINGS",
    "check_parameters",
    "check_version",
    "defaults_of",
    "file_parameters_of",
    "known_versions",
]

WEIGHTINGS = ("linear", "log", "set")
"""Weight of a feature that comes n times: n; 1 + ln n; 1."""

METHODS = ("textrank", "tfidf")
MAX_SIZE = 16
MAX_TOP = 10_000
MAX_LEVELS = 1_000


def _one_of(*choices: str) -> Callable[[str, Any], str]:
    def check(name: str, value: Any) -> str:
        if not isinstance(value, str):
            raise WrongTypeError(f"{name} must be a str, not {type(value).__name__}")
        if value not in choices:
            raise SchemeError(f"unknown {name} {shorten(value)}: give one of {', '.join(choices)}")
        return value

    return check


def _between(first: int, last: int) -> Callable[[str, Any], int]:
    def check(name: str, value: Any) -> int:
        number = check_integer(name, value)
        if not first <= number <= last:
            raise SchemeError(f"{name} {shorten(number)} is out of range: give {first} to {last}")
        return number

    return check


def _top(name: str, value: Any) -> int | str:
    if isinstance(value, str):
        return _one_of("auto")(name, value)
    return _between(1, MAX_TOP)(name, value)


def _levels(name: str, value: Any) -> int | None:
    return None if value is None else _between(2, MAX_LEVELS)(name, value)


_HASHING: dict[str, tuple[Any, Callable[[str, Any], Any]]] = {
    "hash": ("xxh3_64", _one_of(*HASHES)),
    "seed": (0, _between(0, (1 << 64) - 1)),
}

_PARAMETERS: dict[tuple[str, int], dict[str, tuple[Any, Callable[[str, Any], Any]]]] = {
    ("keywords", 1): {**_HASHING, "method": ("tfidf", _one_of(*METHODS)), "top": (20, _top)},
    ("shingles", 1): {**_HASHING, "size": (4, _between(1, MAX_SIZE)), "weighting": ("log", _one_of(*WEIGHTINGS))},
    ("shingles", 2): {**_HASHING, "size": (4, _between(1, MAX_SIZE)), "weighting": ("log", _one_of(*WEIGHTINGS))},
    ("weighted", 1): {**_HASHING, "levels": (None, _levels)},
    ("words", 1): {**_HASHING, "size": (2, _between(1, MAX_SIZE)), "weighting": ("linear", _one_of(*WEIGHTINGS))},
}

_FILE_PARAMETERS = {
    ("keywords", 1): ("boilerplate", "dictionary", "idf", "stop_words"),
    ("shingles", 1): ("boilerplate",),
    ("shingles", 2): ("boilerplate",),
    ("words", 1): ("boilerplate",),
}


def known_versions() -> list[tuple[str, int]]:
    """
    Return name and version of every scheme, sorted.
    """
    return sorted(_PARAMETERS)


def check_version(name: str, version: int) -> None:
    """
    Check that a scheme of this name and version is known.

    Raises:
        SchemeError: If it is not.
    """
    if (name, version) not in _PARAMETERS:
        known = ", ".join(f"{each}-{number}" for each, number in known_versions())
        raise SchemeError(f"unknown scheme {shorten(f'{name}-{version}')}: upgrade es_simhash, or give one of {known}")


def defaults_of(name: str, version: int) -> dict[str, Any]:
    """
    Return the default of every parameter of a scheme that is known.
    """
    return {key: default for key, (default, _) in _PARAMETERS[name, version].items()}


def file_parameters_of(name: str, version: int) -> tuple[str, ...]:
    """
    Return the names of the parameters that are the user's own files.
    """
    return _FILE_PARAMETERS.get((name, version), ())


def check_parameters(name: str, version: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return every parameter of a scheme, checked: those *given*, and the defaults of the others.

    Raises:
        TypeError: If a value has the wrong type.
        SchemeError: If a parameter is unknown or its value cannot be used.
    """
    known = _PARAMETERS[name, version]
    unknown = sorted(map(str, given.keys() - known.keys()))
    if unknown:
        allowed = ", ".join([*sorted(known), *file_parameters_of(name, version)])
        raise SchemeError(f"scheme {name}-{version} has no parameter {shorten(unknown[0])}: give {allowed}")
    return {key: check(key, given[key]) if key in given else default for key, (default, check) in known.items()}
