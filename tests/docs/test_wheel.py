"""The wheel has everything that the package needs, works in an empty folder, and is reproducible."""

import os
import shutil
import subprocess
import sys
import zipfile

import pytest

from tests.docs.blocks import ROOT


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
    for name in ("pyproject.toml", "README.md", "LICENSE"):
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
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"es_simhash"}
    for wanted in ("py.typed", "hashing/characters.bin", "servers/locked/opensearch-3.8.0.json"):
        assert f"es_simhash/{wanted}" in names
    for kind in ("*.html.jinja", "*.css", "*.js", "*.json", "*.jsonl", "*.md", "*.painless"):
        assert {str(path.relative_to(ROOT)) for path in ROOT.glob(f"es_simhash/**/{kind}")} <= {*names}
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_wheel_works_with_the_source_gone(wheel, tmp_path):
    """Fingerprints, the corpus and the command line, from an empty folder."""
    site = tmp_path / "site"
    options = ["--quiet", "--no-deps", "--no-compile", "--target", str(site)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(wheel)], check=True, capture_output=True)
    empty = tmp_path / "empty"
    empty.mkdir()
    code = (
        "import sys, es_simhash, es_simhash.cli as cli, importlib.resources as resources;"
        f"assert es_simhash.__file__.startswith({str(site)!r}), es_simhash.__file__;"
        "assert resources.files('es_simhash.cli').joinpath('demo_corpus.jsonl').read_text('utf-8');"
        "print(es_simhash.to_hex(es_simhash.fingerprint('the quick brown fox')));"
        "sys.argv = ['es-simhash', 'fingerprint', 'the quick brown fox', '--scheme', 'keywords'];"
        "cli.main()"
    )
    environment = {"PYTHONPATH": str(site), "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=empty, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()[0]) == 16
