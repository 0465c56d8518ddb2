"""
An estate of indices under random, readable steps: each step is made on a real server and on the model, then compared.

To add a step: decorate a method of one of the classes of the other modules with ``@rule``, make the step with
``self.ask`` (our library) or with ``self.server.request`` (another program), and tell ``self.model`` what must have
become of the documents. The invariants here look after the rest.

``make estates`` runs the machine for as long as one likes.

``ES_SIMHASH_ESTATES_SECONDS`` is the time for a product, ``ES_SIMHASH_ESTATES_SEED`` the first seed. Without a time,
as in ``make test``, the same few seeds run on every machine. Each chunk of examples is decided by its seed alone, so a
failure is repeated by the seed that its message names.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import invariant, run_state_machine_as_test

from es_simhash.client import port
from tests.estates.lookups import Lookups
from tests.estates.removals import Removals
from tests.estates.surroundings import Surroundings

pytestmark = pytest.mark.estates

SECONDS = os.environ.get("ES_SIMHASH_ESTATES_SECONDS")
SEED = int(os.environ.get("ES_SIMHASH_ESTATES_SEED", "1"))
# One chunk takes about ten seconds on an idle machine; the first example of a chunk is always the simplest there is.
EXAMPLES = 2 if SECONDS is None else 4
STEPS = 15 if SECONDS is None else 25
# Chunks for each product where no time is given: `make test` shows that the machine runs, `make estates` finds faults.
CHUNKS = 1

SETTINGS = settings(
    max_examples=EXAMPLES,
    stateful_step_count=STEPS,
    deadline=None,  # servers take what they take
    database=None,  # the seed decides, and nothing else
    print_blob=False,
    # `make estates` makes a failing example small, which takes minutes; `make test` names its seed and goes on.
    phases=[Phase.generate] if SECONDS is None else [Phase.generate, Phase.shrink],
    # Steps on real servers are slow, and many draws are large: neither is a fault here.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


class Estate(Surroundings, Removals, Lookups):
    """All steps, and what holds after each of them."""

    @invariant()
    def nothing_is_lost(self) -> None:
        """Read each known document by its id, which shows what searches do not show yet."""
        known = {place: [each for each in states if each] for place, states in self.model.states.items()}
        known = {place: states for place, states in known.items() if states}
        docs = [{"_index": place.index, "_id": place.id, "routing": known[place][0].routing} for place in known]
        if docs:
            answer = self.server.request("POST", "/_mget", {"docs": docs})["docs"]
            seen = [self._see(each) for each in answer if each.get("found")]
            self.model.check(seen)
            self.versions = {each.place: each.version for each in seen}

    @invariant()
    def lookups_are_right(self) -> None:
        """Look up something that is there, another way after each step."""
        self.number_of_steps += 1
        place = self.pick(self.number_of_steps)
        if place and (doc := self.model.states[place][0]):
            where = ("a", "log", "both", "*")[self.number_of_steps % 4]
            kind = ("text", "many", "fingerprint", "of", "text")[self.number_of_steps % 5]
            self.compare_lookup("two", where, kind, doc.source["body"], self.number_of_steps % 13, {})


@pytest.fixture
def estate(server, call, runner, monkeypatch):
    """The machine on a server; waits between retries are cut short, since the wire recovers at once."""
    if server.product == "opensearch":
        from opensearchpy import OpenSearchException

        errors = (OpenSearchException,)
    else:
        from elasticsearch import ApiError, TransportError

        errors = (ApiError, TransportError)
    monkeypatch.setattr(port, "time", SimpleNamespace(sleep=lambda seconds: time.sleep(seconds / 100)))
    members = {"server": server, "call": staticmethod(call), "run": runner.run, "client_errors": errors}
    return type("Estate", (Estate,), {**members, "tally": Counter()})


def test_estates(estate):
    """Complete and right, or an error; nothing lost, doubled or changed that was not ours to change."""
    start, number = time.monotonic(), SEED
    while number < SEED + CHUNKS if SECONDS is None else number == SEED or time.monotonic() - start < float(SECONDS):
        try:
            run_state_machine_as_test(seed(number)(type("Estate", (estate,), {})), settings=SETTINGS)
        except BaseException as error:
            error.add_note(f"repeat with: ES_SIMHASH_ESTATES_SEED={number} ES_SIMHASH_ESTATES_SECONDS=0 make estates")
            raise
        number += 1
    print(f"seeds {SEED} to {number - 1}: {EXAMPLES} examples of {STEPS} steps each")  # noqa: T201
    print("\n".join(f"{count:6} {what}" for what, count in sorted(estate.tally.items())))  # noqa: T201
