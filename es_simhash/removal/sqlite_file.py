"""
Opens a database of sqlite3 that may come from others: its head is read before sqlite3 opens it.

A file is made by a name that did not exist, for its owner alone. While a run writes, the file is locked. Every error
says what to do: of the disk, of another run, or of a damaged file. What is in a file, ``removal_file`` knows.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from pathlib import Path
from urllib.parse import quote
from weakref import WeakValueDictionary

from es_simhash.errors import InvalidInputError

LONGEST = 256 << 20
"""Bytes of one value: a server takes no document above 100 MB; its text may need escapes."""

_MAGIC = b"SQLite format 3\0\x10\0\x01\x01"  # pages of 4,096 bytes; 2 instead of 1 is a WAL
_PAGE = 4_096
_SUPER = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
APPLICATION = 0x65735F72  # tells it from the databases of others, which are never opened
UNREADABLE = (sqlite3.Error, UnicodeDecodeError)
"""What a damaged file raises: sqlite3 may quote it in a sentence that Python cannot decode."""

# Files that this process writes: to close another descriptor of one would give up its lock.
WRITTEN: WeakValueDictionary[tuple[int, int], object] = WeakValueDictionary()


# What sqlite3 says of the disk or the folder, and not of what is in the file.
_OF_THE_DISK = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
    sqlite3.SQLITE_READONLY: errno.EACCES,
    sqlite3.SQLITE_PERM: errno.EACCES,
}


class DamagedError(InvalidInputError):
    """A file of a removal is cut or damaged."""


def create(path: Path) -> None:
    """Make an empty file that only its owner may read; a name that exists, such as that of a link, is refused."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError as error:
        raise InvalidInputError(f"{path} exists already: give another name") from error
    except FileNotFoundError as error:
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(path.parent)) from error


def connect(path: Path, mode: str, *pragmas: str) -> sqlite3.Connection:
    """Open *path*, for *mode* ``rw`` locked until it is closed; *pragmas* are set before all others."""
    uri = f"file:{quote(str(path.absolute()))}?mode={mode}"
    try:
        database = sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise failure(path, error) from error
    try:
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
        for pragma in (*pragmas, "trusted_schema(OFF)", "cell_size_check(ON)", "mmap_size(0)", "synchronous(FULL)"):
            database.execute(f"PRAGMA {pragma}")
        if mode == "rw":
            database.execute("PRAGMA locking_mode(EXCLUSIVE)")
            database.execute("BEGIN EXCLUSIVE")
            database.execute("COMMIT")
    except UNREADABLE as error:
        database.close()
        raise failure(path, error) from error
    return database


def check_head(path: Path) -> Path | None:
    """Refuse what is no file of a removal, before sqlite3 opens it; return the file without which it is not whole."""
    if identity(path) in WRITTEN:
        raise InvalidInputError(f"{path} is used by this program: wait for its end")
    if not stat.S_ISREG(path.stat().st_mode):
        raise InvalidInputError(f"{path} is no regular file: give the file of a plan")
    with path.open("rb") as file:
        head = file.read(100)
    is_ours = head[:20] == _MAGIC and head[68:72] == APPLICATION.to_bytes(4, "big")
    if not head:
        raise InvalidInputError(
            f"{path} is empty: give another file; if a run stopped before the plan was complete, delete the file, and "
            "plan again"
        )
    if not is_ours:
        raise InvalidInputError(f"{path} is not a file of a removal: give the file of a plan")
    beside = Path(f"{path.resolve()}-journal")  # where *path* is a link, sqlite3 has it beside the file
    is_needed = False
    if beside.exists():
        with beside.open("rb") as file:
            is_needed = file.read(1) not in (b"", b"\0")
            file.seek(-min(8, beside.stat().st_size), os.SEEK_END)
            if file.read(8) == _SUPER:  # it would make sqlite3 delete a file that it names
                raise InvalidInputError(f"{beside} was made by another program: move it away")
    # sqlite3 would not miss a part of a page.
    if not is_needed and path.stat().st_size < int.from_bytes(head[28:32], "big") * _PAGE:
        raise damaged(path, "it is shorter than it says")
    return beside if is_needed else None


def identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def disk_failure(path: Path, error: Exception) -> OSError | None:
    """Return *error* of sqlite3 as one of the system that names the file; ``None`` if it is not of the disk."""
    number = _OF_THE_DISK.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
    if number is None:
        return None
    return OSError(number, os.strerror(number) if number == errno.ENOSPC else str(error), os.fspath(path))


def failure(path: Path, error: Exception) -> Exception:
    """Return *error* as one that says what to do: of the disk, of another run, or of a damaged file."""
    if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
        return InvalidInputError(f"{path} is used by another run: wait for its end")
    return disk_failure(path, error) or damaged(path, str(error))


def damaged(path: Path, why: str) -> DamagedError:
    return DamagedError(
        f"{path} is damaged, or was cut short ({why}): look for a copy; restore puts back what is whole"
    )


def sync_folder(path: Path) -> None:
    """Return when the name of a new file *path* is on the disk."""
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
