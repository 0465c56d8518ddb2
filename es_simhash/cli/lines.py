"""
Files and stdin: whole texts, and documents one at a time; lines as bulk actions. A bad line, and a file that cannot be
read, has a reason with its remedy.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import sys
import zlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Literal, cast

from es_simhash import InvalidInputError, Progress
from es_simhash.arguments import check_input
from es_simhash.cli.app import STDIN
from es_simhash.cli.show import warn
from es_simhash.errors import shorten
from es_simhash.transport.raw_json import JsonObject, keep_text, read_json, why_unreadable

_HEAD_BYTES = 1 << 16
ONE_EACH = "write one document on each line"

# In bytes. No server accepts a larger document by default (http.max_content_length).
LONGEST_LINE = 100 * 1024 * 1024
TOO_LONG = f"longer than {LONGEST_LINE // 2**20} MB"

_GZIP = b"\x1f\x8b"
# Zip archives (and with them Excel's files), Parquet, zstd, bzip2, xz.
_OTHERS = (b"PK\x03\x04", b"PAR1", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ\0")
_NO_TEXT = "compressed or binary data: unpack it, or write it as JSON Lines or as CSV in UTF-8; gzip is read as it is"


def find_wide_encoding(data: bytes) -> str | None:
    """
    Return the name that iconv has for the encoding of *data* if that is UTF-16 or UTF-32; else ``None``.

    Examples:
        >>> find_wide_encoding("a".encode("utf-16")), find_wide_encoding("ab".encode("utf-16-le"))
        ('UTF-16', 'UTF-16LE')
    """
    name = json.detect_encoding(data[:4]).upper()
    is_wide = any(data[:2]) and not name.startswith("UTF-8")  # NUL bytes alone are a hole in a file
    return name.replace("-LE", "LE").replace("-BE", "BE") if is_wide else None


def not_utf8(data: bytes, place: str = "") -> str:
    """Return what *data* is, whole lines, and what makes it UTF-8: Excel writes one of two encodings."""
    if wide := find_wide_encoding(data):
        return f"{wide} text, not UTF-8: convert it with iconv -f {wide} -t UTF-8"
    guess = "GB18030"
    try:
        data.decode(guess)
    except UnicodeDecodeError:
        guess = "CP1252"
    return f"not UTF-8 text{place}: convert it, for example with iconv -f {guess} -t UTF-8"


def peek(file: IO[bytes]) -> bytes:
    """Return what *file* begins with, at least one byte if it has any, and leave it there."""
    return cast("io.BufferedReader", file).peek(_HEAD_BYTES)


@contextmanager
def open_input(name: str) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """
    Provide a file, or stdin through a new buffer: as it is stored, and unpacked; the first bytes show how, whatever the
    name. A thread that waits for input holds the lock of its buffer; were that ``sys.stdin``, Python would end with a
    fatal error.
    """
    raw: Any
    try:
        raw = open(sys.stdin.fileno() if name == STDIN else name, "rb", _HEAD_BYTES, closefd=name != STDIN)  # noqa: SIM115
    except (AttributeError, io.UnsupportedOperation):  # a stand-in
        raw = io.BufferedReader(cast("Any", sys.stdin.buffer))
    try:
        yield raw, cast("IO[bytes]", gzip.open(raw)) if peek(raw).startswith(_GZIP) else raw  # noqa: SIM115
    finally:
        if name != STDIN:  # to close stdin would wait for the lock
            raw.close()


def decode(data: bytes, name: str) -> str:
    """Return *data* as text, or raise InvalidInputError that says what it is and what to do."""
    if len(data) > LONGEST_LINE:
        raise InvalidInputError(f"{name} is {TOO_LONG}, more than a server takes: give a part of it")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        is_text = not data.startswith((_GZIP, *_OTHERS))
        what = not_utf8(data, f" (byte {error.start + 1})") if is_text else "compressed or binary data: unpack it first"
        raise InvalidInputError(f"{name} is {what}") from error


def read_text(path: str) -> str:
    """Return the whole text of a file, or of stdin if *path* is ``-``."""
    if path == STDIN:
        return decode(sys.stdin.buffer.read(LONGEST_LINE + 1), "stdin")
    if not Path(path).is_file():
        raise InvalidInputError(f"{shorten(path)} is not a file: give the path of a text")
    with Path(path).open("rb") as file:
        return decode(file.read(LONGEST_LINE + 1), path)


Format = Literal["auto", "jsonl", "csv"]

LONGEST_ID_BYTES = 512  # the servers' own limit

_MAYBE_SURROGATE = re.compile(r"\\u[dD]")
# The first line of what is written for _bulk.
_ACTION = re.compile(rb'\{\s*"(index|create|update|delete)"\s*:\s*\{[^{}]*\}\s*\}')


@dataclass(frozen=True, slots=True)
class Line:
    """
    One document of a file, or one line that is not a document and has a *reason*.
    *name*: of the file, ``-`` for stdin. *line*: the last line of the document, from 1. *value*: the JSON value (an
    object remembers its text), or the CSV row as a dict.
    """

    name: str
    line: int
    value: Any = None
    reason: str | None = None

    @property
    def place(self) -> str:
        return f"{'stdin' if self.name == '-' else self.name} line {self.line}"


class Reader:
    """Reads files, one after another; ``-`` is stdin. *position*: bytes read so far, of all together, as stored."""

    def __init__(self, files: Sequence[str], *, format: Format = "auto") -> None:
        self.position = 0
        for name in files:
            if name != STDIN:
                check_input("FILE", name)
        self._files = tuple(files)
        self._format = format

        paths = [Path(name) for name in files]  # no file has the name of stdin
        self._total = sum(path.stat().st_size for path in paths) if all(path.is_file() for path in paths) else None

    def progress(self, step: str) -> Progress:
        """Return how many bytes were read, and of how many, where that is known."""
        return Progress(self.position, self._total, f"{step} (bytes)")

    @contextmanager
    def records(self) -> Iterator[Iterator[Line]]:
        """Provide an iterator over the lines, and close the file that is open at the end."""
        lines = iter(self)
        try:
            yield lines
        finally:
            with suppress(ValueError):  # a thread waits for input
                lines.close()

    def __iter__(self) -> Generator[Line]:
        before, is_empty = 0, True
        for name in self._files:
            with open_input(name) as (raw, content):
                can_tell = raw.seekable()
                for line in _read("-" if name == STDIN else name, content, self._format):
                    self.position, is_empty = before + (raw.tell() if can_tell else 0), False
                    yield line
                self.position = before = before + (raw.tell() if can_tell else 0)
        if is_empty:
            warn(f"no document in {', '.join('stdin' if name == STDIN else name for name in self._files)}")


_TSV = (
    "TSV, in which programs write tabs and line breaks in different ways: convert it, for example with mlr --itsv "
    "--ojsonl cat, or pass --format csv if it has quotes as CSV has"
)


_BULK = (
    "for _bulk, with a line of an action before each document: give the documents alone, one on each line, with their "
    "_id in them"
)


def _read(name: str, content: IO[bytes], format_: Format) -> Iterator[Line]:
    lines = _Lines(name, content)
    suffix = next((kind for kind in ("csv", "tsv") if name.lower().removesuffix(".gz").endswith(f".{kind}")), "jsonl")
    kind = suffix if format_ == "auto" else format_
    try:
        head = peek(content)
        if fault := _find_fault(head, kind):
            yield Line(name, 1, reason=f"the file is {fault}")
        else:
            yield from _rows(lines, head) if kind == "csv" else _json_lines(lines)
    except Exception as error:
        # Damaged or cut packed data; an OSError of the system has a number.
        if not isinstance(error, (EOFError, zlib.error)) and not (isinstance(error, OSError) and error.errno is None):
            raise
        reason = f"the rest of the file cannot be read: its compressed data are broken ({error})"
        yield Line(name, lines.number + 1, reason=reason)


class _Lines:
    """The lines of a file as text, with numbers. A line that is too long or not UTF-8 is empty and has a fault."""

    def __init__(self, name: str, content: IO[bytes]) -> None:
        self.name = name
        self.number = 0
        self.fault: str | None = None
        self._content = content

    def __iter__(self) -> Iterator[str]:
        while data := self._content.readline(LONGEST_LINE + 1):
            self.number += 1
            if self.number == 1:
                data = data.removeprefix(b"\xef\xbb\xbf")
            if len(data) > LONGEST_LINE:
                while data and not data.endswith(b"\n"):
                    data = self._content.readline(LONGEST_LINE + 1)
                self.fault = TOO_LONG
                yield ""
                continue
            try:
                yield data.decode()
            except UnicodeDecodeError as error:
                self.fault = not_utf8(data, f" (byte {error.start + 1} of the line)")
                yield ""

    def take_fault(self) -> str | None:
        fault, self.fault = self.fault, None
        return fault

    def lost(self, reason: str) -> Line:
        return Line(self.name, self.number, reason=reason)


def _json_lines(lines: _Lines) -> Iterator[Line]:
    for text in lines:
        if fault := lines.take_fault():
            yield lines.lost(fault)
        elif text.strip():
            yield _parse(lines.name, lines.number, text)


def _parse(name: str, number: int, text: str) -> Line:
    try:
        value = read_json(text)
        # Only an escape can make half a character; searching for one is much cheaper than encoding every line.
        if _MAYBE_SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
        return Line(name, number, value)
    except UnicodeEncodeError:
        # OpenSearch refuses such a document, and Elasticsearch returns it as bytes that are not UTF-8.
        return Line(name, number, reason="not usable JSON: it has half a character (a lone surrogate)")
    except json.JSONDecodeError as error:
        return Line(name, number, reason=f"not JSON: {error.msg} at character {error.pos + 1}")
    except (ValueError, RecursionError) as error:
        return Line(name, number, reason=f"not usable JSON: {why_unreadable(error)}")


def _find_fault(head: bytes, kind: str) -> str | None:
    """Return why no line of a file that begins with *head* can be read, and what to do."""
    if kind == "tsv":
        return _TSV
    if head.startswith(_OTHERS):
        return _NO_TEXT
    if find_wide_encoding(head):
        return not_utf8(head)
    first = head.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0].strip()
    if kind == "jsonl" and _ACTION.fullmatch(first):
        return _BULK
    is_begun = first in (b"{", b"[", b"[{") or (first.startswith(b"[{") and first.endswith(b"},"))
    return _SEVERAL if kind == "jsonl" and is_begun else None


_SEVERAL = f"JSON on several lines: {ONE_EACH} (jq -c . does, and for an array jq -c '.[]')"
_MAY_SEPARATE = re.compile(r"[|%>^~:!*=]")


def _rows(lines: _Lines, head: bytes) -> Iterator[Line]:
    """
    Yield the rows of CSV. One that has, by its quotes, as many fields as the header is believed, whatever is in them;
    each line that another one takes is told.
    """
    # Global to the process, which is ours. The default is 128 KiB, and many texts are longer.
    csv.field_size_limit(LONGEST_LINE)
    first = head.lstrip(b"\xef\xbb\xbf\r\n").partition(b"\n")[0]
    # Spreadsheets of many countries write semicolons.
    delimiter = max(",;\t", key=lambda separator: first.count(separator.encode()))
    header: list[str] = []
    # Without strict, a quote that is never closed would make the rest of the file one field.
    rows = csv.reader(iter(lines), delimiter=delimiter, strict=True)
    while True:
        start = lines.number + 1
        try:
            row = next(rows)
        except StopIteration:
            if not header:
                yield Line(lines.name, max(lines.number, 1), reason="the file has no header, which CSV needs")
            return
        except csv.Error as error:
            yield from _lose(lines, start, f"not CSV: {error}")
            continue
        if fault := lines.take_fault():
            yield lines.lost(fault)
            if not header:
                return
        elif not row:
            continue
        elif not header:
            header = row
            if reason := _header_fault(header):
                yield lines.lost(reason)
                return
        elif len(row) != len(header):
            joined = shorten(delimiter.join(header))
            yield lines.lost(f"{len(row)} fields where the header has {len(header)} ({joined})")
        elif row == header:
            yield lines.lost("the header once more, not a document: leave it out")
        else:
            yield _document(lines, header, row)


def _document(lines: _Lines, header: Sequence[str], row: Sequence[str]) -> Line:
    """Return the document of a row; spreadsheets write empty columns that have no name."""
    # An empty cell is a missing value: no server accepts "" as a number or a date.
    found = {key: value or None for key, value in zip(header, row, strict=True) if key.strip() or value.strip()}
    for name, value in found.items():
        if not name.strip():
            return lines.lost(
                f"{shorten(value)} stands in a column without a name: name it in the header, or leave it out (in "
                "pandas with to_csv(index=False))"
            )
    return Line(lines.name, lines.number, found)


def _lose(lines: _Lines, start: int, reason: str) -> Iterator[Line]:
    """Yield each line since *start* as one that is lost: by its quotes all are one row."""
    takes = f", and takes lines {start} to {lines.number}" if lines.number > start else ""
    remedy = "double each quote that belongs to a text, also one after a backslash"
    yield Line(lines.name, start, reason=f"{reason}{takes}: {remedy}")
    for number in range(start + 1, lines.number + 1):
        yield Line(lines.name, number, reason=f"lost in the quoted cell that begins in line {start}")


def _header_fault(header: Sequence[str]) -> str | None:
    """Return why no row can be read."""
    if len(header) == 1 and (other := _MAY_SEPARATE.search(header[0])):
        return (
            f"the header {shorten(header[0])} is one column, so the file is skipped: if {other[0]!r} separates "
            "columns, write commas there, else another name for the column"
        )
    named = [name for name in header if name.strip()]
    if not named or len(set(named)) < len(named):
        what = f"names {'a column twice' if named else 'no column'}"
        return f"the header {shorten(list(header))} {what}, so the file is skipped: give each column a name of its own"
    return None


def document_of(line: Line) -> Mapping[str, Any]:
    """Return the document of a line, also of an export with ``_source``; raise InvalidInputError if it has none."""
    value = line.value
    if line.reason is not None:
        raise InvalidInputError(line.reason)
    if not isinstance(value, Mapping):
        way = f"{ONE_EACH} (jq -c '.[]' does)" if isinstance(value, list) else "write a JSON object on each line"
        raise InvalidInputError(f"{json.dumps(value, ensure_ascii=False)[:80]} is not a document: {way}")
    if isinstance(value.get("_source"), Mapping):
        return value.part("_source") if isinstance(value, JsonObject) else cast("Mapping[str, Any]", value["_source"])
    return value


def to_action(line: Line, id_field: str | None) -> tuple[Line, dict[str, Any] | None]:
    """Return a line with its bulk action, of a document or an export of one; if it is neither, with the reason."""
    try:
        return line, _to_action(line, id_field)
    except InvalidInputError as failure:
        return replace(line, reason=str(failure)), None


def _to_action(line: Line, id_field: str | None) -> dict[str, Any]:
    document = given = document_of(line)
    action: dict[str, Any] = {"_op_type": "index"}
    if document is not line.value:
        action |= {"_id": line.value.get("_id"), "routing": line.value.get("_routing")}
    elif "_id" in document:
        # No server accepts a field of that name inside a document.
        action["_id"] = document["_id"]
        document = keep_text(document, {key: value for key, value in document.items() if key != "_id"})
    if id_field is not None:
        if id_field != "_id":
            action["_id"] = _read_field(given, id_field)
        if action.get("_id") is None:
            raise InvalidInputError(
                f"field {shorten(id_field)}, which --id-field names, is missing or null: each document needs one"
            )
    for name, check in (("_id", _check_id), ("routing", str)):
        if (value := action.pop(name, None)) is not None:
            action[name] = check(value)
    return {**action, "_source": document}


def _read_field(document: Any, path: str) -> Any:
    if isinstance(document, Mapping) and path in document:
        return document[path]
    first, dot, rest = path.partition(".")
    return _read_field(document.get(first), rest) if dot and isinstance(document, Mapping) else None


def _check_id(given: Any) -> str:
    if isinstance(given, bool) or not isinstance(given, (str, int)):
        way = f": pass --id-field '_id.{next(iter(given))}'" if isinstance(given, dict) and len(given) == 1 else ""
        raise InvalidInputError(f"the id {shorten(given)} is neither a string nor a whole number{way}")
    text = str(given)
    size = len(text.encode())
    # A server refuses the whole bulk request for one such id.
    if not 0 < size <= LONGEST_ID_BYTES:
        raise InvalidInputError(f"the id {shorten(text)} has {size} bytes: give 1 to {LONGEST_ID_BYTES}")
    return text
