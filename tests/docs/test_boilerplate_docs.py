"""The example in docs/boilerplate.md runs and prints what it says."""

import json

from es_simhash.hashing.mask import FORMAT
from tests.docs.blocks import blocks, run

NAME = "docs/boilerplate.md"


def test_the_example():
    """Learned, written, and left out."""
    for block in blocks(NAME, "python"):
        run(block, {})


def test_the_format():
    """The file that the page shows is a mask."""
    [shown] = blocks(NAME, "json")
    assert json.loads(shown)["format"] == FORMAT
