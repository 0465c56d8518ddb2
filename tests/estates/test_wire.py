"""Each fault of the wire does what it says, to clients of both products, sync and async."""

import json

import pytest

from tests.estates.wire import FAULTS, Wire
from tests.servers.fixtures import make_client

ITEMS = [f"{number:02d}" for number in range(12)]


@pytest.fixture
def send(server, mode, call, runner):
    """Return a function that makes one call through a wire, and returns the answer or the exception."""
    clients = []

    def send(wire, api, **arguments):
        async def make():
            return make_client(server, asynchronous=True, **options)

        options = {"max_retries": 0, **wire.options(server.product, asynchronous=mode == "async")}
        client = make_client(server, **options) if mode == "sync" else runner.run(make())
        clients.append(client)
        try:
            answer = call(getattr(client, api)(**arguments))
        except Exception as error:  # noqa: BLE001 -- the tests look at it
            return error
        return getattr(answer, "body", answer)

    yield send
    for client in clients:
        call(client.close())


def bulk(index):
    return "\n".join(json.dumps(line) for id_ in ITEMS for line in ({"index": {"_index": index, "_id": id_}}, {"a": 1}))


def versions(server, index):
    server.request("POST", f"/{index}/_refresh", missing_ok=True)
    body = {"version": True, "size": 100}
    found = server.request("POST", f"/{index}/_search?ignore_unavailable=true", body)
    return {hit["_id"]: hit["_version"] for hit in found["hits"]["hits"]}


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if not (fault.items or fault.shards)])
def test_whole_requests(server, index, send, name):
    """The server carries out the request as often as the fault says, and the client is answered as it says."""
    fault = FAULTS[name]
    wire = Wire(script={("bulk", 0): name})
    answer = send(wire, "bulk", body=bulk(index) + "\n")
    assert versions(server, index) == (dict.fromkeys(ITEMS, fault.times) if fault.times else {})
    assert len(wire.log) == 1
    if fault.breaks:
        assert type(answer).__name__ == ("ConnectionTimeout" if fault.breaks == "timeout" else "ConnectionError")
    elif fault.status:
        assert getattr(answer, "status_code", None) == fault.status
    else:
        assert [item["index"]["status"] for item in answer["items"]] == [201 if fault.times == 1 else 200] * len(ITEMS)


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.items])
def test_items_of_a_bulk(server, index, send, name):
    """Some items are refused; the others are carried out, and answered in their places."""
    fault = FAULTS[name]
    answer = send(Wire(script={("bulk", 0): name}), "bulk", body=bulk(index) + "\n")
    statuses = {item["index"]["_id"]: item["index"]["status"] for item in answer["items"]}
    assert list(statuses) == ITEMS
    assert set(statuses.values()) == {fault.status, 201}
    assert set(versions(server, index)) == {id_ for id_ in ITEMS if fault.times or statuses[id_] == 201}


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.items or fault.shards])
def test_items_and_shards_of_searches(server, index, send, name):
    """Some searches of a multi-search are refused, or miss hits and say that a shard did not answer."""
    fault = FAULTS[name]
    send(Wire(share=0), "bulk", body=bulk(index) + "\n")
    assert len(versions(server, index)) == len(ITEMS)
    body = "\n".join([json.dumps({"index": index}), json.dumps({"size": 20})] * 8) + "\n"
    answer = send(Wire(script={("msearch", 0): name}), "msearch", body=body)
    if fault.items:
        assert {each.get("status") for each in answer["responses"]} == {fault.status, 200}
        return
    for each in answer["responses"]:
        shards = each["_shards"]
        assert len(each["hits"]["hits"]) == len(ITEMS) // 2
        told = (shards["failed"], shards["total"] - shards["successful"], each["timed_out"])
        assert told == {"failed": (1, 1, False), "silent": (0, 1, False), "timed_out": (0, 0, True)}[fault.shards]


def test_the_schedule_is_the_seed_s(server, index, send):
    """The same requests meet the same faults; another seed has others; switched off, none has any."""
    logs = []
    for seed in (1, 1, 2):
        wire = Wire(seed=seed, share=0.4)
        for _ in range(20):
            send(wire, "search", index=f"{index}*", body={})
        logs.append(wire.log)
    assert logs[0] == logs[1] != logs[2]
    wire.is_on = False
    before = len(wire.log)
    assert "hits" in send(wire, "search", index=f"{index}*", body={})
    assert len(wire.log) == before
