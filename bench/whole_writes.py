"""
What it would cost to write documents whole, so that the server does not write their numbers anew.

Usage: whole_writes.py URL [DOCUMENTS]

A partial update makes 1.1 of 1.10. Prints the seconds for a bulk of partial updates, of reading the same documents as
text and looking for such numbers in it, and of writing them whole, as medians of five rounds of all three, as JSON.
"""

from __future__ import annotations

import http.client
import json
import random
import re
import statistics
import sys
import time
from urllib.parse import urlsplit

INDEX = "bench-whole-writes"
BATCH = 500
# Strings are passed over; a number that the server may write in another way has a fraction, an exponent or many digits.
NUMBER = re.compile(rb'"(?:[^"\\]|\\.)*"|(-?\d+(?:\.\d+|[eE][-+]?\d+)[\d.eE+-]*|-?\d{18,})')


def main() -> None:
    address, count = urlsplit(sys.argv[1]), int((*sys.argv, "5000")[2])
    connection = http.client.HTTPConnection(address.hostname or "127.0.0.1", address.port or 9200, timeout=120)

    def ask(method: str, path: str, body: bytes = b"") -> bytes:
        connection.request(method, path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        if answer.status >= 400 and method != "DELETE":
            raise SystemExit(content[:500].decode())
        return content

    chosen = random.Random(7)
    words = ["".join(chosen.choices("etaoinshrdlu", k=chosen.randint(2, 9))) for _ in range(3_000)]
    mapping = {"dynamic": False, "properties": {"body": {"type": "text"}}}
    ask("DELETE", f"/{INDEX}")
    settings = {"number_of_shards": 1, "number_of_replicas": 0}
    ask("PUT", f"/{INDEX}", json.dumps({"mappings": mapping, "settings": settings}).encode())
    for begin in range(0, count, BATCH):
        lines = b""
        for n in range(begin, begin + BATCH):
            text = json.dumps({"body": " ".join(chosen.choices(words, k=300)), "n": n})[:-1] + ', "price": 1.10}'
            lines += b'{"index":{"_id":"%d"}}\n%s\n' % (n, text.encode())
        ask("POST", f"/{INDEX}/_bulk", lines)
    ask("POST", f"/{INDEX}/_refresh")
    seconds: dict[str, list[float]] = {"update": [], "read": [], "scan": [], "whole": []}
    batches = [range(begin, begin + BATCH) for begin in range(0, count, BATCH)]
    own = b'"simhash":{"fingerprint":"%016x"}'
    for number in range(5):
        spent = dict.fromkeys(seconds, 0.0)
        # A backfill reads what searches show; without a refresh an update reads what is not in a segment yet, slowly.
        for ids in batches:
            parts = [b'{"update":{"_id":"%d"}}\n{"doc":{%s}}\n' % (n, own % (2 * number * count + n)) for n in ids]
            started = time.perf_counter()
            ask("POST", f"/{INDEX}/_bulk", b"".join(parts))
            spent["update"] += time.perf_counter() - started
        ask("POST", f"/{INDEX}/_refresh")
        for ids in batches:
            started = time.perf_counter()
            answer = ask("POST", f"/{INDEX}/_mget", json.dumps({"ids": [str(n) for n in ids]}).encode())
            spent["read"] += time.perf_counter() - started
            started = time.perf_counter()
            texts = [part.rpartition(b"}")[0] for part in answer.split(b'"_source":')[1:]]
            found = sum(any(each[1] for each in NUMBER.finditer(text)) for text in texts)
            spent["scan"] += time.perf_counter() - started
            if found != BATCH:
                raise SystemExit(f"{found} of {BATCH} documents have such a number")
            parts = [
                b'{"index":{"_id":"%d"}}\n%s"price": 1.10, %s}\n'
                % (n, text[: text.rfind(b'"price"')], own % ((2 * number + 1) * count + n))
                for n, text in zip(ids, texts, strict=True)
            ]
            started = time.perf_counter()
            ask("POST", f"/{INDEX}/_bulk", b"".join(parts))
            spent["whole"] += time.perf_counter() - started
        ask("POST", f"/{INDEX}/_refresh")
        for name, value in spent.items():
            seconds[name].append(value)
    ask("DELETE", f"/{INDEX}")
    medians = {name: round(statistics.median(values), 3) for name, values in seconds.items()}
    together = medians["read"] + medians["scan"] + medians["whole"]
    print(json.dumps({"documents": count, **medians, "ratio": round(together / medians["update"], 2)}))


if __name__ == "__main__":
    main()
