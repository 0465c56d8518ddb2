"""
Measure lookup plans one by one on a real server, and fit the cost model of ``es_simhash/lookup/plan.py`` to them.

    python bench/plans.py measure --product opensearch --folder DIR --bits 16 > one.json
    python bench/plans.py fit one.json two.json ...

``measure`` prints each plan's median time over an empty search; ``fit`` prints the constants by the thousand whose
choices are the least slower than the best plan measured for the same case, and those choices.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from harness import EMPTY, PLANTED, PRODUCTS, arguments, in_turns, serve_planted

from es_simhash import SimHashClient
from es_simhash.lookup import find
from es_simhash.lookup.plan import MS_PER_THOUSAND, LookupPlan, estimate, explain_plan
from es_simhash.mapping.context import IndexStats

DISTANCES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16)
# Milliseconds for a thousand of each: what ``fit`` tries. Only their proportions decide, so terms stay the same.
GRID = {
    "terms": (6.5,),
    "postings": (0.01, 0.02, 0.03, 0.05),
    "checks": (0.05, 0.1, 0.2),
    "hits": (12.0, 20.0, 36.0, 60.0),
}


def candidates_for(max_distance: int, documents: int, bits: int, *, scripts: bool, most: int) -> list[LookupPlan]:
    """Return the plans worth measuring: the cheapest by the model as it is, for several sizes of index."""
    plans: dict[LookupPlan, None] = {}
    for scale in (1, 16):
        stats = IndexStats(documents * scale, 2.0 ** (16 - bits))
        for script in {False, scripts}:
            estimates = explain_plan(max_distance, stats=stats, scripts=script)
            kept = [guess for guess in estimates if guess.plan.script == script and guess.hits < 20_000]
            plans |= dict.fromkeys(guess.plan for guess in kept[:most])
    return [plan for plan in plans if not plan.is_scan]


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return a row for each distance and plan: whole lookups with the plan forced, in turns with empty searches."""
    rows = []
    with serve_planted(options) as (_, client, planted):
        queries, simhash = planted.queries[: options.lookups], SimHashClient(client)
        found: dict[LookupPlan, list[int]] = {}

        def empty(_: int) -> Any:
            return client.search(index=PLANTED, body=EMPTY)

        def look(plan: LookupPlan, query: int) -> None:
            find.plan_lookup = lambda *_, **__: plan
            answer = simhash.find_near_dups(PLANTED, fingerprint=query, max_distance=plan.max_distance)
            found.setdefault(plan, []).append(answer.candidates)

        for max_distance in options.distances:
            scripts = options.product == "opensearch"
            plans = candidates_for(max_distance, options.documents, options.bits, scripts=scripts, most=options.most)
            ways = {plan: partial(look, plan) for plan in plans}
            spent = in_turns({"empty": empty, **ways}, queries, options.warm)
            for plan in plans:
                ms = statistics.median(spent[plan])
                row = {
                    "product": options.product,
                    "documents": options.documents,
                    "bits": options.bits,
                    "merged": options.merged,
                    "max_distance": max_distance,
                    "steps": plan.steps,
                    "script": plan.script,
                    "plan": plan.name,
                    "hits": statistics.median(found[plan]),
                    "ms": round(ms, 3),
                    "ratio": round(ms / statistics.median(spent["empty"]), 2),
                }
                rows.append(row)
                print(json.dumps(row), file=sys.stderr)
    return rows


def features(row: dict[str, Any]) -> list[float]:
    """Return what the model counts, in thousands, for a measured plan."""
    plan = LookupPlan(row["max_distance"], row["steps"], row["script"])
    found = estimate(plan, IndexStats(row["documents"], 2.0 ** (16 - row["bits"])))
    checks, hits = (found.passing, 0.0) if plan.script else (0.0, found.passing)
    amounts = [plan.terms, found.postings, checks, hits]
    return [amount / 1000 for amount in amounts]


def fit(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the constants of GRID that choose best, by the worst choice and then by the mean, and what they choose."""
    table = np.array([features(row) for row in rows])
    cases: dict[tuple[Any, ...], list[int]] = {}
    for position, row in enumerate(rows):
        for scripts in (False, True):
            if row["script"] <= scripts:
                key = (row["product"], row["bits"], row.get("merged", False), row["max_distance"], scripts)
                cases.setdefault(key, []).append(position)
    best = {key: min(members, key=lambda i: rows[i]["ms"]) for key, members in cases.items()}

    def regrets(constants: tuple[float, ...]) -> list[list[Any]]:
        """How many times slower than the best plan measured the chosen one is, case by case, the worst first."""
        predicted = table @ np.array(constants)
        chosen = {key: min(members, key=lambda i: predicted[i]) for key, members in cases.items()}
        found = [
            [
                round(rows[chosen[key]]["ms"] / rows[i]["ms"], 2),
                *key,
                rows[chosen[key]]["plan"],
                rows[i]["plan"],
            ]
            for key, i in best.items()
        ]
        return sorted(found, key=lambda row: row[0], reverse=True)

    def judge(constants: tuple[float, ...]) -> tuple[float, float]:
        found = [row[0] for row in regrets(constants)]
        return max(found), statistics.mean(found)

    fitted = min(product(*GRID.values()), key=judge)
    in_use = tuple(MS_PER_THOUSAND[name] for name in GRID)
    return {
        name: {
            "per_thousand": dict(zip(GRID, constants, strict=True)),
            "worst_and_mean": judge(constants),
            "worst_choices": regrets(constants)[:8],
        }
        for name, constants in (("fitted", fitted), ("in use", in_use))
    } | {"measurements": len(rows), "cases": len(cases)}


def main() -> None:
    """Measure or fit."""
    parser = arguments(__doc__, product=False)
    commands = parser.add_subparsers(required=True, dest="command")
    measuring = commands.add_parser("measure")
    measuring.add_argument("--product", choices=PRODUCTS, required=True)
    measuring.add_argument("--heap", default="2g")
    measuring.add_argument("--folder", required=True, help="where indices are kept between runs")
    measuring.add_argument("--documents", type=int, default=4_000_000)
    measuring.add_argument("--bits", type=int, default=16)
    measuring.add_argument("--merged", action="store_true", help="an index of one segment")
    measuring.add_argument("--lookups", type=int, default=20)
    measuring.add_argument("--most", type=int, default=8, help="plans for each size of index, with and without script")
    measuring.add_argument("--warm", type=int, default=3, help="rounds of lookups before those that count")
    measuring.add_argument("--distances", type=int, nargs="*", default=DISTANCES)
    fitting = commands.add_parser("fit")
    fitting.add_argument("files", nargs="+", type=Path)
    options = parser.parse_args()
    if options.command == "measure":
        result: Any = measure(options)
    else:
        result = fit([row for file in options.files for row in json.loads(file.read_text())])
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
