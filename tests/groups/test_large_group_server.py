"""A group that takes in a large part of an index: what is said of it, and what a plan makes of it, on real servers."""

import logging
import random
import re

import pytest

from es_simhash.errors import GuardRailError
from tests.servers.support import ONE_SHARD

LICENCE = " ".join(
    "permission is hereby granted free of charge to any person obtaining a copy of this software and associated "
    "documentation files to deal in it without restriction including without limitation the rights to use copy modify "
    f"merge publish distribute clause {number} the notice shall be included in all copies or parts of section {number}"
    for number in range(2)
)


@pytest.fixture
def said(caplog):
    """Return a function that returns what was warned of since it was last called."""
    caplog.set_level(logging.WARNING, "es_simhash")

    def take():
        messages = [record.getMessage() for record in caplog.records if record.name == "es_simhash"]
        caplog.clear()
        return messages

    return take


def pages(count):
    """Yield programs with hardly more text than the licence that they all have."""
    chance = random.Random(1)
    for number in range(count):
        yield {"_id": f"p{number:05}", "body": f"program {number} does {chance.random():.9f} {LICENCE}"}


def create(call, simhash, index, **options):
    call(simhash.create_index(index, text_field="body", settings=ONE_SHARD, **options))


@pytest.mark.parametrize("mode", ["sync"], indirect=True)
def test_a_licence_page_takes_in_ten_thousand_texts(call, simhash, index, said):
    """As where 859,092 documents became 2: nearly all are skipped for one, and that is said while it happens, once."""
    create(call, simhash, index)
    reports = list(call(simhash.ingest(index, pages(10_000), on_duplicate="skip", batch=200)))
    assert sum(each.action == "skipped" for each in reports) > 9_800
    [message] = said()
    assert re.match(r"\d,\d{3} of \d,\d{3} documents \(\d\d\.\d %\) repeat document 'p00000': 'program ", message)
    assert message.count("'program ") == 3
    assert "they may share template text, such as a licence: check_sample finds it" in message


def test_groups_of_an_index_are_warned_of_and_no_plan_takes_them(call, simhash, index, said, tmp_path):
    """A dry run says it before anything is written; of 1,099 duplicates none goes, unless that is allowed."""
    create(call, simhash, index)
    list(
        call(
            simhash.ingest(index, ({"_id": f"p{n:05}", "body": LICENCE[:300]} for n in range(1_100)), on_duplicate=None)
        )
    )
    call(simhash.reconcile(index, dry_run=True))
    assert len(said()) == 1
    call(simhash.reconcile(index))
    assert said() == []  # the user knows
    made = call(simhash.plan_removal(index, tmp_path / "plan.db", max_share=1.0))
    [doubt] = made.doubts
    assert (doubt.id, doubt.removals, doubt.documents) == ("p00000", made.count, 1_100)
    with pytest.raises(GuardRailError, match=r"1,099 of 1,100 documents would go for one, 'p00000'.*large_groups=True"):
        list(call(simhash.apply_removal(tmp_path / "plan.db")))
    with pytest.raises(GuardRailError, match="large_groups=True"):
        list(call(simhash.apply_removal(tmp_path / "plan.db", dry_run=True)))
    gone = list(call(simhash.apply_removal(tmp_path / "plan.db", large_groups=True, dry_run=True)))
    assert len(gone) == made.count > 1_000


def test_one_document_that_is_written_again_and_again_is_one(call, simhash, index, said):
    """Two documents are no large group, however often one of them comes."""
    create(call, simhash, index)
    given = [{"_id": "a", "body": LICENCE}, *({"_id": "b", "body": f"{LICENCE} {n}"} for n in range(1_200))]
    reports = list(call(simhash.ingest(index, given)))
    assert sum(each.action == "tagged" for each in reports) == 1_200
    assert said() == []


@pytest.mark.parametrize(
    ("rule", "cause"),
    [
        ({"verify": False, "rule": "connected"}, "the rule 'connected' joins step by step"),
        ({"verify": False}, "their texts were not compared: record a similarity"),
    ],
)
def test_the_likely_cause_is_named(call, simhash, index, said, rule, cause):
    """Also where the documents are tagged, and where the texts are too short to say anything."""
    create(call, simhash, index)
    reports = list(call(simhash.ingest(index, pages(1_200), max_distance=16, **rule)))
    assert sum(each.action == "tagged" for each in reports) > 1_000
    assert cause in said()[0]


def test_short_texts_are_named(call, simhash, index, said):
    """Pages that a crawler could not read have one sentence."""
    create(call, simhash, index)
    list(call(simhash.ingest(index, [{"body": "Please enable JavaScript to go on."} for _ in range(1_100)])))
    [message] = said()
    assert "the texts are short, or nearly empty" in message
