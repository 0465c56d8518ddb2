"""The command explain, which needs no server, and options of verification."""

import json

import pytest

from es_simhash.cli.options import settle
from es_simhash.cli.show import show
from es_simhash.lookup.lookup_options import Verification
from es_simhash.quality.stats import Stats
from tests.servers.command_line import failed, invoke, parse

BASE = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."


def test_explain_texts_and_files(local, tmp_path):
    edited = BASE.replace("Tuesday", "Friday")
    found = json.loads(local("explain", BASE, edited, "--json").stdout)
    assert found["distance"] > 0
    path = tmp_path / "old.txt"
    path.write_text(BASE, encoding="utf-8")
    assert json.loads(local("explain", "--file", path, "-", "--json", stdin=edited).stdout) == found
    shown = local("explain", BASE, edited).stdout
    assert "[-Tuesday-]{+Friday+}" in shown
    assert f"distance {found['distance']} bits of 64 (shingles-3)" in " ".join(shown.split())


def test_explain_bad_input(local, tmp_path):
    """Texts without features and binary files are said to be so; contradictions are usage errors."""
    assert "no fingerprint" in local("explain", "...", BASE).stdout
    binary = tmp_path / "binary"
    binary.write_bytes(b"\x80\x81" * 100)
    failed(local("explain", "--file", binary, binary), "not UTF-8")
    failed(local("explain", "--file", tmp_path / "missing", binary), "is not a file")
    assert local("explain", "a", "b", "--file", "--index", "i").exit_code == 2
    assert local("explain", "--file", "-", "-").exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], None),
        (["--verify", "0.7"], 0.7),
        (["--no-verify"], False),
        (["--numbers", "same"], Verification(numbers="same")),
        (["--preset", "noisy", "--verify", "0.7"], 0.7),
        (["--preset", "similar", "--verify", "0.7", "--numbers", "any"], Verification(0.7, numbers="any")),
    ],
)
def test_what_the_options_of_verification_stand_for(arguments, expected):
    """What they do not say is that of the preset."""
    given = parse(["plan", "news", *arguments])
    assert settle(given).get("verify") == expected


def test_texts_are_compared_or_not():
    assert invoke(["plan", "news", "--no-verify", "--numbers", "same"]).exit_code == 2


def test_a_small_share_is_not_nothing(capsys):
    """2 duplicates of 5,000 documents are no 0.0 %, on the terminal and in a notebook."""
    stats = Stats("news", documents=5_000, duplicates=2)
    show(stats)
    for shown in (capsys.readouterr().out, stats._title()):
        assert ("< 0.1 %" in shown, "0.0" in shown) == (True, False)
