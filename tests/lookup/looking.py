"""One lookup, carried out by hand."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext

import pytest

from es_simhash.lookup import find as module
from es_simhash.lookup.find import find
from es_simhash.lookup.lookup_options import LookupOptions
from es_simhash.mapping.context import Context, IndexStats
from es_simhash.mapping.resolve import begin_anew
from tests.transport.by_hand import drive, scripted


@contextmanager
def planned(plan):
    """Have lookups made by *plan*, whatever it costs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "plan_lookup", lambda *_, **__: plan)
        yield


def look(server, *, fingerprint=0, fail_at=None, failure=None, context=None, plan=None, **options):
    """Carry a lookup out and return ``(result, calls, emitted)``; no call asks for the statistics of the index."""
    context = context or Context()
    if context.stats.recall("i") is None:
        context.stats.learn("i", IndexStats())
    flow = begin_anew(lambda: find(scripted(context), "i", LookupOptions(**options), fingerprint=fingerprint))
    with nullcontext() if plan is None else planned(plan):
        return drive(flow, server, fail_at=fail_at, failure=failure)
