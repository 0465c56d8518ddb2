"""What is printed for people has no character that controls a terminal, and messages never contain a login."""

import ast
import io
import json
import re
import sys
import traceback
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from rich.cells import cell_len
from rich.console import Console

from es_simhash import SimHashClient
from es_simhash.cli import connect as connecting
from es_simhash.cli.app import each_command
from es_simhash.cli.failures import describe
from es_simhash.cli.options import To
from es_simhash.cli.remove import show_records
from es_simhash.cli.show import (
    Output,
    choose_output,
    console,
    error,
    print_failures,
    print_json,
    print_line,
    print_sheets,
    to_json,
)
from es_simhash.cli.wording import NAMED_OTHERWISE, in_shell
from es_simhash.connection import split_url
from es_simhash.errors import InvalidInputError
from es_simhash.mapping.faults import Fault, mapping_error
from es_simhash.removal.records import DuplicateResult
from es_simhash.tables.notebook import Marked, Sheet
from es_simhash.tables.terminal import draw_sheet
from es_simhash.writes.operations import Failure
from tests.pages import CONTROL

PACKAGE = Path(connecting.__file__).parents[1]
ESCAPE = "\x1b[2J"
HOSTILE = f"{ESCAPE}a\x9b31m\u202eb\u2066c\u2028d\ne\r\x07\x7f\ud800\u200b\ufeff\U000e0041\u2060"


@pytest.mark.parametrize(
    "show",
    [
        lambda: print_line(HOSTILE),
        lambda: error(HOSTILE, kind="refused"),
        lambda: print_failures([Failure("refused", HOSTILE, HOSTILE, HOSTILE)] * 12),
        lambda: print_sheets(Sheet(HOSTILE, [{HOSTILE: HOSTILE, "id": "x"}]), title=HOSTILE),
        lambda: print_sheets(Marked([("removed", HOSTILE), (HOSTILE, HOSTILE)])),
        lambda: print_json({HOSTILE: [HOSTILE]}),
        lambda: print_json({HOSTILE: [HOSTILE]}, indent=2),
    ],
)
def test_nothing_printed_controls_the_terminal(show, capsys):
    """Escapes, C1 controls, direction marks and line breaks are shown as backslash escapes."""
    show()
    printed = "".join(capsys.readouterr())
    assert printed
    assert not CONTROL.search(printed)
    assert re.search(r"\\x1b|\\u001b", printed)


@given(st.text(st.characters(codec=None)))
def test_json_means_the_same_with_escapes(text):
    shown = to_json({"a": text})
    assert json.loads(shown) == {"a": text}
    assert not CONTROL.search(shown)
    assert "\n" not in shown


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://elastic:hunter2#x@127.0.0.1:1", "a character of its login ends the host: set the login by ES_SIMHASH"),
        ("http://elastic:12/hunter2@127.0.0.1:1", "set the login by ES_SIMHASH_USER"),
        ("http://elastic:1#hunter2@127.0.0.1:1", "set the login by ES_SIMHASH_USER"),
        ("http://elastic:#hunter2@x@127.0.0.1:1", "set the login by ES_SIMHASH_USER"),
        ("elastic:hunter2#x@127.0.0.1:1", "set the login by ES_SIMHASH_USER"),
        ("https:elastic:hunter2@127.0.0.1:1", "two slashes are missing behind its scheme: give one like"),
        ("ftp://elastic:hunter2@host", "'ftp://***@host' cannot be used, it must begin with http:// or https://: give"),
        ("http://elastic:hunter2@", "it names no host: give one like"),
        ("http://elastic:hunter2", "its port must be a number"),
        ("http://elastic:hunter2@[::1", ""),
        ("http://elastic:hunter2@host:port99/", "'http://***@host:port99/' cannot be used, its port must be a number"),
        ("http://elastic:hunter2://x@127.0.0.1:port", ""),
        ("http://elastic:hunter2://", ""),
    ],
)
def test_what_is_wrong_with_a_url_is_named_without_its_password(url, said):
    """Whatever part of the URL the parser takes for the password."""
    with pytest.raises(InvalidInputError) as caught:
        connecting.connect(To(url=url), "news").__enter__()
    shown = "".join(traceback.format_exception(caught.value))
    assert "cannot be used" in shown
    assert said in str(caught.value)
    assert "hunter" not in shown


def test_a_login_in_the_url_reaches_the_server_as_a_header():
    """Percent escapes are resolved; the URL that the clients see has no login."""
    url, login = split_url("https://me%40x:pa%23s%2Fs@host/path/")
    assert (url, login.user, login.password) == ("https://host:443/path", "me@x", "pa#s/s")
    assert "pa#s" not in repr(login)


# What no shell gets: an example of Python, and rooms that only Python has.
NOT_IN_SHELL = ("cli/local.py", "spark/", "integrations/")


METHODS = {name for name in dir(SimHashClient) if not name.startswith("_")} | NAMED_OTHERWISE.keys()
OF_PYTHON = re.compile(rf"\b({'|'.join(METHODS)})\([^()]*\)|\b[a-z_]+=(True|False|None)\b")


def messages():
    """Yield each text in the package that is no docstring and names a call, or an argument, as Python has it."""
    for path in PACKAGE.rglob("*.py"):
        if str(path.relative_to(PACKAGE)).startswith(NOT_IN_SHELL):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Expr(value=ast.Constant()):
                    node.value.value = None
                case ast.JoinedStr(values=parts):
                    yield "".join(part.value if isinstance(part, ast.Constant) else "prefix" for part in parts)
                case ast.Constant(value=str(text)):
                    yield text


def test_messages_name_commands_and_options_in_a_shell():
    """What they name is in the help of the command, and nothing of Python is left."""
    options = {
        name: {option for argument in command.assemble_argument_collection() for option in argument.names}
        for name, command in each_command()
    }
    named = set()
    for message in filter(OF_PYTHON.search, messages()):
        said = in_shell(message)
        assert not OF_PYTHON.search(said), said
        for command in re.findall(r"es-simhash ((?:[a-z-]+|[A-Z_]+| )+)", said):
            name = next(name for name in sorted(options, key=len, reverse=True) if command.startswith(name))
            named.add(name)
            assert set(re.findall(r"--[a-z-]+", command)) <= options[name], said
    assert {"setup", "reconcile", "remove-fields", "create", "export mapping"} <= named


class RefusedError(Exception):
    """What a client raises where a server refuses a request."""

    __module__ = "opensearchpy.exceptions"
    status_code = 400

    def __init__(self, body):
        super().__init__("refused")
        self.body = body


def test_a_sentence_is_never_cut_but_what_it_quotes_is():
    """Ours, with all its notes, and the server's; not a text that the server quotes, nor a page that is no answer."""
    faults = [Fault("not_mapped", f"simhash.block{number}", wanted="keyword") for number in range(4)]
    assert describe(mapping_error("a" * 400, faults)).endswith("or use a login that sees it")
    refused = RefusedError({"error": {"type": "x", "reason": f"no parser for [{'fox ' * 4_000}], and more words" * 2}})
    refused.add_note("The mapping is full: raise the limit, " + "and do it again, " * 40 + "at last.")
    said = describe(refused)
    assert said.count("…], and more words") == 2
    assert said.endswith("at last.)")
    assert len(said) < 1_500
    assert len(describe(RefusedError(f"<html>{'<p>' * 4_000}"))) < 400


def test_a_stdout_without_utf8_gets_ascii(monkeypatch):
    """JSON has an escape for every character."""
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="latin-1"))
    assert to_json("天") == '"\\u5929"'


@pytest.mark.parametrize(
    ("number", "last"), [(20, "would delete  d19  a                  1.000"), (30, "and 10 more (--json prints all)")]
)
def test_the_first_lines_are_printed(capsys, monkeypatch, number, last):
    """A plan of some hundred lines does not hide its summary; what is for programs has every line."""
    records = [DuplicateResult(f"d{n}", "news", "a", "news", 1, "would delete", similarity=1.0) for n in range(number)]
    assert show_records(iter(records)).done == number
    lines = capsys.readouterr().out.splitlines()
    assert (len(lines), lines[-1]) == (22 + (number > 20), last)
    monkeypatch.setattr(Output, "as_json", True)
    show_records(iter(records))
    assert len(capsys.readouterr().out.splitlines()) == number


NAMES = st.lists(
    st.sampled_from(["id", "#bits", "~what to do", "#max distance", "标题", "text"]), min_size=1, max_size=14
)
CELLS = st.text(st.sampled_from("ab 中文語e\u0301🙂"), max_size=120)


@given(st.data(), NAMES, st.integers(40, 200))
def test_no_line_is_wider_than_the_terminal(data, names, width):
    """And no number is cut, nor a sentence; what is cut of a text is said."""
    names, values = list(dict.fromkeys(names)), {"#": st.integers(0, 99_999_999)}
    rows = data.draw(st.lists(st.fixed_dictionaries({name: values.get(name[0], CELLS) for name in names}), min_size=1))
    drawn, cut = draw_sheet(Sheet("", rows, folded=[name for name in names if name[0] == "~"]), width=width)
    screen = Console(width=width, file=StringIO(), force_terminal=False)
    screen.print(*drawn, sep="\n")
    lines = screen.file.getvalue().split("\n")
    assert max(map(cell_len, lines)) <= width
    assert set(cut) <= {"id", "标题", "text"}
    shown = " ".join(lines).split()
    assert {f"{row[name]:,}" for row in rows for name in names if name[0] == "#"} <= set(shown)
    assert all(word in shown for name in names for word in name.split() if any(row[name] != "" for row in rows))


def test_what_a_table_leaves_out_and_what_it_cuts(monkeypatch, capsys):
    """A column that says nothing is not there, wide characters count two, and what is cut is named."""
    monkeypatch.delenv("COLUMNS", raising=False)
    title = "临江地铁二号线十二月二十八日开通运营全程票价三元首班车六点发车末班车二十三点到站市民可凭卡乘车"
    row = {"bits": 3, "id": "4711", "index": "news", "routing": None, "source.id": "own", "source.标题": title}
    print_sheets(Sheet("", [row]), known={"index": "news"})
    shown = capsys.readouterr()
    assert shown.out.split()[:4] == ["bits", "id", "source.id", "标题"]
    assert max(map(cell_len, shown.out.splitlines())) == 80
    assert {"3", "4711", "own"} <= {*shown.out.split()}
    assert shown.err.startswith("cut to fit 80 columns: 标题;")
    monkeypatch.setenv("COLUMNS", "200")
    print_sheets(Sheet("", [row]), known={"index": "n*"})
    shown = capsys.readouterr()
    assert (title in shown.out, "index" in shown.out, shown.err) == (True, True, "")


@pytest.mark.parametrize(("given", "width"), [("", 80), ("120", 120), ("1", 20)])
def test_without_a_terminal_the_width_is_80_or_columns(monkeypatch, given, width):
    monkeypatch.setenv("COLUMNS", given)
    assert console().width == width


@pytest.mark.parametrize(
    ("compatible", "wants_json", "printed"),
    [
        ("1", False, (False, False)),
        ("0", False, (True, False)),
        (None, False, (True, False)),
        ("1", True, (True, True)),
    ],
)
def test_a_terminal_gets_tables_and_a_pipe_json(monkeypatch, compatible, wants_json, printed):
    """Whether answers are JSON, and messages: these only where that was asked for. Pytest's own stdout is a file."""
    monkeypatch.delenv("TTY_COMPATIBLE")
    if compatible:
        monkeypatch.setenv("TTY_COMPATIBLE", compatible)
    for name in ("as_json", "says_json"):
        monkeypatch.setattr(Output, name, None)
    choose_output(wants_json=wants_json)
    assert (Output.as_json, Output.says_json) == printed
