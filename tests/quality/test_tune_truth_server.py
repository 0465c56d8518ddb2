"""The precision that tune reports, on indices whose pairs are known by comparing all with all."""

import gzip
import json
from itertools import combinations
from pathlib import Path

import pytest

from es_simhash import fingerprint, hamming_distance
from es_simhash.texts.shingles import compare_shingles, shingle_sets
from tests.servers.support import ONE_SHARD, send_lines

DATA = Path(__file__).parents[3] / "shared" / "data"


def fill(simhash, server, index, found):
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    actions = simhash.with_fingerprints(index, [{"_id": str(n), "body": text} for n, text in enumerate(found)])
    lines = [part for each in actions for part in ({"index": {"_index": index, "_id": each.pop("_id")}}, each)]
    send_lines(server, lines)
    server.request("POST", f"/{index}/_refresh")


def true_precision(found):
    """Return by distance which share of the pairs within it has texts that are 80 % the same, and their number."""
    prints, sets = [fingerprint(text) for text in found], shingle_sets(found)
    pairs = []
    for one, other in combinations(range(len(found)), 2):
        if prints[one] is not None and prints[other] is not None:
            distance = hamming_distance(prints[one], prints[other])
            if distance <= 12:
                pairs.append((distance, compare_shingles(sets[one], sets[other]).jaccard >= 0.8))
    within = {most: [right for distance, right in pairs if distance <= most] for most in (0, 3, 5, 8, 10, 12)}
    return {most: (sum(each) / len(each) if each else None, len(each)) for most, each in within.items()}


def of_scheme(found, scheme="shingles-2"):
    return {each.max_distance: each for each in found.schemes if each.scheme == scheme}


def test_precision_is_that_of_the_pairs_of_the_index(server, index, simhash):
    """Forms that differ in their words are near each other and no duplicates: most of what bits alone find is wrong."""
    form = "Monthly report of the station {} on the river {}: level {} and flow {}, no remarks, next report in a month."
    names = [f"{a}{b}" for a in ("alba", "bren", "cor", "dun") for b in ("ton", "wick", "ford", "ham", "by")]
    found = [form.format(a, b, n, 7 * n) for n, (a, b) in enumerate(zip(names * 4, names[3:] * 5, strict=False))]
    found += found[:5]
    fill(simhash, server, index, found)
    truth = true_precision(found)
    assert truth[12][0] < 0.5
    figures = of_scheme(simhash.tune(index, sample=len(found)))
    for most, (precision, pairs) in truth.items():
        # A pair is seen from either of its ends.
        assert (figures[most].precision, figures[most].pairs) == (pytest.approx(precision), 2 * pairs)


def test_an_index_without_duplicates_has_no_precision(server, index, simhash):
    """Edited copies, which tune makes itself, are none of the index."""
    found = ["The council approved the new bridge over the river.", "Shares of the chip maker fell by a tenth."]
    fill(simhash, server, index, found)
    figures = of_scheme(simhash.tune(index))
    assert {(each.precision, each.pairs) for each in figures.values()} == {(None, 0)}
    assert figures[12].recall > 0.5


@pytest.mark.skipif(not DATA.is_dir(), reason="no texts with known pairs here")
def test_precision_of_a_newswire(server, index, simhash):
    """
    Real texts: bits alone are wrong for every other pair at 12 bits, and tune says so.

    The lookups that are drawn have two dozen pairs, so the bound is wide; a precision of 1.0, which edited copies alone
    would give, is outside.
    """
    with gzip.open(DATA / "reuters21578" / "docs.jsonl.gz", "rt", encoding="utf-8") as lines:
        found = [json.loads(line)["text"] for line, _ in zip(lines, range(1500), strict=False)]
    fill(simhash, server, index, found)
    truth = true_precision(found)[12][0]
    figures = of_scheme(simhash.tune(index, sample=len(found)))
    assert figures[12].precision == pytest.approx(truth, abs=0.4)
    assert truth < 0.6
