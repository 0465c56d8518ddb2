"""Every example in docs/passages.md runs, on both products."""

from tests.docs.blocks import ran


def test_the_examples(server):
    """In order, in one namespace."""
    with ran("docs/passages.md", server) as namespace:
        assert namespace["found"].contains < 0.8
