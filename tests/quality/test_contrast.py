"""
The colours of the pages stand out enough for weak eyes: WCAG 2.2 AA, in light, in dark and on paper.

Read from the style sheets themselves: every colour of letters, and every colour that fills a shape.
"""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

TEXT, GRAPHICS = 4.5, 3.0
PAGES = {
    "review": (("es_simhash.removal", "review.css"),),
    "report": (("es_simhash.removal", "review.css"), ("es_simhash.quality.report", "report.css")),
}
MEDIA = {"light": None, "dark": "(prefers-color-scheme: dark)", "print": "print"}
# Lines and frames that only part what is told apart without them.
DECORATION = {"--line"}


def read_css(page):
    """Return [(media, selector, {property: value})] of the style of *page*; media is None outside of any."""
    css = "\n".join(files(package).joinpath(name).read_text(encoding="utf-8") for package, name in PAGES[page])
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)
    rules = []
    for media, inner, selector, body in re.findall(
        r"@media ([^{]+?)\s*\{((?:[^{}]*\{[^{}]*\})*)\s*\}|([^{}@]+)\{([^{}]*)\}", css
    ):
        found = re.findall(r"([^{}]+)\{([^{}]*)\}", inner) if media else [(selector, body)]
        for name, declarations in found:
            pairs = (each.split(":", 1) for each in declarations.split(";") if ":" in each)
            rules.append((media or None, name.strip(), {key.strip(): value.strip() for key, value in pairs}))
    return rules


def colours(rules, medium):
    """Return the variables of *medium*: those of light, and what it sets instead."""
    found = {}
    for media, selector, declarations in rules:
        if selector == ":root" and media in (None, MEDIA[medium]):
            found |= {name: value for name, value in declarations.items() if name.startswith("--")}
    return found


def luminance(colour):
    """Return the relative luminance of a colour in hex, 0 to 1, as WCAG defines it."""
    digits = colour.lstrip("#")
    digits = "".join(2 * each for each in digits) if len(digits) == 3 else digits
    parts = (int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4))
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    """Return the contrast of two colours, 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def variable(value):
    """Return the name of the variable that *value* uses for its colour, or ``None``."""
    found = re.search(r"var\((--[\w-]+)\)", value or "")
    return found and found[1]


def pairs(rules):
    """Return each (foreground, background, least contrast) that a page has."""
    found = set()
    for _, selector, declarations in rules:
        background = variable(declarations.get("background"))
        # What has no background of its own stands on the page or in a panel.
        grounds = [background] if background else ["--paper", "--panel"]
        if colour := variable(declarations.get("color")):
            found |= {(colour, ground, TEXT) for ground in grounds}
        elif background and selector != ":root":
            found.add(("--ink", background, TEXT))
        for name in ("fill", "outline", "border"):
            shape = variable(declarations.get(name))
            if shape and shape not in DECORATION:
                found |= {(shape, ground, GRAPHICS) for ground in grounds}
    return found


def test_the_measure():
    """Examples of WCAG: black on white, and the lightest grey on white that is enough for letters."""
    assert contrast("#000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#fff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("medium", MEDIA)
@pytest.mark.parametrize("page", PAGES)
def test_colours_stand_out(page, medium):
    """Letters 4.5:1, shapes 3:1, against whatever they may stand on."""
    rules = read_css(page)
    known = colours(rules, medium)
    wanted = pairs(rules)
    assert {"--ink", "--quiet", "--accent", "--goes", "--stays", "--warn"} <= {front for front, _, _ in wanted}
    weak = {
        (front, back): round(contrast(known[front], known[back]), 2)
        for front, back, least in wanted
        if contrast(known[front], known[back]) < least
    }
    assert weak == {}


@pytest.mark.parametrize("medium", MEDIA)
def test_dark_and_print_set_every_colour(medium):
    """A colour of light that another medium does not set would stand on a ground that it was not made for."""
    for page in PAGES:
        rules = read_css(page)
        light = {name for media, selector, each in rules if selector == ":root" and media is None for name in each}
        own = {
            name for media, selector, each in rules if selector == ":root" and media == MEDIA[medium] for name in each
        }
        assert {name for name in light if name.startswith("--")} <= own
