"""
One check for each kind of argument: an integer, a number, a choice, a name, a field, a list, an object, a path; and
what a class of options says of each: clients and the command line derive their arguments from it.

A check returns the value, or raises an error of one line: the argument, its value, and what to give. Its class is
TypeError for a wrong type, InvalidInputError for a wrong value. Public methods check their arguments before they do
anything else. What an argument means is not known here, and no file is opened.
"""

from __future__ import annotations

import inspect
import math
import operator
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import Field, dataclass, field, fields, is_dataclass
from typing import Any, NoReturn, TypeAlias

from es_simhash.errors import InvalidInputError, WrongTypeError, has_lone_surrogate, shorten

FilePath = str | os.PathLike[str]

PLAIN = "ES_SIMHASH_PLAIN"


def is_plain() -> bool:
    """Return whether what only makes answers faster is off (``ES_SIMHASH_PLAIN=1``), as tests of answers want it."""
    return os.environ.get(PLAIN) == "1"


Check: TypeAlias = Callable[[str, Any], Any]
"""Returns a value, given its name too, or refuses it."""

# Servers refuse deeper objects; Python's own limit is near 1,000.
DEEPEST = 100
# The largest int of Java, which servers are written in.
LARGEST_COUNT = (1 << 31) - 1


def _wrong_type(name: str, wanted: str, value: Any) -> NoReturn:
    raise WrongTypeError(f"{name} must be {wanted}, not {type(value).__name__} {shorten(value)}")


def check_flags(**flags: Any) -> None:
    """Check that each of *flags* is true or false; ``"no"`` would count as true, and ``None`` as false."""
    for name, value in flags.items():
        if type(value).__name__ not in ("bool", "bool_"):  # numpy's is no bool
            _wrong_type(name, "True or False", value)


def check_integer(name: str, value: Any) -> int:
    """Return *value* as an ``int``; numpy's integers are taken, booleans and floats are not."""
    # bool is an int to Python, but True as a distance or a fingerprint is a mistake of the caller's.
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        _wrong_type(name, "an int", value)
    return operator.index(value)


def check_count(name: str, value: Any, smallest: int = 1, largest: int = LARGEST_COUNT) -> int:
    number = check_integer(name, value)
    if not smallest <= number <= largest:
        allowed = f"{smallest} or more" if largest == LARGEST_COUNT else f"{smallest} to {largest:,}"
        raise InvalidInputError(f"{name} {shorten(number)} is out of range: give {allowed}")
    return number


@dataclass(frozen=True, slots=True)
class Count:
    """The check of a whole number from *smallest* to *largest*."""

    smallest: int = 1
    largest: int = LARGEST_COUNT

    def __call__(self, name: str, value: Any) -> int:
        return check_count(name, value, self.smallest, self.largest)


def option(default: Any, check: Check) -> Any:
    """Return a field of a class of options whose value *check*, given the name too, returns or refuses."""
    return field(default=default, metadata={"check": check})


def private(default: Any) -> Any:
    """Return a field of a class of options that no caller of a method gives."""
    return field(default=default, metadata={"private": True})


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of a method, or a field that becomes one; *text*: its entry below Args."""

    name: str
    annotation: str
    default: Any
    text: str


def public_fields(options: type[Any]) -> list[Field[Any]]:
    """Return the fields of a class of *options* that are not private."""
    return [given for given in fields(options) if "private" not in given.metadata]


def stands_for(options_field: Field[Any]) -> type[Any] | None:
    """Return the class whose fields a field stands for, as its ``default_factory`` is a class of options."""
    made_by: Any = options_field.default_factory
    return made_by if isinstance(made_by, type) and is_dataclass(made_by) else None


def parameters(documented: Any) -> dict[str, Parameter]:
    """Return what a class of options, or a method, takes; fields that stand for others are left out for these."""
    entries = entries_of(documented)
    found = {}
    if not isinstance(documented, type):
        for name, taken in inspect.signature(documented).parameters.items():
            found[name] = Parameter(name, str(taken.annotation), taken.default, entries.get(name, ""))
        return found
    for given in public_fields(documented):
        if inner := stands_for(given):
            found |= parameters(inner)
        else:
            text = entries.get(given.name, "")
            found[given.name] = Parameter(given.name, str(given.type), given.default, text)
    return found


_ARGS = re.compile(r"^Args:\n((?:(?:    .*)?\n?)*)", re.MULTILINE)
_ENTRY = re.compile(r"^    (?=\S)", re.MULTILINE)


def entries_of(documented: Any) -> dict[str, str]:
    """Return the entries below Args in a docstring, or in those of a class of options and its bases, by their names."""
    if isinstance(documented, type):
        return {name: text for cls in reversed(documented.__mro__) for name, text in entries_of(cls.__doc__).items()}
    written = documented if isinstance(documented, str | None) else documented.__doc__
    found = _ARGS.search(inspect.cleandoc(written or ""))
    parts = [entry.partition(":\n") for entry in _ENTRY.split(found[1])[1:]] if found else []
    return {names.strip(): inspect.cleandoc(text).strip() for names, _, text in parts}


def check_options(options: Any) -> None:
    """Put what the checks return in the fields of *options* that have another value than their default."""
    for given in fields(options):
        value = getattr(options, given.name)
        if value is not given.default and (check := given.metadata.get("check")):
            object.__setattr__(options, given.name, check(given.name, value))


def check_number(name: str, value: Any, *, above: float | None = None, advice: str) -> float:
    """Return *value* as a float: from 0 to 1, or, where *above* is given, any finite number above that."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        _wrong_type(name, "a number", value)
    if not (0 <= value <= 1 if above is None else above < value < math.inf):
        raise InvalidInputError(f"{name} {shorten(value)} is out of range: give {advice}")
    return float(value)


def check_choice(name: str, value: Any, choices: Iterable[str | None]) -> Any:
    known = list(choices)
    # A list or an array cannot be compared with a name.
    if not (value is None or isinstance(value, str)) or value not in known:
        *first, last = map(repr, known)
        raise InvalidInputError(f"{name} {shorten(value)} is not known: give {', '.join(first)} or {last}")
    return value


def check_function(name: str, value: Any) -> Callable[..., Any]:
    if not callable(value):
        _wrong_type(name, "a function", value)
    return value  # type: ignore[no-any-return]


def check_name(name: str, value: Any, *, wanted: str = "a string") -> str:
    """Return *value* if it is a string that is not blank and that a request can hold."""
    return check_key(name, value, wanted=wanted, may_be_blank=False)


def check_key(name: str, value: Any, *, wanted: str = "a string", may_be_blank: bool = True) -> str:
    """Return *value*, an id or a routing, if it is a string that a request can hold; it may be of blanks."""
    if not isinstance(value, str):
        _wrong_type(name, wanted, value)
    if not value or not (may_be_blank or value.strip()):
        raise InvalidInputError(f"{name} {shorten(value)} is empty: give {wanted}")
    if has_lone_surrogate(value):
        raise InvalidInputError(f"{name} {shorten(value)} has half a character (a lone surrogate): correct it")
    return value


# In a request they end a name, or make it a pattern or a list.
_NOT_IN_NAMES = frozenset("*,/\\?# ")


def check_server_name(name: str, value: Any, *, of: str) -> str:
    """Return *value* if it names one thing of a server in every request, such as a pipeline."""
    if set(check_name(name, value)) & _NOT_IN_NAMES:
        raise InvalidInputError(f"{name} {shorten(value)} cannot be that of {of}: use letters, digits, '-' and '_'")
    return value  # type: ignore[no-any-return]


def check_field(name: str, value: Any) -> str:
    """Return *value* if it can be the name of a field, such as ``article.body``."""
    check_name(name, value, wanted="the name of a field")
    if not all(part.strip() for part in value.split(".")):
        raise InvalidInputError(f"{name} {shorten(value)} names no field: nothing stands before or after a dot")
    return value  # type: ignore[no-any-return]


def check_fields(name: str, value: Any, *, may_lack: bool = False) -> tuple[str, ...]:
    """Return the names in *value*, one field or a list of different ones; what *may_lack* is ``None`` or ``()``."""
    if may_lack and (value is None or (isinstance(value, tuple) and not value)):
        return ()
    names = (value,) if isinstance(value, str) else value
    # Not any iterable: the order counts, and a generator would be empty the second time.
    if not isinstance(names, (list, tuple)) or not all(isinstance(item, str) for item in names):
        _wrong_type(name, "the name of a field or a list of them", value)
    if not names or len(set(names)) < len(names):
        raise InvalidInputError(f"{name} {shorten(value)} must name at least one field, and each once")
    return tuple(check_field(name, item) for item in names)


def check_items(name: str, value: Any, *, of: str) -> Iterable[Any]:
    """Return *value* if it is an iterable, and neither one string nor one object."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        _wrong_type(name, f"a list of {of}", value)
    return value


def check_names(
    name: str, value: Any, *, of: str = "names", check: Callable[[str, Any], str] = check_name
) -> tuple[str, ...]:
    """Return the strings in *value*, each of which a request can hold; none is right too."""
    items = tuple(check_items(name, value, of=of))
    if not all(isinstance(item, str) for item in items):
        _wrong_type(name, f"a list of {of}", value)
    return tuple(check(name, item) for item in items)


def check_ids(name: str, value: Any) -> tuple[str, ...]:
    """Return the ids in *value*, as :func:`check_names` does."""
    return check_names(name, value, of="ids", check=check_key)


def check_object(name: str, value: Any) -> Mapping[str, Any]:
    """Return *value* if it is an object as JSON knows them, and can be sent."""
    if not isinstance(value, Mapping):
        _wrong_type(name, "an object (a mapping)", value)
    check_sendable(name, value)
    return value


def check_sendable(name: str, value: Any, *, depth: int = 0) -> None:
    """Check that a request can hold *value*, a JSON value or what the caller's client makes one of."""
    if depth > DEEPEST:
        raise InvalidInputError(f"{name} is nested more than {DEEPEST} levels deep: make it simpler")
    if isinstance(value, str) and has_lone_surrogate(value):
        raise InvalidInputError(f"{name} has {shorten(value)}, with half a character (a lone surrogate): correct it")
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise WrongTypeError(f"{name} has the key {shorten(key)}, which is no string: give names as keys")
            check_sendable(name, key)
            check_sendable(name, item, depth=depth + 1)
    elif isinstance(value, (list, tuple)):
        for item in value:
            check_sendable(name, item, depth=depth + 1)


def check_path(name: str, value: Any) -> FilePath:
    """Return *value* if it can be the path of a file on this system."""
    path = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(path, str):
        _wrong_type(name, "a path", value)
    try:
        if not path:
            raise ValueError("it is empty")
        with suppress(OSError):
            os.stat(path)  # noqa: PTH116 -- refuses what no path can have
    except ValueError as error:
        raise InvalidInputError(f"{name} {shorten(path)} cannot be a path: {error}") from None
    return value  # type: ignore[no-any-return]


def check_output(name: str, value: Any) -> FilePath:
    """Return *value* if a file can be written there: it is no folder, and the folder that it is in exists."""
    path = os.fspath(check_path(name, value))
    if os.path.isdir(path) or not os.path.isdir(os.path.dirname(path) or "."):  # noqa: PTH112, PTH120 -- may be long
        raise InvalidInputError(f"{name} {shorten(path)} cannot be written: give a file in a folder that exists")
    return value  # type: ignore[no-any-return]


def check_input(name: str, value: Any) -> FilePath:
    """Return *value* if it is the path of a file or a pipe that exists."""
    path = os.fspath(check_path(name, value))
    if os.path.isdir(path) or not os.path.exists(path):  # noqa: PTH110, PTH112 -- may be long
        raise InvalidInputError(f"{name} {shorten(path)} does not exist, or is a folder: give the path of a file")
    return value  # type: ignore[no-any-return]


def check_inputs(name: str, value: Any) -> tuple[FilePath, ...]:
    """Return the paths in *value*, each of a file that exists."""
    return tuple(check_input(name, path) for path in check_items(name, value, of="files"))
