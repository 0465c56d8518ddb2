"""The manual of the command line: every command has help and a manual entry; and what `make docs` writes is current."""

import inspect
import json
import re
import shlex
import subprocess
import sys
from typing import get_args

import pytest

from es_simhash import SimHashClient
from es_simhash.cli.app import each_command
from es_simhash.hashing import get_scheme
from es_simhash.ingest.written import RefusedKind
from es_simhash.mapping.faults import find_faults
from es_simhash.mapping.meta import read_settings
from es_simhash.writes.operations import FailureKind
from tests.docs import json_page
from tests.docs.blocks import ROOT, load_tool

COMMANDS = dict(each_command())
MAPPINGS = ROOT / "mappings"


def options_of(entry):
    """Return the options of a command, each with its help, by name."""
    found = [option for option in entry.assemble_argument_collection(parse_docstring=True) if option.show]
    return {name: option.parameter.help for option in found for name in option.names}


@pytest.fixture(params=COMMANDS)
def command(request):
    """Each command, with its name."""
    return request.param, COMMANDS[request.param]


def test_every_command_has_help_and_examples(command):
    """Help begins with a sentence, every argument says what it means, and examples use the command."""
    name, entry = command
    text = inspect.getdoc(inspect.unwrap(entry.default_command))
    assert text.split("\n\n")[0].endswith(".")
    assert [name for name, said in options_of(entry).items() if not (said or "").strip().endswith(".")] == []
    examples = re.search(r"For example:\n\n(.+?)(\n\n|$)", text, re.DOTALL)[1].splitlines()
    known = options_of(entry).keys() | {"--json"}
    for example in examples:
        assert f"es-simhash {name}" in example
        words = shlex.split(example[example.index(f"es-simhash {name}") :])
        end = next((place for place, word in enumerate(words) if word in ("|", "&&")), len(words))
        assert {word for word in words[:end] if word.startswith("--")} <= known, example


# What the methods of the client that write are; all others only read.
WRITES = {"setup", "create_index", "put_mapping", "put_pipeline", "ingest", "reconcile", "backfill", "follow"}
WRITES |= {"apply_removal", "tag_written", "restore", "remove_fields"}
HELD_BACK = WRITES - {"follow", "ingest", "tag_written"}


def test_what_writes_can_be_held_back(command):
    """By --yes or by --dry-run; by both only where --yes is for one option. To ingest is to write."""
    name, entry = command
    text = inspect.getsource(inspect.unwrap(entry.default_command))
    options = options_of(entry)
    found = options.keys() & {"--yes", "--dry-run"}
    if name in ("follow", "ingest"):  # what the first writes first says setup without --yes
        return
    if not HELD_BACK.intersection(re.findall(r"simhash\.(\w+)\(", text)):
        assert found == set()
    elif len(found) == 2:
        [mode] = re.findall(r"^With (--[a-z]+): do it\.", options["--yes"])
        assert "; needs --yes." in " ".join(options[mode].split())
    else:
        assert len(found) == 1


def test_the_methods_that_write_are_known():
    """Those with a dry run, and those that the commands hold back by other means."""
    methods = inspect.getmembers(SimHashClient, inspect.isfunction)
    dry = {name for name, method in methods if "dry_run" in inspect.signature(method).parameters}
    assert dry == HELD_BACK


def test_the_manual_is_what_the_commands_say():
    """docs/cli.md is what `make docs` writes now."""
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == load_tool("generate_docs").build_cli()


def test_help_is_quick():
    """`es-simhash --help` loads no commands, and no help loads numpy or a search client."""
    code = (
        "import sys\n"
        "from es_simhash.cli.app import COMMANDS, run\n"
        "assert run(['--help']) == 0\n"
        "themes = 'setup fingerprint index ingest look remove report export local mcp'.split()\n"
        "loaded = [name for name in themes if f'es_simhash.cli.{name}' in sys.modules]\n"
        "names = [name for part in COMMANDS.values() for name in part]\n"
        "assert len(names) > 20 and all(run([*name.split(), '--help']) == 0 for name in names)\n"
        "loaded += [name for name in ('numpy', 'elasticsearch', 'opensearchpy', 'jieba') if name in sys.modules]\n"
        "print(loaded, file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_the_page_says_what_the_docstrings_say():
    """docs/json.md is what `make docs` writes now, and names every kind of failure."""
    assert load_tool("generate_docs").build_json() == json_page.PAGE
    kinds = {kind for part in (FailureKind, *get_args(RefusedKind)) for kind in get_args(part)}
    assert {*re.findall(r"`(\w+)`", json_page.FIELDS["failure"]["kind"])} == kinds


def test_a_field_that_the_page_lacks_is_found():
    """Also in an object of an object; what has no fields of its own may hold anything."""
    answer = {"near_dups": [{"id": "1", "new": 1}], "rule": {"words": "x", "other": 1}, "strange": 2, "plan": {"a": 1}}
    assert json_page.find_unknown("find", [answer]) == ["near_dups.new", "rule.other", "strange"]
    assert json_page.find_unknown("plan", [{"path": "x"}, {"action": "would delete"}]) == []


def test_every_command_that_answers_is_there():
    """But those that answer agents."""
    assert {name.split()[0] for name, _ in each_command()} - {"mcp"} == {name.split()[0] for name in json_page.COMMANDS}


@pytest.fixture(scope="module")
def files():
    """What the library builds: seconds that only the process of these tests shall need."""
    return load_tool("generate_docs").build_mappings()


def test_the_files_are_what_the_library_builds(files):
    held = {str(path.relative_to(MAPPINGS)): path.read_text(encoding="utf-8") for path in MAPPINGS.glob("*/*")}
    assert held == files


@pytest.mark.parametrize("product", ["elasticsearch", "opensearch"])
def test_the_mapping_is_one_that_lookups_accept(files, product):
    """A live index with this mapping has no faults, and says its scheme and text field."""
    mapping = json.loads(files[f"{product}/mapping.json"])["mappings"]
    assert find_faults(mapping) == []
    settings = read_settings(mapping)
    assert (settings.scheme.id, settings.text_fields) == (get_scheme().id, ("body",))
