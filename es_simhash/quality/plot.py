"""
Draws the figures of an evaluation. Needs matplotlib, which is imported when a picture is drawn.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from es_simhash.errors import InvalidInputError, MissingDependencyError, shorten
from es_simhash.quality.evaluate import Report

_SUFFIXES = (".png", ".svg", ".pdf")


def check_picture(path: str | Path) -> None:
    """
    Refuse a *path* whose ending is not a format that can be written.

    Raises:
        InvalidInputError: If it is not one of ``.png``, ``.svg`` and ``.pdf``.
    """
    if Path(path).suffix.lower() not in _SUFFIXES:
        raise InvalidInputError(
            f"{shorten(str(path))} is not the name of a picture: give a name that ends in {', '.join(_SUFFIXES)}"
        )


def plot_report(report: Report, path: str | Path) -> None:
    """
    Write recall and precision by max_distance to *path*, with and without verification.

    Args:
        report:
            What :func:`evaluate` returned.
        path:
            File to write; its ending, ``.png``, ``.svg`` or ``.pdf``, decides the format.

    Raises:
        InvalidInputError: If the ending is another.
        MissingDependencyError: If matplotlib is not installed.
    """
    check_picture(path)
    try:
        # Not pyplot: it would choose a window system and keep the figure.
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingDependencyError("a plot needs matplotlib: pip install 'es-simhash[plot]'") from error
    rows = report.by_distance()
    distances = [row["max_distance"] for row in rows]
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for label, style, figures in (("", "--", rows), (", verified", "-", [row["verified"] for row in rows])):
        for name, colour in (("recall", "tab:blue"), ("precision", "tab:orange")):
            axes.plot(distances, _values(figures, name), style, color=colour, marker=".", label=f"{name}{label}")
    axes.set(
        xlabel="max_distance (bits)",
        ylabel=f"share of pairs (Jaccard {report.positive:g} and more)",
        ylim=(0, 1.03),
        title=f"{report.scheme}, verified at {report.similarity:g}",
    )
    axes.grid(alpha=0.3)
    axes.legend(loc="lower left")
    figure.savefig(path)


def _values(rows: list[dict[str, Any]], name: str) -> list[float]:
    # A figure that does not exist, such as the precision of nothing, leaves a gap.
    return [float("nan") if row[name] is None else row[name] for row in rows]
