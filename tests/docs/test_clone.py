"""What README and the other pages say about installing works as it stands, in a clone."""

import os
import re
import shlex
import subprocess
import sys

import pytest

from tests.docs.blocks import ROOT

PAGES = [
    "README.md",
    "README.zh-CN.md",
    "llms.txt",
    *(str(each.relative_to(ROOT)) for each in ROOT.glob("docs/**/*.md")),
]
# Of the page, not of what a command says: that is installed already, and then its name suffices.
INSTALLS = [
    (page, found[0])
    for page in PAGES
    if page not in ("docs/cli.md", "docs/json.md")
    for found in re.finditer(r"pip install (?:'[^']*'|\"[^\"]*\"|[^-\s`]+)", (ROOT / page).read_text(encoding="utf-8"))
]


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A fresh clone of this tree, as its last commit has it."""
    folder = tmp_path_factory.mktemp("clone") / "es_simhash"
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", ROOT.as_uri(), folder], check=True, capture_output=True)
    return folder


def run(folder, *command, **environment):
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def pip(folder, line, *options):
    """Run a line that installs, with *options*; an extra that is not there is more than a warning."""
    words = shlex.split(line)
    assert words[:2] == ["pip", "install"]
    done = run(folder, sys.executable, "-m", "pip", "install", "--disable-pip-version-check", *options, *words[2:])
    assert "does not provide the extra" not in done.stderr, done.stderr


def test_the_first_lines_run_in_a_clone(clone, tmp_path):
    """The first block: what is made has a rule, and what is installed runs. The Chinese page has the same lines."""
    block = (ROOT / "README.md").read_text(encoding="utf-8").partition("```sh\n")[2].partition("```")[0]
    lines = [line.partition("#")[0].strip() for line in block.splitlines()]
    assert [line.split()[0] for line in lines] == ["make", ".", "pip", "make"]
    for line in lines:
        if line.startswith("make"):
            assert run(clone, *line.split(), "--dry-run", f"PYTHON={sys.executable}").stdout
            continue
        if line.startswith("."):
            folder = line.split()[1].removesuffix("/bin/activate")
            assert f"\nVENV := {folder}\n" in (ROOT / "Makefile").read_text(encoding="utf-8")
            continue
        pip(clone, line, "--dry-run")  # the dependencies too
        site = tmp_path / "site"
        pip(clone, line, "--no-deps", "--target", site)
        found = run(tmp_path, sys.executable, "-P", "-m", "es_simhash", "fingerprint", "a text", PYTHONPATH=str(site))
        assert re.fullmatch(r"[0-9a-f]{16}\n", found.stdout)


@pytest.mark.parametrize(("page", "line"), INSTALLS, ids=lambda each: each.replace(" ", "_"))
def test_nothing_is_installed_by_a_name_that_no_index_has(page, line):
    """Each line names the clone, and extras that it has."""
    extras = set(re.findall(r"^([a-z-]+) = \[", (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE))
    wanted = re.fullmatch(r"\.(?:\[([a-z,-]+)\])?", shlex.split(line)[2])
    assert wanted, page
    assert set((wanted[1] or "").split(",")) - {""} <= extras
