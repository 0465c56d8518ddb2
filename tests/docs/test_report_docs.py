"""Every example in docs/report.md runs, on both products."""

import pytest
from click.testing import CliRunner

from es_simhash.cli import app
from tests.docs.blocks import commands, ran

NAME = "docs/report.md"


def test_the_examples(server):
    """The Python blocks; then the commands, with the fields that they name."""
    pytest.importorskip("vl_convert")
    with ran(NAME, server) as namespace:
        more = {"published": {"type": "date"}, "agency": {"type": "keyword"}, "title": {"type": "text"}}
        namespace["client"].indices.put_mapping(index="news", body={"properties": more})
        found = commands(NAME)
        assert len(found) == 6
        for arguments in found:
            done = CliRunner().invoke(app, arguments)
            assert done.exit_code == 0, (arguments, done.output)
