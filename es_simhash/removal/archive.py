"""
The archive of what was removed: gzip, a member for each batch, each on the disk before its documents are deleted.

The lines are those of ``archive_line``. A last member that is not whole is left by a process that is killed, which had
deleted none of its documents, or by a copy that was cut short, when all of them may be gone; nothing tells the two
apart. So readers that allow it read its whole lines, and a writer moves it to a file beside the archive. A new archive
begins with an empty member, so it is never an empty file.

Memory: a batch while the archive is written, a line while it is read.
"""

from __future__ import annotations

import gzip
import json
import os
import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from es_simhash.errors import InvalidInputError
from es_simhash.removal.archive_line import parse_archive_line, to_archive_line
from es_simhash.removal.cut_end import EMPTY, has_member, is_inflated, save_end
from es_simhash.removal.files import LONGEST_LINE, FilePath, bad_line, refuse_pipe, sync_file, sync_folder
from es_simhash.removal.records import Archived, Key

__all__ = ["ArchiveSummary", "ArchiveWriter", "check_archive", "cut_sentence", "read_archive"]

CHUNK = 1 << 20
ADVICE = "give a file that dedupe --archive has made"


@dataclass(frozen=True, slots=True)
class ArchiveSummary:
    """
    What a whole reading of an archive found.

    Attributes:
        lines:
            Number of lines in whole members.
        size:
            Length of the whole members in the file, in bytes.
        is_cut:
            Whether a last member follows that is not whole.
        plans:
            SHA-256 of each plan that the lines name.
        cut_lines:
            Number of whole lines in that last member.
        lacks_lines:
            Whether lines of it may be missing.
    """

    lines: int
    size: int
    is_cut: bool
    plans: frozenset[str]
    cut_lines: int = 0
    lacks_lines: bool = False


def check_archive(path: FilePath, *, allow_cut: bool = False) -> ArchiveSummary:
    """
    Read the whole archive and return what is in it.

    Args:
        path:
            The archive.
        allow_cut:
            Whether a last member may be not whole; else that is an error.

    Raises:
        InvalidInputError: If it is not an archive, or damaged; the message names file and line.
        OSError: If the file cannot be read.
    """
    reader = _Reader(Path(path), allow_cut=allow_cut)
    plans: set[str] = set()
    for archived in reader.read():
        plans.add(archived.plan)
    lacks_lines = reader.is_cut and not is_inflated(Path(path), reader.size)
    return ArchiveSummary(
        reader.lines, reader.size, reader.is_cut, frozenset(plans), reader.cut_lines, lacks_lines=lacks_lines
    )


def cut_sentence(found: ArchiveSummary) -> str:
    """
    Return, for people, what is known of the end of an archive that was cut off.
    """
    if not found.lacks_lines:
        return f"its last {found.cut_lines:,} lines are whole, and only their checksum is missing"
    return (
        f"its last {found.cut_lines:,} lines are whole, and lines after them may be missing, whose documents may have "
        "been removed: look for a whole copy of the file"
    )


def read_archive(path: FilePath, *, allow_cut: bool = False) -> Iterator[Archived]:
    """
    Yield each line of the archive; arguments and errors are those of :func:`check_archive`.

    Whole lines of a last member that is not whole are read too, where that is allowed. Damage is noticed when it is
    reached: call :func:`check_archive` first where nothing may be done with the lines before it.
    """
    yield from _Reader(Path(path), allow_cut=allow_cut).read()


class _Reader:
    """Reads the lines of an archive, member by member, and counts them."""

    def __init__(self, path: Path, *, allow_cut: bool = False, size: int | None = None) -> None:
        self._path = path
        self._allow_cut = allow_cut
        self._limit = size
        self.lines = self.size = self.cut_lines = 0
        self.is_cut = False
        self._rest = b""

    def read(self) -> Iterator[Archived]:
        """Yield the lines, also the whole ones of a last member that is not whole."""
        refuse_pipe(self._path)
        with self._path.open("rb") as file:
            if not file.read(1):
                raise InvalidInputError(f"{self._path} is empty, and not an archive: {ADVICE}")
            file.seek(0)
            rest, number = b"", 0
            while data := rest or self._next(file):
                before, rest = number, b""
                try:
                    for line in self._member(file, data):
                        number += 1
                        self.lines = number
                        yield self._line(line, number)
                except _CutError:
                    self._end(before)
                    return
                rest = self._rest
                self.size = file.tell() - len(rest)

    def _next(self, file: BinaryIO) -> bytes:
        most = CHUNK if self._limit is None else min(CHUNK, self._limit - file.tell())
        return file.read(most) if most > 0 else b""

    def _member(self, file: BinaryIO, data: bytes) -> Iterator[bytes]:
        """Yield the lines of one member, and keep what was read of the next."""
        inflate = zlib.decompressobj(wbits=31)
        held: list[bytes] = []
        length = 0
        while True:
            try:
                out = inflate.decompress(data, CHUNK)
            except zlib.error as error:
                raise self._damage(file, data, error) from error
            *whole, last = out.split(b"\n")
            for part in whole:
                yield b"".join([*held, part])
                held, length = [], 0
            held.append(last)
            length += len(last)
            if length > LONGEST_LINE:
                raise bad_line(self._path, self.lines + 1, f"is longer than {LONGEST_LINE:,} bytes", ADVICE)
            if inflate.eof:
                if any(held):
                    raise bad_line(self._path, self.lines + 1, "has no line feed", ADVICE)
                self._rest = inflate.unused_data
                return
            data = inflate.unconsumed_tail
            # After a full chunk there may be more output of what was read already.
            if not data and len(out) < CHUNK and not (data := self._next(file)):
                raise _CutError

    def _damage(self, file: BinaryIO, data: bytes, error: zlib.error) -> Exception:
        """Return what bytes that are no gzip mean: a crash may leave zeros at the end of a file."""
        is_zero = self.size > 0 and not any(data)
        while is_zero and (more := self._next(file)):
            is_zero = not any(more)
        if is_zero:
            return _CutError()
        if self.size == 0 and self.lines == 0 and not data.startswith(b"\x1f\x8b"):
            return InvalidInputError(f"{self._path} is not an archive: {ADVICE}")
        return InvalidInputError(f"{self._path} is damaged after line {self.lines} ({error}): {ADVICE}")

    def _line(self, line: bytes, number: int) -> Archived:
        try:
            return parse_archive_line(line.decode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError) as error:
            raise bad_line(self._path, number, f"is not a line of an archive ({error})", ADVICE) from error

    def _end(self, lines: int) -> None:
        if self.size == 0:  # not even the first member, which is empty
            raise InvalidInputError(f"{self._path} is not an archive: {ADVICE}")
        self.cut_lines, self.lines, self.is_cut = self.lines - lines, lines, True
        if has_member(self._path, self.size + 1):
            raise InvalidInputError(f"{self._path} is damaged after line {lines}, and goes on later: {ADVICE}")
        if not self._allow_cut:
            raise InvalidInputError(
                f"{self._path} was cut short after line {lines}: no document of the rest was removed yet, unless the "
                "file was cut while it was copied"
            )


class _CutError(Exception):
    """The last member is not whole."""


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
        return {each.key: each for each in _Reader(self._path, size=self._size).read() if each.key in wanted}

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
        reader = _Reader(self._path, allow_cut=True)
        for number, each in enumerate(reader.read(), 1):
            if each.plan != self._plan:
                raise bad_line(self._path, number, "belongs to another plan", "give each plan an archive of its own")
            self._known.add(_digest(each.key))
        if reader.is_cut:
            self._move_end(reader.size)
            self._file.truncate(reader.size)
            sync_file(self._file)
            self._known = {_digest(each.key) for each in _Reader(self._path).read()}
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
            f"{self._path} cannot be written ({error.strerror}), so nothing more was deleted: see to the disk, and run "
            "the same command again"
        )


def _open_private(path: str, flags: int) -> int:
    """Open a file that only its owner may read: it has documents in it."""
    return os.open(path, flags, 0o600)


def _digest(key: Key) -> bytes:
    return blake2b(json.dumps(key).encode(), digest_size=16).digest()


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
