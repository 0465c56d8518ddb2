"""What all results, failures and lines of files have in common: they can be given as plain JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

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
        return {key: _to_plain(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [_to_plain(each) for each in value]
    return value.to_dict() if hasattr(value, "to_dict") else value
