"""A table fits the terminal, in columns of the terminal, and what was cut is said; nothing is lost without a word."""

from contextlib import redirect_stdout
from io import StringIO

import pytest
from hypothesis import given, strategies as st
from rich.cells import cell_len
from rich.console import Console

from es_simhash.cli.show import Output, choose_output, console, print_folded, print_sheets
from es_simhash.tables.notebook import Sheet
from es_simhash.tables.terminal import draw_sheet

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


@pytest.fixture
def printed(monkeypatch, capsys):
    def run(*args, columns=None, **options):
        monkeypatch.delenv("COLUMNS", raising=False)
        if columns is not None:
            monkeypatch.setenv("COLUMNS", str(columns))
        print_sheets(Sheet("", *args), **options)
        return capsys.readouterr()

    return run


def test_wide_characters_count_two_columns_and_what_is_cut_is_named(printed):
    title = "临江地铁二号线十二月二十八日开通运营全程票价三元首班车六点发车末班车二十三点到站市民可凭卡乘车"
    row = {"bits": 3, "id": "4711", "标题": title, "text": "short"}
    shown = printed([row])
    assert max(map(cell_len, shown.out.splitlines())) == 80
    assert "4711" in shown.out
    assert "short" in shown.out
    assert shown.err.startswith("cut to fit 80 columns: 标题;")
    whole = printed([row], columns=200)
    assert title in whole.out
    assert whole.err == ""


def test_a_table_with_too_many_numbers_is_printed_a_value_a_line(printed):
    """No number is lost, and none is without its name."""
    shown = printed([{"scheme": "shingles-3", **{f"kind{n}": 1_000 + n for n in range(20)}}])
    assert max(map(cell_len, shown.out.splitlines())) <= 80
    assert [line.split() for line in shown.out.splitlines() if line.strip()] == [
        ["scheme", "shingles-3"],
        *([f"kind{n}", f"{1_000 + n:,}"] for n in range(20)),
    ]
    assert shown.err == ""


def test_a_sentence_goes_on_in_the_next_line(printed):
    sentence = " ".join(f"word{n}" for n in range(40))
    shown = printed([{"": "error", "what to do": sentence}], {}, ("what to do",))
    assert " ".join(shown.out.split("error")[1].split()) == sentence
    assert shown.err == ""


def test_columns_that_say_nothing_are_left_out(printed):
    """Without any value, or with the one that is known; the fields of documents in the order that was asked for."""
    rows = [{"id": "1", "index": "news", "routing": None, "source.lang": "en", "source.title": "T"}]
    assert printed(rows, known={"index": "news"}, first=["title"]).out.splitlines()[0].split() == [
        "id",
        "title",
        "lang",
    ]
    assert "index" in printed(rows, known={"index": "n*"}).out
    both = printed([{"id": "1", "source.id": "own"}]).out
    assert both.splitlines()[0].split() == ["id", "source.id"]


@given(st.lists(CELLS, min_size=1, max_size=6), st.integers(20, 120))
def test_a_line_that_does_not_fit_goes_on_in_the_next(lines, width):
    out = StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out):
        patch.setenv("COLUMNS", str(width))
        print_folded(lines)
    assert max(map(cell_len, out.getvalue().splitlines())) <= width
    assert "".join(out.getvalue().split()) == "".join("".join(lines).split())


@pytest.mark.parametrize(("given", "width"), [(None, 80), ("120", 120), ("1", 20), ("no number", 80)])
def test_without_a_terminal_the_width_is_80_or_columns(monkeypatch, given, width):
    monkeypatch.delenv("COLUMNS", raising=False)
    if given:
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
