"""A program that keeps a command open gets an answer to each line before it writes the next."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from es_simhash import fingerprint, to_hex
from es_simhash.cli import app

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell whether a line waits")
TEXTS = ["the quick brown fox jumps over the lazy dog", "...", "日本語の新聞記事を読む", "a\r"]


def as_fingerprint(text):
    found = fingerprint(text)
    return "-" if found is None else to_hex(found)


def as_query(text):
    """The search that the command prints for one text."""
    if fingerprint(text) is None:
        return None
    return json.loads(CliRunner().invoke(app, ["query", text, "--max-distance", "3"]).stdout)


@pytest.mark.parametrize(
    ("arguments", "expected", "read"),
    [
        (["fingerprint"], as_fingerprint, str.strip),
        (["fingerprint", "--workers", "2"], as_fingerprint, str.strip),
        (["query", "--lines", "--max-distance", "3"], as_query, json.loads),
    ],
    ids=["fingerprint", "fingerprint with workers", "query"],
)
def test_each_line_is_answered_at_once(arguments, expected, read):
    """Several lines that come at once too, and the last one, which has no line break."""
    command = [sys.executable, "-m", "es_simhash", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as process:
        for text in TEXTS:
            process.stdin.write(f"{text}\n")
            process.stdin.flush()
            assert read(process.stdout.readline()) == expected(text)
        process.stdin.write("\n".join(TEXTS[:3]))
        process.stdin.close()
        assert [read(line) for line in process.stdout] == list(map(expected, TEXTS[:3]))
    assert process.returncode == 0
