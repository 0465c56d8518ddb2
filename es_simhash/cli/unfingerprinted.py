"""Why a text has no fingerprint, in words for people. No command is here."""

from __future__ import annotations

from dataclasses import dataclass

from es_simhash import Scheme

_LEFT_OUT = {
    "shingles": "characters",
    "keywords": "words: those of one character, stop words, and scripts other than Chinese and Latin without accents",
}


@dataclass(frozen=True, slots=True)
class UnfingerprintedText:
    """Why a text has no fingerprint, so that a lookup of it finds nothing; *scheme* is an id."""

    kind: str
    scheme: str

    @classmethod
    def of(cls, text: str, scheme: Scheme) -> UnfingerprintedText:
        if not text.strip():
            return cls("blank" if text else "empty", scheme.id)
        return cls("left_out" if any(map(str.isalnum, text)) else "no_letters", scheme.id)

    def __str__(self) -> str:
        left_out = _LEFT_OUT.get(self.scheme.rpartition("-")[0], "words")
        why = {
            "empty": "is empty",
            "blank": "is blank",
            "no_letters": "has no letters and no digits",
            "left_out": f"has only what the scheme {self.scheme} leaves out ({left_out})",
        }
        return f"the text {why[self.kind]}, so it has no fingerprint and matches nothing"
