"""The examples in docs/kibana.md print what the page says."""

import itertools
import re
import shlex

from click.testing import CliRunner

from es_simhash.cli import app
from tests.docs.blocks import ROOT, blocks, run

NAME = "docs/kibana.md"


def test_the_commands():
    """Each block of commands prints the block of text below it, if there is one, and nothing else."""
    found = re.findall(r"^```(\w+)\n(.*?)^```$", (ROOT / NAME).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    compared = 0
    for (kind, body), (next_kind, wanted) in itertools.pairwise([*found, ("", "")]):
        if kind != "sh":
            continue
        done = [CliRunner().invoke(app, shlex.split(line)[1:]) for line in body.splitlines()]
        assert [each.exit_code for each in done] == [0] * len(done)
        if next_kind == "text":
            assert "".join(each.stdout for each in done) == wanted
            compared += 1
    assert compared == 4


def test_the_python_examples():
    """In order, in one namespace."""
    namespace = {"__name__": "kibana"}
    for block in blocks(NAME, "python"):
        run(block, namespace)
