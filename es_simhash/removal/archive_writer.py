"""
Writing the archive of what is removed: each batch is on the disk before its documents are deleted.

The format is described in ``archive``. Memory: a batch.
"""

from __future__ import annotations

import gzip
import json
import os
import warnings
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from es_simhash.arguments import FilePath
from es_simhash.errors import InvalidInputError
from es_simhash.removal.archive import EMPTY, ArchiveReader, save_end, to_archive_line
from es_simhash.removal.files import bad_line, sync_file, sync_folder
from es_simhash.removal.records import Archived
from es_simhash.transport.keys import Key


class ArchiveWriter:
    """
    Appends to an archive of one plan; use it as a context manager.

    Args:
        path:
            The archive; made if it does not exist. A last member that is not whole is moved to a file beside it, with a
            warning.
        plan:
            SHA-256 of the plan.

    Raises:
        InvalidInputError: If it is not an archive, is damaged, belongs to another plan, is in use by another process,
            or cannot be written.
    """

    def __init__(self, path: FilePath, plan: str) -> None:
        self._path = Path(path)
        self._plan = plan
        self._known: set[bytes] = set()
        self._file = self._open()
        try:
            self._size = self._read()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def __len__(self) -> int:
        return len(self._known)

    def holds(self, key: Key) -> bool:
        """Return whether the document *key* is in the archive."""
        return _digest(key) in self._known

    def find(self, keys: Sequence[Key]) -> dict[Key, Archived]:
        """Return the lines of the documents *keys*; the whole archive is read."""
        wanted = set(keys)
        if not wanted:
            return {}
        return {each.key: each for each in ArchiveReader(self._path, size=self._size).read() if each.key in wanted}

    def append(self, batch: Sequence[Archived]) -> None:
        """
        Add the documents of *batch*, and return when they are on the disk.

        Raises:
            InvalidInputError: If they cannot be written; then the archive is as it was.
        """
        if not batch:
            return
        text = "".join(f"{to_archive_line(each)}\n" for each in batch)
        self._write(gzip.compress(text.encode("utf-8", "surrogatepass"), mtime=0))
        self._known.update(_digest(each.key) for each in batch)

    def _open(self) -> BinaryIO:
        try:
            file = open(self._path, "ab+", buffering=0, opener=_open_private)  # noqa: SIM115
        except OSError as error:
            raise self._cannot_write(error) from error
        if not _lock(file):
            file.close()
            raise InvalidInputError(f"{self._path} is in use by another process: wait for it, or give another archive")
        return file

    def _read(self) -> int:
        """Note what is in the archive, cut off a last member that is not whole, and return the length of the rest."""
        if self._is_new():
            self._file.truncate(0)
            self._size = 0
            self._write(EMPTY)
            sync_folder(self._path)
            return self._size
        reader = ArchiveReader(self._path, allow_cut=True)
        for number, each in enumerate(reader.read(), 1):
            if each.plan != self._plan:
                raise bad_line(self._path, number, "belongs to another plan", "give each plan an archive of its own")
            self._known.add(_digest(each.key))
        if reader.is_cut:
            self._move_end(reader.size)
            self._file.truncate(reader.size)
            sync_file(self._file)
            self._known = {_digest(each.key) for each in ArchiveReader(self._path).read()}
        return reader.size

    def _move_end(self, at: int) -> None:
        """Keep what begins at *at* as an archive of its own: its documents may be gone from their index."""
        try:
            kept = save_end(self._path, at)
        except OSError as error:
            raise self._cannot_write(error) from error
        if kept is not None:
            warnings.warn(
                f"the end of {self._path} was cut off, and moved to {kept}: if a document of it is missing in its "
                f"index, restore {kept}",
                stacklevel=2,
            )

    def _is_new(self) -> bool:
        """Return whether the file holds nothing, or what a process leaves that is killed while it makes it."""
        self._file.seek(0)
        held = self._file.read(len(EMPTY) + 1)
        return len(held) <= len(EMPTY) and (held == EMPTY[: len(held)] or not any(held))

    def _write(self, data: bytes) -> None:
        try:
            view = memoryview(data)
            while view:
                view = view[self._file.write(view) :]
            sync_file(self._file)
        except OSError as error:
            with suppress(OSError):  # what stays is cut off by the next run
                self._file.truncate(self._size)
            raise self._cannot_write(error) from error
        self._size += len(data)

    def _cannot_write(self, error: OSError) -> InvalidInputError:
        return InvalidInputError(
            f"{self._path} cannot be written ({error.strerror}), so nothing more was deleted: check the disk, and run "
            "the same command again"
        )


def _open_private(path: str, flags: int) -> int:
    """Open a file that only its owner may read: it has documents in it."""
    return os.open(path, flags, 0o600)


def _digest(key: Key) -> bytes:
    return blake2b(json.dumps([key.index, key.id, key.routing]).encode(), digest_size=16).digest()


def _lock(file: object) -> bool:
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
