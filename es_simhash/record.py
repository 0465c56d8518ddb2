"""What all results, failures and lines of files have in common: they are given as plain JSON values, and read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache, partial
from types import NoneType
from typing import Any, ClassVar, Literal, TypeVar, get_args, get_origin, get_type_hints

_PLAIN = frozenset({str, int, float, bool, type(None)})


class Record:
    """
    A dataclass with slots. *_NAMES*: the values that are given, in their order, where these are not all the fields.
    *_OPTIONAL*: those that are left out where they are ``None``, ``False`` or an empty tuple.
    """

    __slots__ = ()
    _NAMES: ClassVar[str] = ""
    _OPTIONAL: ClassVar[str] = ""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        values = {name: getattr(self, name) for name in self._NAMES.split() or self.__slots__}
        for name in self._OPTIONAL.split():
            if values[name] is None or values[name] is False or values[name] == ():
                del values[name]
        return {name: value if type(value) in _PLAIN else _to_plain(value) for name, value in values.items()}


def _to_plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _to_plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return list(map(_to_plain, value))
    return value.to_dict() if hasattr(value, "to_dict") else value


T = TypeVar("T", bound=Record)
_Kind = tuple[frozenset[type], Callable[[Any], Any] | None]


def read_record(class_: type[T], plain: Any) -> T:
    """
    Return the record that :meth:`Record.to_dict` made *plain* of; raise ValueError if a value is not of its annotation.
    Only what is *_OPTIONAL* may be missing. What is not known is left out.
    """
    if not isinstance(plain, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 -- the text is wrong, not its type
    found = {}
    for name, (kind, may_lack) in _kinds(class_).items():  # type: ignore[arg-type]  # a class can be a key
        if name in plain or not may_lack:
            try:
                found[name] = _read(kind, plain.get(name))
            except (TypeError, KeyError, OverflowError) as error:
                raise ValueError(f"{name!r} is missing or of a wrong type") from error
    return class_(**found)


@cache
def _kinds(class_: Any) -> dict[str, tuple[_Kind, bool]]:
    hints, optional = get_type_hints(class_), class_._OPTIONAL.split()  # noqa: SLF001 -- of this module
    return {field.name: (_kind_of(hints[field.name]), field.name in optional) for field in fields(class_)}


def _kind_of(hint: Any) -> _Kind:
    """Return of which types the values of an annotation are in JSON, and what makes such a value of one."""
    args, origin = get_args(hint), get_origin(hint)
    if NoneType in args:
        types, make = _kind_of(next(arg for arg in args if arg is not NoneType))
        return types | {NoneType}, make
    if origin is Literal:
        return frozenset({str}), {word: word for word in args}.__getitem__
    if origin is tuple:
        item = _kind_of(args[0])
        return frozenset({list}), lambda values: tuple(_read(item, value) for value in values)
    if origin is Mapping:
        item = _kind_of(args[1])
        return frozenset({dict}), lambda values: {name: _read(item, value) for name, value in values.items()}
    if isinstance(hint, type) and issubclass(hint, Record):
        return frozenset({dict}), partial(read_record, hint)
    return (frozenset({int, float}), float) if hint is float else (frozenset({hint}), None)


def _read(kind: _Kind, value: Any) -> Any:
    types, make = kind
    if type(value) not in types and Any not in types:  # a bool is no int
        raise TypeError
    return value if make is None or value is None else make(value)
