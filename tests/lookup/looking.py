"""One lookup, carried out by hand."""

from __future__ import annotations

from es_simhash.lookup.find import find
from es_simhash.lookup.lookup_options import LookupOptions
from es_simhash.mapping.context import Context, IndexStats
from tests.transport.by_hand import drive, scripted


def look(server, *, fingerprint=0, fail_at=None, failure=None, context=None, **options):
    """Carry a lookup out and return ``(result, calls, emitted)``; no call asks for the statistics of the index."""
    context = context or Context()
    if context.recall_stats("i") is None:
        context.learn_stats("i", IndexStats())
    flow = find(scripted(context), "i", None, fingerprint, LookupOptions(**options))
    return drive(flow, server, fail_at=fail_at, failure=failure)
