"""
Lists of texts without near-duplicates: 100 and 10,000 chunks of 1,000 characters, English and Chinese.

    python bench/distinct_texts.py ../shared/data

Chunks are cut from reuters21578 and xwlb_zh, and a fifth of them are copies of one before with other characters at the
end. Prints the median and the least of five runs, in milliseconds.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import time
from pathlib import Path
from statistics import median

from es_simhash import distinct_texts


def chunks(path: Path, count: int) -> list[str]:
    chance, found, rest = random.Random(1), [], ""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            rest += json.loads(line)["text"]
            while len(rest) >= 1_000 and len(found) < count:
                found.append(rest[:1_000] if chance.random() >= 0.2 or not found else chance.choice(found)[:-3] + "xyz")
                rest = rest[1_000:]
            if len(found) == count:
                break
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    options = parser.parse_args()
    found = {}
    for name in ("reuters21578", "xwlb_zh"):
        for count in (100, 10_000):
            texts, times = chunks(options.data / name / "docs.jsonl.gz", count), []
            for _ in range(6):  # the first loads numpy
                started = time.perf_counter()
                kept = len(distinct_texts(texts).kept)
                times.append(1_000 * (time.perf_counter() - started))
            key = f"{name}, {len(texts)}"
            found[key] = {"kept": kept, "median": round(median(times[1:]), 1), "least": round(min(times[1:]), 1)}
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
