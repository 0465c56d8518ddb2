"""
Files and stdin: whole texts, and documents one at a time; lines as bulk actions. A bad line, and a file that cannot be
read, has a reason with its remedy.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import re
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, cast

from es_simhash import InvalidInputError
from es_simhash.arguments import check_input
from es_simhash.cli.app import STDIN
from es_simhash.cli.show import warn
from es_simhash.errors import shorten
from es_simhash.transport.raw_json import JsonObject, keep_text, read_json

_HEAD_BYTES = 1 << 16
ONE_EACH = "write one document on each line"

# In bytes. No server accepts a larger document by default (http.max_content_length).
LONGEST_LINE = 100 * 1024 * 1024
TOO_LONG = f"longer than {LONGEST_LINE // 2**20} MB"

_GZIP = b"\x1f\x8b"
# Zip archives (and with them Excel's files), Parquet, zstd, bzip2, xz.
_OTHERS = (b"PK\x03\x04", b"PAR1", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ\0")
_NO_TEXT = "compressed or binary data: unpack it, or write it as JSON Lines or as CSV in UTF-8; gzip is read as it is"


def is_broken(error: Exception) -> bool:
    """Return whether *error* came from damaged or cut packed data; an OSError of the system has an ``errno``."""
    return isinstance(error, (EOFError, zlib.error)) or (isinstance(error, OSError) and error.errno is None)


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


def _decodes(data: bytes, encoding: str, *, is_whole: bool = True) -> bool:
    try:
        codecs.getincrementaldecoder(encoding)().decode(data, is_whole)
    except UnicodeDecodeError:
        return False
    return True


def not_utf8(data: bytes, place: str = "") -> str:
    """Return what *data* is, whole lines, and what makes it UTF-8: Excel writes one of two encodings."""
    if wide := find_wide_encoding(data):
        return f"{wide} text, not UTF-8: convert it with iconv -f {wide} -t UTF-8"
    guess = "GB18030" if _decodes(data, "gb18030") else "CP1252"
    return f"not UTF-8 text{place}: convert it, for example with iconv -f {guess} -t UTF-8"


def find_fault(head: bytes, *, is_json: bool) -> str | None:
    """Return why no line can be read of a file that begins with *head*, and what to do; ``None`` if some may be."""
    if head.startswith(_OTHERS):
        return _NO_TEXT
    if find_wide_encoding(head):
        return not_utf8(head)
    *lines, rest = head.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    is_whole = bool(lines)  # the head may end within a letter
    lines = lines or [rest]
    broken = [line for line in lines if not _decodes(line, "utf-8", is_whole=is_whole)]
    is_other = 2 * len(broken) > len(lines) and all(line.isascii() or line in broken for line in lines)
    # A header without a meaning leaves none to the rows.
    if broken and (is_other or (not is_json and lines[0] in broken)):
        return not_utf8(b"\n".join(lines))
    return None


def peek(file: IO[bytes]) -> bytes:
    """Return what *file* begins with, at least one byte if it has any, and leave it there."""
    return cast("io.BufferedReader", file).peek(_HEAD_BYTES)


@contextmanager
def open_input(name: str) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Provide a file, or stdin: as it is stored, and unpacked; the first bytes show how, whatever the name."""
    with ExitStack() as stack:
        raw = stack.enter_context(_open(name))
        head = peek(raw)
        is_packed = head.startswith(_GZIP)
        yield raw, cast("IO[bytes]", stack.enter_context(gzip.open(raw))) if is_packed else raw


@contextmanager
def _open(name: str) -> Iterator[IO[bytes]]:
    """
    Provide a file, or stdin through a new buffer where it has a descriptor.
    A thread that waits for input holds the lock of its buffer; were that ``sys.stdin``, Python would end with a fatal
    error.
    """
    if name != STDIN:
        with Path(name).open("rb", buffering=_HEAD_BYTES) as file:
            yield file
        return
    try:
        descriptor = sys.stdin.fileno()
    except (AttributeError, OSError, ValueError):  # a stand-in
        stream = sys.stdin.buffer
        yield stream if hasattr(stream, "peek") else cast("IO[bytes]", io.BufferedReader(cast("Any", stream)))
        return
    # It is not closed: that would wait for the lock.
    yield open(descriptor, "rb", buffering=_HEAD_BYTES, closefd=False)  # noqa: SIM115


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
# What an action line of _bulk is, and may say of its document.
_KINDS = ("index", "create", "update", "delete")
_SAYS = {
    *("_index", "_type", "_id", "routing", "_routing", "pipeline", "version", "_version", "version_type"),
    *("if_seq_no", "if_primary_term", "retry_on_conflict", "require_alias", "dynamic_templates"),
}


@dataclass(frozen=True, slots=True)
class Record:
    """
    One document of a file, or one line that is not a document and has a *reason*.
    *line*: the last line of the document, from 1. *value*: the JSON value (an object remembers its text), or the CSV
    row as a dict.
    """

    file: str
    line: int
    value: Any = None
    reason: str | None = None

    @property
    def name(self) -> str:
        return "-" if self.file == STDIN else self.file

    @property
    def place(self) -> str:
        return f"{'stdin' if self.file == STDIN else self.file} line {self.line}"


class Reader:
    """
    Reads one file after another; ``-`` is stdin.
    *delimiter*: of CSV; else the header says. *position*: bytes read so far, of all files together, as stored; any
    thread may read it.
    """

    def __init__(self, files: Sequence[str], *, format: Format = "auto", delimiter: str | None = None) -> None:
        self.position = 0
        for name in files:
            if name != STDIN:
                check_input("FILE", name)
        self._files = tuple(files)
        self._format = format
        self._delimiter = delimiter

    @property
    def total(self) -> int | None:
        """Size of all files together in bytes, as stored; ``None`` if it is not known."""
        paths = [Path(name) for name in self._files if name != STDIN]
        is_known = len(paths) == len(self._files) and all(path.is_file() for path in paths)
        return sum(path.stat().st_size for path in paths) if is_known else None

    def __iter__(self) -> Iterator[Record]:
        before, is_empty = 0, True
        for name in self._files:
            with open_input(name) as (raw, content):
                can_tell = raw.seekable()
                for record in _read(name, content, _format_of(name, self._format), self._delimiter):
                    self.position, is_empty = before + (raw.tell() if can_tell else 0), False
                    yield record
                self.position = before = before + (raw.tell() if can_tell else 0)
        if is_empty:
            warn(f"no document in {', '.join('stdin' if name == STDIN else name for name in self._files)}")


def _format_of(name: str, wanted: Format) -> str:
    if wanted != "auto":
        return wanted
    path = Path(name.lower())
    suffix = Path(path.stem if path.suffix == ".gz" else path).suffix.removeprefix(".")
    return suffix if suffix in ("csv", "tsv") else "jsonl"


_TSV = (
    "TSV, in which programs write tabs and line breaks in different ways: convert it, for example with mlr --itsv "
    "--ojsonl cat, or pass --format csv if it has quotes as CSV has"
)


_BULK = (
    "for _bulk, with a line of an action before each document: give the documents alone, one on each line, with their "
    "_id in them"
)


def _read(name: str, content: IO[bytes], format_: str, delimiter: str | None) -> Iterator[Record]:
    lines = _Lines(name, content)
    try:
        head = peek(content)
        fault = _TSV if format_ == "tsv" else find_fault(head, is_json=format_ == "jsonl")
        if fault := fault or (_find_json_fault(head) if format_ == "jsonl" else None):
            yield Record(name, 1, reason=f"the file is {fault}")
        elif format_ == "csv":
            yield from _rows(lines, head, delimiter)
        else:
            yield from _json_lines(lines)
    except Exception as error:
        if not is_broken(error):
            raise
        reason = f"the rest of the file cannot be read: its compressed data are broken ({error})"
        yield Record(name, lines.number + 1, reason=reason)


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


def _json_lines(lines: _Lines) -> Iterator[Record]:
    for text in lines:
        if fault := lines.take_fault():
            yield Record(lines.name, lines.number, reason=fault)
        elif text.strip():
            yield _parse(lines.name, lines.number, text)


def _parse(name: str, number: int, text: str) -> Record:
    try:
        value = read_json(text)
        # Only an escape can make half a character; searching for one is much cheaper than encoding every line.
        if _MAYBE_SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
        return Record(name, number, value)
    except UnicodeEncodeError:
        # OpenSearch refuses such a document, and Elasticsearch returns it as bytes that are not UTF-8.
        return Record(name, number, reason="not usable JSON: it has half a character (a lone surrogate)")
    except RecursionError:
        return Record(name, number, reason="not usable JSON: nested too deeply")
    except json.JSONDecodeError as error:
        return Record(name, number, reason=f"not JSON: {error.msg} at character {error.pos + 1}")
    except ValueError as error:
        return Record(name, number, reason=f"not usable JSON: {error}")


def _find_json_fault(head: bytes) -> str | None:
    """Return what a file is instead of JSON Lines, by its first lines: for _bulk, or one value on several lines."""
    first, _, rest = head.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")
    first = first.strip()
    if _is_action(_value_of(first)):
        return _BULK
    # Else a first line that is broken would cost all others.
    goes_on = _value_of(rest.partition(b"\n")[0]) is None
    if first == b"{" and goes_on:
        return f"a JSON object on several lines: {ONE_EACH} (jq -c . does)"
    is_begun = first.startswith(b"[") and first.endswith(b",") and isinstance(_value_of(first[1:-1]), Mapping)
    if is_begun or (first in (b"[", b"[{") and (goes_on or rest.rstrip().endswith(b"]"))):
        return f"a JSON array on several lines: {ONE_EACH} (jq -c '.[]' does)"
    return None


def _value_of(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _is_action(value: Any) -> bool:
    if not isinstance(value, Mapping) or len(value) != 1:
        return False
    [(kind, said)] = value.items()
    return kind in _KINDS and isinstance(said, Mapping) and said.keys() <= _SAYS


_SEPARATOR = re.compile(rb"sep=([!#-/:-@\[-`{-~\t])\r?$", re.IGNORECASE)  # a first line for Excel
_MAY_SEPARATE = re.compile(r"[|%>^~:!*=]")


def _rows(lines: _Lines, head: bytes, delimiter: str | None) -> Iterator[Record]:
    """
    Yield the rows of CSV. One that has, by its quotes, as many fields as the header is believed, whatever is in them;
    each line that another one takes is told.
    """
    # Global to the process, which is ours. The default is 128 KiB, and many texts are longer.
    csv.field_size_limit(LONGEST_LINE)
    texts = iter(lines)
    first, _, rest = head.lstrip(b"\xef\xbb\xbf\r\n").partition(b"\n")
    is_given = delimiter is not None
    if (said := _SEPARATOR.match(first)) is not None:
        while not next(texts).strip():  # empty lines before it
            continue
        delimiter, first, is_given = delimiter or said[1].decode(), rest.partition(b"\n")[0], True
    # Spreadsheets of many countries write semicolons.
    delimiter = delimiter or max(",;\t", key=lambda separator: first.count(separator.encode()))
    header: list[str] = []
    # Without strict, a quote that is never closed would make the rest of the file one field.
    rows = csv.reader(texts, delimiter=delimiter, strict=True)
    while True:
        start = lines.number + 1
        try:
            row = next(rows)
        except StopIteration:
            if not header:
                yield Record(lines.name, max(lines.number, 1), reason="the file has no header, which CSV needs")
            return
        except csv.Error as error:
            yield from _lose(lines, start, f"not CSV: {error}")
            continue
        if fault := lines.take_fault():
            yield Record(lines.name, lines.number, reason=fault)
            if not header:
                return
        elif not row:
            continue
        elif not header:
            header = row
            if reason := _header_fault(header, None if is_given else delimiter):
                yield Record(lines.name, lines.number, reason=reason)
                return
        elif len(row) != len(header):
            reason = f"{len(row)} fields where the header has {len(header)} ({shorten(delimiter.join(header))})"
            yield Record(lines.name, lines.number, reason=reason)
        elif row == header:
            yield Record(lines.name, lines.number, reason="the header once more, not a document: leave it out")
        else:
            yield _document(lines, header, row)


def _document(lines: _Lines, header: Sequence[str], row: Sequence[str]) -> Record:
    """Return the document of a row; spreadsheets write empty columns that have no name."""
    # An empty cell is a missing value: no server accepts "" as a number or a date.
    found = {key: value or None for key, value in zip(header, row, strict=True) if key.strip() or value.strip()}
    nameless = next((value for key, value in found.items() if not key.strip()), None)
    if nameless is None:
        return Record(lines.name, lines.number, found)
    reason = (
        f"{shorten(nameless)} stands in a column without a name: name it in the header, or leave it out (in pandas "
        "with to_csv(index=False))"
    )
    return Record(lines.name, lines.number, reason=reason)


def _lose(lines: _Lines, start: int, reason: str) -> Iterator[Record]:
    """Yield each line since *start* as one that is lost: by its quotes all are one row."""
    takes = f", and takes lines {start} to {lines.number}" if lines.number > start else ""
    remedy = "double each quote that belongs to a text, also one after a backslash"
    yield Record(lines.name, start, reason=f"{reason}{takes}: {remedy}")
    for number in range(start + 1, lines.number + 1):
        yield Record(lines.name, number, reason=f"lost in the quoted cell that begins in line {start}")


def _header_fault(header: Sequence[str], delimiter: str | None) -> str | None:
    """Return why no row can be read; *delimiter*: the one that was guessed."""
    if delimiter is not None and len(header) == 1 and (other := _MAY_SEPARATE.search(header[0])):
        return (
            f"the header {shorten(header[0])} is one column, so the file is skipped: if {other[0]!r} separates "
            f"columns, pass --delimiter '{other[0]}', else --delimiter '{delimiter}'"
        )
    named = [name for name in header if name.strip()]
    if not named:
        return f"the header {shorten(list(header))} names no column, so the file is skipped: name them"
    if len(set(named)) < len(named):
        return f"the header {shorten(list(header))} names a column twice, so the file is skipped: name each differently"
    return None


def document_of(record: Record) -> Mapping[str, Any]:
    """Return the document of a line, also of an export with ``_source``; raise InvalidInputError if it has none."""
    if record.reason is not None:
        raise InvalidInputError(record.reason)
    value = record.value
    if isinstance(value, list):
        raise InvalidInputError(f"a list, not a document: {ONE_EACH} (jq -c '.[]' does)")
    if not isinstance(value, Mapping):
        raise InvalidInputError(f"{_as_json(value)} is not a document: write a JSON object on each line")
    if _is_action(value):
        raise InvalidInputError("an action line of _bulk, not a document: leave it out")
    hits = value.get("hits")
    if "took" in value and isinstance(hits, Mapping) and isinstance(hits.get("hits"), list):
        raise InvalidInputError(f"the answer of a search, not a document: {ONE_EACH} (jq -c '.hits.hits[]' does)")
    if isinstance(value.get("_source"), Mapping):
        return value.part("_source") if isinstance(value, JsonObject) else cast("Mapping[str, Any]", value["_source"])
    return value


def to_action(record: Record, id_field: str | None) -> dict[str, Any]:
    """Return the bulk action for a line, a document or an export of one; raise InvalidInputError if it is neither."""
    document = given = document_of(record)
    action: dict[str, Any] = {"_op_type": "index"}
    if document is not record.value:
        action |= {"_id": record.value.get("_id"), "routing": record.value.get("_routing")}
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


def _as_json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:79]}…"


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


def read_delimiter(word: str) -> str:
    """Return the character that *word* is, where people may type a tab as two."""
    character = word.replace("\\t", "\t")
    if len(character) != 1 or character in '"\r\n':
        raise InvalidInputError(f"{shorten(word)} is not one character: give one such as ';' or '\\t'")
    return character
