"""What tests of removals and restores on real servers are given."""

import pytest

from tests.servers.archives import map_index


@pytest.fixture
def plan(tmp_path):
    """Name of a plan."""
    return tmp_path / "plan.jsonl"


@pytest.fixture
def archive(tmp_path):
    """Name of an archive."""
    return tmp_path / "removed.jsonl.gz"


@pytest.fixture
def made(server, index):
    """An index with our mapping."""
    return map_index(server, index)
