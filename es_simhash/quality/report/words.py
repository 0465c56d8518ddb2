"""
The words of a report in English and Chinese, and how values are put into them. No page is made here.

``words.en.json`` and ``words.zh.json`` are the catalogs; in braces stands what is filled in. The Chinese one has the
sentences about health too, as [what was found, what to do]; ``quality.health`` has them in English. A test checks that
kinds, keys and placeholders are the same in both languages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Formatter

from es_simhash.errors import InvalidInputError, shorten
from es_simhash.mapping.rule import rule_words
from es_simhash.quality.health import SENTENCES
from es_simhash.tables.notebook import Child, Html, join, user_text

_HERE = Path(__file__).parent
_EN, _ZH = (json.loads((_HERE / f"words.{name}.json").read_text("utf-8")) for name in ("en", "zh"))


def _health(sentences: Iterable[tuple[str, tuple[str, str]]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for kind, (message, advice) in sentences:
        found |= {f"found_{kind}": message, f"advice_{kind}": advice}
    return found


WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        **_EN["words"],
        **rule_words("en"),
        **_health((kind, (each.message, each.advice)) for kind, each in SENTENCES.items()),
    },
    "zh": {**_ZH["words"], **rule_words("zh"), **_health(_ZH["findings"].items())},
}
"""The words of each language by key; what stands in braces is filled in."""

LANGUAGES = tuple(WORDS)


@dataclass(frozen=True, slots=True)
class Speech:
    """The words of a report in one language, ``"en"`` or ``"zh"``; another one raises InvalidInputError."""

    language: str = "en"

    def __post_init__(self) -> None:
        if self.language not in LANGUAGES:
            raise InvalidInputError(f"language {shorten(self.language)} is not known: give {' or '.join(LANGUAGES)}")

    def __call__(self, key: str, **values: object) -> str:
        """Return the words *key*, those for one where *number* is 1; numbers are written with separators."""
        if values.get("number") == 1 and f"{key}_1" in WORDS[self.language]:
            key = f"{key}_1"
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
