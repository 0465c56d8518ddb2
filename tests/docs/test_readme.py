"""What README and docs name is there: files, tests and links; and their prompts print what they say."""

import doctest
import re

import pytest

from tests.docs.blocks import ROOT


@pytest.mark.parametrize("name", sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md")))
def test_the_prompts_of_the_docs(name):
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, _ = doctest.testfile(str(ROOT / name), module_relative=False, optionflags=flags, encoding="utf-8")
    assert failed == 0


@pytest.mark.parametrize("name", ["README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*.md"))])
def test_links_lead_somewhere(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (ROOT / name).parent.joinpath(target).exists(), target


def test_the_promises_name_tests_that_exist():
    """Each promise has tests, and each test named is there."""
    text = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
    # Promises have two columns; the table of a server's settings has three.
    rows = [line for line in text.splitlines() if line.startswith("| ") and line.count("|") == 3]
    rows = [line for line in rows if not line.startswith("| covers")]
    assert len(rows) > 25
    assert [row for row in rows if "`tests/" not in row] == []
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text)
    for path, name in named:
        source = (ROOT / path).read_text(encoding="utf-8")
        assert re.search(rf"def {name}\(", source) if name else source, f"{path}::{name}"


def test_the_architecture_names_files_that_exist():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:\w+/)*(?:\w+/|\w+\.(?:py|json|md)))`", text)
    assert len(named) > 40
    missing = [name for name in named if not any((base / name).exists() for base in (ROOT, ROOT / "es_simhash"))]
    assert missing == []
