"""Texts and documents from files and stdin, one at a time; lines as bulk actions. A bad line has a reason."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import select
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from io import BufferedIOBase
from pathlib import Path
from typing import IO, Any, Literal, cast

from es_simhash.errors import InvalidInputError, shorten
from es_simhash.transport.raw_json import JsonObject, keep_text, read_json

Format = Literal["auto", "jsonl", "csv", "tsv"]

STDIN = "-"
# In bytes. No server accepts a larger document by default (http.max_content_length).
LONGEST_LINE = 100 * 1024 * 1024
LONGEST_ID_BYTES = 512  # the servers' own limit
_READ_BYTES = 1 << 20

_DELIMITERS = {"csv": ",", "tsv": "\t"}
_MAYBE_SURROGATE = re.compile(r"\\u[dD]")
_BROKEN_GZIP = (EOFError, gzip.BadGzipFile, zlib.error)


def decode(data: bytes, name: str) -> str:
    """Return *data* as text, or raise InvalidInputError that names the place if it is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        wide = find_wide_encoding(data)
        what = f"{wide} text, not UTF-8" if wide else f"not UTF-8 text (byte {error.start + 1})"
        raise InvalidInputError(
            f"{name} is {what}: convert it, for example with iconv{f' -f {wide}' if wide else ''} -t UTF-8"
        ) from error


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


def read_text(path: str) -> str:
    """Return the whole text of a file, or of stdin if *path* is ``-``."""
    if path == STDIN:
        return decode(sys.stdin.buffer.read(), "stdin")
    if not Path(path).is_file():
        raise InvalidInputError(f"{shorten(path)} is not a file: give the path of a text")
    return decode(Path(path).read_bytes(), path)


def piped_text(*subjects: Any) -> str | None:
    """Return the text that a file or program gives on stdin, if no *subjects* are given; ``None`` for an empty one."""
    if any(each is not None for each in subjects) or sys.stdin is None or sys.stdin.isatty():
        return None
    return read_text(STDIN) or None


def read_text_argument(text: str | None, file: str | None) -> str:
    """Return *text*, which may be ``-`` for stdin, or the text of *file* if that is given."""
    if file is not None:
        return read_text(file)
    return read_text(STDIN) if text == STDIN else text or ""


def read_lines() -> Iterator[tuple[int, str] | None]:
    """Yield the number and the text of each line of stdin, and ``None`` wherever the next line has not come yet."""
    stream = cast("BufferedIOBase", sys.stdin.buffer)
    number = 0
    begun: list[bytes] = []
    while True:
        if not _is_ready(stream):
            yield None
        read = stream.read1(_READ_BYTES)
        first, *more = read.split(b"\n")
        begun.append(first)
        # Each line break ends a line; at the end of the stream so does the end, if anything is left.
        for rest in more if read else [b""] * any(begun):
            number += 1
            yield number, decode(b"".join(begun), f"line {number}").removesuffix("\r")
            begun = [rest]
        if not read:
            return


def _is_ready(stream: BufferedIOBase) -> bool:
    """Return whether a read returns at once. Windows cannot say that of a pipe, and nothing of bytes in memory."""
    try:
        return bool(select.select([stream], [], [], 0)[0])
    except (OSError, ValueError):  # then batches are larger, and a line waits for its answer
        return True


@dataclass(frozen=True, slots=True)
class Record:
    """
    One document of a file, or one line that is not a document and has a *reason*.
    *number*: place of the *file* among those given, from 0. *line*: the last line of the document, from 1. *value*: the
    JSON value (an object remembers its text), or the CSV row as a dict.
    """

    file: str
    line: int
    value: Any = None
    reason: str | None = None
    number: int = 0

    @property
    def place(self) -> str:
        return f"{'stdin' if self.file == STDIN else self.file} line {self.line}"


class Reader:
    """
    Reads one file after another; ``-`` is stdin.
    *start*: place of the first file to read, and the number of its last line that is left out. *position*: bytes read
    so far, of all files together, as stored; any thread may read it.
    """

    def __init__(self, files: Sequence[str], *, format: Format = "auto", start: tuple[int, int] = (0, 0)) -> None:
        self.position = 0
        self._files = tuple(files)
        self._format = format
        self._start = start

    @property
    def total(self) -> int | None:
        """Size of all files together in bytes, as stored; ``None`` if it is not known."""
        paths = [Path(name) for name in self._files if name != STDIN]
        is_known = len(paths) == len(self._files) and all(path.is_file() for path in paths)
        return sum(path.stat().st_size for path in paths) if is_known else None

    def __iter__(self) -> Iterator[Record]:
        first, line = self._start
        before = sum(Path(name).stat().st_size for name in self._files[:first] if name != STDIN)
        for number, name in enumerate(self._files[first:], first):
            with ExitStack() as stack:
                raw = stack.enter_context(_open(name))
                # The first bytes show gzip, so that it works for stdin and for any name.
                is_gzip = isinstance(raw, io.BufferedReader) and raw.peek(2)[:2] == b"\x1f\x8b"
                content: IO[bytes] | gzip.GzipFile = stack.enter_context(gzip.GzipFile(fileobj=raw)) if is_gzip else raw
                can_tell = raw.seekable()
                for record in _read(name, content, _format_of(name, self._format), skip=line if number == first else 0):
                    self.position = before + (raw.tell() if can_tell else 0)
                    yield replace(record, number=number) if number else record
                self.position = before = before + (raw.tell() if can_tell else 0)


@contextmanager
def _open(name: str) -> Iterator[IO[bytes]]:
    """
    Provide a file, or stdin through a new buffer where it has a descriptor.
    A thread that waits for input holds the lock of its buffer; were that ``sys.stdin``, Python would end with a fatal
    error.
    """
    if name != STDIN:
        with Path(name).open("rb") as file:
            yield file
        return
    try:
        descriptor = sys.stdin.fileno()
    except (AttributeError, OSError, ValueError):  # a stand-in
        yield sys.stdin.buffer
        return
    # It is not closed: that would wait for the lock.
    yield open(descriptor, "rb", closefd=False)  # noqa: SIM115


def _format_of(name: str, wanted: Format) -> str:
    if wanted != "auto":
        return wanted
    suffix = Path(name.lower().removesuffix(".gz")).suffix.removeprefix(".")
    return suffix if suffix in _DELIMITERS else "jsonl"


def _read(name: str, content: IO[bytes] | gzip.GzipFile, format_: str, *, skip: int) -> Iterator[Record]:
    lines = _Lines(name, content)
    try:
        if format_ == "jsonl":
            yield from _json_lines(lines, skip)
        else:
            # Rows that are left out are read too: one may have several lines, and the first is the header.
            yield from (each for each in _rows(lines, _DELIMITERS[format_]) if each.line > skip)
    except _BROKEN_GZIP as error:
        yield Record(
            name, lines.number + 1, reason=f"the rest of the file cannot be read: its gzip data are broken ({error})"
        )


class _Lines:
    """The lines of a file as text, with numbers. A line that is too long or not UTF-8 is empty and has a fault."""

    def __init__(self, name: str, content: IO[bytes] | gzip.GzipFile) -> None:
        self.name = name
        self.number = 0
        self.fault: str | None = None
        self._content = content

    def __iter__(self) -> Iterator[str]:
        while data := self._content.readline(LONGEST_LINE + 1):
            self.number += 1
            if self.number == 1:
                if wide := find_wide_encoding(data):
                    self.fault = f"{wide}, not UTF-8, so the file is skipped: convert it with iconv -f {wide} -t UTF-8"
                    yield ""
                    return
                data = data.removeprefix(b"\xef\xbb\xbf")
            if len(data) > LONGEST_LINE:
                while data and not data.endswith(b"\n"):
                    data = self._content.readline(LONGEST_LINE + 1)
                self.fault = f"longer than {LONGEST_LINE // 2**20} MB"
                yield ""
                continue
            try:
                yield data.decode()
            except UnicodeDecodeError as error:
                self.fault = f"not UTF-8 (byte {error.start + 1} of the line)"
                yield ""

    def take_fault(self) -> str | None:
        fault, self.fault = self.fault, None
        return fault


def _json_lines(lines: _Lines, skip: int) -> Iterator[Record]:
    for text in lines:
        fault = lines.take_fault()
        if lines.number <= skip:
            continue
        if fault:
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


def _rows(lines: _Lines, delimiter: str) -> Iterator[Record]:
    # Global to the process, which is ours. The default is 128 KiB, and many texts are longer.
    csv.field_size_limit(LONGEST_LINE)
    # Without strict, a quote that is never closed would make the rest of the file one field.
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    header: list[str] | None = None
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            yield Record(lines.name, lines.number, reason=f"not CSV: {error}")
            continue
        if fault := lines.take_fault():
            yield Record(lines.name, lines.number, reason=fault)
        elif not row:
            continue
        elif header is None:
            header = row
            if reason := _header_fault(header):
                yield Record(lines.name, lines.number, reason=reason)
                return
        elif len(row) != len(header):
            reason = f"{len(row)} fields where the header has {len(header)}"
            yield Record(lines.name, lines.number, reason=reason)
        else:
            # An empty cell is a missing value: no server accepts "" as a number or a date.
            yield Record(lines.name, lines.number, {key: value or None for key, value in zip(header, row, strict=True)})


def _header_fault(header: Sequence[str]) -> str | None:
    if not all(name.strip() for name in header):
        return f"the header {shorten(list(header))} has a column without a name, so the file is skipped"
    if len(set(header)) < len(header):
        return f"the header {shorten(list(header))} names a column twice, so the file is skipped"
    return None


def to_action(record: Record, id_field: str | None) -> dict[str, Any]:
    """Return the bulk action for a line, a document or an export of one; raise InvalidInputError if it is neither."""
    if record.reason is not None:
        raise InvalidInputError(record.reason)
    document = record.value
    if isinstance(document, list):
        raise InvalidInputError("a list, not a document: write one document on each line (jq -c '.[]' does)")
    if not isinstance(document, Mapping):
        raise InvalidInputError(f"{_as_json(document)} is not a document: write a JSON object on each line")
    action: dict[str, Any] = {"_op_type": "index"}
    given: Any = None
    if isinstance(document.get("_source"), Mapping):
        given = document.get("_id")
        if (routing := document.get("_routing")) is not None:
            action["routing"] = str(routing)
        document = document.part("_source") if isinstance(document, JsonObject) else document["_source"]
    elif "_id" in document:
        # No server accepts a field of that name inside a document.
        given = document["_id"]
        document = keep_text(document, {key: value for key, value in document.items() if key != "_id"})
    if id_field is not None:
        given = _read_field(document, id_field) if id_field != "_id" else given
        if given is None:
            raise InvalidInputError(
                f"field {shorten(id_field)}, which --id-field names, is missing or null: each document needs one"
            )
    if given is not None:
        action["_id"] = _check_id(given)
    action["_source"] = document
    return action


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
        raise InvalidInputError(f"the id {shorten(given)} is neither a string nor a whole number")
    text = str(given)
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"the id {shorten(text)} has half a character (a lone surrogate)") from error
    # A server refuses the whole bulk request for one such id.
    if not 0 < size <= LONGEST_ID_BYTES:
        raise InvalidInputError(f"the id {shorten(text)} has {size} bytes: give 1 to {LONGEST_ID_BYTES}")
    return text
