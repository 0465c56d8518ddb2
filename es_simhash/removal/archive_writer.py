"""
Writes the archive of one plan, and knows what it holds; ``archive`` has the format, and reads.

Memory: a batch to write, and 32 bytes for each document.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import warnings
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import count
from pathlib import Path
from shutil import copyfileobj
from typing import BinaryIO, Literal, Self

from es_simhash.arguments import FilePath
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.removal.archive import EMPTY, PART, ArchiveReader, Note, to_archive_line
from es_simhash.removal.files import bad_line, lock, open_private, sync_file, sync_folder
from es_simhash.removal.records import Archived
from es_simhash.transport.protocol import Key


class ArchivedKeys:
    """Which documents the archive of one plan holds; the file is only read, and need not exist."""

    def __init__(self, path: FilePath, plan: str) -> None:
        self._path = Path(path)
        self._plan = plan
        self._known: dict[bytes, bytes] = {}
        self._kept: set[bytes] = set()
        self._approver: str | None = None
        if self._path.exists() and not _is_new(self._path):
            self._read_all()

    def __len__(self) -> int:
        return len(self._known)

    def holds(self, key: Key, last: Archived | None = None) -> bool:
        """Return whether the archive has a document, and if *last* is given, has its source, and who approved it."""
        found = self._known.get(_digest(key))
        return found is not None and (last is None or found == _digest_state(last))

    def may_have_deleted(self, key: Key) -> bool:
        """Return whether a run deleted the document, or was ended before it noted that it did not."""
        digest = _digest(key)
        return digest in self._known and digest not in self._kept

    def _read_all(self) -> ArchiveReader:
        """Note each document, also of a last member that is not whole; return the reader."""
        reader = ArchiveReader(self._path, allow_cut=True)
        self._known, self._kept = {}, set()
        for number, each in enumerate(reader.read_all(), 1):
            if each.plan != self._plan:
                raise bad_line(self._path, number, "belongs to another plan", "give each plan an archive of its own")
            self._take(each)
        return reader

    def _take(self, line: Archived | Note) -> None:
        digests = [_digest(line.key)] if isinstance(line, Archived) else map(_digest, line.keys)
        if isinstance(line, Note) and line.state == "kept":
            self._kept.update(digests)
        else:
            self._kept.difference_update(digests)
        if isinstance(line, Archived):
            self._known[_digest(line.key)] = _digest_state(line)
            self._approver = line.approved[0] if line.approved else self._approver

    def refuse_unapproved(self, approved: tuple[str, str] | None) -> None:
        """Raise InvalidInputError if an earlier run had decisions, and this one has none."""
        if approved is None and self._approver is not None:
            raise InvalidInputError(
                f"{self._path} was begun with the decisions of {shorten(self._approver)}: give these decisions again"
            )


def _is_new(path: Path) -> bool:
    """Return whether the file holds nothing, or what a process leaves that is killed while it makes it."""
    with path.open("rb") as file:
        held = file.read(len(EMPTY) + 1)
    return len(held) <= len(EMPTY) and (held == EMPTY[: len(held)] or not any(held))


class ArchiveWriter(ArchivedKeys):
    """
    Appends to the archive of one plan, which is locked against other processes; a context manager.
    The file is made if it does not exist. An incomplete last member is moved to a file beside it, with a warning.
    InvalidInputError means: damaged, of another plan (*plan* is a SHA-256), in use, or not writable.
    """

    def __init__(self, path: FilePath, plan: str) -> None:  # not that of the keys: the file is locked before it is read
        self._path = Path(path)
        self._plan = plan
        self._known, self._kept, self._approver = {}, set(), None
        self._file = self._open()
        try:
            self._size = self._read()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def find(self, keys: Sequence[Key]) -> dict[Key, Archived]:
        """Return the last lines of the documents *keys*; the whole archive is read."""
        wanted = set(keys)
        if not wanted:
            return {}
        return {each.key: each for each in ArchiveReader(self._path, size=self._size).read() if each.key in wanted}

    def append(self, batch: Sequence[Archived]) -> None:
        """Add *batch*, and return when it is on the disk; on InvalidInputError the archive is as it was."""
        self._add([to_archive_line(each) for each in batch])
        for each in batch:
            self._take(each)

    def note(self, state: Literal["kept", "archived"], keys: Sequence[Key], at: str) -> None:
        """Note the *state* of documents that the archive holds; errors are those of :meth:`append`."""
        note = Note(state, tuple(keys), self._plan, at)
        self._add([str(note)] if keys else [])
        self._take(note)

    def _add(self, lines: Sequence[str]) -> None:
        if lines:
            text = "".join(f"{each}\n" for each in lines)
            self._write(gzip.compress(text.encode("utf-8", "surrogatepass"), mtime=0))

    def _open(self) -> BinaryIO:
        try:
            file = open(self._path, "ab+", buffering=0, opener=open_private)  # noqa: SIM115
        except OSError as error:
            raise self._cannot_write(error) from error
        if not lock(file):
            file.close()
            raise InvalidInputError(f"{self._path} is in use by another process: wait for it, or give another archive")
        return file

    def _read(self) -> int:
        """Note what is in the archive, cut off a last member that is not whole, and return the length of the rest."""
        if _is_new(self._path):
            self._file.truncate(0)
            self._size = 0
            self._write(EMPTY)
            sync_folder(self._path)
            return self._size
        reader = self._read_all()
        if reader.is_cut:
            self._move_end(reader.size)
            self._file.truncate(reader.size)
            sync_file(self._file)
            reader = self._read_all()
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


def _digest(key: Key) -> bytes:
    return blake2b(json.dumps([key.index, key.id, key.routing]).encode(), digest_size=16).digest()


def _digest_state(archived: Archived) -> bytes:
    state = re.sub("[\r\n]", " ", archived.source) + json.dumps(archived.approved)
    return blake2b(state.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def save_end(path: Path, at: int) -> Path | None:
    """Copy the end of *path*, from *at*, to a new archive; return its name, ``None`` for zeros left by a crash."""
    with path.open("rb") as file:
        file.seek(at)
        if not any(any(part) for part in iter(lambda: file.read(PART), b"")):
            return None
        file.seek(at)
        name, copy = _new_beside(path)
        try:
            with copy:
                copy.write(EMPTY)
                copyfileobj(file, copy, PART)
                sync_file(copy)
        except OSError:
            name.unlink(missing_ok=True)
            raise
    sync_folder(name)
    return name


def _new_beside(path: Path) -> tuple[Path, BinaryIO]:
    """Create the first of ``.cut``, ``.cut2`` and so on that does not exist, so that only its owner may read it."""
    for number in count(1):
        name = path.with_name(f"{path.name}.cut{'' if number == 1 else number}")
        with suppress(FileExistsError):
            return name, os.fdopen(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
    raise AssertionError("there is always a free name")
