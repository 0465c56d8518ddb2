"""The lines of a user dictionary of jieba, checked before its digest becomes part of a scheme. Nothing is cut here."""

from __future__ import annotations

import re

from es_simhash.errors import SchemeError, shorten

KNOWN = r"\u4E00-\u9FD5a-zA-Z0-9+#&._%\-"
"""The characters that jieba looks for words in, for a regular expression; all others stand between words."""

_UNKNOWN = re.compile(f"[^{KNOWN}]")

# How jieba reads a line: whatever is no frequency and no tag is part of the word.
_ENTRY = re.compile(r"(.+?)(?: [0-9]+)?(?: [a-z]+)?")


def check_dictionary(content: bytes) -> None:
    """Raise SchemeError, with the number of the line, if *content* is no dictionary or a word can match no text."""
    for number, raw in enumerate(content.split(b"\n"), 1):
        try:
            line = raw.decode().strip().removeprefix("\ufeff")
        except UnicodeDecodeError as error:
            raise SchemeError(
                f"line {number} of the dictionary is not UTF-8: convert the file, as with iconv -f GB18030 -t UTF-8"
            ) from error
        entry = _ENTRY.fullmatch(line)
        if entry is not None and (unknown := _UNKNOWN.search(entry[1])) is not None:
            raise SchemeError(
                f"line {number} of the dictionary, {shorten(line)}, can match no text: jieba ends a word at "
                f"{shorten(unknown[0])}; write the word, then perhaps a space and its frequency (a whole number), then "
                "perhaps a space and its tag (small letters)"
            )
