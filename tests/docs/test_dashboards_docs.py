"""The examples in docs/dashboards.md run, print what they say, and name what is there."""

import json
import re
import shlex

from click.testing import CliRunner

from es_simhash import build_dashboards
from es_simhash.cli import app
from es_simhash.dashboards.rows import LISTED_GROUPS, SHOWN_GROUPS, SHOWN_SOURCES
from tests.docs.blocks import ROOT, blocks, run

NAME = "docs/dashboards.md"
TEXT = (ROOT / NAME).read_text(encoding="utf-8")


def test_the_python_examples():
    """In order, in one namespace. The command prints the same objects."""
    namespace = {"__name__": "dashboards"}
    for block in blocks(NAME, "python"):
        run(block, namespace)
    [line] = [line for block in blocks(NAME, "sh") for line in block.splitlines() if line.startswith("es-simhash")]
    words = shlex.split(line.partition(">")[0])
    done = CliRunner().invoke(app, words[1:])
    assert done.exit_code == 0, done.stderr
    assert [json.loads(each) for each in done.stdout.splitlines()] == namespace["pack"]
    assert [json.loads(each) for each in namespace["ndjson"].splitlines()] == namespace["pack"]


def test_the_page_names_the_panels_of_the_dashboard():
    """Each panel by its title, and the numbers that the searches have."""
    panels = build_dashboards("news", time_field="a", source_field="b")[-1]["attributes"]["panelsJSON"]
    titles = set(re.findall(r'"title":"([^"]+)"', panels))
    named = set(re.findall(r"^\| ([A-Z][\w ]+) \|", TEXT, re.MULTILINE))
    assert titles - {"What the numbers mean"} == named
    assert f"the {SHOWN_SOURCES} sources" in TEXT
    assert f"{LISTED_GROUPS:,} largest groups" in TEXT
    assert SHOWN_GROUPS == 10
    assert "| ten, with the text" in TEXT
