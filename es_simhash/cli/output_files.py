"""Writes pages and reports, which replace no input, and no database."""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

from es_simhash import InvalidInputError
from es_simhash.arguments import FilePath
from es_simhash.cli.app import STDIN


def sync_file(file: IO[Any]) -> None:
    """Return when everything that was written to *file* is on the disk."""
    file.flush()
    os.fsync(file.fileno())


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """
    Open the file *path*, which only its owner may read, and which gets its name when all is on the disk.
    What is there and is no regular file, such as a pipe, is written to.
    """
    beside = path.with_name(f".{path.name}.part")
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                yield file
            return
        beside.unlink(missing_ok=True)  # what another run left, or a link that others prepared
        with open(beside, "xb", opener=open_private) as file:
            yield file
            sync_file(file)
        beside.replace(path)
    except OSError as error:
        if error.filename in (None, os.fspath(beside)):
            error.filename = os.fspath(path)  # the only name that the caller knows
        raise
    finally:
        beside.unlink(missing_ok=True)


def write_whole(path: Path, pieces: Iterable[str]) -> None:
    """Write the text file *path*, as :func:`whole_file` says."""
    with whole_file(path) as file:
        file.writelines(piece.encode("utf-8", "backslashreplace") for piece in pieces)


class _Kept(io.FileIO):
    """
    A file that has what it had before until something is written: nobody may answer what is asked first. Its errors
    name it; the system names none where a disk is full.
    """

    _is_kept = True

    def write(self, data: Any) -> int:
        try:
            if self._is_kept and stat.S_ISREG(os.fstat(self.fileno()).st_mode):
                self.truncate(0)
            self._is_kept = False
            return super().write(data)
        except OSError as error:
            error.filename = str(self.name)
            raise


def open_report(stack: ExitStack, path: str | None, inputs: Sequence[str], *, dry_run: bool) -> IO[str] | None:
    """Open the report of a command that reads *inputs*, until the end of *stack*; ``-`` is stdout."""
    if path is None:
        return None
    if path == STDIN:
        return sys.stdout
    refuse_output(path, inputs=inputs)
    file = Path(path)
    if dry_run and file.is_file() and file.stat().st_size:
        raise InvalidInputError(f"{path} exists, and a dry run replaces no file: give another name")
    buffer = io.BufferedWriter(_Kept(path, "a"))
    return stack.enter_context(io.TextIOWrapper(buffer, encoding="utf-8", errors="backslashreplace"))


def end_report(report: IO[str] | None) -> None:
    """Empty a report that was kept and to which nothing was written, now that the work is done."""
    raw = getattr(getattr(report, "buffer", None), "raw", None)
    if isinstance(raw, _Kept):
        raw.write(b"")


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


def open_private(path: str, flags: int) -> int:
    """Open a file that only its owner may read: it has documents in it."""
    return os.open(path, flags, 0o600)
