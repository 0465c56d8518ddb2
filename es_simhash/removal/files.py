"""
Writes files so that they are on the disk, and reads their lines without trust. Knows no format.

Also: which files may be replaced, by their first bytes: those of the same kind, and none that is compressed.
"""

from __future__ import annotations

import errno
import io
import json
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO, Literal

from es_simhash.arguments import FilePath
from es_simhash.errors import InvalidInputError

# A server takes no document above 100 MB; its text may need escapes.
LONGEST_LINE = 256 * 1024 * 1024


def sync_file(file: IO[Any]) -> None:
    """Return when everything that was written to *file* is on the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Return when the name of a new file *path* is on the disk."""
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_whole(path: Path, pieces: Iterable[str]) -> None:
    """Write the text file *path*, which only its owner may read, and which gets its name when all is on the disk."""
    beside = path.with_name(f".{path.name}.part")
    try:
        with open(beside, "w", encoding="utf-8", errors="backslashreplace", opener=open_private) as file:
            file.writelines(pieces)
            sync_file(file)
        beside.replace(path)
    except OSError as error:
        error.filename = os.fspath(path)  # the only name that the caller knows
        raise
    finally:
        beside.unlink(missing_ok=True)


class _Named(io.FileIO):
    """A file whose errors name it; the system names none where a disk is full."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            error.filename = str(self.name)
            raise


def open_text(path: FilePath, mode: Literal["w", "a"] = "w") -> io.TextIOWrapper:
    """Open a text file that grows line by line, such as a report; any error of it, at its end too, has its name."""
    return io.TextIOWrapper(io.BufferedWriter(_Named(path, mode)), encoding="utf-8", errors="backslashreplace")


def refuse_pipe(path: Path) -> None:
    """Raise InvalidInputError if *path* is no regular file: an archive is read twice, and a pipe only once."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise InvalidInputError(f"{path} is no regular file, and is read more than once: write it to a file first")


def to_line(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON has as an escape
        return json.dumps(value, allow_nan=False).encode() + b"\n"


def read_lines(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """Yield each line of *file* with its line feed; InvalidInputError means one is longer than any that is written."""
    number = 0
    while line := file.readline(LONGEST_LINE):
        number += 1
        if len(line) == LONGEST_LINE:
            raise bad_line(path, number, f"is longer than {LONGEST_LINE:,} bytes", "give another file")
        yield line


def bad_line(path: Path, number: int, problem: str, advice: str) -> InvalidInputError:
    return InvalidInputError(f"{path}, line {number}: {problem}: {advice}")


# Archives begin so, and so does much that is the user's; nothing else that is written here does.
_GZIP = b"\x1f\x8b"
_DATABASE = b"SQLite format 3\0"
_PLAN = b'{"format": "es-simhash-plan"'
# How the files of a kind begin. Reports and results are lines and pictures of many kinds.
_BEGINS = {"plan": _PLAN, "page": b'<!DOCTYPE html>\n<html lang="', "mask": b'{\n  "format": "es-simhash boilerplate"'}


def refuse_output(path: FilePath, *, inputs: Iterable[FilePath] = (), kind: str = "report") -> None:
    """
    Raise InvalidInputError if a new file at *path* would replace an archive, a plan, or one of *inputs*.
    *kind*: a ``"plan"``, ``"page"`` or ``"mask"`` replaces only a regular file that is empty or of the same kind; other
    kinds may go to a pipe or a terminal, or replace any text. A missing folder is a FileNotFoundError at once: long
    work must not end in a file that cannot be made.
    """
    path = Path(path)
    if not path.exists():
        if not path.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(path.parent))
        return
    if not path.is_file():
        if kind in _BEGINS:
            raise InvalidInputError(f"{path} is no regular file: give the {kind} another name")
        return
    for each in map(Path, inputs):
        if each.exists() and each.samefile(path):
            raise InvalidInputError(f"{path} is read by the same command: give the {kind} another name")
    with path.open("rb") as file:
        begin = file.read(64).replace(b"\r\n", b"\n")
    if begin.startswith(_GZIP):
        raise InvalidInputError(f"{path} is gzip, and may be an archive: give the {kind} another name")
    if begin.startswith(_DATABASE):
        raise InvalidInputError(f"{path} is a database, such as a checkpoint: give the {kind} another name")
    if begin.startswith(_PLAN) and kind != "plan":
        raise InvalidInputError(f"{path} is a plan of removal: give the {kind} another name")
    if kind in _BEGINS and begin and not begin.startswith(_BEGINS[kind]):
        raise InvalidInputError(f"{path} is no {kind} that may be replaced: give the {kind} another name")


def refuse_archive_name(archive: FilePath, plan: FilePath) -> None:
    """Raise InvalidInputError if *archive* is the plan, or a pipe or a device, which keeps nothing."""
    archive = Path(archive)
    if not archive.exists():
        return
    if archive.samefile(plan):
        raise InvalidInputError(f"{archive} is the plan: give the archive another name")
    if not archive.is_file():
        raise InvalidInputError(f"{archive} is no regular file, so it keeps nothing: give the archive another name")


def open_private(path: str, flags: int) -> int:
    """Open a file that only its owner may read: it has documents in it."""
    return os.open(path, flags, 0o600)


def lock(file: object) -> bool:
    """Return whether this process alone writes to *file* from now on."""
    try:
        import fcntl  # noqa: PLC0415 -- not on every system
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # type: ignore[arg-type]
    except OSError:
        return False
    return True
