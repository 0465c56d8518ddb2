"""
The manual of the command line: every command is in the table, has help and a manual entry, and docs/cli.md
is current.
"""

import inspect
import re
import shlex
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from es_simhash import SimHashClient
from es_simhash.cli.application import app, each_command, module_of
from es_simhash.cli.options import Manual
from tests.docs.blocks import ROOT, load_tool

COMMANDS = dict(each_command())


@pytest.fixture(params=COMMANDS)
def command(request):
    """Each command, with its name."""
    return request.param, COMMANDS[request.param]


def test_the_table_has_every_command():
    """Each file of es_simhash/cli/commands is a command of the table, and the other way round."""
    files = {path.stem for path in (ROOT / "es_simhash" / "cli" / "commands").glob("*.py")}
    assert files - {"__init__"} == {module_of(name.split()[0]) for name in COMMANDS}


def test_every_command_has_help_and_examples(command):
    """Help begins with a sentence, every option says what it means, and examples use the command."""
    name, entry = command
    assert isinstance(entry, Manual)
    assert entry.help
    assert entry.help.split("\n\n")[0].endswith(".")
    for parameter in entry.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name
            assert parameter.help.endswith("."), parameter.name
    assert entry.examples
    assert all(f"es-simhash {name}" in example for example in entry.examples)


def test_examples_use_options_that_exist(command):
    """Each example parses as far as a shell would hand it on."""
    name, entry = command
    known = {option for parameter in entry.params for option in [*parameter.opts, *parameter.secondary_opts]}
    for example in entry.examples:
        words = shlex.split(example)
        own_name = ["es-simhash", *name.split()]
        start = next(i for i in range(len(words)) if words[i : i + len(own_name)] == own_name)
        own = words[start + len(own_name) :]
        end = next((i for i, word in enumerate(own) if word == "|"), len(own))
        assert {word for word in own[:end] if word.startswith("--")} <= known, example


# What the methods of the client that write are; all others only read.
WRITES = {"setup", "create_index", "put_mapping", "put_pipeline", "ingest", "reconcile", "backfill", "follow"}
WRITES |= {"apply_removal", "tag_written", "restore", "remove_fields"}


def test_what_writes_can_be_held_back(command):
    """By --yes or by --dry-run; by both only where --yes is for one option of the command."""
    name, entry = command
    text = inspect.getsource(inspect.unwrap(entry.callback))
    options = {each: parameter.help for parameter in entry.params for each in parameter.opts if each.startswith("--")}
    found = options.keys() & {"--yes", "--dry-run"}
    if name in ("demo", "follow"):  # a server of its own; what follow writes first says backfill --dry-run
        return
    if not WRITES.intersection(re.findall(r"simhash\.(\w+)\(", text)):
        assert not found
    elif len(found) == 2:
        [mode] = re.findall(r"^With (--[a-z]+): do it\.", options["--yes"])
        assert "; needs --yes." in options[mode]
    else:
        assert len(found) == 1


def test_the_methods_that_write_are_known():
    """Those with a dry run, and those that the commands hold back by other means."""
    methods = inspect.getmembers(SimHashClient, inspect.isfunction)
    dry = {name for name, method in methods if "dry_run" in inspect.signature(method).parameters}
    assert WRITES - dry == {"follow", "tag_written"}  # no command has the latter
    assert dry <= WRITES


def test_short_help_leads_to_the_whole(command):
    """--help shows 8 to 12 options and two of its own; --help-all shows each."""
    name, entry = command
    known = {each for parameter in entry.params for each in parameter.opts if each[:2] == "--"} | {"--help"}
    assert entry.common <= known
    if entry.common:
        short, whole = (CliRunner().invoke(app, [*name.split(), option]).stdout for option in ("--help", "--help-all"))
        short = short[short.index("\nCommon options:") :]
        shown = {each for each in known if re.search(rf"^  (-\w, )?{each}(?![-\w])", short, re.MULTILINE)}
        assert shown == entry.common
        assert 10 <= len(shown) <= 14
        assert all(each in whole for each in known)


def test_the_manual_is_what_the_commands_say():
    """docs/cli.md is what `make docs` writes now."""
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == load_tool("generate_cli_docs").build_text()


def test_help_imports_no_command_and_no_client():
    """`es-simhash --help` is quick because it loads neither the commands nor a search client."""
    code = (
        "import sys\n"
        "from es_simhash.cli import app\n"
        "try: app(['--help'])\n"
        "except SystemExit as end: assert end.code == 0\n"
        "loaded = [n for n in sys.modules if n.startswith('es_simhash.cli.commands.')]\n"
        "loaded += [n for n in ('elasticsearch', 'opensearchpy', 'jieba', 'rich') if n in sys.modules]\n"
        "print(loaded, file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
