"""
Records for people, one on a line that fits the terminal: long values are cut, and what was cut is said at the end.

A record that does not fit even then goes on in the next line, so that no number and no word of ours is lost. The width
is that of tables, which are in ``tables.py``. No command is here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from es_simhash.cli.output import console, print_text, visible
from es_simhash.cli.tables import SHORTEST_TEXT, fit, note_cut, on_one_line, screen_width

_INDENT = 4


@dataclass(frozen=True, slots=True)
class Value:
    """
    A part of a line that may be cut.

    Attributes:
        name:
            What it is, for the sentence that says what was cut.
        text:
            The value.
    """

    name: str
    text: str


@dataclass(slots=True)
class Lines:
    """
    Prints records, and says at the end, on stderr, which values were cut.

    Attributes:
        whole:
            Where the whole values are found.
    """

    whole: str = "--json shows all"
    # Found out for the first line, because a command that prints JSON does not need rich.
    _width: int = 0
    # A dict keeps the order in which values were cut.
    _cut: dict[str, None] = field(default_factory=dict)

    def print(self, *parts: str | Value) -> None:
        """
        Print one record: its parts, one after the other. What is no :class:`Value` is never cut.
        """
        self._width = self._width or screen_width(console())
        for line in self._fold("".join(self._fit(parts))):
            print_text(line)

    def _fold(self, line: str) -> list[str]:
        """Return *line* in parts that fit; all but the first are farther to the right than the first one."""
        from rich.cells import cell_len  # noqa: PLC0415 -- most commands do not need rich
        from rich.text import Text  # noqa: PLC0415 -- as above

        if cell_len(line) <= self._width:
            return [line]
        indent = " " * min(len(line) - len(line.lstrip()) + _INDENT, self._width // 2)
        parts = Text(line.strip()).wrap(console(), self._width - len(indent), overflow="fold")
        begin = indent[: len(indent) - _INDENT]
        return [(indent if place else begin) + part.plain.rstrip() for place, part in enumerate(parts)]

    def _fit(self, parts: tuple[str | Value, ...]) -> list[str]:
        from rich.cells import cell_len, set_cell_size  # noqa: PLC0415 -- most commands do not need rich

        texts = [on_one_line(each.text, self._width) if isinstance(each, Value) else visible(each) for each in parts]
        wanted = [cell_len(text) for text in texts]
        least = [
            min(has, SHORTEST_TEXT) if isinstance(part, Value) else has for part, has in zip(parts, wanted, strict=True)
        ]
        if sum(least) > self._width:
            # The record goes on in the next line in any case, and so a value may have a line of its own.
            least = [min(has, self._width - _INDENT) for has in wanted]
        widths = fit([min(has, self._width) for has in wanted], least, self._width)
        for place, part in enumerate(parts):
            if isinstance(part, Value) and widths[place] < wanted[place]:
                texts[place] = set_cell_size(texts[place], widths[place] - 1).rstrip() + "…"
                self._cut[part.name] = None
        return texts

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        note_cut(self._cut, self._width, whole=self.whole)
