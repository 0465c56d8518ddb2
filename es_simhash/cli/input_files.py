"""Files and stdin as bytes, unpacked, and as whole texts; what cannot be read is told, with its remedy."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import select
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import BufferedIOBase
from pathlib import Path
from typing import IO, Any, cast

from es_simhash import InvalidInputError
from es_simhash.errors import shorten

STDIN = "-"
_READ_BYTES = 1 << 20
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


def piped_text(*subjects: Any) -> str | None:
    """Return the text that a file or program gives on stdin, if no *subjects* are given; ``None`` for an empty one."""
    if any(subject is not None for subject in subjects) or sys.stdin is None or sys.stdin.isatty():
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
    begun = bytearray()
    while True:
        if not _is_ready(stream):
            yield None
        read = stream.read1(_READ_BYTES)
        first, *more = read.split(b"\n")
        begun += first
        # Each line break ends a line; at the end of the stream so does the end, if anything is left.
        for rest in more if read else [b""] * bool(begun):
            number += 1
            yield number, decode(bytes(begun), f"line {number}").removesuffix("\r")
            begun = bytearray(rest)
        if len(begun) > LONGEST_LINE:
            decode(bytes(begun), f"line {number + 1}")
        if not read:
            return


def _is_ready(stream: BufferedIOBase) -> bool:
    """Return whether a read returns at once. Windows cannot say that of a pipe, and nothing of bytes in memory."""
    try:
        return bool(select.select([stream], [], [], 0)[0])
    except (OSError, ValueError):  # then batches are larger, and a line waits for its answer
        return True
