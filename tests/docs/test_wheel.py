"""The wheel, built and used from an empty folder, holds all that the package needs."""

import subprocess
import sys
import zipfile

import pytest

from tests.docs.blocks import ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The path of a freshly built wheel."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    [path] = folder.glob("*.whl")
    return path


def test_the_wheel_holds_no_tests_and_all_data(wheel):
    """The package, its data and its licence, and nothing of the checkout beside it."""
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"es_simhash"}
    for wanted in ("py.typed", "demo/corpus.jsonl", "hashing/characters.bin", "servers/locked/opensearch-3.8.0.json"):
        assert f"es_simhash/{wanted}" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_wheel_works_with_the_source_gone(wheel, tmp_path):
    """Fingerprints, the corpus and the command line, from an empty folder."""
    site = tmp_path / "site"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel)]
    subprocess.run(command, check=True, capture_output=True)
    empty = tmp_path / "empty"
    empty.mkdir()
    code = (
        "import sys, es_simhash, es_simhash.demo, es_simhash.cli as cli;"
        f"assert es_simhash.__file__.startswith({str(site)!r}), es_simhash.__file__;"
        "assert es_simhash.demo.load_corpus();"
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
