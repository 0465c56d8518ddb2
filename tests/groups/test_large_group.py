"""What counts as a large group, and how few counters find each."""

import logging
import random
from collections import Counter

import pytest
from hypothesis import given, settings, strategies as st

from es_simhash.groups.large_group import FEWEST, SHARE, Intake, is_large
from tests.ingest.ingesting import filled, run_ingest
from tests.transport.by_hand import ServerError


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 600))
def test_each_large_group_is_counted(seed, large, batch):
    """However many small ones come between: what an index would be warned of is at most a 256th too small."""
    chance = random.Random(seed)
    names = [f"large{n % large}" for n in range(FEWEST * large + 500)]
    names += [f"small{chance.randrange(3_000)}" for _ in range(4_000)]
    chance.shuffle(names)
    intake, counts, told = Intake(), Counter(), {}
    for begin in range(0, len(names), batch):
        part = names[begin : begin + batch]
        counts.update(part)
        told |= intake.add(part)
    for name, number in told.items():
        assert FEWEST <= number <= counts[name]
    for name, number in counts.items():
        lost = sum(counts.values()) // 256
        assert (name in told) or number - lost < FEWEST
        assert name not in told or told[name] >= counts[name] - lost - batch


def test_both_numbers_count():
    """A small index may have one group; a large one may have a group of many thousands."""
    assert is_large(FEWEST, FEWEST)
    assert not is_large(FEWEST - 1, FEWEST)
    assert is_large(int(SHARE * 1_000_000) + 1, 1_000_000)
    assert not is_large(int(SHARE * 1_000_000), 1_000_000)


@pytest.mark.parametrize("is_counted", [True, False])
def test_an_index_that_nobody_could_count_is_no_reason_to_be_silent(caplog, is_counted):
    """The documents of this ingest are known: what the index had before counts where the server has said it."""
    given = [{"_id": f"{n}", "body": "Please enable JavaScript to go on."} for n in range(FEWEST + 100)]

    def run(**trouble):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "es_simhash"):
            return run_ingest(filled(), {"batch": 500}, given, **trouble)

    calls = run().calls
    counting = next(n for n, each in enumerate(calls) if each.arguments.get("body", {}).get("track_total_hits") is True)
    failed = {} if is_counted else {"fail_at": counting, "failure": ServerError(503)}
    assert run(**failed).error is None
    documents = FEWEST + 100 + (2 if is_counted else 0)
    assert f"{FEWEST + 99:,} of {documents:,} documents (99." in caplog.text
