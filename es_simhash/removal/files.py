"""
Writing files so that they are on the disk, and reading their lines without trust. Knows no format.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO

from es_simhash.arguments import FilePath
from es_simhash.errors import InvalidInputError

__all__ = [
    "LONGEST_LINE",
    "FilePath",
    "bad_line",
    "read_lines",
    "refuse_pipe",
    "sync_file",
    "sync_folder",
    "to_line",
    "write_whole",
]

# A server takes no document above 100 MB; its text may need escapes.
LONGEST_LINE = 256 * 1024 * 1024


def sync_file(file: IO[Any]) -> None:
    """
    Return when everything that was written to *file* is on the disk.
    """
    file.flush()
    os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """
    Return when the name of a new file *path* is on the disk.
    """
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_whole(path: Path, pieces: Iterable[str]) -> None:
    """
    Write the text file *path*, of which nobody ever sees a part: it gets its name when all is on the disk.
    """
    beside = path.with_name(f".{path.name}.part")
    try:
        with beside.open("w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(pieces)
            sync_file(file)
        beside.replace(path)
    except OSError as error:
        error.filename = os.fspath(path)  # the only name that the caller knows
        raise
    finally:
        beside.unlink(missing_ok=True)


def refuse_pipe(path: Path) -> None:
    """
    Refuse what can be read only once, because an archive is checked whole before it is used.

    Raises:
        InvalidInputError: If *path* is no regular file.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise InvalidInputError(f"{path} is no regular file, and is read more than once: write it to a file first")


def to_line(value: Any) -> bytes:
    """
    Return *value* as one line of JSON Lines.
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON has as an escape
        return json.dumps(value, allow_nan=False).encode() + b"\n"


def read_lines(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """
    Yield each line of *file*, with its line feed.

    Raises:
        InvalidInputError: If a line is longer than any that is written.
    """
    number = 0
    while line := file.readline(LONGEST_LINE):
        number += 1
        if len(line) == LONGEST_LINE:
            raise bad_line(path, number, f"is longer than {LONGEST_LINE:,} bytes", "give another file")
        yield line


def bad_line(path: Path, number: int, problem: str, advice: str) -> InvalidInputError:
    """
    Return the error for a line that cannot be used.
    """
    return InvalidInputError(f"{path}, line {number}: {problem}: {advice}")
