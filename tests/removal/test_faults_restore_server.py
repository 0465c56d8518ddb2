"""Restores that are killed and cut off from their server: run again, every document is as it was."""

import random
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from es_simhash.mapping.context import Context
from es_simhash.removal.plan_flow import RemovalSizes
from es_simhash.removal.restore_flow import restore
from tests.estates.wire import Wire
from tests.servers.proxy import signalling_proxy
from tests.servers.removals import ALL, copies, fill, sources, through_wire
from tests.servers.support import ROUNDS

pytestmark = pytest.mark.faults

ROOT = Path(__file__).parents[2]
COPIES = 8
# What a restore of all of them sends, about: a few requests for each batch, and the reading and rewriting of groups.
REQUESTS = 30


@pytest.fixture
def archive(tmp_path):
    """Name of an archive."""
    return tmp_path / "removed.jsonl.gz"


def remove_all(simhash, archive, index):
    """Remove the duplicates of *index*."""
    plan = archive.with_name("plan.jsonl")
    simhash.plan_removal(index, plan, **ALL)
    assert {each.action for each in simhash.apply_removal(plan, archive=archive)} == {"deleted"}


def without_moment(documents):
    """Return the documents without the moment at which they were grouped."""
    left_out = lambda own: {name: value for name, value in own.items() if name != "at"}  # noqa: E731
    return {id_: {**each, "simhash": left_out(each["simhash"])} for id_, each in documents.items()}


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_restore_that_is_killed_goes_on(server, index, sync_simhash, archive, seed):
    """After each kill what is there is as it was; in the end all of it is, and the groups are right."""
    chance = random.Random(f"restore {seed}")
    fill(server, index, sync_simhash, copies(COPIES))
    sync_simhash.reconcile(index)
    before = without_moment(sources(server, index))
    remove_all(sync_simhash, archive, index)
    for _ in range(2):
        number = chance.randrange(1, REQUESTS)
        kill_after(server, number, "restore", archive)
        now = without_moment(sources(server, index))
        assert {"a", "r"} <= now.keys()
        assert now.items() <= before.items()
    assert {each.action for each in sync_simhash.restore(archive)} <= {"restored", "exists"}
    assert without_moment(sources(server, index)) == before
    assert sync_simhash.reconcile(index).changed == 0


def kill_after(server, number, *arguments):
    """Run a command that is killed when the request *number* has been answered, before it reads the answer."""
    with signalling_proxy(server.url, "", number, signal.SIGKILL) as proxy:
        command = [sys.executable, "-m", "tests.servers.fault_removal", proxy.url, *map(str, arguments)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            proxy.pid = process.pid
            proxy.began.set()
            _, errors = process.communicate(timeout=300)
    assert process.returncode in (0, -signal.SIGKILL), errors  # 0: it was done before


@pytest.mark.parametrize("fault", ["lost", "timeout", "503 after the work", "503 for items after the work", "repeated"])
def test_lost_answers(server, index, simhash, sync_simhash, mode, runner, archive, fault):
    """A document that this restore created is restored, and one that was there exists, whatever becomes of answers."""
    fill(server, index, sync_simhash, copies(3))
    before = sources(server, index)
    remove_all(sync_simhash, archive, index)
    sizes = RemovalSizes(restored=4)
    with closing(sync_simhash._stream(restore(sync_simhash._context, [archive], sizes=sizes))) as records:
        first = next(records)
    there = set(sources(server, index))
    assert {first.id, "a", "r"} <= there < before.keys()
    wire = Wire(script={("bulk", 0): fault, ("bulk", 1): fault})
    records, error = through_wire(server, mode, runner, wire, "_stream", restore(Context(), [archive], sizes=sizes))
    assert wire.log
    assert error is None
    wanted = {id_: "exists" if id_ in there else "restored" for id_ in before if id_ not in "ar"}
    assert {each.id: each.action for each in records} == wanted
    assert sources(server, index) == before
