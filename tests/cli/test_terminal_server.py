"""What the commands print, whatever the documents hold: no character moves the cursor, and records fit the width."""

import json
import os
import subprocess
import sys

import pytest
from rich.cells import cell_len

from tests.pages import CONTROL
from tests.servers.command_line import NEAR, OTHER, TEXT
from tests.servers.support import put

# Escapes, C1 controls, direction marks and line breaks.
HOSTILE = "\x1b[2J\x9b31m\u202e\u200f\u2028x\ny\u200b\ufeff\U000e0041\u2060"
LONG = {"a": f"{HOSTILE}0", "b": "地铁二号线开通运营" * 18, "c": "c" * 512, "d": "\u05d0\u200f/" * 60, "e": "{}"}


@pytest.fixture
def hostile(run, index, server, tmp_path):
    """An index of near-duplicates with ids of 512 bytes, a field of 1 MB, and a document that the server refuses."""
    mappings = tmp_path / "own.json"
    mappings.write_text(json.dumps({"properties": {"n": {"type": "integer"}, "title": {"enabled": False}}}))
    assert run("create", index, "-t", "body", "-d", 12, "--mappings", mappings).exit_code == 0
    documents = [{"_id": id_, "body": NEAR if id_ == LONG["c"] else TEXT, "title": HOSTILE} for id_ in LONG.values()]
    documents[1]["title"] = "标题" * 170_000
    documents += [{"_id": f"{HOSTILE}bad", "n": HOSTILE, "body": OTHER}, {"_id": "7", "body": {HOSTILE: HOSTILE}}]
    source = tmp_path / "x\x1b.jsonl"
    source.write_text("".join(json.dumps(each) + "\n" for each in documents) + f'"{HOSTILE[:1]}')
    result = run("ingest", index, source, "--no-verify")
    assert result.exit_code == 3
    assert not CONTROL.search(result.output)
    server.request("POST", f"/{index}/_refresh")
    return index


def test_documents_cannot_control_the_terminal(run, hostile, tmp_path, monkeypatch):
    """Records are as wide as the terminal at most, and what was cut is said; a sentence is never cut."""
    monkeypatch.setenv("COLUMNS", "40")
    plan = tmp_path / "removal.db"
    shown = ["--preset", "identical", "--show", "title"]
    # How many lines of the output are sentences, and whether something in the records must be cut.
    commands = [
        (0, True, ["find", hostile, TEXT, "--source", "title", "--verify", "0.5"]),
        (0, True, ["find", hostile, "--id", LONG["a"]]),
        (1, False, ["find", hostile, "--id", f"{HOSTILE}no"]),
        (1, False, ["find", f"{hostile}{HOSTILE}", TEXT]),
        (0, True, ["groups", hostile, "--source", "title"]),
        (0, True, ["groups", hostile]),
        (9, False, ["plan", hostile]),
        (10, False, ["plan", hostile, "--out", plan, "--max-share", "1", *shown]),
        (99, False, ["review", plan]),  # texts, which the terminal wraps
        (1, False, ["apply", plan, "--yes"]),
        (0, False, ["history", LONG["b"], plan]),
        (0, False, ["history", LONG["a"], plan]),
        (2, False, ["restore", plan]),
        (1, False, ["explain", hostile, LONG["a"], LONG["c"]]),
        (0, False, ["explain", f"{HOSTILE}word", HOSTILE]),
        (1, True, ["check", hostile]),
        (2, True, ["check", hostile, "--sample", "9"]),
        (1, True, ["tune", hostile, "--sample", "5"]),
        (2, False, ["reconcile", hostile]),
        (1, False, ["remove-fields", hostile, "--yes"]),
    ]
    for sentences, is_cut, arguments in commands:
        result = run(*arguments)
        assert result.output
        assert not CONTROL.search(result.output), arguments
        wide = [line for line in result.stdout.splitlines() if cell_len(line) > 40]
        assert len(wide) <= sentences, (arguments, wide)
        assert is_cut or "cut to fit" not in result.stderr, (arguments, result.stderr)


# A bar comes after this time, and is drawn again whenever there is progress.
PROGRAM = """\
import runpy
from es_simhash.cli import show
show._PATIENCE_SECONDS, show._STEP_SECONDS = 0.0, 0.0
runpy.run_module("es_simhash", run_name="__main__")
"""


def at_a_terminal(server, out, *arguments):
    """Run a command whose stderr is a terminal and whose stdout is the file *out*; return what the terminal got."""
    controller, terminal = os.openpty()
    command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    environment = {**os.environ, "ES_SIMHASH_URL": server.url, "TERM": "xterm", "COLUMNS": "80"}
    with out.open("wb") as file:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=terminal, env=environment)
        os.close(terminal)
        got = b""
        try:
            while part := os.read(controller, 4_096):
                got += part
        except OSError:  # the other side is closed
            pass
        os.close(controller)
        assert process.wait() == 0, got
    return got.decode()


@pytest.mark.parametrize("server", ["opensearch"], indirect=True)
def test_progress_is_for_the_terminal_and_data_for_the_file(server, run, index, tmp_path):
    """A bar on the screen while a long step lasts; stdout has whole lines of JSON, and nothing else."""
    assert run("create", index, "-t", "body").exit_code == 0
    put(server, index, [{"_id": str(n), "body": f"{TEXT} {n % 3}"} for n in range(60)])
    out, lines = tmp_path / "out", tmp_path / "in.jsonl"
    assert "comparing documents" in at_a_terminal(server, out, "setup", index, "--yes", "--preset", "near", "--json")
    assert json.loads(out.read_text())["filled"]["changed"] == 60
    server.request("POST", f"/{index}/_refresh")
    lines.write_text("".join(json.dumps(f"{TEXT} {n}") + "\n" for n in range(30)))
    assert "finding" in at_a_terminal(server, out, "find", index, "--input", lines)
    assert [json.loads(line)["line"] for line in out.read_text().splitlines()] == list(range(1, 31))
