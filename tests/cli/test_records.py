"""Documents from files: every line is a document or is told, and no line costs another."""

import codecs
import gzip
import io
import json
from types import SimpleNamespace

import pytest

from es_simhash.cli import records
from es_simhash.cli.records import Reader


@pytest.fixture
def read(tmp_path):
    """Return a function that writes bytes to a file and returns what a reader makes of it."""

    def read(content, *, name="file.jsonl", **options):
        path = tmp_path / name
        path.write_bytes(content)
        return list(Reader([str(path)], **options))

    return read


def test_json_lines_are_documents_with_their_places(read):
    """Blank lines are passed over and counted, a byte order mark is no part of the first document."""
    found = read(b'\xef\xbb\xbf{"a": 1}\n\n  \r\n{"a": "\\u4f60"}')
    assert [(each.line, each.value, each.reason) for each in found] == [(1, {"a": 1}, None), (4, {"a": "你"}, None)]
    assert found[0].place.endswith("file.jsonl line 1")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{broken", "not JSON"),
        (b'{"a": 1} {"b": 2}', "not JSON"),
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b'{"a": -Infinity}', "-Infinity is not a JSON number"),
        (b'{"a": "\xff"}', "not UTF-8 (byte 8 of the line)"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not usable JSON"),
        (b'{"a": "\x00"}', "not JSON"),
        (b'{"a": "\\uD800"}', "half a character"),
        (b'{"a": {"b": ["\\udc00\\ud800"]}}', "half a character"),
        (b'{"a": 1, "b": {"c": 1, "c": 2}}', "'c' stands twice"),
    ],
)
def test_a_broken_line_is_told_and_the_next_is_read(read, line, reason):
    first, second, third = read(b'{"n": 1}\n' + line + b'\n{"n": 3}\n')
    assert (first.value, third.value, third.line) == ({"n": 1}, {"n": 3}, 3)
    assert reason in second.reason


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize(("name", "content"), [("x.jsonl", '{"a": 1}\n{"a": 2}\n'), ("x.csv", "a,b\n1,2\n3,4\n")])
def test_a_file_of_another_encoding_is_told_once(read, encoding, name, content):
    [record] = read(content.encode(encoding), name=name)
    assert f"{encoding[:6].upper()}" in record.reason
    assert "iconv -f UTF-" in record.reason
    assert codecs.lookup(record.reason.split()[-3]).name.startswith(encoding[:6])


def test_escapes_are_kept(read):
    [record] = read(b'{"a": "\\u0000 \\ud83d\\ude00 \\u00e9"}')
    assert record.value == {"a": "\x00 \N{GRINNING FACE} é"}


def test_a_line_that_is_too_long_is_skipped_to_its_end(read, monkeypatch):
    """It is not held in memory, and the next line is read."""
    monkeypatch.setattr(records, "LONGEST_LINE", 50)
    first, second = read(b'{"a": "' + b"x" * 500 + b'"}\n{"a": 2}\n')
    assert "longer than" in first.reason
    assert (second.line, second.value) == (2, {"a": 2})


def test_gzip_is_told_by_its_bytes(read):
    """The name does not matter."""
    [record] = read(gzip.compress(b'{"a": 1}\n'), name="file.data")
    assert record.value == {"a": 1}


def test_a_broken_gzip_gives_what_came_before(read):
    content = gzip.compress("".join(f'{{"n": {n}, "x": "{n * 7919 % 9973}"}}\n' for n in range(20_000)).encode())
    *found, last = read(content[: len(content) // 2])
    assert len(found) > 100
    assert all(each.reason is None for each in found)
    assert "the rest of the file cannot be read" in last.reason


def test_csv_rows_are_documents(read):
    """Quotes may hold separators and line breaks, and an empty cell is a value that is not there."""
    found = read(b'id,text\r\n1,"a, ""b""\nc"\n2,\n', name="file.CSV")
    assert [each.value for each in found] == [{"id": "1", "text": 'a, "b"\nc'}, {"id": "2", "text": None}]
    assert [each.line for each in found] == [3, 4]


def test_tsv_and_formats_by_option(read):
    """The name decides, and the option decides before it."""
    assert read(b"a\tb\n1\t2\n", name="x.tsv.gz")[0].value == {"a": "1", "b": "2"}
    assert read(b"a,b\n1,2\n", name="x.jsonl", format="csv")[0].value == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    ("content", "reasons"),
    [
        (b"a,b\n1\n1,2,3\n4,5\n", ["1 fields where the header has 2", "3 fields where the header has 2", None]),
        (b'a,b\n"1" x,2\n4,5\n', ["not CSV", None]),
        (b'a,b\n4,5\n"never closed,2\n4,5\n', [None, "not CSV"]),
        (b"a,b\n\xff,2\n4,5\n", ["not UTF-8", None]),
        (b"a,a\n1,2\n", ["names a column twice"]),
        (b"a,\n1,2\n", ["a column without a name"]),
    ],
)
def test_broken_csv_is_told(read, content, reasons):
    """A row that does not fit is told, and rows after it are read where it can be known where they begin."""
    found = read(content, name="x.csv")
    assert len(found) == len(reasons)
    for record, reason in zip(found, reasons, strict=True):
        assert (record.reason is None) if reason is None else (reason in record.reason)


def test_a_long_csv_cell_is_no_problem(read):
    """Texts are longer than the 128 KiB that Python's csv takes by default."""
    text = "x" * 1_000_000
    assert read(f"a,b\n{text},1\n".encode(), name="x.csv")[0].value["a"] == text


def test_progress_counts_the_bytes_of_all_files(tmp_path):
    """At the end, as many bytes were read as there are, compressed as they are."""
    (tmp_path / "a.jsonl").write_bytes(b'{"a": 1}\n' * 1000)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b'{"a": 1}\n' * 1000))
    reader = Reader([str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl.gz")])
    positions = [reader.position for _ in reader]
    assert positions == sorted(positions)
    assert reader.position == reader.total == sum(path.stat().st_size for path in tmp_path.iterdir())


def test_stdin_has_no_total(monkeypatch):
    """What comes through a pipe is read like a file, compressed or not."""
    for content in (b'{"a": 1}\n', gzip.compress(b'{"a": 1}\n')):
        stdin = SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(content)))
        monkeypatch.setattr("sys.stdin", stdin)
        reader = Reader(["-"])
        assert [(each.value, each.place) for each in reader] == [({"a": 1}, "stdin line 1")]
        assert reader.total is None


def test_every_line_is_told_once(read):
    lines = [json.dumps({"n": n}).encode() if n % 3 else b"\xff" for n in range(300)]
    found = read(b"\n".join(lines))
    assert [each.line for each in found] == list(range(1, 301))
    assert [each.value["n"] if each.value else None for each in found] == [n if n % 3 else None for n in range(300)]
