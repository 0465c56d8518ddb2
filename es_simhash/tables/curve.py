"""
Shares by distance as lines in SVG, for a notebook: no script, nothing loaded, readable on a light and on a dark ground.

Axes and words have the colour of the text around them. A line has a pattern besides its colour, and a text alternative
says where each line begins and ends; the table beside it has every number. What is drawn is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from es_simhash.tables.markup import Html, element, user_text

CURVE_STYLE = Html(
    ".es-simhash svg.curve{display:block;width:100%;max-width:38em;height:auto;margin:0}"
    ".es-simhash .curve text{fill:currentColor;font-size:12px}"
    ".es-simhash .curve path{fill:none;stroke-width:2}"
    ".es-simhash .curve .axis{stroke:currentColor;stroke-width:1;opacity:.35}"
    ".es-simhash .recall{stroke:#d6603d}"
    ".es-simhash .precision{stroke:#3f83c8}"
)

# The drawing, in units of its own; the legend stands to the right of the lines.
_LEFT, _TOP, _RIGHT, _BOTTOM = 34.0, 12.0, 360.0, 200.0
_WIDTH, _HEIGHT = 540, 236
_MOST_TICKS = 13
_DASHES = (None, "7 4")


def draw_shares(title: str, distances: Sequence[int], lines: Mapping[str, Sequence[float | None]]) -> Html:
    """
    Return a picture of shares, 0 to 1, by max_distance, below its *title*.

    Args:
        title:
            What it is of; it may have words of users.
        distances:
            The distances in bits, in order.
        lines:
            The shares at each distance, by the name of the line; ``None`` leaves a gap. A name is ``recall`` or
            ``precision``, after ``verified.`` for a broken line.
    """
    points = {name: _points(distances, shares) for name, shares in lines.items()}
    drawn = [_line(name, runs) for name, runs in points.items()]
    legend = [part for place, name in enumerate(lines) for part in _legend(name, _TOP + 12 + 22 * place)]
    picture = element(
        "svg",
        *_axes(distances),
        *drawn,
        *legend,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        class_="curve",
        role="img",
        aria_label="; ".join(_alternative(name, distances, shares) for name, shares in lines.items()),
    )
    return element("div", element("p", element("strong", user_text(title))), picture)


def _x(distance: float, distances: Sequence[int]) -> float:
    low, high = distances[0], distances[-1]
    return _LEFT + (distance - low) / max(1, high - low) * (_RIGHT - _LEFT)


def _y(share: float) -> float:
    return _BOTTOM - share * (_BOTTOM - _TOP)


def _points(distances: Sequence[int], shares: Sequence[float | None]) -> list[list[tuple[float, float]]]:
    """Return the places of a line, in a list for each run without a gap."""
    runs: list[list[tuple[float, float]]] = [[]]
    for distance, share in zip(distances, shares, strict=True):
        if share is not None:
            runs[-1].append((_x(distance, distances), _y(share)))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _line(name: str, runs: Sequence[Sequence[tuple[float, float]]]) -> Html:
    # A point without a neighbour is drawn as a short dash.
    moves = [run if len(run) > 1 else [(run[0][0] - 3, run[0][1]), (run[0][0] + 3, run[0][1])] for run in runs]
    path = " ".join("M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in run) for run in moves)
    return element("path", d=path, **_look(name))


def _look(name: str) -> dict[str, str | None]:
    verified, _, figure = name.rpartition(".")
    return {"class_": figure, "stroke_dasharray": _DASHES[bool(verified)]}


def _legend(name: str, y: float) -> list[Html]:
    x = _RIGHT + 24
    return [
        element("path", d=f"M{x} {y} L{x + 28} {y}", **_look(name)),
        element("text", name.replace(".", " "), x=f"{x + 36}", y=f"{y + 4}"),
    ]


def _axes(distances: Sequence[int]) -> list[Html]:
    step = -(-len(distances) // _MOST_TICKS)
    rules = [
        part
        for share in (0.0, 0.5, 1.0)
        for part in (
            element("path", d=f"M{_LEFT} {_y(share):.1f} L{_RIGHT} {_y(share):.1f}", class_="axis"),
            element("text", f"{share:g}", x=f"{_LEFT - 6}", y=f"{_y(share) + 4:.1f}", text_anchor="end"),
        )
    ]
    ticks = [
        element("text", str(each), x=f"{_x(each, distances):.1f}", y=f"{_BOTTOM + 17}", text_anchor="middle")
        for each in distances[::step]
    ]
    middle = f"{(_LEFT + _RIGHT) / 2}"
    return [*rules, *ticks, element("text", "max_distance (bits)", x=middle, y=f"{_BOTTOM + 33}", text_anchor="middle")]


def _alternative(name: str, distances: Sequence[int], shares: Sequence[float | None]) -> str:
    known = [(distance, share) for distance, share in zip(distances, shares, strict=True) if share is not None]
    if not known:
        return f"{name.replace('.', ' ')}: unknown"
    (first, begin), (last, end) = known[0], known[-1]
    return f"{name.replace('.', ' ')}: {begin:.3g} at max_distance {first}, {end:.3g} at {last}"
