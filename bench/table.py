"""
The table of fingerprints in memory, at one size and at another: filling, looking up, its bytes, and its file.

    python bench/table.py --fingerprints 1e6 30e6 --distances 3 8

The fingerprints are drawn, not indexed; they are added 50,000 at a time, as searches show them. Those looked up are
drawn too, and a fifth are copies of one of the table with two bits changed. ``rate``: lookups a second, as a share of
those at the first size, in one run.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from es_simhash.lookup.fingerprint_table import FingerprintTable
from es_simhash.lookup.index_table import PAGE

ASKED, BATCH = 100_000, 1_000


def drawn(chance: np.random.Generator, count: int) -> NDArray[np.uint64]:
    return chance.integers(0, 1 << 64, count, np.uint64, endpoint=False)


def asked(chance: np.random.Generator, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return what to look up; each fifth has two bits fewer or more than one of *values*."""
    wanted = drawn(chance, ASKED)
    near = chance.choice(values, len(wanted[::5]))
    for _ in range(2):
        near ^= np.uint64(1) << chance.integers(0, 64, len(near), np.uint64)
    wanted[::5] = near
    return wanted


def seconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fingerprints", type=float, nargs="+", default=[1e6, 30e6])
    parser.add_argument("--distances", type=int, nargs="+", default=[3, 8])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    found = [
        row
        for distance in options.distances
        for row in measured(distance, [int(each) for each in options.fingerprints], options.rounds)
    ]
    print(json.dumps({**vars(options), "found": found}, indent=2))


def measured(distance: int, sizes: list[int], rounds: int) -> list[dict[str, Any]]:
    chance = np.random.default_rng(distance)
    rows: list[dict[str, Any]] = []
    for size in sizes:
        values, table = drawn(chance, size), FingerprintTable(distance)
        row: dict[str, Any] = {"within": distance, "fingerprints": size}
        row["filling_seconds"] = seconds(
            lambda v=values, t=table: [t.add(v[n : n + PAGE]) for n in range(0, size, PAGE)]
        )
        wanted = asked(chance, values)
        row["first_lookup_seconds"] = seconds(lambda w=wanted, t=table: t.near(w[:1]))
        runs = [
            seconds(lambda w=wanted, t=table: [t.near(w[n : n + BATCH]) for n in range(0, ASKED, BATCH)])
            for _ in range(rounds)
        ]
        row["microseconds_a_lookup"] = [run / ASKED * 1e6 for run in runs]
        row["bytes_each"] = table.nbytes / len(table)
        rows.append(row)
        row["rate"] = median(rows[0]["microseconds_a_lookup"]) / median(row["microseconds_a_lookup"])
    return rows


if __name__ == "__main__":
    main()
