"""How commands that fail end: exit code, one line or one JSON object on stderr, and what a mistyped name is like."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from es_simhash import __version__
from es_simhash.cli.app import each_command
from tests.servers.command_line import invoke

COMMANDS = dict(each_command())


def _options(name):
    return {word for option in COMMANDS[name].assemble_argument_collection() for word in option.names}


# Restore and apply read their file first.
ASKING = [name for name in COMMANDS if "--url" in _options(name) and name not in ("restore", "apply")]


def _arguments(name):
    needed = [option for option in COMMANDS[name].assemble_argument_collection() if option.required]
    extra = {
        "find": ["text"],
        "passages": ["text"],
        "explain": ["1", "2"],
        "tune": ["--text-field", "body"],
        "export pipeline": ["x", "--install"],
        "export dashboards": ["--check"],
    }
    return ["x" if name != "ingest" else __file__] * len(needed) + extra.get(name, [])


def _failure(result):
    [line] = result.stderr.splitlines()
    [(key, found)] = json.loads(line).items()
    assert key == "error"
    assert found.keys() == {"kind", "message"}
    assert found["message"]
    assert "\n" not in found["message"]
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_a_mistake_in_the_command_line_is_json_where_json_is_asked_for(name):
    result = invoke([*name.split(), "--no-such-option", "--json"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert _failure(result)["kind"] == "usage"


@pytest.mark.parametrize("name", ASKING)
def test_what_ends_a_command_is_one_json_object(name):
    result = invoke([*name.split(), *_arguments(name), "--url", "no address", "--json"])
    assert (result.exit_code > 0, result.stdout) == (True, "")
    assert _failure(result)["kind"] == ("usage" if result.exit_code == 2 else "InvalidInputError")


NEEDS_A_REMOVAL = ("review", "apply", "restore")
BLAMED = [
    ({"ES_SIMHASH_URL": ""}, "check x", 1, "ES_SIMHASH_URL: URL '' cannot be used"),
    ({"ES_SIMHASH_FILES": "words.txt"}, "find x y", 1, "ES_SIMHASH_FILES has 'words.txt': give KEY=PATH"),
    ({}, "ingest x y --skip -1", 1, "skip -1 is out of range: give 0 or more"),
    ({}, "serve --port 65536", 1, "port 65536 is out of range: give 0 to 65,535"),
    ({}, "fingerprint x --set foo", 2, "--set 'foo' is not KEY=VALUE, as in --set top=50"),
    ({"ES_SIMHASH_TIMEOUT": "nan"}, "check x", 1, "ES_SIMHASH_TIMEOUT 'nan' is out of range: give seconds above 0"),
    ({"ES_SIMHASH_TIMEOUT": "soon"}, "check x", 1, "ES_SIMHASH_TIMEOUT 'soon' is out of range: give seconds above 0"),
    ({"ES_SIMHASH_INSECURE": "yes"}, "check x", 1, "ES_SIMHASH_INSECURE 'yes' is not known: give '0' or '1'"),
    ({"ES_SIMHASH_PRODUCT": "solr"}, "check x", 1, "ES_SIMHASH_PRODUCT 'solr' is not known"),
    ({}, "find x", 2, "stdin is empty: pass exactly one of TEXT, --file"),
    ({}, "setup x --preprocess html links", 2, "too many arguments: links (give an option once for each"),
    ({}, "find x y --query kql --verify 0.5", 2, "--verify: not for --query kql"),
    ({}, "find x --max-distanc 3", 2, "--max-distance"),
    ({}, "fnd", 2, "find"),
    ({}, "groupz", 2, "groups"),
    ({}, "查找", 2, "es-simhash --help lists the commands"),
    ({}, "export pipeline x --use-as x", 2, "es-simhash export pipeline --help lists the options"),
    ({}, "export nothing", 2, "es-simhash export --help lists the commands"),
    ({}, "plan x --max-share 9", 1, "--max-share 9.0 is out of range"),
    *(({}, f"{name} x", 1, "'x' is not a file: give a removal; es-simhash plan INDEX") for name in NEEDS_A_REMOVAL),
]


@pytest.mark.parametrize(("environment", "words", "code", "said"), BLAMED)
def test_what_is_wrong_is_named(monkeypatch, environment, words, code, said):
    """The variable, the option, or stdin; and nothing else is said."""
    monkeypatch.setenv("ES_SIMHASH_PRODUCT", "opensearch")  # so that no server is asked which it is
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    result = invoke(words.split())
    [line] = result.stderr.splitlines()
    assert (result.exit_code, said in line) == (code, True), line


def test_usage_names_the_arguments():
    assert invoke(["--version"]).stdout == f"es-simhash {__version__}\n"
    assert "es-simhash ingest [OPTIONS] INDEX FILES" in invoke(["ingest", "--help"]).stdout


@pytest.mark.parametrize("words", [["find", "x", "--verify", "o" * 5_000], ["check", "x", "o" * 5_000]])
def test_a_long_value_is_not_repeated_whole(words):
    result = invoke(words)
    assert (result.exit_code, len(result.stderr) < 800) == (2, True)


@pytest.mark.parametrize("given", ["[]", "5", '"text"', "[1]", "{"])
def test_a_filter_that_is_no_query_is_named_before_anything_is_asked(given):
    result = invoke(["find", "x", "text", "--filter", given, "--json"])
    assert result.exit_code == 2
    found = _failure(result)
    assert (found["kind"], "--filter" in found["message"]) == ("usage", True)


# Interrupts the process when a module is imported, as somebody does who has seen a mistake in the command line.
INTERRUPTED = """
import os, signal, sys
class Finder:
    def find_spec(name, *_):
        if name == {name!r}:
            os.kill(os.getpid(), signal.{sent})
sys.meta_path.insert(0, Finder)
signal.signal(signal.SIGINT, signal.default_int_handler)
from es_simhash.cli import main
main()
"""


@pytest.mark.parametrize(
    ("name", "sent", "code", "options", "said"),
    [
        ("es_simhash.cli.app", "SIGINT", 130, [], "stopped; run it again\n"),
        (
            "elasticsearch",
            "SIGTERM",
            143,
            ["--json"],
            '{"error": {"kind": "stopped", "message": "stopped; run it again"}}\n',
        ),
    ],
)
def test_a_command_that_is_stopped_while_it_starts_says_so_in_one_line(name, sent, code, options, said):
    """While modules are imported, and while it connects; with --json it is an error as any other."""
    command = [sys.executable, "-c", INTERRUPTED.format(name=name, sent=sent), "check", "news", *options]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "", said)


@pytest.mark.parametrize("redirect", [">&-", ">/dev/full"])
def test_an_output_that_takes_nothing_is_a_failure_of_a_file(redirect):
    """Only the shell can start a program without stdout."""
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    command = f"exec {shlex.quote(sys.executable)} -m es_simhash fingerprint fox --json {redirect}"
    ended = subprocess.run(["/bin/sh", "-c", command], stderr=subprocess.PIPE, text=True, check=False)
    found = json.loads(ended.stderr.splitlines()[-1])["error"]
    assert (ended.returncode, found["kind"], "stdout" in found["message"]) == (1, "file", True)
