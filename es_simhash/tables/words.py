"""Sentences of a page in a language: the English one is the key, a JSON file has the others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from string import Formatter

from es_simhash.arguments import check_choice
from es_simhash.tables.notebook import Html, asset, escaped, percent, user_text

LANGUAGES = ("en", "zh")


class Words:
    """The sentences of the file *catalogue* of the package in *language*; another one raises InvalidInputError."""

    def __init__(self, language: str, catalogue: str) -> None:
        self.language = check_choice("language", language, LANGUAGES)
        self.all: Mapping[str, str] = {} if language == "en" else json.loads(asset(f"{catalogue}.{language}.json"))

    def __call__(self, sentence: str, **values: object) -> str:
        """Return the sentence with *values*; numbers have separators."""
        said = self.all.get(sentence, sentence)
        written = {name: f"{value:,}" if isinstance(value, int) else value for name, value in values.items()}
        return said.format(**written) if values else said

    def html(self, sentence: str, **values: str | float) -> Html:
        """Return the sentence as markup; each value that is a text is a text of a user."""
        parts: list[str] = []
        for literal, name, _, _ in Formatter().parse(self.all.get(sentence, sentence)):
            parts.append(escaped(literal))
            if name is not None:
                value = values[name]
                parts.append(user_text(value) if isinstance(value, str) else f"{value:,}")
        return Html("".join(parts))

    def in_percent(self, share: str) -> str:
        """Return *share*, such as ``80 %``, as the language writes it."""
        return share.replace(" %", "%") if self.language == "zh" else share

    def percent(self, share: float | None) -> str:
        """Return a share in percent as the language writes it; empty for ``None``."""
        return self.in_percent(percent(share))
