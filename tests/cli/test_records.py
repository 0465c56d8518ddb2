"""Documents from files: every line is a document or is told, and no line costs another."""

import bz2
import codecs
import gzip
import io
from types import SimpleNamespace

import pytest

from es_simhash import Progress
from es_simhash.cli import fingerprint, lines
from es_simhash.cli.app import STDIN
from es_simhash.cli.fingerprint import read_lines
from es_simhash.cli.lines import Reader, read_text, to_action
from es_simhash.errors import InvalidInputError


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
        (b'{"a": "\xff"}', "not UTF-8 text (byte 8 of the line): convert it"),
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


@pytest.mark.parametrize("line", [b'{"a": 1,', b'["a"', b"\xb8\xdb\xb8\xdb"])
def test_a_broken_first_line_costs_no_other(read, line):
    """It is not taken for the beginning of JSON over several lines, or of another encoding."""
    first, *rest = read(line + b'\n{"n": 2}\n{"n": 3}\n')
    assert "not " in first.reason
    assert [each.value for each in rest] == [{"n": 2}, {"n": 3}]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_file_of_another_encoding_is_told_once(read, encoding):
    for name, content in (("x.jsonl", '{"a": 1}\n{"a": 2}\n'), ("x.csv", "a,b\n1,2\n3,4\n")):
        [record] = read(content.encode(encoding), name=name)
        assert f"{encoding[:6].upper()}" in record.reason
        assert codecs.lookup(record.reason.split("iconv -f ")[1].split()[0]).name.startswith(encoding[:6])


def test_a_line_that_is_too_long_is_skipped_to_its_end(read, monkeypatch):
    """It is not held in memory, and the next line is read."""
    monkeypatch.setattr(lines, "LONGEST_LINE", 50)
    first, second = read(b'{"a": "' + b"x" * 500 + b'"}\n{"a": 2}\n')
    assert "longer than" in first.reason
    assert (second.line, second.value) == (2, {"a": 2})


def test_a_broken_gzip_gives_what_came_before(read):
    content = gzip.compress("".join(f'{{"n": {n}, "x": "{n * 7919 % 9973}"}}\n' for n in range(20_000)).encode())
    *found, last = read(content[: len(content) // 2])
    assert len(found) > 100
    assert all(each.reason is None for each in found)
    assert "the rest of the file cannot be read" in last.reason


@pytest.mark.parametrize(
    ("content", "reasons"),
    [
        (b"a,b\n1\n1,2,3\n4,5\n", ["1 fields where the header has 2 ('a,b')", "3 fields where the header has 2", None]),
        (b'a,b\n"1" x,2\n4,5\n', ["not CSV", None]),
        (b'a,b\n4,5\n"never closed,2\n4,5\n', [None, "takes lines 3 to 4", "begins in line 3"]),
        (b'a,b\n1,"tram\n2,nine" stops\n4,5\n', ["takes lines 2 to 3", "begins in line 2", None]),
        (b"a,b\n\xff,2\n4,5\n", ["not UTF-8", None]),
        (b"a,a\n1,2\n", ["names a column twice"]),
        (b"a,\n1,2\n3,\n", ["a column without a name", None]),
        (b",a\n0,2\n", ["to_csv(index=False)"]),
        (b",,\n1,,\n", ["names no column"]),
        (b'a,b\n"x \\"y\\" z",2\n4,5\n', ["also one after a backslash", None]),
        (b"id|text\n1|a, b\n", ["the header 'id|text' is one column, so the file is skipped: if '|' separates"]),
        (b"id%text\n1%a\n", ["if '%' separates columns, write commas there"]),
        (b"a,b\n" + b"1,2\n" * 9 + b"caf\xe9,2\n", [None] * 9 + ["iconv -f CP1252"]),
        (b"a,b\n1,2\na,b\n3,4\n", [None, "the header once more", None]),
        (b"", ["no header"]),
        (b"a,b\n", []),
        (b"a\xc4,b\n1,2\n", ["not UTF-8"]),  # no row takes the place of a header that cannot be read
    ],
)
def test_broken_csv_is_told(read, content, reasons):
    """A row that does not fit is told, and rows after it are read where it can be known where they begin."""
    found = read(content, name="x.csv")
    assert len(found) == len(reasons)
    for record, reason in zip(found, reasons, strict=True):
        assert (record.reason is None) if reason is None else (reason in record.reason)


@pytest.mark.parametrize(
    "cell", ["roses are red, \nviolets, blue", "the price:\n1,000 EUR", "one\n\ntwo", "2,b,c\n3,d,e"]
)
def test_a_cell_of_several_lines_is_a_text(read, cell):
    """In any column, whatever its lines look like: its quotes say where it ends (RFC 4180)."""
    for place in range(3):
        row = ["1", "x"]
        row.insert(place, f'"{cell}"')
        [first, second] = read(f"a,b,c\n{','.join(row)}\n2,x,y\n".encode(), name="x.csv")
        assert list(first.value.values()) == [each.strip('"') for each in row]
        assert second.value == {"a": "2", "b": "x", "c": "y"}


HARBOUR = "id,正文\n1,港务局周一早上把柜台搬到了二楼。\n2,港务局\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (HARBOUR.encode("gb18030"), "iconv -f GB18030"),
        ("id,caf\xe9\n1,2\n".encode("latin-1"), "iconv -f CP1252"),
        (b"\x28\xb5\x2f\xfd" + bytes(range(256)), "compressed or binary data"),
        (b"PK\x03\x04" + bytes(range(256)), "compressed or binary data"),
        (bz2.compress(b'{"a": 1}\n'), "compressed or binary data"),
        (b'{"index": {"_id": 0}}\n{"n": 1}\n{"delete": {"_id": "1"}}\n', "for _bulk"),
        (b'\xef\xbb\xbf\n{"create": {}}\n{"n": 1}\n', "give the documents alone"),
        (b'[\n{"n": 1},\n{"n": 2}\n]\n', "JSON on several lines"),
        (b'[\n{"n": 1}\n]\n', "for an array jq -c '.[]'"),
        (b'[{"n": 1},\n{"n": 2}]\n', "for an array jq -c '.[]'"),
        (b'[{\n  "n": 1\n}]\n', "for an array jq -c '.[]'"),
        (b'{\n  "n": 1\n}\n', "jq -c . does"),
        (
            gzip.compress(b"a\tb\n1\tx\\ny\n", mtime=0),
            "mlr --itsv --ojsonl",
        ),  # each program writes its escapes in its way
    ],
)
def test_a_file_that_cannot_be_read_is_told_once(read, content, said):
    """One sentence, not one for each line, and it says what makes the file readable."""
    [record] = read(content, name="x.csv" if b"," in content[:3] else "x.tsv.gz" if "mlr" in said else "x.jsonl")
    assert said in record.reason


def test_a_line_of_stdin_that_is_too_long_ends_the_command(monkeypatch):
    """It is not held in memory to its end; nor is a text that is all of stdin."""
    monkeypatch.setattr(lines, "LONGEST_LINE", 50)
    monkeypatch.setattr(fingerprint, "_READ_BYTES", 20)
    monkeypatch.setattr(fingerprint, "LONGEST_LINE", 50)
    content = io.BytesIO(b"short\n" + b"x" * 500)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=content))
    read = read_lines()
    assert next(read) == [({"line": 1}, "short")]
    with pytest.raises(InvalidInputError, match="line 2 is longer than"):
        list(read)
    assert content.tell() < 100
    with pytest.raises(InvalidInputError, match="stdin is longer than"):
        read_text(STDIN)


def test_progress_counts_the_bytes_of_all_files(tmp_path):
    """At the end, as many bytes were read as there are, compressed as they are."""
    (tmp_path / "a.jsonl").write_bytes(b'{"a": 1}\n' * 1000)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b'{"a": 1}\n' * 1000))
    reader = Reader([str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl.gz")])
    positions = [reader.position for _ in reader]
    assert positions == sorted(positions)
    size = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert reader.progress("reading") == Progress(size, size, "reading (bytes)")


def test_stdin_has_no_total(monkeypatch):
    """What comes through a pipe is read like a file, compressed or not."""
    for content in (b'{"a": 1}\n', gzip.compress(b'{"a": 1}\n')):
        stdin = SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(content)))
        monkeypatch.setattr("sys.stdin", stdin)
        reader = Reader([STDIN])
        assert [(each.value, each.place) for each in reader] == [({"a": 1}, "stdin line 1")]
        assert reader.progress("reading").total is None


@pytest.mark.parametrize(
    ("content", "values"),
    [
        (b'id,text\r\n1,"a, ""b""\nc"\n2,\n', [{"id": "1", "text": 'a, "b"\nc'}, {"id": "2", "text": None}]),
        (b"text\na|b\n", [{"text": "a|b"}]),
        (b"id;url;title, short\n1;;a,b\n", [{"id": "1", "url": None, "title, short": "a,b"}]),
        (b'a\tb\n"1 ""x"""\t2\n', [{"a": '1 "x"', "b": "2"}]),
        (b"id,text,,,\n1,a,,,\n2,b,, ,\n", [{"id": "1", "text": "a"}, {"id": "2", "text": "b"}]),
        (b"a,b\n" + b"x" * 1_000_000 + b",1\n", [{"a": "x" * 1_000_000, "b": "1"}]),
        (b'text,label\n"a,b\n\nc",1\n', [{"text": "a,b\n\nc", "label": "1"}]),
        (gzip.compress(b"a,b\n1,2\n", mtime=0), [{"a": "1", "b": "2"}]),
    ],
)
def test_csv_rows_are_documents(read, content, values):
    """Quotes may hold separators and line breaks; an empty cell is missing; the header says what separates."""
    assert [record.value for record in read(content, name="x.CSV")] == values
    assert [record.value for record in read(content, name="x.jsonl", format="csv")] == values


@pytest.mark.parametrize(
    ("line", "id_field", "found"),
    [
        (b'{"_id": {"$oid": "65f0"}, "n": 1}', "_id.$oid", {"_id": "65f0", "_source": {"n": 1}}),
        (
            b'{"_id": "a", "_routing": "r", "_source": {"n": 1}}',
            None,
            {"_id": "a", "routing": "r", "_source": {"n": 1}},
        ),
        (b'{"_id": {"$oid": "65f0"}, "n": 1}', None, "--id-field '_id.$oid'"),
        (b'[{"n": 1}]', None, "jq -c '.[]'"),
        (b"null", None, "null is not a document"),
        (b'{"n": null}', "n", "field 'n', which --id-field names, is missing or null"),
    ],
)
def test_a_line_is_an_action_or_says_why_not(read, line, id_field, found):
    """Exports of MongoDB have objects as ids."""
    [record], [action] = zip(*(to_action(each, id_field) for each in read(line)), strict=True)
    if isinstance(found, dict):
        assert (record.reason, action) == (None, {"_op_type": "index", **found})
    else:
        assert (action, found in record.reason) == (None, True), record.reason


def test_a_file_is_closed_where_reading_ends_early(read, tmp_path):
    """Else a failure would leave that to the garbage collector."""
    read(b'{"a": 1}\n{"a": 2}\n')
    with Reader([str(tmp_path / "file.jsonl")]).records() as records:
        next(records)
    assert list(records) == []
