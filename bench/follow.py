"""
A shipper that knows nothing of fingerprints, and ``es-simhash follow`` beside it, which is killed and started again.

    python bench/follow.py --product opensearch --minutes 10 --kills 5

The lag is measured from outside: from the answer to a write to the moment at which the document is seen with the
fingerprint of its text.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from dedup import connect, read_texts

from es_simhash import SimHashClient, fingerprint, to_hex
from es_simhash.servers import embedded_server

INDEX, STATE = "followed", "followed-state"
BATCH_SECONDS = 0.2
LOOK_SECONDS = 0.5


class Shipper:
    """Writes at a steady rate: new documents, many of them near-duplicates, partial updates of texts, and deletions."""

    def __init__(self, client: Any, helpers: Any, texts: list[str], rate: float) -> None:
        self._client, self._helpers, self._texts = client, helpers, texts
        self._most = max(1, round(rate * BATCH_SECONDS))
        self._chance = random.Random(1)
        self.texts: dict[str, str] = {}
        self.written = 0
        # Documents that were not seen with their fingerprint yet, and when the server answered.
        self.waiting: dict[str, float] = {}
        self.lock = threading.Lock()

    def _text(self) -> str:
        words = self._chance.choice(self._texts).split(" ")
        words[self._chance.randrange(len(words))] += self._chance.choice(("", "", " again", "s"))
        return " ".join(words)

    def _action(self, taken: set[str]) -> dict[str, Any]:
        kind = self._chance.choices(("index", "update", "delete"), (70, 22, 8))[0]
        id_ = self._chance.choice(list(self.texts)) if kind != "index" and self.texts else f"d{self.written:07}"
        if id_ in taken:
            id_ = f"d{self.written:07}"
        kind = kind if id_ in self.texts else "index"
        self.written += 1
        taken.add(id_)
        action: dict[str, Any] = {"_op_type": kind, "_index": INDEX, "_id": id_}
        if kind == "delete":
            return action
        body = {"body": self._text(), "by": "shipper"}
        return {**action, "doc": body} if kind == "update" else {**action, "_source": body}

    def run(self, seconds: float) -> None:
        """Write for so long."""
        begun = time.monotonic()
        due = begun
        while due - begun < seconds:
            time.sleep(max(0.0, due - time.monotonic()))
            due += BATCH_SECONDS
            taken: set[str] = set()
            actions = [self._action(taken) for _ in range(self._most)]
            self._helpers.bulk(self._client, actions)
            self._note(actions)

    def _note(self, actions: list[dict[str, Any]]) -> None:
        answered = time.monotonic()
        with self.lock:
            for each in actions:
                if each["_op_type"] == "delete":
                    self.texts.pop(each["_id"])
                    self.waiting.pop(each["_id"], None)
                else:
                    self.texts[each["_id"]] = (each.get("doc") or each["_source"])["body"]
                    self.waiting[each["_id"]] = answered


class Watcher:
    """Looks again and again for documents that have their fingerprint now, and notes how long that took."""

    def __init__(self, client: Any, shipper: Shipper) -> None:
        self._client, self._shipper = client, shipper
        self.lags: list[float] = []
        self.is_over = False

    def run(self) -> None:
        """Look until it is over."""
        while not self.is_over:
            self.look()
            time.sleep(LOOK_SECONDS)

    def look(self) -> None:
        """Look once at all that is waited for."""
        with self._shipper.lock:
            waiting = list(self._shipper.waiting)
        for begin in range(0, len(waiting), 500):
            ids = waiting[begin : begin + 500]
            found = self._client.mget(index=INDEX, body={"ids": ids})["docs"]
            seen = time.monotonic()
            right = {item["_id"]: item["_source"] for item in found if item["found"] and _is_right(item["_source"])}
            with self._shipper.lock:
                for id_, source in right.items():
                    if source["body"] == self._shipper.texts.get(id_) and id_ in self._shipper.waiting:
                        self.lags.append(seen - self._shipper.waiting.pop(id_))


def _is_right(source: dict[str, Any]) -> bool:
    wanted = fingerprint(source["body"])
    return (source.get("simhash") or {}).get("fingerprint") == (None if wanted is None else to_hex(wanted))


class Follower:
    """``es-simhash follow`` as a child process."""

    def __init__(self, url: str, product: str) -> None:
        options = ["--interval", "1", "--metrics", "json", "--metrics-interval", "1"]
        command = [sys.executable, "-m", "es_simhash", "follow", INDEX, "--state-index", STATE, *options]
        self._command = [*command, "--url", url, "--product", product]
        self.lines: list[dict[str, Any]] = []
        self.start()

    def start(self) -> None:
        """Start the process."""
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True).start()

    def _read(self, output: Any) -> None:
        for line in output:
            self.lines.append(json.loads(line))

    def kill(self) -> None:
        """Kill the process, as a crash does."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        """Ask the process to end; return its exit code."""
        self._process.terminate()
        return self._process.wait(60)

    def is_caught_up(self, since: int) -> bool:
        """Return whether, in lines after the first *since*, it says that nothing is left to do."""
        last = self.lines[since:][-2:]
        return len(last) == 2 and all(line["state"] == "waiting" and line["lag_seconds"] < 5 for line in last)


def run(client: Any, helpers: Any, url: str, options: argparse.Namespace) -> dict[str, Any]:
    simhash = SimHashClient(client)
    simhash.create_index(INDEX, text_field="body", settings={"number_of_shards": 2, "number_of_replicas": 0})
    simhash.reconcile(INDEX)
    texts = read_texts(options.data, options.texts, 5_000)
    shipper = Shipper(client, helpers, texts, options.rate)
    watcher = Watcher(client, shipper)
    follower = Follower(url, options.product)
    seconds = 60 * options.minutes
    threads = [threading.Thread(target=shipper.run, args=(seconds,)), threading.Thread(target=watcher.run)]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    for number in range(options.kills):
        time.sleep(max(0.0, begun + seconds * (number + 1) / (options.kills + 1) - time.monotonic()))
        follower.kill()
        follower.start()
    threads[0].join()
    stopped, since = time.monotonic(), len(follower.lines)
    while (shipper.waiting or not follower.is_caught_up(since)) and time.monotonic() - stopped < 180:
        time.sleep(LOOK_SECONDS)
    caught_up = time.monotonic() - stopped
    watcher.is_over = True
    threads[1].join()
    code = follower.stop()
    changed = count_requests(client, helpers, simhash, shipper)
    return judge(client, simhash, shipper) | {
        "changed_500": changed,
        "writes": shipper.written,
        "caught_up_after_seconds": round(caught_up, 1),
        "exit_code": code,
        "lag_seconds": {str(share): round(float(np.percentile(watcher.lags, share)), 2) for share in (50, 90, 99, 100)},
        "peak_memory_mb": round(max(line["peak_memory_bytes"] for line in follower.lines) / 1e6),
        "errors": follower.lines[-1]["errors"],
    }


def count_requests(client: Any, helpers: Any, simhash: SimHashClient, shipper: Shipper) -> dict[str, Any]:
    """Return what a run of a follower costs after 500 texts were changed."""
    changed = list(shipper.texts)[:500]
    texts = [f"{shipper.texts[id_]} again" for id_ in changed]
    actions = [
        {"_op_type": "update", "_index": INDEX, "_id": id_, "doc": {"body": text}}
        for id_, text in zip(changed, texts, strict=True)
    ]
    helpers.bulk(client, actions)
    shipper.texts.update(zip(changed, texts, strict=True))
    send, requests = client.transport.perform_request, 0

    def perform_request(*arguments: Any, **options: Any) -> Any:
        nonlocal requests
        requests += 1
        return send(*arguments, **options)

    client.transport.perform_request = perform_request
    begun = time.monotonic()
    *_, last = simhash.follow(INDEX, once=True, state_index=STATE)
    client.transport.perform_request = send
    return {"requests": requests, "seconds": round(time.monotonic() - begun, 1), "written": last.written}


def judge(client: Any, simhash: SimHashClient, shipper: Shipper) -> dict[str, Any]:
    """Return what was missed: fingerprints that are not the library's, and groups that reconcile would change."""
    client.indices.refresh(index=INDEX)
    missed = 0
    ids = sorted(shipper.texts)
    for begin in range(0, len(ids), 500):
        found = client.mget(index=INDEX, body={"ids": ids[begin : begin + 500]})["docs"]
        missed += sum(not item["found"] or not _is_right(item["_source"]) for item in found)
        missed += sum(item["found"] and item["_source"]["body"] != shipper.texts[item["_id"]] for item in found)
    return {
        "documents": len(ids),
        "missed_fingerprints": missed,
        "missed_groups": simhash.reconcile(INDEX, dry_run=True).changed,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--product", choices=["opensearch", "elasticsearch"], default="opensearch")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--rate", type=float, default=20, help="writes a second")
    parser.add_argument("--texts", default="reuters21578")
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    options = parser.parse_args()
    report = {key: value for key, value in vars(options).items() if key != "data"}
    with embedded_server(options.product, heap="1g") as server:
        client, helpers = connect(options.product, server.url)
        report |= run(client, helpers, server.url, options)
        client.close()
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
