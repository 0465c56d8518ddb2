"""
Optional steps before texts become features: ``html``, ``links``, ``numbers``, ``t2s``.

``html``: HTML to text, without scripts, styles, templates, titles and comments; character references resolved; block
elements and line breaks on separate lines. ``links``: without web addresses, as far as their ASCII characters go, for
posts that are sent again with another short link. ``numbers``: without numbers, times, addresses and ids, for log
lines, forms and subtitles. What goes is each run of ASCII letters, digits of any script and ``_``, joined by ``-``,
``.`` and ``/`` (and by ``:``, ``,`` and ``+`` between digits), that has a digit. None needs a library, not even
Python's parser of HTML, which differs from version to version: what goes never changes, in time that grows with the
text alone.

``t2s``: traditional to simplified Chinese, characters and phrases, by OpenCC's configuration of that name (extra
``preprocess``). Japanese stays as it is: there a machine and a desk would be one. The scheme records the version of the
library (``scheme.py``): another one may change bits.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from html import unescape
from typing import Any

from es_simhash.errors import SchemeError
from es_simhash.hashing.scheme import Scheme, library_version

_MARKUP = re.compile(
    r"<!--.*?(?:-->|\Z)|<[!?][^<>]*>"
    r"|<(/?)([a-zA-Z][^\s/<>]*)(?:(?:[^<>\"']++|\"[^\"<]*+\"|'[^'<]*+')*+>|[^<>]*>)",
    re.DOTALL,
)
_REMOVED = {
    name: re.compile(f"</{name}", re.IGNORECASE) for name in ("noscript", "script", "style", "template", "title")
}
_BLOCK = re.compile(
    "address|article|aside|blockquote|br|d[dlt]|details|dialog|div|fieldset|figcaption|figure|footer|form|h[1-6]|header|"
    "hgroup|hr|li|main|nav|ol|option|p|pre|section|summary|table|t[dhr]|ul"
)
_KANA = re.compile("[ぁ-ゖァ-ヺ]")
_JAPANESE = 10
"""A text is Japanese if one of so many characters is kana: others quote a word or two."""
# OpenCC takes UTF-8, where NUL may end a text and a lone surrogate cannot be written.
_UNWRITABLE = re.compile("[\0\ud800-\udfff]")

# The zeros of the decimal digits; a later Unicode's digits are left alone, so that no Python changes bits.
_ZEROS = (
    "0\u0660\u06f0\u07c0\u0966\u09e6\u0a66\u0ae6\u0b66\u0be6\u0c66\u0ce6\u0d66\u0e50\u0ed0\u0f20\u1040\u1090\u17e0"
    "\u1810\uff10"
)
_DIGITS = "".join(f"{zero}-{chr(ord(zero) + 9)}" for zero in _ZEROS)
_DIGIT = re.compile(f"[{_DIGITS}]")
_PART = f"[{_DIGITS}A-Za-z_]+"
_RUN = re.compile(f"{_PART}(?:(?:[-./]|(?<=[{_DIGITS}])[:,+](?=[{_DIGITS}])){_PART})*")

LINK = re.compile(r"(?:https?://|www\.)[!#-;=?-Z\[\]_a-z~]+", re.IGNORECASE | re.ASCII)


def preprocessor(scheme: Scheme) -> Callable[[Sequence[str]], list[str]] | None:
    """Return the function that does a scheme's steps with texts, or ``None`` if it has none."""
    if not scheme.preprocess:
        return None
    for name, version in scheme.libraries.items():
        found = library_version(name)
        if found != version:
            raise SchemeError(
                f"scheme {scheme.id} was made with {name} {version}, but {found} is installed: "
                f"pip install {name}=={version}, or make a new scheme and backfill"
            )
    steps = [_CONVERTERS[step] for step in scheme.preprocess]

    def convert(text: str) -> str:
        clean = _UNWRITABLE.sub(" ", text)
        for step in steps:
            clean = step(clean)
        return clean

    return lambda texts: list(map(convert, texts))


def html_to_text(html: str) -> str:
    parts, at = [], 0
    while (found := _MARKUP.search(html, at)) is not None:
        parts.append(unescape(html[at : found.start()]))
        at, name = found.end(), (found[2] or "").lower()
        if _BLOCK.fullmatch(name):
            parts.append("\n")
        elif name in _REMOVED and not found[1]:
            end = _REMOVED[name].search(html, at)
            at = len(html) if end is None else end.start()
    return "".join([*parts, unescape(html[at:])])


@functools.cache
def _opencc() -> Any:
    import opencc  # noqa: PLC0415 - an extra

    return opencc.OpenCC("t2s")


def _to_simplified(text: str) -> str:
    simplified: str = text if is_japanese(text) else _opencc().convert(text)
    return simplified


def is_japanese(text: str) -> bool:
    """Return whether so much of *text* is kana that its logographs are Japanese."""
    return len(_KANA.findall(text)) * _JAPANESE > len(text)


def _without_links(text: str) -> str:
    return LINK.sub(" ", text)


def _without_numbers(text: str) -> str:
    return _RUN.sub(lambda run: " " if _DIGIT.search(run[0]) else run[0], text)


_CONVERTERS: dict[str, Callable[[str], str]] = {
    "html": html_to_text,
    "links": _without_links,
    "numbers": _without_numbers,
    "t2s": _to_simplified,
}
