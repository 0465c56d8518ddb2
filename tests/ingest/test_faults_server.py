"""Writers killed, racing and refused: nothing lost, nothing doubled, and groups right after reconcile."""

import json
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from es_simhash import SimHashClient
from tests.servers.fixtures import make_client
from tests.servers.servers import Server
from tests.servers.support import (
    ONE_SHARD,
    ROUNDS,
    expected_groups,
    leader_of,
    numbered,
    read_all,
    stored_groups,
    texts,
)

pytestmark = pytest.mark.faults

TINY = 60
WRITER = Path(__file__).parents[1] / "servers" / "fault_writer.py"
ROOT = Path(__file__).parents[2]


def patient_client(server):
    """Return a client that waits for a server that is busy with several writers."""
    return make_client(server, **{"timeout" if server.product == "opensearch" else "request_timeout": 120})


def start(server, job, *arguments):
    command = [sys.executable, str(WRITER), server.product, server.url, job, *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def kill_and_run_again(server, chance, job, *arguments, longest=3.0):
    """Kill the writer at random moments, then let it finish; it must not fail of itself."""
    for _ in range(ROUNDS):
        writer = start(server, job, *arguments)
        time.sleep(chance.uniform(0.5, longest))
        writer.kill()
        writer.communicate()
    writer = start(server, job, *arguments)
    _, errors = writer.communicate(timeout=240)
    assert writer.returncode == 0, errors.decode()


def test_a_killed_writer_loses_and_doubles_nothing(server, index, tmp_path):
    """Started again with the same documents, until it is done."""
    client = patient_client(server)
    simhash = SimHashClient(client)
    simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    documents = numbered(texts(800, seed=3))
    file = tmp_path / "documents.jsonl"
    file.write_text("\n".join(map(json.dumps, documents)), encoding="utf-8")
    kill_and_run_again(server, random.Random(1), "ingest", index, file, 3)
    assert simhash.reconcile(index).is_settled
    client.close()
    found = read_all(server, index)
    assert {id_: source["body"] for id_, source in found.items()} == {d["_id"]: d["body"] for d in documents}
    assert stored_groups(found) == expected_groups(found, 3)


def test_writers_in_any_order_come_to_one_result(server, index):
    """Four at once, with overlapping streams in different orders."""
    documents = numbered(texts(160, seed=5))
    results = []
    for run in range(2):
        name = f"{index}-{run}"
        client = patient_client(server)
        SimHashClient(client).create_index(name, text_field="body", settings=ONE_SHARD)
        failures = []

        def write(number, run=run, name=name, failures=failures):
            own = [document for n, document in enumerate(documents) if number in (n % 4, (n + run + 1) % 4)]
            random.Random(10 * run + number).shuffle(own)
            with patient_client(server) as mine:
                failures += [
                    r
                    for r in SimHashClient(mine).ingest(name, own, max_distance=3, verify=False, canonical="id")
                    if r.action == "refused"
                ]

        threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert SimHashClient(client).reconcile(name).is_settled
        found = read_all(server, name)
        assert stored_groups(found) == expected_groups(found, 3, lambda id_, source: id_)
        results.append(stored_groups(found))
        client.close()
    assert results[0] == results[1]
    assert len(results[0]) == 160


def test_a_tiny_write_queue(narrow):
    """Bulk requests refused with 429 for some of their documents: all are written in the end."""
    server = Server.of(narrow)
    shards = {"number_of_shards": 8, "number_of_replicas": 0}
    reports = []

    def write(number):
        with patient_client(server) as mine:
            own = [{**d, "_id": f"{number}-{d['_id']}"} for d in numbered(texts(TINY, seed=number))]
            reports.extend(SimHashClient(mine).ingest("queue", own, max_distance=3, verify=False))

    with patient_client(server) as client:
        SimHashClient(client).create_index("queue", text_field="body", settings=shards)
        threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(reports) == 4 * TINY
        assert {report.action for report in reports} <= {"written", "tagged"}
        SimHashClient(client).reconcile("queue")
    found = read_all(server, "queue")
    assert len(found) == 4 * TINY
    assert stored_groups(found) == expected_groups(found, 3)


def test_a_data_node_that_goes_and_comes_back(cluster):
    """Killed in mid-ingest and started again: what is refused is named, nothing is lost or doubled."""
    documents = numbered(texts(1_200, seed=10))
    server = Server.of(cluster.nodes[0])
    victim = next(node for node in cluster.nodes[1:] if node is not leader_of(cluster))

    def source():
        for n, document in enumerate(documents):
            if n == 400:
                victim.kill()
            elif n == 800:
                cluster.start()
            yield document

    with patient_client(server) as client:
        simhash = SimHashClient(client)
        settings = {"number_of_shards": 2, "number_of_replicas": 1}
        simhash.create_index("spread", text_field="body", settings=settings)
        cluster.await_health("green")
        reports = list(simhash.ingest("spread", source(), verify=False))
        missing = [report.position for report in reports if report.action == "refused"]
        if missing:
            again = simhash.ingest("spread", [documents[n] for n in missing], verify=False)
            assert all(report.action != "refused" for report in again)
        cluster.await_health("green")
        assert simhash.reconcile("spread").is_settled
    found = read_all(server, "spread")
    server.remove("spread")
    assert {id_: source["body"] for id_, source in found.items()} == {d["_id"]: d["body"] for d in documents}
    assert stored_groups(found) == expected_groups(found, 3)
