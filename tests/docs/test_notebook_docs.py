"""Every example in docs/notebook.md runs, on both products."""

import pytest

from tests.docs.blocks import ran


def test_the_examples(server):
    """In order, in one namespace."""
    pytest.importorskip("pandas")
    with ran("docs/notebook.md", server) as namespace:
        assert "client" in namespace
