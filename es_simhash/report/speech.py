"""
Says things in the language of a report: words with values in them, numbers and shares. No page is made here.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Formatter

from es_simhash.dashboards.chart_words import ChartWords
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.report.words import CHART_WORDS, LANGUAGES, LOCALES, WORDS
from es_simhash.tables.markup import Child, Html, join, user_text

__all__ = ["Speech"]


@dataclass(frozen=True, slots=True)
class Speech:
    """
    One language.

    Attributes:
        language:
            ``"en"`` or ``"zh"``.

    Raises:
        InvalidInputError: If the language is another one.
    """

    language: str = "en"

    def __post_init__(self) -> None:
        if self.language not in LANGUAGES:
            raise InvalidInputError(f"language {shorten(self.language)} is not known: give {' or '.join(LANGUAGES)}")

    @property
    def charts(self) -> ChartWords:
        """The words of the charts."""
        return CHART_WORDS[self.language]

    @property
    def locale(self) -> str:
        """How dates are written in the charts."""
        return LOCALES[self.language]

    def __call__(self, key: str, **values: object) -> str:
        """Return the words *key*; numbers among the *values* are written with separators."""
        written = {name: f"{each:,}" if isinstance(each, int) else each for name, each in values.items()}
        return WORDS[self.language][key].format(**written)

    def html(self, key: str, **values: Child | float) -> Html:
        """Return the words *key* as markup; each value that is a text is a text of a user."""
        parts: list[Child] = []
        for literal, name, _, _ in Formatter().parse(WORDS[self.language][key]):
            parts.append(literal)
            if name is not None:
                value = values[name]
                if isinstance(value, (int, float)):
                    parts.append(f"{value:,}")
                else:
                    parts.append(value if isinstance(value, Html) else user_text(value))
        return join(*parts)

    def percent(self, share: float | None, digits: int = 1) -> str:
        """Return a share in percent, never rounded to 0 or to 100 where it is neither; empty for ``None``."""
        if share is None:
            return ""
        smallest = 10.0 ** -(digits + 2)
        text = f"{share:.{digits}%}"
        if 0 < share < smallest:
            text = f"< {smallest:.{digits}%}"
        elif 1 - smallest < share < 1:
            text = f"> {1 - smallest:.{digits}%}"
        return text if self.language == "zh" else text.replace("%", " %")
