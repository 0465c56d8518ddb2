"""Every example in docs/removal.md runs, on both products."""

from pathlib import Path

from click.testing import CliRunner

from es_simhash.cli import app
from tests.docs.blocks import commands, ran

NAME = "docs/removal.md"


def test_the_examples(server):
    """The Python blocks; then the commands, on an index that is ten times as large."""
    with ran(NAME, server) as namespace:
        documents = [{"_id": f"n{n}", "body": f"{n} " * 20 + chr(97 + n) * 9} for n in range(9)]
        documents.append({"_id": "z", "body": namespace["text"] + "!"})
        list(namespace["simhash"].ingest("news", documents))
        Path("removed.jsonl.gz").unlink()
        printed = []
        for arguments in commands(NAME):
            done = CliRunner().invoke(app, arguments)
            assert done.exit_code == 0, (arguments, done.output)
            printed.append(done.stdout)
        assert len(printed) >= 3
        assert any("1 document" in each for each in printed)
