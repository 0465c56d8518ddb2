"""A table fits the terminal, in columns of the terminal, and what was cut is said; nothing is lost without a word."""

from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

import pytest
from hypothesis import given, strategies as st
from rich.cells import cell_len

from es_simhash.cli.tables import Column, Lines, Value, lay_out, print_table, table_width

NAMES = st.lists(
    st.sampled_from(["id", "#bits", "~what to do", "#max distance", "标题", "text"]), min_size=1, max_size=14
)
CELLS = st.text(st.sampled_from("ab 中文語e\u0301🙂"), max_size=120)


@given(st.data(), NAMES, st.integers(40, 200), st.integers(1, 2))
def test_no_line_is_wider_than_the_terminal(data, names, width, keys):
    """Each column is in a part, and each part begins with the keys."""
    numbers = st.integers(0, 99_999_999).map(str)
    columns = [Column.of(each, data.draw(st.lists(numbers if each[0] == "#" else CELLS, max_size=3))) for each in names]
    parts = lay_out(columns, width=width, keys=keys)
    assert {place for part in parts for place in part.places} == set(range(len(names)))
    for part in parts:
        assert part.places[:keys] == tuple(range(min(keys, len(names))))
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
        print_table(*args, **options)
        return capsys.readouterr()

    return run


def test_wide_characters_count_two_columns_and_what_is_cut_is_named(printed):
    title = "临江地铁二号线十二月二十八日开通运营全程票价三元首班车六点发车末班车二十三点到站市民可凭卡乘车"
    shown = printed(["#bits", "id", "标题", "text"], [(3, "4711", title, "short")])
    assert max(map(cell_len, shown.out.splitlines())) == 80
    assert "4711" in shown.out
    assert "short" in shown.out
    assert shown.err.startswith("cut to fit 80 columns: 标题;")
    whole = printed(["#bits", "id", "标题", "text"], [(3, "4711", title, "short")], columns=200)
    assert title in whole.out
    assert whole.err == ""


def test_a_table_with_too_many_numbers_is_printed_in_parts(printed):
    """The keys stand at the left of each part, and no number is lost."""
    names = ["scheme", *(f"#kind{n}" for n in range(20))]
    shown = printed(names, [("shingles-2", *range(1_000, 1_020))])
    assert max(map(cell_len, shown.out.splitlines())) <= 80
    assert shown.out.count("shingles-2") == shown.out.count("scheme") > 1
    assert all(str(number) in shown.out for number in range(1_000, 1_020))
    assert shown.err == ""


def test_a_sentence_goes_on_in_the_next_line(printed):
    sentence = " ".join(f"word{n}" for n in range(40))
    shown = printed(["", "~what to do"], [("error", sentence)])
    assert " ".join(shown.out.split("error")[1].split()) == sentence
    assert shown.err == ""


@given(st.lists(st.tuples(st.booleans(), CELLS), min_size=1, max_size=6), st.integers(20, 120))
def test_a_record_fits_and_only_values_are_cut(parts, width):
    """Words of ours go on in the next line; a value that was cut ends with a mark, and its name is said."""
    out, err = StringIO(), StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setenv("COLUMNS", str(width))
        with Lines() as lines:
            lines.print(*(Value("id", text) if is_value else text for is_value, text in parts))
    shown = out.getvalue()
    assert max(map(cell_len, shown.splitlines())) <= width
    left = "".join(shown.split())
    for is_value, text in parts:
        begin = "".join(text.split())
        if is_value and not left.startswith(begin):
            assert "cut to fit" in err.getvalue()
            end = next(
                (place for place, pair in enumerate(zip(begin, left, strict=False)) if len({*pair}) > 1), len(left)
            )
            begin = begin[:end] + "…"
        assert left.startswith(begin)
        left = left.removeprefix(begin)
    assert left == ""


@pytest.mark.parametrize(("given", "width"), [(None, 80), ("120", 120), ("1", 20), ("no number", 80)])
def test_without_a_terminal_the_width_is_80_or_columns(monkeypatch, given, width):
    monkeypatch.delenv("COLUMNS", raising=False)
    if given:
        monkeypatch.setenv("COLUMNS", given)
    assert table_width(is_terminal=False, width=33) == width
    assert table_width(is_terminal=True, width=33) == 33
