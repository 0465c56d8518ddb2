"""
What a long work has done, in a file, so that another run goes on after a stop, a kill or a crash.

The file is an sqlite3 database. A change is whole or absent, and no kill takes it back. While the journal is open, and
after a kill, sqlite3 has a second file beside it, with ``-wal`` at the end of its name: it belongs to the first one.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from es_simhash.errors import InvalidInputError

VERSION = 2
_MAGIC = b"SQLite format 3\0"
_APPLICATION = 0x65735F73  # tells it from the databases of others, which are never opened
# What sqlite3 says of the disk or the folder, and not of what is in the file.
_OF_THE_DISK = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
    sqlite3.SQLITE_READONLY: errno.EACCES,
    sqlite3.SQLITE_PERM: errno.EACCES,
}
# What sqlite3 writes: a file of a later format it only reads.
_FORMAT = 2
_TABLE = "CREATE TABLE entries (name TEXT UNIQUE, value CHECK (typeof(value) = iif(name IS NULL, 'blob', 'text')))"


class Journal:
    """
    JSON *values* by name, and bytes that are only added; *begun*: the values of a new journal.
    A file that is no whole journal of this *kind* is refused with the sentence *refusal*. *is_synced*: changes survive
    a crash of the machine too.
    """

    def __init__(
        self, path: Path, kind: str, begun: Mapping[str, Any], *, refusal: str, is_synced: bool = False
    ) -> None:
        self._path = path
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise InvalidInputError(refusal)  # a pipe or a device
        with path.open("a+b") as file:  # makes the file, with the errors of the system
            file.seek(0)
            head = file.read(72)
        is_ours = (head[:16], head[68:]) == (_MAGIC, _APPLICATION.to_bytes(4, "big"))
        if head and not (is_ours and max(head[18:20]) <= _FORMAT):
            raise InvalidInputError(refusal)
        self._database = sqlite3.connect(path.absolute(), timeout=0, isolation_level=None, check_same_thread=False)
        try:
            self.is_new = self._begin({"kind": kind, **begun}, "FULL" if is_synced else "NORMAL")
            self.values = self._read(kind)
        except InvalidInputError:
            self.close()
            raise
        except (sqlite3.Error, ValueError, LookupError, RecursionError) as error:
            self.close()
            if (failure := disk_failure(path, error)) is not None:
                if not head:  # made here
                    for each in ("", "-journal", "-wal", "-shm"):
                        Path(f"{path}{each}").unlink(missing_ok=True)
                raise failure from error
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
                refusal = f"{path} is used by another run: wait for its end, or name another file"
            raise InvalidInputError(refusal) from error

    def put(self, name: str, value: Any) -> None:
        self._write("INSERT OR REPLACE INTO entries VALUES (?, ?)", name, json.dumps(value))

    def add(self, part: bytes) -> None:
        """Add *part* to what :meth:`read_added` returns."""
        self._write("INSERT INTO entries VALUES (NULL, ?)", part)

    def read_added(self) -> bytes:
        return b"".join(part for (part,) in self._database.execute("SELECT value FROM entries WHERE name IS NULL"))

    def close(self) -> None:
        self._database.close()

    def _begin(self, values: Mapping[str, Any], synchronous: str) -> bool:
        """Put *values* into a new file, in one step; return whether it is new."""
        execute = self._database.execute
        execute("PRAGMA locking_mode(EXCLUSIVE)")
        execute("BEGIN IMMEDIATE")
        is_new = not execute("SELECT 1 FROM sqlite_master").fetchall()
        if is_new:
            execute(f"PRAGMA application_id({_APPLICATION})")
            execute(f"PRAGMA user_version({VERSION})")
            execute(_TABLE)
            rows = [(name, json.dumps(value)) for name, value in values.items()]
            self._database.executemany("INSERT INTO entries VALUES (?, ?)", rows)
        execute("COMMIT")
        execute("PRAGMA journal_mode(WAL)")
        execute(f"PRAGMA synchronous({synchronous})")
        return is_new

    def _read(self, kind: str) -> dict[str, Any]:
        """Return the values of a whole journal of this *kind*; nothing else is in it, such as a trigger."""
        execute = self._database.execute
        (version,) = execute("PRAGMA user_version").fetchone()
        if version != VERSION:
            raise InvalidInputError(
                f"checkpoint {self._path} has version {version}, and this program reads {VERSION}: continue with the "
                "program that began, or name a new file and begin anew"
            )
        tables = execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        if tables != [(_TABLE,)] or execute("PRAGMA integrity_check(1)").fetchall() != [("ok",)]:
            raise ValueError(tables)
        rows = execute("SELECT name, value FROM entries WHERE name IS NOT NULL").fetchall()
        values = {name: json.loads(value) for name, value in rows}
        if values.pop("kind") != kind:
            raise ValueError(kind)
        return values

    def _write(self, statement: str, *values: Any) -> None:
        try:
            self._database.execute(statement, values)
        except sqlite3.Error as error:
            raise disk_failure(self._path, error) or OSError(errno.EIO, str(error), os.fspath(self._path)) from error


def disk_failure(path: Path, error: Exception) -> OSError | None:
    """Return *error* of sqlite3 as one of the system that names the file; ``None`` if it is not of the disk."""
    number = _OF_THE_DISK.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
    if number is None:
        return None
    return OSError(number, os.strerror(number) if number == errno.ENOSPC else str(error), os.fspath(path))
