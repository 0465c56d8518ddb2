"""What tests of removals and restores on real servers are given."""

import pytest

from tests.servers.archives import map_index


@pytest.fixture
def plan(tmp_path):
    """Name of the file of a removal."""
    return tmp_path / "removal.db"


@pytest.fixture
def made(server, index):
    """An index with our mapping."""
    return map_index(server, index)
