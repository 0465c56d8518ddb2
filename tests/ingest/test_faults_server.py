"""Writers racing, and a node that goes away: nothing lost, nothing doubled, and groups right after reconcile."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from es_simhash import SimHashClient
from tests.servers.fixtures import make_client
from tests.servers.servers import Server
from tests.servers.support import ONE_SHARD, expected_groups, numbered, read_all, stored_groups, texts

pytestmark = pytest.mark.faults


def patient_client(server):
    """Return a client that waits for a server that is busy with several writers."""
    return make_client(server, **{"timeout" if server.product == "opensearch" else "request_timeout": 120})


@pytest.mark.parametrize("seed", [1, 2])
def test_writers_in_any_order_come_to_one_result(server, index, seed):
    """Four at once, with overlapping streams in different orders."""
    documents = numbered(texts(100, seed=5))

    def write(number):
        own = [document for n, document in enumerate(documents) if number in (n % 4, (n + seed) % 4)]
        random.Random(10 * seed + number).shuffle(own)
        with patient_client(server) as mine:
            reports = SimHashClient(mine).ingest(index, own, max_distance=3, verify=False, canonical="id")
            return {report.action for report in reports}

    with patient_client(server) as client, ThreadPoolExecutor(4) as pool:
        SimHashClient(client).create_index(index, text_field="body", settings=ONE_SHARD)
        assert set().union(*pool.map(write, range(4))) <= {"written", "tagged", "unchanged"}
        assert SimHashClient(client).reconcile(index).is_settled
    found = read_all(server, index)
    assert len(found) == len(documents)
    assert stored_groups(found) == expected_groups(found, 3, lambda id_, source: id_)


def test_a_data_node_that_goes_and_comes_back(cluster):
    """
    Killed in mid-ingest and started again, with its port and its data: what is refused is named, nothing is lost or
    doubled.
    """
    documents = numbered(texts(600, seed=10))
    server, victim = Server.of(cluster.leader), cluster.other
    url = victim.url
    there = {"number_of_shards": 1, "number_of_replicas": 0, "routing.allocation.require._name": victim.name}
    server.request("PUT", "/kept", {"settings": there})
    server.request("PUT", "/kept/_doc/1", {"number": 1})

    def source():
        for n, document in enumerate(documents):
            if n == 200:
                victim.kill()
            elif n == 400:
                cluster.start()
            yield document

    with patient_client(server) as client:
        simhash = SimHashClient(client)
        settings = {"number_of_shards": 2, "number_of_replicas": 1}
        simhash.create_index("spread", text_field="body", settings=settings)
        cluster.await_health()
        reports = list(simhash.ingest("spread", source(), verify=False))
        missing = [report.position for report in reports if report.action == "refused"]
        if missing:
            again = simhash.ingest("spread", [documents[n] for n in missing], verify=False)
            assert all(report.action != "refused" for report in again)
        cluster.await_health()
        assert simhash.reconcile("spread").is_settled
    assert (victim.url, server.request("GET", "/kept/_doc/1")["_source"]) == (url, {"number": 1})
    found = read_all(server, "spread")
    server.remove("spread")
    server.remove("kept")
    assert {id_: source["body"] for id_, source in found.items()} == {d["_id"]: d["body"] for d in documents}
    assert stored_groups(found) == expected_groups(found, 3)
