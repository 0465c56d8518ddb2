"""
Texts from arguments, files and stdin: bytes to strings, with an error that names the place.

Documents with fields are read in ``records.py``.
"""

from __future__ import annotations

import json
import select
import sys
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import cast

from es_simhash.errors import InvalidInputError, shorten

STDIN = "-"
_READ_BYTES = 1 << 20


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
    Return the name, as iconv has it, of the encoding of *data* if that is UTF-16 or UTF-32; else ``None``.

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
