"""A table fits the terminal, in columns of the terminal, and what was cut is said; nothing is lost without a word."""

from contextlib import redirect_stdout
from io import StringIO

import pytest
from hypothesis import given, strategies as st
from rich.cells import cell_len

from es_simhash.cli.output import print_folded, print_sheets, table_width
from es_simhash.tables.notebook import Sheet
from es_simhash.tables.terminal import Column, lay_out

NAMES = st.lists(
    st.sampled_from(["id", "#bits", "~what to do", "#max distance", "标题", "text"]), min_size=1, max_size=14
)
CELLS = st.text(st.sampled_from("ab 中文語e\u0301🙂"), max_size=120)


@given(st.data(), NAMES, st.integers(40, 200), st.integers(1, 2))
def test_no_line_is_wider_than_the_terminal(data, names, width, keys):
    """Each column is in a part, and each part begins with the keys."""
    numbers = st.integers(0, 99_999_999).map(str)
    kinds = [{"#": "number", "~": "sentence"}.get(each[0], "text") for each in names]
    values = [data.draw(st.lists(numbers if each == "number" else CELLS, max_size=3)) for each in kinds]
    columns = [Column.of(*each) for each in zip(names, kinds, values, strict=True)]
    keys = tuple(range(min(keys, len(names))))
    parts = lay_out(columns, width=width, keys=keys)
    assert {place for part in parts for place in part.places} == set(range(len(names)))
    for part in parts:
        assert part.places[: len(keys)] == keys
        assert sum(part.widths) + 2 * (len(part.widths) - 1) <= width
        for place, has in zip(part.places, part.widths, strict=True):
            assert has <= columns[place].wanted
            assert columns[place].kind != "number" or has >= columns[place].longest


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


def test_a_table_with_too_many_numbers_is_printed_in_parts(printed):
    """The keys stand at the left of each part, and no number is lost."""
    shown = printed([{"scheme": "shingles-3", **{f"kind{n}": 1_000 + n for n in range(20)}}])
    assert max(map(cell_len, shown.out.splitlines())) <= 80
    assert shown.out.count("shingles-3") == shown.out.count("scheme") > 1
    assert all(f"{number:,}" in shown.out for number in range(1_000, 1_020))
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
    assert table_width(is_terminal=False, width=33) == width
    assert table_width(is_terminal=True, width=33) == 33
