"""What tests of upkeep share."""

import pytest


@pytest.fixture
def pages(monkeypatch):
    """Sets how many documents a backfill, or a follower, reads at a time."""

    def set_size(size):
        for module in ("backfill", "follow"):
            monkeypatch.setattr(f"es_simhash.upkeep.{module}.PAGE_DOCUMENTS", size)

    return set_size
