"""
The archive of removed documents: format, reading, checking, and the end of an archive that was cut off.

A line: ``{"_index", "_id", "_routing", "_source", "canonical": {"index", "id", "routing"}, "plan", "at"}``, with
``_source`` as the server returned it, ``"created"``: when the server made the index, and ``"approved": {"by",
"reason"}`` where there were decisions. A document that was written before it was deleted has a second line, with
``"again"``: the last one counts. A line ``{"state", "keys", "plan", "at"}`` is a :class:`Note`. The file is gzip, a
member for each batch, which is on the disk before its documents are deleted; the first member is empty, so no archive
is an empty file. A killed process leaves an incomplete last member, of which no document was deleted; of that of a copy
that was cut short, all may be gone. Nothing tells the two apart: readers that allow it read its whole lines, and the
writer moves it to a file beside the archive.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, BinaryIO, Literal

from es_simhash.arguments import FilePath
from es_simhash.errors import InvalidInputError
from es_simhash.removal.files import LONGEST_LINE, bad_line, refuse_pipe
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
            **({"created": json.dumps(archived.created)} if archived.created else {}),
            **({"together": json.dumps(archived.together)} if archived.together else {}),
            **({"view": json.dumps(archived.view)} if archived.view else {}),
            **({} if approved is None else {"approved": json.dumps({"by": approved[0], "reason": approved[1]})}),
            **({"again": "true"} if archived.again else {}),
        }
    )


@dataclass(frozen=True, slots=True)
class Note:
    """
    What became of documents of earlier lines, where that is not the usual: most were deleted.
    *state*: ``"kept"``: they were there after this archive's run had done with them, or came back, so who finds them
    missing later did not delete them. ``"archived"``: they are about to be deleted now, as an earlier line has them.
    """

    state: Literal["kept", "archived"]
    keys: tuple[Key, ...]
    plan: str
    at: str

    def __str__(self) -> str:
        keys = [key._asdict() for key in self.keys]
        return json.dumps({"state": self.state, "keys": keys, "plan": self.plan, "at": self.at})


def parse_archive_line(line: str) -> Archived | Note:
    """Return what :func:`to_archive_line`, or a note, wrote as *line*; raise ValueError if it is no such line."""
    plain, source = _split(line)
    if not source and (state := plain.get("state")) in ("kept", "archived"):
        keys = tuple(map(_parse_key, take(plain, "keys", list)))
        return Note(state, keys, take(plain, "plan", str), take(plain, "at", str))
    if not source.startswith("{"):
        raise ValueError("'_source' is missing or no object")
    key = _parse_key(take(plain, "canonical", dict))
    routing = take(plain, "_routing", str, type(None))
    plan, at = take(plain, "plan", str), take(plain, "at", str)
    together, view = (tuple(map(str, take(plain, name, list, type(None)) or ())) for name in ("together", "view"))
    approved = take(plain, "approved", dict, type(None))
    who = approved and (take(approved, "by", str), take(approved, "reason", str))
    where = take(plain, "_index", str), take(plain, "_id", str), routing
    created = take(plain, "created", str, type(None)) or ""
    return Archived(*where, source, key, plan, at, together, view, who, plain.get("again") is True, created)


def _parse_key(plain: Any) -> Key:
    if not isinstance(plain, dict):
        raise ValueError("a key is no object")  # noqa: TRY004 -- the text is wrong, not its type
    return Key(take(plain, "index", str), take(plain, "id", str), take(plain, "routing", str, type(None)))


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
    begun: set[Key] = set()
    for line in ArchiveReader(Path(path), allow_cut=allow_cut).read():
        if line.key in again and line.key not in begun:
            begun.add(line.key)
            earlier[line.key] -= line.again  # of a part that was cut off, the earlier line is in another file
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
        """Yield the documents, also those of the whole lines of a last member that is not whole."""
        return (each for each in self.read_all() if isinstance(each, Archived))

    def read_all(self) -> Iterator[Archived | Note]:
        """Yield the documents, and the notes between them."""
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

    def _line(self, line: bytes, number: int) -> Archived | Note:
        try:
            found = parse_archive_line(line.decode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError) as error:
            raise bad_line(self._path, number, f"is not a line of an archive ({error})", ADVICE) from error
        self.plans.add(found.plan)
        self.again.update([found.key] if isinstance(found, Archived) and found.again else [])
        return found

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
