"""
A change of the grouping of an index that has begun: the record that says so until every document is rewritten.

Plain values. The documents are rewritten in ``flows.grouping.reconcile``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from es_simhash.errors import MappingError, shorten
from es_simhash.index.grouping.rule import GROUPING_KEY, Grouping
from es_simhash.index.meta import IndexSettings

__all__ = ["Regrouping", "take_out", "target_of"]

_KEY = "regrouping"


@dataclass(frozen=True, slots=True)
class Regrouping:
    """
    What the documents of an index say while its grouping is changed: some the old one, some the new one.

    Attributes:
        old:
            The grouping before; ``None`` where the index was not grouped.
        new:
            The grouping that replaces it when every document is rewritten.
    """

    old: Grouping | None
    new: Grouping

    def __str__(self) -> str:
        """Return it as words, for messages."""
        return f"from {self.old or 'no grouping'} to {self.new}"

    @classmethod
    def read(cls, settings: IndexSettings) -> Regrouping | None:
        """
        Return the change that *settings* of an index record; ``None`` where none has begun.

        Raises:
            MappingError: If the record is not one of ours.
        """
        recorded = (settings.extra or {}).get(_KEY)
        if recorded is None:
            return None
        try:
            old, new = recorded["from"], recorded["to"]
        except (KeyError, TypeError) as error:
            raise MappingError(
                f"the change of grouping recorded in the mapping, {shorten(recorded)}, cannot be read: it was written "
                "by another version of this library"
            ) from error
        return cls(None if old is None else Grouping.from_dict(old), Grouping.from_dict(new))

    def put(self, extra: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return *extra* with this change in it."""
        return {**(extra or {}), _KEY: {"from": self.old and self.old.to_dict(), "to": self.new.to_dict()}}

    def finish(self, extra: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return *extra* with the new grouping in place of the old one, and without this change."""
        rest = {key: value for key, value in (extra or {}).items() if key != _KEY}
        return self.new.put(rest)


def target_of(settings: IndexSettings) -> Grouping | None:
    """
    Return the grouping that the documents of an index have, or will have once a change that has begun is done.
    """
    regrouping = Regrouping.read(settings)
    return Grouping.read(settings) if regrouping is None else regrouping.new


def take_out(extra: Mapping[str, Any] | None) -> dict[str, Any]:
    """
    Return *extra* without a grouping and without a change of one.
    """
    return {name: value for name, value in (extra or {}).items() if name not in (GROUPING_KEY, _KEY)}
