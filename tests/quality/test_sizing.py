"""The page of sizes: its formula and its constants meet what was measured, and make its table."""

from __future__ import annotations

import re

import pytest

from es_simhash.lookup.plan import explain_plan
from es_simhash.mapping.context import IndexStats
from tests.docs.blocks import ROOT

PAGE = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
NAMES = ("always", "term", "posting", "check", "hit")


def _rows(head):
    table = PAGE.partition(f"| {head} |")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


COSTS = {name: dict(zip(NAMES, map(float, cells), strict=True)) for name, *cells in _rows("product")}


def _times_empty(product, documents, distance, *, segments=10, scripts=True, shards=1, at_once=1):
    """Return what the formula of the page says."""
    best = explain_plan(distance, stats=IndexStats(documents), scripts=scripts)[0]
    costs = COSTS[product]
    names = {**costs, "terms": best.plan.terms, "postings": best.postings, "segments": segments, "shards": shards}
    names |= {"checked": best.passing if best.plan.script else 0, "n": at_once, "sent": best.hits}
    [formula] = re.findall(r"^    (1 \+ .*)$", PAGE, re.MULTILINE)
    return eval(formula, names)  # noqa: S307 -- our page


@pytest.mark.parametrize(
    ("product", "segments", "scripts", "distance", "times"),
    [
        ("OpenSearch", 8, True, 3, 1.8),
        ("OpenSearch", 8, True, 12, 18.5),
        ("OpenSearch", 8, False, 10, 17.8),
        ("Elasticsearch", 12, False, 8, 4.1),
    ],
)
def test_the_measured_lookups_are_met_within_a_third(product, segments, scripts, distance, times):
    """Among 4 million documents, by the same page."""
    found = _times_empty(product, 4_000_000, distance, segments=segments, scripts=scripts)
    assert found == pytest.approx(times, rel=1 / 3)


def test_the_table_of_the_page_is_what_the_formula_says():
    for documents, *cells in _rows("documents"):
        number = int(documents.replace(",", "").removesuffix(" million")) * 1_000_000
        for distance, said in zip((3, 8, 12), cells, strict=True):
            assert _times_empty("OpenSearch", number, distance) == pytest.approx(float(said.replace(",", "")), rel=0.04)
    assert round(_times_empty("OpenSearch", 500_000_000, 8, shards=6, at_once=6)) > 0
