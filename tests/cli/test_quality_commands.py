"""The commands evaluate and explain, which need no server: figures, files written, bad input."""

import gzip
import json

import click
import pytest
from click.testing import CliRunner

from es_simhash.cli.commands.stats import _show
from es_simhash.cli.grouping_options import verification
from es_simhash.lookup.lookup_options import Verification
from es_simhash.quality import evaluate, read_truth
from es_simhash.quality.stats import Stats
from tests.servers.command_line import failed

BASE = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."
DOCUMENTS = [
    {"id": "a", "text": BASE},
    {"id": "b", "text": BASE.upper()},
    {"id": "c", "text": "Nobody expected the harbour to freeze in October, least of all the crew."},
]
PAIRS = "id1\tid2\tjaccard\tcontainment\na\tb\t1.0000\t1.0000\n"


@pytest.fixture(params=["", ".gz"])
def files(request, tmp_path):
    """The documents and pairs, plain and compressed."""
    write = gzip.compress if request.param else bytes
    documents = tmp_path / f"docs.jsonl{request.param}"
    documents.write_bytes(write("".join(json.dumps(each) + "\n" for each in DOCUMENTS).encode()))
    pairs = tmp_path / f"pairs.tsv{request.param}"
    pairs.write_bytes(write(PAIRS.encode()))
    return documents, pairs


def test_evaluate_prints_the_librarys_figures(local, files):
    result = local("evaluate", *files, "--preset", "near", "--json")
    truth = read_truth(DOCUMENTS, [{"id1": "a", "id2": "b", "jaccard": 1.0}])
    assert json.loads(result.stdout) == {"preset": "near", **evaluate(truth, preset="near").to_dict()}
    assert json.loads(result.stdout)["verified"]["recall"] == 1.0


def test_evaluate_writes_pairs_and_a_picture(local, files, tmp_path):
    """Reported pairs have distance and similarity; the table is for people."""
    pytest.importorskip("matplotlib")
    out, picture = tmp_path / "out.jsonl", tmp_path / "figures.svg"
    result = local("evaluate", *files, "--scheme", "words", "-d", 64, "--pairs-out", out, "--plot", picture)
    assert result.exit_code == 0, result.output
    assert "max_distance 64" in result.stdout
    assert "words-1" in result.stdout
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [(row["id1"], row["id2"]) for row in rows] == [("a", "b"), ("a", "c"), ("b", "c")]
    shares = dict.fromkeys(("similarity", "containment", "known"), 1.0)
    assert rows[0] == {"id1": "a", "id2": "b", "distance": 0, **shares, "verified": True}
    assert picture.stat().st_size > 1000


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ("id1\tid2\tjaccard\na\tx\t1\n", "unknown documents, first 'x'"),
        ("id1\tid2\na\tb\n", "no jaccard"),
        ("id1\tid2\tjaccard\na\tb\tlots\n", "'lots'"),
        ("id1\tid2\tjaccard\n", "no pairs"),
    ],
)
def test_evaluate_refuses_what_it_cannot_measure_with(local, files, tmp_path, pairs, words):
    path = tmp_path / "wrong.tsv"
    path.write_text(pairs, encoding="utf-8")
    failed(local("evaluate", files[0], path), words)


def test_evaluate_refuses_broken_files(local, files, tmp_path):
    """A line that cannot be read is named; so is a picture's ending, before anything is computed."""
    broken = tmp_path / "docs.jsonl"
    broken.write_text('{"id": "a", "text": "x"}\n{"id": \n', encoding="utf-8")
    failed(local("evaluate", broken, files[1]), "line 2")
    many = "".join(json.dumps({"id": str(number), "text": "x"}) + "\n" for number in range(5000))
    broken.write_bytes(gzip.compress(many.encode())[:-2000])
    failed(local("evaluate", broken, files[1]), "docs.jsonl")
    failed(local("evaluate", *files, "--plot", tmp_path / "figures.gif"), ".png")
    assert local("evaluate", *files, "--preset", "exact").exit_code == 2
    assert local("evaluate", *files, "--positive", "2").exit_code == 2
    assert local("evaluate", "missing.jsonl", files[1]).exit_code == 2


def test_explain_texts_and_files(local, tmp_path):
    edited = BASE.replace("Tuesday", "Friday")
    found = json.loads(local("explain", BASE, edited, "--json").stdout)
    assert found["distance"] == len(found["differing_bits"]) > 0
    path = tmp_path / "old.txt"
    path.write_text(BASE, encoding="utf-8")
    assert json.loads(local("explain", "--file", path, "-", "--json", stdin=edited).stdout) == found
    shown = local("explain", BASE, edited).stdout
    assert "[-Tuesday-]{+Friday+}" in shown
    assert f"distance {found['distance']} bits of 64 (shingles-2)" in " ".join(shown.split())


def test_explain_bad_input(local, tmp_path):
    """Texts without features and binary files are said to be so; contradictions are usage errors."""
    assert "no features" in local("explain", "...", BASE).stdout
    binary = tmp_path / "binary"
    binary.write_bytes(b"\x80\x81" * 100)
    failed(local("explain", "--file", binary, binary), "not UTF-8")
    failed(local("explain", "--file", tmp_path / "missing", binary), "is not a file")
    for wrong in (["--file", "--index", "i"], ["--text-field", "body"]):
        assert local("explain", "a", "b", *wrong).exit_code == 2
    assert local("explain", "--file", "-", "-").exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], None),
        (["--verify", "0.7"], 0.7),
        (["--no-verify"], False),
        (["--measure", "edit"], Verification(measure="edit")),
        (["--preset", "noisy", "--verify", "0.7"], 0.7),
        (["--preset", "noisy", "--unit", "words"], Verification(unit="words")),
        (["--preset", "similar", "--verify", "0.7", "--unit", "characters"], Verification(0.7, unit="characters")),
    ],
)
def test_what_the_options_of_verification_stand_for(arguments, expected):
    """What --measure and --unit do not say is that of the preset."""
    seen = []
    command = click.command("any")(verification(lambda **given: seen.append(given["verify"])))
    assert CliRunner().invoke(command, arguments).exit_code == 0
    assert seen == [expected]
    assert CliRunner().invoke(command, ["--no-verify", "--unit", "words"]).exit_code == 2


def test_a_small_share_is_not_nothing(capsys):
    """2 duplicates of 5,000 documents are no 0.0 %, on the terminal and in a notebook."""
    stats = Stats("news", documents=5_000, duplicates=2)
    _show(stats)
    for shown in (capsys.readouterr().out, stats._title()):
        assert ("< 0.1 %" in shown, "0.0" in shown) == (True, False)
