"""
One line of an archive: ``{"_index", "_id", "_routing", "_source", "canonical", "plan", "at"}``.

``_source`` is JSON as the server returned it, and ``canonical`` is ``{"index", "id", "routing"}``. Files are read in
``archive`` and written in ``archive_writer``.

The archive of what was removed: its format, and how it is read and checked. ``archive_writer`` writes it.

It is gzip, with a member for each batch; a new archive begins with an empty member, so it is never an empty file. The
lines are those of ``archive_line``.

A last member that is not whole is left by a process that is killed, which had deleted none of its documents, or by a
copy that was cut short, when all of them may be gone; nothing tells the two apart. So readers that allow it read its
whole lines, and a writer moves it to a file beside the archive. Memory: a line.

The end of an archive that was cut off in a member: what is there, and where it is kept. Knows gzip, but no lines.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, BinaryIO

from es_simhash.arguments import FilePath
from es_simhash.errors import InvalidInputError
from es_simhash.removal.files import LONGEST_LINE, bad_line, refuse_pipe, sync_file, sync_folder
from es_simhash.removal.records import Archived, take
from es_simhash.transport.keys import Key
from es_simhash.transport.raw_json import end_of_value, join_members, split_members


def to_archive_line(archived: Archived) -> str:
    """
    Return the line of *archived*, without its line feed.
    """
    canonical = archived.canonical
    return join_members(
        {
            "_index": json.dumps(archived.index),
            "_id": json.dumps(archived.id),
            "_routing": json.dumps(archived.routing),
            "_source": archived.source,
            "canonical": json.dumps({"index": canonical.index, "id": canonical.id, "routing": canonical.routing}),
            "plan": json.dumps(archived.plan),
            "at": json.dumps(archived.at),
            **({"together": json.dumps(archived.together)} if archived.together else {}),
            **({"view": json.dumps(archived.view)} if archived.view else {}),
        }
    )


def parse_archive_line(line: str) -> Archived:
    """
    Return what :func:`to_archive_line` made *line* of.

    Raises:
        ValueError: If it is not such a line.
    """
    plain, source = _split(line)
    if not source.startswith("{"):
        raise ValueError("'_source' is missing or no object")
    canonical = take(plain, "canonical", dict)
    key = Key(take(canonical, "index", str), take(canonical, "id", str), take(canonical, "routing", str, type(None)))
    routing = take(plain, "_routing", str, type(None))
    plan, at = take(plain, "plan", str), take(plain, "at", str)
    together, view = (tuple(map(str, take(plain, name, list, type(None)) or ())) for name in ("together", "view"))
    return Archived(take(plain, "_index", str), take(plain, "_id", str), routing, source, key, plan, at, together, view)


def _split(line: str) -> tuple[dict[str, Any], str]:
    """Return the members of a line as plain values, and the text of ``_source``."""
    # In a line of ours. Quotes inside a string are escaped, so this stands between members, and nowhere else.
    at = line.find(', "_source": {')
    if at > 0 and line.startswith("{"):
        begin = line.index("{", at)
        end = end_of_value(line, begin)
        rest = line[:at] + line[end:]
        if '"_source"' not in rest:
            return json.loads(rest), line[begin:end]
    members = split_members(line)
    source = members.pop("_source", "")
    return {name: json.loads(value) for name, value in members.items()}, source


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
    reader = ArchiveReader(Path(path), allow_cut=allow_cut)
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
    yield from ArchiveReader(Path(path), allow_cut=allow_cut).read()


class ArchiveReader:
    """
    Reads the lines of an archive, member by member, and counts them.

    Args:
        path:
            The archive.
        allow_cut:
            Whether a last member may be not whole; else that is an error.
        size:
            Length of the part of the file to read; by default all of it.

    Attributes:
        lines, size, is_cut, cut_lines:
            What was read so far, as in :class:`ArchiveSummary`.
    """

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


EMPTY = gzip.compress(b"", mtime=0)


PART = 1 << 20


HEADER = 10  # bytes before the data of a member of ours; other programs may write a longer one


def has_member(path: Path, at: int) -> bool:
    """
    Return whether a whole member begins at the position *at* of a file, or later.
    """
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        while (at := data.find(EMPTY[:4], at)) >= 0:
            inflate = zlib.decompressobj(wbits=31)
            with suppress(zlib.error):
                if inflate.decompress(data[at:]) and inflate.eof:
                    return True
            at += 1
    return False


def is_inflated(path: Path, at: int) -> bool:
    """
    Return whether the member that begins at *at* has all its data, so that at most its checksum is missing.
    """
    inflate = zlib.decompressobj(wbits=-15)
    with path.open("rb") as file, suppress(zlib.error):
        file.seek(at)
        if file.read(HEADER)[3:4] != b"\0":
            return False
        while not inflate.eof:
            data = inflate.unconsumed_tail or file.read(PART)
            if not inflate.decompress(data, PART) and not data:
                break
    return inflate.eof


def save_end(path: Path, at: int) -> Path | None:
    """
    Write what is in the archive *path* from *at* on to a new archive beside it, and return its name.

    An end of zeros, which a crash may leave, is not kept: then nothing is written, and the name is ``None``.

    Raises:
        OSError: If it cannot be read or written.
    """
    with path.open("rb") as file:
        file.seek(at)
        if not any(any(part) for part in _parts(file)):
            return None
        file.seek(at)
        name, copy = _new_beside(path)
        try:
            with copy:
                copy.write(EMPTY)
                for part in _parts(file):
                    copy.write(part)
                sync_file(copy)
        except OSError:
            name.unlink(missing_ok=True)
            raise
    sync_folder(name)
    return name


def _parts(file: BinaryIO) -> Iterator[bytes]:
    while part := file.read(PART):
        yield part


def _new_beside(path: Path) -> tuple[Path, BinaryIO]:
    """Create the first of ``.cut``, ``.cut2`` and so on that does not exist, so that only its owner may read it."""
    for number in count(1):
        name = path.with_name(f"{path.name}.cut{'' if number == 1 else number}")
        with suppress(FileExistsError):
            return name, os.fdopen(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
    raise AssertionError("there is always a free name")
