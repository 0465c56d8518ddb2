"""
Texts from arguments, files and stdin: bytes to strings, with an error that names the place.

Documents with fields are read in ``records.py``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from es_simhash.errors import InvalidInputError

__all__ = ["STDIN", "decode", "read_lines", "read_text"]

STDIN = "-"


def decode(data: bytes, name: str) -> str:
    """
    Return *data* as text.

    Raises:
        InvalidInputError: If it is not UTF-8; the message says where.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"{name} is not UTF-8 text (byte {error.start + 1}): convert it, for example with iconv -t UTF-8"
        ) from error


def read_text(path: str | Path) -> str:
    """
    Return the whole text of a file, or of stdin where *path* is ``-``.
    """
    if str(path) == STDIN:
        return decode(sys.stdin.buffer.read(), "stdin")
    return decode(Path(path).read_bytes(), str(path))


def read_lines(stream: BinaryIO) -> Iterator[str]:
    """
    Yield the lines of *stream*, each without its line break.
    """
    for number, line in enumerate(stream, start=1):
        yield decode(line, f"line {number}").removesuffix("\n").removesuffix("\r")
