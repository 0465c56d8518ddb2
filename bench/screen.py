"""
Screening of chunks before they are stored: how many a second, how long one takes, and how many embeddings that saves.

    python bench/screen.py --product opensearch --documents 50000

The store has random chunks of 60 words. Of the new ones half are such chunks too, and half are copies of chunks that
it has, with one word changed and a line added: *lost* are no copies, and would not be stored. All are screened in one
call, 500 of them also one by one, against a lookup of each. Then ``tag_written`` is timed with what another program has
written. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

from dedup import connect

from es_simhash import SimHashClient
from es_simhash.servers import embedded_server

WORDS = ["".join(random.Random(n).choices("aeioubcdfglmnprst", k=3 + n % 7)) for n in range(20_000)]
ONE_SHARD = {"number_of_shards": 1, "number_of_replicas": 0}


def edited(text: str, chance: random.Random) -> str:
    words = text.split()
    words[chance.randrange(len(words))] = chance.choice(WORDS)
    return " ".join([*words, "from", "our", "agency"])


def times(ask: Callable[[str], Any], texts: list[str]) -> dict[str, float]:
    """Return in milliseconds how long *ask* takes for one text."""
    took = []
    for each in texts:
        started = time.perf_counter()
        ask(each)
        took.append(1000 * (time.perf_counter() - started))
    return {"median": round(statistics.median(took), 1), "95%": round(statistics.quantiles(took, n=20)[-1], 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--product", choices=["opensearch", "elasticsearch"], default="opensearch")
    parser.add_argument("--documents", type=int, default=50_000)
    parser.add_argument("--new", type=int, default=5_000)
    options = parser.parse_args()
    chance = random.Random(1)
    old = [" ".join(chance.choices(WORDS, k=60)) for _ in range(options.documents)]
    new = [" ".join(chance.choices(WORDS, k=60)) if n % 2 else edited(old[n], chance) for n in range(options.new)]
    report: dict[str, Any] = vars(options)
    with embedded_server(options.product, heap="1g") as server:
        client, helpers = connect(options.product, server.url)
        simhash = SimHashClient(client)
        simhash.create_index("chunks", text_field="text", settings=ONE_SHARD)
        actions = ({"_id": f"{n}", "text": text} for n, text in enumerate(old))
        helpers.bulk(client, simhash.with_fingerprints("chunks", actions), index="chunks", refresh=True)
        list(simhash.screen("chunks", old[:100]))
        started = time.perf_counter()
        answers = [each.answer for each in simhash.screen("chunks", new)]
        report["documents_a_second"] = round(options.new / (time.perf_counter() - started))
        report["embeddings_saved"] = answers[::2].count("near")
        report["copies_missed"] = len(answers[::2]) - answers[::2].count("near")
        report["lost"] = answers[1::2].count("near")
        report["unsure"] = answers.count("unsure")
        report["milliseconds"] = {
            "screen": times(lambda text: list(simhash.screen("chunks", [text])), new[:500]),
            "find_near_dups": times(lambda text: simhash.find_near_dups("chunks", text), new[:500]),
        }
        kept = [{"_id": f"new{n}", "text": text} for n, text in enumerate(new) if answers[n] == "new"]
        started = time.perf_counter()
        helpers.bulk(client, kept, index="chunks", refresh=True)
        written = time.perf_counter()
        list(simhash.tag_written("chunks", [each["_id"] for each in kept]))
        report["store_seconds"], report["tag_written_seconds"] = written - started, time.perf_counter() - written
        client.close()
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
