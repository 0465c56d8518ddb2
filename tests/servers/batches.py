"""Ingest in small batches, on real servers: the public methods leave the sizes at their defaults."""

from es_simhash import AsyncSimHashClient, SimHashClient
from es_simhash.client.dialects import is_async_client
from es_simhash.groups.grouping_request import GroupingRequest
from es_simhash.ingest.ingest import ingest
from es_simhash.ingest.ingest_options import IngestOptions, IngestSizes
from es_simhash.lookup.lookup_options import LookupRequest


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
    **grouping,
):
    """Return the reports of an ingest through *client*, sync or async, with *batch* documents in a batch."""
    is_async = is_async_client(client)
    simhash = AsyncSimHashClient(client) if is_async else SimHashClient(client)
    reports = ingest(
        simhash._server(),
        index,
        documents,
        IngestOptions(
            on_duplicate=on_duplicate,
            grouping=GroupingRequest(**{"verify": False, **grouping}),
            lookup=LookupRequest(lookups, memory_bytes),
            batch=batch,
            sizes=IngestSizes(unshown=in_flight),
        ),
    )
    return call(simhash._stream(reports)) if is_async else list(simhash._stream(reports))
