"""No advice that reaches the command line names a method or an argument of Python."""

import ast
import copy
import functools
import pickle
import re
import shlex
from itertools import pairwise
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import es_simhash
from es_simhash import InvalidInputError, errors
from es_simhash.cli import app
from es_simhash.cli.application import each_command
from es_simhash.cli.output import COMMAND, GROUPING, INDEX, PREFIX, for_shell
from es_simhash.cli.stopping import remember_arguments, this_command
from es_simhash.errors import REGROUP, Advice, Argument, Said, said_of
from es_simhash.quality.health import Finding
from es_simhash.quality.report.report_page import Speech

PACKAGE = Path(es_simhash.__file__).parent


@functools.cache
def _parsed():
    """Return the path, the text and the tree of each module."""
    found = [(path, path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))]
    return [(path, text, ast.parse(text)) for path, text in found]


def _advices(tree):
    """Yield each advice that is written in *tree*: what to do, in the words of Python and of the command line."""
    for each in ast.walk(tree):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == "Advice":
            yield each


def _pasted():
    """Yield each value that a message puts into a command of ours, with its place."""
    for path, text, tree in _parsed():
        for each in ast.walk(tree):
            parts = each.values if isinstance(each, ast.JoinedStr) else []
            for before, part in pairwise(parts):
                if isinstance(before, ast.Constant) and re.search(r"es-simhash(?: [\w-]+)* $", before.value):
                    value = ast.unparse(part.value)
                    is_quoted = value.startswith("shlex.") or f" {value} = shlex." in text
                    yield f"{path.relative_to(PACKAGE)}:{each.lineno} {value}", is_quoted


def test_a_command_in_a_message_can_be_pasted():
    """Names and paths with spaces or * are quoted for the shell."""
    found = dict(_pasted())
    assert found  # all others are made by say_command, which quotes
    assert [place for place, is_quoted in found.items() if not is_quoted] == []


def test_the_advice_of_a_finding_can_be_pasted():
    finding = Finding("warning", "large_group", {"index": "news-*", "group": "a", "documents": 9})
    assert "es-simhash groups 'news-*' --min-size 9" in finding.advice
    assert Speech("zh")("advice_large_group", **finding.advice_values).count("'news-*'") == 1


@pytest.mark.parametrize(
    ("given", "again"),
    [
        (["plan", "news-*", "--filter", '{"a": "b c"}'], """plan 'news-*' --filter '{"a": "b c"}' --out FILE"""),
        (["plan", "--", "-news"], "plan --out FILE -- -news"),
    ],
)
def test_the_command_that_was_given_can_be_pasted(given, again):
    with click.Context(app) as context:
        remember_arguments(context, given)
        assert this_command("--out", "FILE") == f"es-simhash {again}"


def test_no_advice_is_lost_in_a_sentence():
    """What is formatted into a string is a string: an advice is a part of its message."""
    lost = []
    for path, _, tree in _parsed():
        for each in ast.walk(tree):
            if isinstance(each, ast.FormattedValue):
                text = ast.unparse(each.value)
                if text.endswith(".advice") or (text in vars(errors) and isinstance(vars(errors)[text], Advice)):
                    lost.append(f"{path.relative_to(PACKAGE)}:{each.lineno} {text}")
    assert lost == []


def _all_advices():
    for path, _, tree in _parsed():
        for each in _advices(tree):
            yield (
                f"{path.relative_to(PACKAGE)}:{each.lineno}",
                {one.arg: ast.unparse(one.value) for one in each.keywords},
            )


def test_every_advice_has_words_for_the_command_line():
    """A command that exists, with options that it has; or other words. Only what may be left out has none."""
    known = dict(each_command())
    found = dict(_all_advices())
    assert len(found) > 20
    for place, given in found.items():
        assert len(given) == 1 or place.startswith(("folding/request.py", "lookup/lookup_options.py", "errors.py")), (
            place
        )
        if "command" in given:
            words = shlex.split(given["command"].strip("'\""))
            name = " ".join(words[:2]) if words[0] == "export" else words[0]
            options = {each for parameter in known[name].params for each in parameter.opts}
            assert {each for each in words if each.startswith("--")} <= options, place


def test_an_advice_is_a_command_with_what_was_given():
    """The index, the prefix, and what a change of the grouping asks for; the advice of Python is a call."""
    message = Said("another one takes ", REGROUP, " or ", Advice("f(x=1)", command="setup INDEX --yes"))
    assert str(message) == "another one takes reconcile(regroup=True) or f(x=1)"
    with click.Context(app) as context:
        context.meta.update({INDEX: "the news", PREFIX: "near", GROUPING: ["--per", "lang"]})
        said = "es-simhash reconcile 'the news' --regroup --per lang --prefix near --yes"
        assert for_shell(message) == f"another one takes {said} or es-simhash setup 'the news' --prefix near --yes"


def test_a_message_keeps_its_parts():
    """In copies, in other processes, and where values are put into it."""
    message = Said("{name!r} has ", Argument("max_distance"), ": ", Advice("f({name})", command="check {name}"))
    made = message.format(name="a b")
    assert str(made) == "'a b' has max_distance: f(a b)"
    for each in (made, pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):  # noqa: S301 -- our own
        assert for_shell(each) == "'a b' has max_distance: es-simhash check 'a b'"
    assert said_of(InvalidInputError(made)).parts == made.parts


@pytest.mark.parametrize(
    ("command", "name", "said"),
    [
        ("find", "max_distance", "give --max-distance, not 65"),
        ("backfill", "text_fields", "give --text-field, not 65"),
        ("history", "text_fields", "give text_fields, not 65"),
    ],
)
def test_an_argument_becomes_its_option(command, name, said):
    message = Said("give ", Argument(name), ", not 65")
    context = click.Context(app.get_command(click.Context(app), command))
    assert for_shell(message, context) == said
    # What ends a command is said when its own context is closed.
    program = click.Context(app)
    program.meta[COMMAND] = context.command
    assert for_shell(message, program) == said


def test_a_command_that_fails_names_its_option():
    result = CliRunner().invoke(app, ["export", "dashboards", "news", "--source-field", ""])
    assert (result.exit_code, result.stderr.split(" is ")[0]) == (1, "error: --source-field ''")
