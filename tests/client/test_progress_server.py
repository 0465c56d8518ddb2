"""Every long call says how far it is, on both products, sync and async."""

from __future__ import annotations

from itertools import groupby

import pytest

from tests.servers.support import ONE_SHARD, numbered, texts


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
