"""The page of the fields that --json prints; tests/cli/test_json_server.py compares it with what commands print."""

import re

import pytest

from es_simhash.cli.app import each_command
from tests.docs.blocks import ROOT, load_tool

PAGE = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tool():
    return load_tool("generate_json_docs")


def test_the_page_is_what_the_classes_say(tool):
    """docs/json.md is what `make docs` writes now."""
    assert tool.build_text() == PAGE


def test_a_field_that_the_page_lacks_is_found(tool):
    """Also in an object of an object; what has no fields of its own may hold anything."""
    answer = {"near_dups": [{"id": "1", "new": 1}], "rule": {"words": "x", "other": 1}, "strange": 2, "plan": {"a": 1}}
    assert tool.find_unknown("find", [answer]) == ["near_dups.new", "rule.other", "strange"]
    assert tool.find_unknown("plan", [{"path": "x"}, {"action": "would delete"}]) == []


def test_every_command_that_answers_is_there(tool):
    """But those that answer agents."""
    names = {name.split()[0] for name, _ in each_command()} - {"mcp"}
    assert names == {name.split()[0] for name in tool.COMMANDS}


def test_every_object_is_linked():
    links, anchors = re.findall(r"\(#([\w-]+)\)", PAGE), re.findall(r"^### (.+)$", PAGE, re.MULTILINE)
    assert {name.lower() for name in anchors} == set(links)
