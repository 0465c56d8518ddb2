"""
HTML that is safe by construction: every string is escaped, unless this module made it.

Texts of users may hold markup, control characters, marks that change the direction of text, and half characters. No
page and no word of one is here.
"""

from __future__ import annotations

import re
from html import escape
from typing import TypeAlias

# C0 and C1 controls except tab and line feed, separators, marks that change the direction of text, lone surrogates,
# and the codes that are no characters: a browser, an editor or a parser may treat each of them as an order.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufeff"
    "\ufff9-\uffff]"
)
# Most texts need no change; to see that costs less than to change them.
_UNSAFE = re.compile(f"[&<>\"'{_HIDDEN.pattern[1:]}")
_VOID = frozenset({"br", "meta", "input"})


class Html(str):
    """
    Markup that is already safe.
    """

    __slots__ = ()


Child: TypeAlias = "str | Html"


def shown(text: str) -> str:
    r"""
    Return *text* with each character that is an order rather than a letter as an escape, such as ``\u202e``.
    """
    return _HIDDEN.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def _safe(child: Child) -> str:
    if isinstance(child, Html) or _UNSAFE.search(child) is None:
        return child
    return escape(shown(child), quote=True)


def join(*children: Child) -> Html:
    """
    Return *children* one after the other; what is not markup of ours is escaped.
    """
    return Html("".join(map(_safe, children)))


def element(name: str, /, *children: Child, **attributes: str | float | bool | None) -> Html:
    """
    Return an element.

    Args:
        name:
            Its name, a word of the program.
        children:
            Texts, which are escaped, and markup.
        attributes:
            Their values are escaped. An underscore at the end of a name is left out, one within it is a hyphen;
            ``True`` is an attribute without a value, ``False`` and ``None`` leave it out.

    Examples:
        >>> element("p", "a < b", class_="note")
        '<p class="note">a &lt; b</p>'
    """
    written = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        attribute = key.rstrip("_").replace("_", "-")
        written.append(f" {attribute}" if value is True else f' {attribute}="{_safe(str(value))}"')
    opening = f"<{name}{''.join(written)}>"
    return Html(opening if name in _VOID else f"{opening}{join(*children)}</{name}>")


def user_text(text: str, *, within: str = "bdi", **attributes: str | None) -> Html:
    """
    Return a text of a user in an element of its own, so that its direction changes nothing around it.
    """
    return element(within, text, dir=None if within == "bdi" else "auto", **attributes)  # a <bdi> is "auto" by itself


def bar(share: float) -> Html:
    """
    Return a bar of which *share* is full. It only repeats a number that stands beside it.
    """
    width = max(0.0, min(100.0, share * 100))
    rect = element("rect", width=f"{width:.2f}", height="10")
    return element("svg", rect, viewBox="0 0 100 10", preserveAspectRatio="none", aria_hidden="true")
