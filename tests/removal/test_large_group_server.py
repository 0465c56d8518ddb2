"""A group that takes in a large part of an index: what a plan makes of it, on real servers."""

import pytest

from es_simhash.errors import GuardRailError
from es_simhash.removal import guard_rails, removal_file
from es_simhash.removal.guard_rails import OneStays
from tests.servers.support import ONE_SHARD

LICENCE = " ".join(
    "permission is hereby granted free of charge to any person obtaining a copy of this software and associated "
    "documentation files to deal in it without restriction including without limitation the rights to use copy modify "
    f"merge publish distribute clause {number} the notice shall be included in all copies or parts of section {number}"
    for number in range(2)
)


@pytest.mark.parametrize(
    ("removals", "documents", "is_large"),
    [(1_000, 1_000, True), (999, 999, False), (10_001, 1_000_000, True), (10_000, 1_000_000, False)],
)
def test_both_numbers_count(removals, documents, is_large):
    """A small index may have one group; a large one may have a group of many thousands."""
    assert OneStays("a", removals, documents).is_suspicious == is_large


def test_no_plan_takes_a_large_group(call, simhash, index, tmp_path, monkeypatch):
    """Of many duplicates none goes, unless that is allowed."""
    for module in (guard_rails, removal_file):
        monkeypatch.setattr(module, "FEWEST_LARGE", 50)
    call(simhash.create_index(index, text_field="body", settings=ONE_SHARD))
    documents = [{"_id": f"p{number:02}", "body": LICENCE[:300]} for number in range(60)]
    list(call(simhash.ingest(index, documents, on_duplicate=None)))
    call(simhash.reconcile(index))
    made = call(simhash.plan_removal(index, tmp_path / "plan.db", max_share=1.0))
    assert made.large_group == OneStays("p00", made.count, 60)
    with pytest.raises(GuardRailError, match=r"59 of 60 documents would go for one, 'p00'.*large_groups=True"):
        list(call(simhash.apply_removal(tmp_path / "plan.db")))
    with pytest.raises(GuardRailError, match="large_groups=True"):
        list(call(simhash.apply_removal(tmp_path / "plan.db", dry_run=True)))
    gone = list(call(simhash.apply_removal(tmp_path / "plan.db", large_groups=True, dry_run=True)))
    assert len(gone) == made.count == 59
