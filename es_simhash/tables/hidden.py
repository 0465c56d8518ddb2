"""
Characters that nobody sees, or that are orders to a terminal, a browser or a model, become escapes where a value of a
user is shown. Joiners and variation selectors stay where they shape the letter or picture before them.
"""

from __future__ import annotations

import re

# Controls, separators, marks of direction, blanks of no width, fillers, notes, tags; half characters and no characters.
HIDDEN = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufdd0-\ufdef\ufeff\uffa0\ufff0-\ufffc\ufffe\uffff\ud800-\udfff\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    '|(?<![^\x00-\x7f\u200b-\u200f])[\u200c\u200d]|(?<![^\x00-"$-)+-/:-\x7f\u200b-\u200f\ufe00-\ufe0f])[\ufe00-\ufe0f]'
)
"""Pattern of them; tabs and line feeds are not among them."""

_BESIDES_LINES = re.compile(HIDDEN)
_ON_ONE_LINE = re.compile(f"[\t\n]|{HIDDEN}")


def shown(text: str) -> str:
    r"""
    Return *text* with each such character as an escape, such as ``\u202e``; tabs and line feeds stay.

    Examples:
        >>> shown("pay\u200bpal \ufeff, 👩\u200d🚀")
        'pay\\u200bpal \\ufeff, 👩\u200d🚀'
    """
    return _BESIDES_LINES.sub(_escape, text)


def visible(text: str) -> str:
    """Return what :func:`shown` does, with tabs and line feeds as escapes too."""
    return _ON_ONE_LINE.sub(_escape, text)


def escape_in_json(text: str) -> str:
    """Return the JSON *text* with them as escapes of JSON, so that it means the same."""
    return _BESIDES_LINES.sub(lambda match: json_escape(match[0]), text)


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def json_escape(character: str) -> str:
    r"""Return *character* as JSON has it: a ``\uXXXX``, or two of them."""
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
