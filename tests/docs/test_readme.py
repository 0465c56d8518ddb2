"""Every example in README and docs runs, and prints what it says, on both products where it talks to a server."""

import doctest
import os
import re
import shlex
import subprocess
import sys

import pytest

from tests.docs.blocks import ROOT, blocks, ran
from tests.servers.fixtures import get_server, make_client


def test_the_python_examples_of_the_readme(server):
    """In order, in one namespace, with the product's own client."""
    with ran("README.md", server) as namespace:
        assert "client" in namespace


def test_the_shell_examples_of_the_readme(request, tmp_path):
    """The commands for one's own data, on a file of the reader's."""
    server = get_server(request, "opensearch")
    server.remove("news")
    text = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."
    lines = [f'{{"id": "n1", "body": "{text}"}}', f'{{"id": "n2", "body": "{text} (agency)"}}']
    (tmp_path / "news.jsonl").write_text("\n".join(lines), encoding="utf-8")
    environment = {**os.environ, "ES_SIMHASH_URL": server.url}
    try:
        commands = [line for block in blocks("README.md", "sh") for line in block.splitlines()]
        ran = [line for line in commands if line.startswith("es-simhash ")]
        assert len(ran) == 2
        for line in ran:
            command = [sys.executable, "-m", "es_simhash", *shlex.split(line)[1:]]
            done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            with make_client(server) as client:
                client.indices.refresh(index="news")
        assert "n2" in done.stdout
    finally:
        server.remove("news")


@pytest.mark.parametrize("name", sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md")))
def test_the_prompts_of_the_docs(name):
    """Blocks with ``>>>`` print what stands below them."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, _ = doctest.testfile(str(ROOT / name), module_relative=False, optionflags=flags, encoding="utf-8")
    assert failed == 0


@pytest.mark.parametrize("name", ["README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*.md"))])
def test_links_lead_somewhere(name):
    """Each relative link names a file that exists."""
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
    """Each file and folder in backticks is there, in the package or in the checkout."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:\w+/)*(?:\w+/|\w+\.(?:py|json|md)))`", text)
    assert len(named) > 40
    missing = [name for name in named if not any((base / name).exists() for base in (ROOT, ROOT / "es_simhash"))]
    assert missing == []
