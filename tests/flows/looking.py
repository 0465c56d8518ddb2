"""
One lookup, carried out by hand.
"""

from __future__ import annotations

from es_simhash.flows.context import Context
from es_simhash.flows.lookup.find import find
from es_simhash.flows.lookup.options import Options
from es_simhash.index.plan_cost import IndexStats
from tests.flows.by_hand import drive


def look(server, *, fingerprint=0, fail_at=None, failure=None, context=None, **options):
    """Carry a lookup out and return ``(result, calls, emitted)``; no call asks for the statistics of the index."""
    context = context or Context()
    if context.recall_stats("i") is None:
        context.learn_stats("i", IndexStats())
    flow = find(context, "i", None, fingerprint, Options(**options))
    return drive(flow, server, fail_at=fail_at, failure=failure)
