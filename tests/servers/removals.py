"""What tests of removals share: an index with duplicates, and what must be true of it and of an archive afterwards."""

from __future__ import annotations

import gzip
import json
from collections import Counter

from es_simhash import AsyncSimHashClient, SimHashClient
from es_simhash.removal import apply as apply_module
from es_simhash.removal.apply import apply_removal
from es_simhash.removal.make_plan import RemovalSizes
from tests.servers.fixtures import make_client
from tests.servers.support import ONE_SHARD, read_all, send_lines

TEXT = "The council approved the new bridge over the river on Tuesday after a long debate about its cost and its use."
OTHER = "Rain is expected in the north until Friday evening, and snow above a thousand metres in the mountains."
ALL = {"max_share": 1.0}
sources = read_all


def fill(server, index, simhash, documents, *, settings=ONE_SHARD, mappings=None):
    """Make *index* with *documents* (id to text, or to a source), fingerprinted as another program leaves them."""
    simhash.create_index(index, text_field="body", settings=settings, mappings=mappings)
    lines = []
    for id_, source in documents.items():
        lines.append({"index": {"_index": index, "_id": id_}})
        lines.append({"body": source} if isinstance(source, str) else source)
    send_lines(server, lines)
    list(simhash.backfill(index))


def copies(count):
    """Return a canonical and *count* copies of each of two texts; ids that sort first are canonical."""
    found = {"a": TEXT, "r": OTHER}
    for number in range(count):
        found[f"b{number:04d}"] = TEXT.upper()
        found[f"s{number:04d}"] = OTHER + "!"
    return found


def archived(path):
    """Return id to source of an archive, read by nothing of ours; every line must be whole, and none of one twice."""
    plain = [each for each in lines_of(path) if "state" not in each]
    assert len({(each["_index"], each["_id"], each["_routing"]) for each in plain}) == len(plain)
    return {each["_id"]: each["_source"] for each in plain}


def outcomes(records):
    """Return id to action and kind."""
    return {each.id: (each.action, each.kind) for each in records}


def apply_in_batches(simhash, plan, archive, batch, **options):
    """Apply *plan* with a sync client, *batch* documents at a time; yield the records."""
    return simhash._stream(
        apply_removal(simhash._server(), plan, archive, sizes=RemovalSizes(removed=batch), **options)
    )


def through_wire(server, mode, runner, wire, method, *args, **options):
    """Call *method*, or a function of a client, through a faulty wire; return its records, and what ended it."""

    def make(simhash):
        return method(simhash) if callable(method) else getattr(simhash, method)(*args, **options)

    patience = {"timeout" if server.product == "opensearch" else "request_timeout": 5}

    async def asynchronously():
        client = make_client(server, asynchronous=True, **wire.options(server.product, asynchronous=True), **patience)
        records = []
        try:
            async for each in make(AsyncSimHashClient(client)):
                records.append(each)
        except Exception as error:  # noqa: BLE001 -- judged by the caller
            return records, error
        finally:
            await client.close()
        return records, None

    if mode == "async":
        return runner.run(asynchronously())
    records = []
    with make_client(server, **wire.options(server.product), **patience) as client:
        try:
            for each in make(SimHashClient(client)):
                records.append(each)  # noqa: PERF402
        except Exception as error:  # noqa: BLE001
            return records, error
    return records, None


def delete_duplicates(simhash, index, archive, **options):
    """Plan and apply at once; the plan is beside the archive."""
    plan = f"{archive}.plan"
    simhash.plan_removal(index, plan, **options)
    return simhash.apply_removal(plan, archive=archive)


def change(server, index, id_, **fields):
    """Change fields of a document, as another program does, without a refresh."""
    server.request("POST", f"/{index}/_update/{id_}", {"doc": fields})


def lines_of(archive):
    """Return the lines of an archive, read by nothing of ours."""
    return [json.loads(line) for line in gzip.decompress(archive.read_bytes()).splitlines()]


class Killed(BaseException):
    """What ends a run as a kill would, as far as the files and the server can tell."""


def meddle(monkeypatch, what, *, times=1):
    """Do *what* after the documents were read and archived, and before they are deleted."""
    delete = apply_module.delete_documents
    left = Counter(times=times)

    async def first(port, versions, done):
        left["times"] -= 1
        if left["times"] >= 0:
            what()
        await delete(port, versions, done)

    monkeypatch.setattr(apply_module, "delete_documents", first)
