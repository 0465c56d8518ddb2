"""Removals and restores that are killed, raced and cut off from their server: what is gone is whole in an archive."""

import functools
import itertools
import json
import random
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from es_simhash import SimHashClient, WrongTypeError
from es_simhash.removal import apply as apply_module
from es_simhash.removal.removal_file import open_archived
from tests.estates.wire import Wire
from tests.servers.fixtures import client_through, make_client
from tests.servers.removals import (
    ALL,
    DELETED,
    TEXT,
    Killed,
    archived,
    copies,
    fill,
    meddle,
    outcomes,
    sources,
)
from tests.servers.support import ROUNDS

pytestmark = pytest.mark.faults

ROOT = Path(__file__).parents[2]
COPIES = 12


def alone(path):
    """Return id to source of what can be restored from a copy of the named file alone."""
    copy = path.with_name("alone.db")
    copy.write_bytes(path.read_bytes())
    with open_archived(copy, writes=False) as removal:
        return {each.id: json.loads(each.source) for each in removal.archived() if each is not None}


def planned(server, index, simhash, plan, count):
    """Make an index of *count* copies of two texts, and a plan for them; return the documents."""
    fill(server, index, simhash, copies(count))
    simhash.plan_removal(index, plan, **ALL)
    return sources(server, index)


def kill_at_random(server, plan, chance):
    """Apply *plan* in batches of 3, in a process that is killed after a number of documents, and a moment more."""
    command = [sys.executable, "-m", "tests.servers.fault_removal", server.url, str(plan)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for _ in range(chance.randrange(2 * COPIES)):
        process.stdout.readline()
    time.sleep(chance.uniform(0, 0.02))
    process.kill()
    process.communicate()


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_removal_that_is_killed_goes_on(server, index, plan, seed):
    """Each document that is gone is in the file as it was last, though a counter of it was written all the time."""
    chance = random.Random(f"removal {seed}")
    written, numbers = {}, itertools.count(1)
    is_over = threading.Event()

    def count():
        while not is_over.wait(0.005):
            id_, views = chance.choice(ids), next(numbers)
            answer = server.request(
                "POST", f"/{index}/_update/{id_}?retry_on_conflict=5", {"doc": {"views": views}}, missing_ok=True
            )
            if answer and answer.get("result") == "updated":
                written[id_] = views

    with make_client(server) as client:
        simhash = SimHashClient(client)
        before = planned(server, index, simhash, plan, COPIES)
        ids = [id_ for id_ in before if id_ not in "ar"]
        writer = threading.Thread(target=count)
        writer.start()
        try:
            for _ in range(2):
                kill_at_random(server, plan, chance)
        finally:
            is_over.set()
            writer.join()
        by_itself, now = alone(plan), sources(server, index)
        assert {"a", "r"} <= now.keys()
        for id_ in set(ids) - now.keys():
            assert by_itself[id_] == before[id_] | ({"views": written[id_]} if id_ in written else {}), id_
        assert {each.action for each in simhash.apply_removal(plan)} == {"deleted"}
        assert {each.action for each in simhash.restore(plan)} == {"restored"}
        assert {id_: source.get("views") for id_, source in sources(server, index).items() if id_ not in "ar"} == {
            id_: written.get(id_) for id_ in ids
        }


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_opposite_plans_at_once_lose_nothing(server, index, tmp_path, round_):
    """Each keeps what the other deletes; of every two at least one stays, or comes back."""
    with make_client(server) as client:
        simhash = SimHashClient(client)
        documents = {}
        for n in range(COPIES):
            text = " ".join(f"{word}{n}" for word in TEXT.split())
            documents |= {f"{n:04d}a": {"n": 1, "body": text}, f"{n:04d}b": {"n": 2, "body": f"{text}."}}
        fill(server, index, simhash, documents, mappings={"properties": {"n": {"type": "long"}}})
        before = sources(server, index)
        plans = []
        for order in ("n", "-n"):
            plans.append(tmp_path / f"plan{order}")
            assert simhash.plan_removal(index, plans[-1], canonical=order, **ALL).count == COPIES
    gate = threading.Barrier(2)

    def apply(path):
        with make_client(server) as client:
            gate.wait()
            return list(SimHashClient(client).apply_removal(path))

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(apply, plans))
    now = sources(server, index)
    assert all(f"{n:04d}a" in now or f"{n:04d}b" in now for n in range(COPIES))
    assert now.items() <= before.items()
    for records, path in zip(results, plans, strict=True):
        told = outcomes(records)
        assert len(told) == COPIES
        gone = {id_ for id_, (action, _) in told.items() if action == "deleted"}
        assert gone <= before.keys() - now.keys()
        assert {id_: before[id_] for id_ in gone}.items() <= archived(path).items()


FAULTS = ["lost", "timeout", "503 after the work", "503 for items after the work", "429 for items", "repeated", "502"]


@pytest.mark.parametrize("fault", FAULTS)
def test_lost_answers(server, index, sync_simhash, plan, fault):
    """A delete that was carried out is told so, whatever became of its answer."""
    before = planned(server, index, sync_simhash, plan, 3)
    wire = Wire(script={("bulk", 1): fault, ("bulk", 2): fault})  # the first one changes nothing
    with client_through(server, wire) as simhash:
        assert {each.action for each in simhash.apply_removal(plan)} == {"deleted"}
    assert wire.log
    assert sources(server, index) == {id_: before[id_] for id_ in "ar"}
    assert archived(plan) == {id_: source for id_, source in before.items() if id_ not in "ar"}


def test_wrappers_that_read_answers_themselves(server, index, simhash, client, plan):
    """What would be archived is not what the server sent: nothing is deleted."""
    before = planned(server, index, simhash, plan, 1)
    client.transport.perform_request = functools.partial(client.transport.perform_request)
    with pytest.raises(WrongTypeError, match="wrapped in code that reads answers itself"):
        list(simhash.apply_removal(plan))
    assert sources(server, index) == before


@pytest.mark.parametrize("seed", range(2 * ROUNDS))
def test_a_wire_full_of_faults(server, index, sync_simhash, plan, monkeypatch, seed):
    """An error, or the truth; and the same files go on."""
    before, deleted = planned(server, index, sync_simhash, plan, 5), []
    wire = Wire(seed=f"removal {seed}", share=0.3, faults=[*FAULTS, "503 for items", "unreachable"])
    monkeypatch.setattr(apply_module, "BATCH_DOCUMENTS", 3)
    with client_through(server, wire) as simhash, suppress(Exception):
        deleted.extend(each.id for each in simhash.apply_removal(plan) if each.action == "deleted")
    gone = before.keys() - sources(server, index).keys()
    assert set(deleted) <= gone
    assert {id_: before[id_] for id_ in gone}.items() <= archived(plan).items()
    assert {each.action for each in sync_simhash.apply_removal(plan)} == {"deleted"}
    assert sources(server, index) == {id_: before[id_] for id_ in "ar"}


@pytest.mark.parametrize("is_known", [True, False])
def test_a_canonical_that_goes_at_the_last_moment(server, index, simhash, plan, monkeypatch, is_known):
    """What was deleted for it comes back as it was; also by a later run, if the first was killed before."""
    before = planned(server, index, simhash, plan, 2)
    meddle(monkeypatch, lambda: server.request("DELETE", f"/{index}/_doc/a?refresh=true", missing_ok=True))
    if not is_known:

        def killed(_port, documents):
            raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(apply_module, "put_back", killed)
            with pytest.raises(Killed):
                list(simhash.apply_removal(plan))
        assert set(sources(server, index)) == {"r"}
    both = {"s0000": DELETED, "s0001": DELETED}
    back = dict.fromkeys(("b0000", "b0001"), ("restored", "canonical_missing"))
    assert outcomes(simhash.apply_removal(plan)) == back | both
    assert sources(server, index) == {id_: before[id_] for id_ in ("b0000", "b0001", "r")}
    kept = dict.fromkeys(back, ("kept", "canonical_missing"))
    assert outcomes(simhash.apply_removal(plan)) == kept | both
    assert set(sources(server, index)) == {"b0000", "b0001", "r"}
