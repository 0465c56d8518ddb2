"""
The archive of removed documents: format, writing, reading, checking, and the end of an archive that was cut off.

A line: ``{"_index", "_id", "_routing", "_source", "canonical": {"index", "id", "routing"}, "plan", "at"}``,
with ``_source`` as the server returned it, and ``"approved": {"by", "reason"}`` where there were decisions. A document
that was written before it was deleted has a second line, with ``"again"``: the last one counts. The file is gzip, a
member for each batch, which is on the disk before its documents are deleted; the first member is empty, so no archive
is an empty file. A killed process leaves an incomplete last member, of which no document was deleted; of that of a
copy that was cut short, all may be gone. Nothing tells the two apart: readers that allow it read its whole lines, and
the writer moves it to a file beside the archive. Memory: a batch to write, a line to read, 32 bytes for each document.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import warnings
import zlib
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from itertools import count
from mmap import ACCESS_READ, mmap
from pathlib import Path
from shutil import copyfileobj
from typing import Any, BinaryIO, Self

from es_simhash.arguments import FilePath
from es_simhash.errors import InvalidInputError
from es_simhash.removal.files import LONGEST_LINE, bad_line, lock, open_private, refuse_pipe, sync_file, sync_folder
from es_simhash.removal.records import Archived, take
from es_simhash.transport.protocol import Key
from es_simhash.transport.raw_json import end_of_value, join_members, split_members


def to_archive_line(archived: Archived) -> str:
    """Return the line of *archived*, without its line feed."""
    canonical, approved = archived.canonical, archived.approved
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
            **({} if approved is None else {"approved": json.dumps({"by": approved[0], "reason": approved[1]})}),
            **({"again": "true"} if archived.again else {}),
        }
    )


def parse_archive_line(line: str) -> Archived:
    """Return the document that :func:`to_archive_line` wrote as *line*; raise ValueError if it is no such line."""
    plain, source = _split(line)
    if not source.startswith("{"):
        raise ValueError("'_source' is missing or no object")
    canonical = take(plain, "canonical", dict)
    key = Key(take(canonical, "index", str), take(canonical, "id", str), take(canonical, "routing", str, type(None)))
    routing = take(plain, "_routing", str, type(None))
    plan, at = take(plain, "plan", str), take(plain, "at", str)
    together, view = (tuple(map(str, take(plain, name, list, type(None)) or ())) for name in ("together", "view"))
    approved = take(plain, "approved", dict, type(None))
    who = approved and (take(approved, "by", str), take(approved, "reason", str))
    where = take(plain, "_index", str), take(plain, "_id", str), routing
    return Archived(*where, source, key, plan, at, together, view, who, plain.get("again") is True)


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
ADVICE = "give a file that es-simhash apply has made"


def check_archive(path: FilePath, *, allow_cut: bool = False) -> ArchiveReader:
    """Read the whole archive, and return what has counted it; *allow_cut*: the last member may be incomplete."""
    reader = ArchiveReader(Path(path), allow_cut=allow_cut)
    deque(reader.read(), maxlen=0)
    return reader


def cut_sentence(found: ArchiveReader) -> str:
    """Return, for people, what is known of the end of an archive that was cut off."""
    if not found.lacks_lines:
        return f"its last {found.cut_lines:,} lines are whole, and only their checksum is missing"
    return (
        f"its last {found.cut_lines:,} lines are whole, and lines after them may be missing, whose documents may have "
        "been removed: look for a whole copy of the file"
    )


def read_archive(path: FilePath, *, allow_cut: bool = False, again: Mapping[Key, int] = {}) -> Iterator[Archived]:
    """
    Yield each line of the archive; arguments and errors are those of :func:`check_archive`.
    With *allow_cut*, the whole lines of an incomplete last member are included; with *again*, as the reader counts it,
    only the last line of a document. Damage is noticed when it is reached.
    """
    earlier = Counter(again)
    carried: Archived | None = None
    for line in ArchiveReader(Path(path), allow_cut=allow_cut).read():
        if earlier[line.key] > 0:
            earlier[line.key] -= 1
            carried = line if line.together or line.view else carried  # what a first line says for its whole batch
        else:
            yield replace(line, together=carried.together, view=carried.view) if carried else line
            carried = None


class ArchiveReader:
    """
    Reads the first *size* bytes of an archive (by default all), and counts.
    *lines* and *size* (bytes) count whole members. *is_cut*: an incomplete member follows, with *cut_lines* whole
    lines. *plans*: SHA-256 of the plans. *again*: how many earlier lines a document has.
    """

    def __init__(self, path: Path, *, allow_cut: bool = False, size: int | None = None) -> None:
        self._path = path
        self._allow_cut = allow_cut
        self._limit = size
        self.lines = self.size = self.cut_lines = 0
        self.is_cut = False
        self.plans: set[str] = set()
        self.again = Counter[Key]()
        self._rest = b""

    @property
    def lacks_lines(self) -> bool:
        """Whether lines of the incomplete member may be missing."""
        return self.is_cut and not is_inflated(self._path, self.size)

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
            archived = parse_archive_line(line.decode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError) as error:
            raise bad_line(self._path, number, f"is not a line of an archive ({error})", ADVICE) from error
        self.plans.add(archived.plan)
        self.again.update([archived.key] if archived.again else [])
        return archived

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
    """Return whether a whole member begins at the position *at* of a file, or later."""
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        while (at := data.find(EMPTY[:4], at)) >= 0:
            inflate = zlib.decompressobj(wbits=31)
            with suppress(zlib.error):
                if inflate.decompress(data[at:]) and inflate.eof:
                    return True
            at += 1
    return False


def is_inflated(path: Path, at: int) -> bool:
    """Return whether the member that begins at *at* has all its data, so that at most its checksum is missing."""
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


class ArchivedKeys:
    """Which documents the archive of one plan holds; the file is only read, and need not exist."""

    def __init__(self, path: FilePath, plan: str) -> None:
        self._path = Path(path)
        self._plan = plan
        self._known: dict[bytes, bytes] = {}
        if self._path.exists() and not _is_new(self._path):
            self._read_all()

    def __len__(self) -> int:
        return len(self._known)

    def holds(self, key: Key, source: str | None = None) -> bool:
        """Return whether the archive has a document, and if its *source* is given, has it as it is."""
        found = self._known.get(_digest(key))
        return found is not None and (source is None or found == _digest_source(source))

    def _read_all(self) -> ArchiveReader:
        """Note each document, also of a last member that is not whole; return the reader."""
        reader = ArchiveReader(self._path, allow_cut=True)
        for number, each in enumerate(reader.read(), 1):
            if each.plan != self._plan:
                raise bad_line(self._path, number, "belongs to another plan", "give each plan an archive of its own")
            self._known.update([_entry(each)])
        return reader


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
        self._known: dict[bytes, bytes] = {}
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
        if not batch:
            return
        text = "".join(f"{to_archive_line(each)}\n" for each in batch)
        self._write(gzip.compress(text.encode("utf-8", "surrogatepass"), mtime=0))
        self._known.update(map(_entry, batch))

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
            self._known.clear()
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


def _entry(archived: Archived) -> tuple[bytes, bytes]:
    return _digest(archived.key), _digest_source(archived.source)


def _digest_source(source: str) -> bytes:
    return blake2b(re.sub("[\r\n]", " ", source).encode("utf-8", "surrogatepass"), digest_size=16).digest()
