"""
The review page of many removals: seconds to build it, and its size.

    python bench/review.py --texts xwlb_zh --removals 100000

The plan is made of texts of a data set, each beside a copy with another punctuation mark; where the set is smaller it
comes again. No server is needed. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from dedup import read_texts

from es_simhash.removal.plan_options import PlanHeader
from es_simhash.removal.records import PlannedDocument, PlannedRemoval
from es_simhash.removal.removal_file import PlanWriter
from es_simhash.removal.review import Review


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--removals", type=int, default=100_000)
    parser.add_argument("--texts", default="xwlb_zh")
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    options = parser.parse_args()
    texts = read_texts(options.data, options.texts, options.removals)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "removal.db"
        with PlanWriter(path) as writer:
            for n in range(options.removals):
                text = texts[n % len(texts)][:10_000]
                one = PlannedDocument(f"d{n}", "news", None, n, 1, "", {"body": text})
                other = PlannedDocument(f"c{n}", "news", None, n, 1, "", {"body": f"{text}!"})
                writer.add(PlannedRemoval(one, other, 1, 0.8 + n % 20 / 100, "same"))
            writer.finish(PlanHeader({"news": "u"}, "simhash", {}, len(writer), decided_by={"news": ("body",)}))
        started = time.perf_counter()
        size = sum(len(part.encode("utf-8", "surrogatepass")) for part in Review(path).html())
        report = {
            "removals": options.removals,
            "texts": options.texts,
            "seconds": round(time.perf_counter() - started, 1),
            "plan_megabytes": round(path.stat().st_size / 1e6, 1),
            "page_megabytes": round(size / 1e6, 1),
        }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
