"""A client that was forked after its first use is refused; who asks for progress is told of each step."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import groupby

import pytest

from tests.servers.support import ONE_SHARD, numbered, texts

TEXT = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."


# A process that uses a client, or does not, and then forks one that uses it: it exits with what became of that.
FORKS = """
import os, sys
from es_simhash import InvalidInputError, SimHashClient
from tests.servers.fixtures import make_client
from tests.servers.servers import detect
simhash = SimHashClient(make_client(detect(sys.argv[1])))
if sys.argv[3] == "used":
    simhash.find_near_dups(sys.argv[2], "text")
if os.fork() == 0:
    try:
        simhash.find_near_dups(sys.argv[2], "text")
    except InvalidInputError as error:
        os._exit(7 * ("forked" in str(error)))
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


@pytest.mark.parametrize("server", ["opensearch"], indirect=True)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_client_that_a_fork_has_copied(server, index, sync_simhash):
    """It shares the connections of the other process: both would read each other's answers."""
    sync_simhash.create_index(index, text_field="body", settings=ONE_SHARD)
    codes = [
        subprocess.run([sys.executable, "-c", FORKS, server.url, index, each], check=False).returncode
        for each in ("used", "unused")
    ]
    assert codes == [7, 0]


def steps_of(told):
    """Return what each step said last, after checking that no step goes back or beyond its total."""
    steps = []
    for step, part in groupby(told, key=lambda each: each.step):
        some = list(part)
        assert all(each.total is None or each.done <= each.total for each in some)
        steps.append((step, some[-1].done, some[-1].total))
    return steps


def test_long_calls_tell_their_progress(simhash, index, tmp_path):
    """Steps in the order of the work; the last report of a step with a total is its end."""
    simhash.create_index(index, text_field="body", max_distance=10, settings=ONE_SHARD)
    documents = numbered(texts(40))

    def tell(method, *args, **options):
        told = []
        outcome = getattr(simhash, method)(*args, progress=told.append, **options)
        list(outcome) if hasattr(outcome, "__iter__") else None
        return steps_of(told)

    assert tell("ingest", index, documents, batch=30) == [("writing documents", 40, None)]
    assert tell("backfill", index) == [("comparing documents", 40, 40)]
    reading, texts_read, *written = tell("reconcile", index, verify=0.5, regroup=True)
    assert reading == ("reading documents", 40, None)
    assert texts_read[0] == "reading texts"
    assert all(done == total for _, done, total in (texts_read, *written))
    [(step, groups, total)] = tell("groups", index)
    assert (step, total) == ("reading groups", None)
    assert groups > 0
    assert tell("groups", index, sort="size") == [("reading groups", groups, groups)]
    assert [each for each in tell("pairs", index) if each[0] == "reading documents"] == [
        ("reading documents", 40, None)
    ]
    assert "measuring presets" in {step for step, *_ in tell("tune", index, sample=10)}
    plan = tmp_path / "removal.db"
    *_, (step, compared, total) = tell("plan_removal", index, plan, max_share=1.0)
    assert (step, compared) == ("comparing texts", total)
    (step, removed, total), *_ = tell("apply_removal", plan)  # then the groups are made right
    assert (step, removed) == ("removing documents", total)
    assert removed > 0
    assert ("restoring documents", removed, None) in tell("restore", plan)
    with pytest.raises(TypeError, match="progress"):
        simhash.reconcile(index, progress="yes")
