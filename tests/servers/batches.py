"""Ingest in small batches, on real servers: the public methods leave the sizes at their defaults."""

import time

from es_simhash.client.dialects import find_dialect, is_async_client
from es_simhash.client.drivers import stream, stream_async
from es_simhash.groups.rule import GroupingRequest
from es_simhash.ingest.ingest_flow import ingest
from es_simhash.ingest.source_flow import IngestOptions, IngestSizes
from es_simhash.lookup.options import LookupRequest
from es_simhash.mapping.context import Context
from tests.transport.by_hand import SCRIPTED


def ingest_in_batches(
    client,
    call,
    index,
    documents,
    *,
    batch,
    in_flight=20_000,
    on_duplicate="tag",
    lookups="auto",
    memory_bytes=None,
    memory_file=None,
    **grouping,
):
    """Return the reports of an ingest through *client*, sync or async, with *batch* documents in a batch."""
    flow = ingest(
        SCRIPTED,
        Context(clock=time.monotonic),
        index,
        documents,
        IngestOptions(
            on_duplicate=on_duplicate,
            grouping=GroupingRequest(**{"verify": False, **grouping}),
            lookup=LookupRequest(lookups, memory_bytes, memory_file),
            batch=batch,
            sizes=IngestSizes(in_flight=in_flight),
        ),
    )
    dialect = find_dialect(client, None)
    if is_async_client(client):
        return call(stream_async(flow, client, dialect, result=[]))
    return list(stream(flow, client, dialect))
