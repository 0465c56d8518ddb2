"""
Fit the cost of a lookup, in empty searches, that ``docs/sizing.md`` has.

    python bench/fit_sizing.py docs/benchmarks.md

Reads the table "Time of a lookup over that of an empty search" (4 million documents; bench/lookup.py measured it) and
prints, for each product, the constants with the least squares of relative errors, and each row with what they predict.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

from es_simhash.lookup.plan import explain_plan
from es_simhash.mapping.context import IndexStats

DOCUMENTS = 4_000_000
# Columns of the table after the distance: product, segments, whether scripts run.
COLUMNS = (
    ("opensearch", 8, True),
    ("opensearch", 8, False),
    ("opensearch", 1, True),
    ("opensearch", 1, False),
    ("elasticsearch", 12, False),
    ("elasticsearch", 1, False),
)
SMALLEST_DISTANCE = 3  # below, everything is noise
NAMES = ("always", "term", "posting", "check", "hit")


def read_rows(page: str) -> list[dict[str, Any]]:
    """Return the measurements of the table."""
    table = page.partition("**Time of a lookup over that of an empty search**")[2].partition("\n\n")[2]
    rows = []
    for line in table.partition("\n\n")[0].splitlines()[2:]:
        distance, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        for column, cell in zip(COLUMNS, cells, strict=True):
            if re.fullmatch(r"[\d.]+", cell) and int(distance) >= SMALLEST_DISTANCE:
                product, segments, scripts = column
                rows.append(
                    {
                        "product": product,
                        "segments": segments,
                        "scripts": scripts,
                        "max_distance": int(distance),
                        "ratio": float(cell),
                    }
                )
    return rows


def amounts(row: dict[str, Any]) -> list[float]:
    """Return how often each of NAMES is paid in the cheapest plan."""
    found = explain_plan(row["max_distance"], stats=IndexStats(DOCUMENTS), scripts=row["scripts"])[0]
    checks = found.passing if found.plan.script else 0.0
    return [1.0, found.plan.terms * row["segments"], found.postings, checks, found.hits]


def least_squares(table: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the constants, none below 0, by coordinate descent."""
    scale = 1 / np.maximum(np.linalg.norm(table, axis=0), 1e-12)
    squares, products = (table * scale).T @ (table * scale), (table * scale).T @ wanted
    found = np.zeros(len(scale))
    for _ in range(5_000):
        for place in range(len(found)):
            found[place] = max(0.0, found[place] + products[place] - squares[place] @ found)
    return found * scale


def main() -> None:
    rows = read_rows(Path(sys.argv[1]).read_text("utf-8"))
    report: dict[str, Any] = {}
    for product in dict.fromkeys(row["product"] for row in rows):
        own = [row for row in rows if row["product"] == product]
        ratios = np.array([row["ratio"] for row in own])
        table = np.array([amounts(row) for row in own])
        constants = least_squares(table / ratios[:, np.newaxis], (ratios - 1) / ratios)
        predicted = 1 + table @ constants
        for row, each in zip(own, predicted.tolist(), strict=True):
            row |= {"predicted": round(each, 1), "times": round(each / row["ratio"], 2)}
        thousandths = {name: float(f"{1000 * each:.3g}") for name, each in zip(NAMES, constants.tolist(), strict=True)}
        report[product] = {"thousandths": thousandths, "rows": own}
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
