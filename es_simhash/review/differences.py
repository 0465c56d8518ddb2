"""
One removal beside the document that stays: which fields are equal, and which words of the others differ. Pure.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from es_simhash.quality.worddiff import WordDiff, word_diff

if TYPE_CHECKING:
    from es_simhash.removal.records import PlannedRemoval

__all__ = ["FieldPair", "compare_fields", "field_text", "is_short"]

LONGEST_VALUE = 120
"""
Characters of a value that is shown in one cell; a longer one is a text.
"""


@dataclass(frozen=True, slots=True)
class FieldPair:
    """
    A field of both documents.

    Attributes:
        name:
            Its name.
        goes:
            Its value in the document that would go; ``None`` where it has none.
        stays:
            Its value in the document that stays.
        is_cut:
            Whether the plan holds only the beginning of a value.
        diff:
            The words that differ: removed ones are only in the document that goes; white space counts as one space.
            ``None`` for short values.
    """

    name: str
    goes: str | None
    stays: str | None
    is_cut: bool = False
    diff: WordDiff | None = None

    @property
    def is_equal(self) -> bool:
        """Whether both values are the same."""
        return self.goes == self.stays


def field_text(value: Any) -> str | None:
    """
    Return the value of a field as text; ``None`` where there is none.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value):
        return "\n".join(value)
    return json.dumps(value, ensure_ascii=False)


def is_short(value: str | None) -> bool:
    """
    Return whether *value* fits into one cell.
    """
    return value is None or (len(value) <= LONGEST_VALUE and "\n" not in value)


def compare_fields(removal: PlannedRemoval, *, max_changes: int = 6) -> list[FieldPair]:
    """
    Return the fields of both documents, in the order of the document that would go.

    Args:
        removal:
            The line of the plan.
        max_changes:
            Number of differing places shown of one field.
    """
    goes, stays = removal.document, removal.canonical
    cut = {*goes.cut, *stays.cut}
    pairs = []
    for name in dict.fromkeys([*goes.fields, *stays.fields]):
        one, other = field_text(goes.fields.get(name)), field_text(stays.fields.get(name))
        diff = None
        if not (is_short(one) and is_short(other)):
            diff = word_diff(_on_one_line(one), _on_one_line(other), max_changes=max_changes)
        pairs.append(FieldPair(name, one, other, name in cut, diff))
    return pairs


def _on_one_line(text: str | None) -> str:
    # White space is no part of a shingle: a line that was wrapped elsewhere is no difference.
    return " ".join((text or "").split())
