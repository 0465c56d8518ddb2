"""
JSON arrays whose items keep their text: a number that is read and written again may change, its text does not.

Only splitting is here; what the values mean is decided elsewhere. Objects are split in ``index.json_text``.
"""

from __future__ import annotations

from collections.abc import Iterator

from es_simhash.index.json_text import end_of_value, expect, join_members, skip_space, split_members

__all__ = ["end_of_value", "join_members", "split_items", "split_members"]


def split_items(text: str) -> Iterator[str]:
    """
    Yield the text of each item of the JSON array *text*.

    Raises:
        ValueError: If it is not an array.

    Examples:
        >>> list(split_items('[1.0, {"a": 2}]'))
        ['1.0', '{"a": 2}']
    """
    at = expect(text, 0, "[")
    if text[at : at + 1] == "]":
        return
    while True:
        end = end_of_value(text, at)
        yield text[at:end]
        at = skip_space(text, end)
        if text[at : at + 1] == "]":
            return
        at = expect(text, at, ",")
