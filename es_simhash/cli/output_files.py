"""Writes pages and reports, which replace no input, and no database."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from es_simhash import InvalidInputError
from es_simhash.arguments import FilePath
from es_simhash.cli.app import STDIN


def write_whole(path: Path, pieces: Iterable[str]) -> None:
    """
    Write the text file *path*, which only its owner may read, and which gets its name when all is on the disk.
    What is there and is no regular file, such as a pipe, is written to.
    """
    beside = path.with_name(f".{path.name}.part")
    is_kept = path.exists() and not path.is_file()
    try:
        beside.unlink(missing_ok=True)  # what another run left, or a link that others prepared
        with path.open("wb") if is_kept else open(beside, "xb", opener=_open_private) as file:
            file.writelines(piece.encode("utf-8", "backslashreplace") for piece in pieces)
            if not is_kept:
                file.flush()
                os.fsync(file.fileno())
        if not is_kept:
            beside.replace(path)
    except OSError as error:
        if error.filename in (None, os.fspath(beside)):
            error.filename = os.fspath(path)  # the only name that the caller knows
        raise
    finally:
        beside.unlink(missing_ok=True)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)  # it has documents in it


@contextmanager
def open_report(
    path: str | None, inputs: Sequence[str], *, dry_run: bool = False
) -> Iterator[Callable[[str], Any] | None]:
    """
    Open the report of a command that reads *inputs*, and return what writes to it; ``-`` is stdout. A dry run replaces
    none. A file has what it had until something is written, or the end: a server may not answer what is asked first.
    What cannot be written names it.
    """
    if path is None or path == STDIN:
        yield None if path is None else sys.stdout.write
        return
    refuse_output(path, inputs=inputs)
    file = Path(path)
    if dry_run and file.is_file() and file.stat().st_size:
        raise InvalidInputError(f"{path} exists, and a dry run replaces no file: give another name")
    is_kept = file.is_file()
    report = file.open("a" if is_kept else "w", encoding="utf-8", errors="backslashreplace")

    def write(text: str) -> None:
        nonlocal is_kept
        with _naming(path):
            if is_kept:
                report.truncate(0)
                is_kept = False
            report.write(text)

    try:
        yield write
        write("")
    finally:
        with _naming(path):
            report.close()


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Name *path* in an error of the system that has no name, as where a disk is full."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or path
        raise


_DATABASE = b"SQLite format 3\0"  # a removal


def refuse_output(path: FilePath, *, inputs: Iterable[FilePath] = ()) -> None:
    """
    Raise InvalidInputError if a new file at *path* would replace a database, or one of *inputs*. A missing folder is a
    FileNotFoundError at once: long work must not end in a file that cannot be made.
    """
    path = Path(path)
    if not path.exists() and not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(path.parent))
    if not path.is_file():  # a pipe, or a terminal
        return
    if any(other.exists() and other.samefile(path) for other in map(Path, inputs)):
        raise InvalidInputError(f"{path} is read by the same command: give another name")
    with path.open("rb") as file:
        if file.read(len(_DATABASE)) == _DATABASE:
            raise InvalidInputError(f"{path} is a database, such as a removal: give another name")
