"""
Texts from arguments, files and stdin: bytes to strings, with an error that names the place.

Documents with fields are read in ``records.py``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from es_simhash.errors import InvalidInputError, shorten

__all__ = ["STDIN", "decode", "read_lines", "read_text", "read_text_argument"]

STDIN = "-"


def decode(data: bytes, name: str) -> str:
    """
    Return *data* as text.

    Raises:
        InvalidInputError: If it is not UTF-8; the message names the place.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"{name} is not UTF-8 text (byte {error.start + 1}): convert it, for example with iconv -t UTF-8"
        ) from error


def read_text(path: str) -> str:
    """
    Return the whole text of a file, or of stdin if *path* is ``-``.

    Raises:
        InvalidInputError: If there is no such file, or it is not UTF-8.
    """
    if path == STDIN:
        return decode(sys.stdin.buffer.read(), "stdin")
    if not Path(path).is_file():
        raise InvalidInputError(f"{shorten(path)} is not a file: give the path of a text")
    return decode(Path(path).read_bytes(), path)


def read_text_argument(text: str | None, file: str | None) -> str:
    """
    Return *text*, which may be ``-`` for stdin, or the text of *file* if that is given.
    """
    if file is not None:
        return read_text(file)
    return read_text(STDIN) if text == STDIN else text or ""


def read_lines(stream: BinaryIO) -> Iterator[str]:
    """
    Yield the lines of *stream*, each without its line break.
    """
    for number, line in enumerate(stream, start=1):
        yield decode(line, f"line {number}").removesuffix("\n").removesuffix("\r")
