"""
The file of a removal, an sqlite3 database: the plan, what people decided, what was archived, and what was done when.

    removal    one row: *header* (``PlanHeader`` as JSON) and *sha256*, of the header and of each line in their order,
               each with a line feed after it
    lines      a duplicate and the document that stays for it, as JSON; the least similar first
    decisions  the files of decisions, as they were taken in
    texts      ``_source`` of archived documents, as the server sent it, many together, compressed by zlib
    archived   a document that was archived to be deleted: its key, and where its text is
    events     what was done with a line, and when (milliseconds since 1970); the last one counts

A change is whole or absent, and no kill takes it back: rollback journal, ``synchronous=FULL``, no WAL, because a
database with a WAL is not whole without its second file. A file from others is data (``sqlite_file``). Memory: 8 bytes
for each line, and a batch.
"""

# ruff: noqa: S608 -- no value of a caller becomes a part of a statement
from __future__ import annotations

import hashlib
import json
import sqlite3
import warnings
import zlib
from array import array
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

from es_simhash.arguments import FilePath
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.removal.decisions import Decisions, approvals, parse_decisions
from es_simhash.removal.guard_rails import Excess, Guards, OneStays
from es_simhash.removal.losses import RISKY_FIRST, Loss
from es_simhash.removal.plan_options import PlanHeader
from es_simhash.removal.records import Archived, Event, EventKind, PlannedRemoval, in_parts, to_json
from es_simhash.removal.sqlite_file import (
    APPLICATION,
    LONGEST,
    UNREADABLE,
    WRITTEN,
    DamagedError,
    check_head,
    connect,
    create,
    damaged,
    disk_failure,
    failure,
    identity,
    sync_folder,
)
from es_simhash.transport.protocol import Key
from es_simhash.transport.raw_json import why_unreadable

VERSION = 1
BATCH = 500
TOGETHER = 8 << 20
"""Characters of texts that are compressed together, so that one of them is read without very much else."""
ROW_BYTES = 32
"""No row of what was archived is as short."""

_SCHEMA = [
    f"CREATE {definition}"
    for definition in (
        "TABLE removal (header TEXT NOT NULL, sha256 TEXT NOT NULL) STRICT",
        """TABLE lines (number INTEGER PRIMARY KEY, similarity REAL NOT NULL, distance INTEGER NOT NULL,
        loss TEXT NOT NULL, line TEXT NOT NULL) STRICT""",
        "INDEX in_order ON lines (similarity, distance DESC, number)",
        """TABLE decisions (number INTEGER PRIMARY KEY, at TEXT NOT NULL, file BLOB NOT NULL, sha256 TEXT NOT NULL)
        STRICT""",
        "TABLE texts (number INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT",
        """TABLE archived (number INTEGER PRIMARY KEY, line INTEGER NOT NULL, name TEXT NOT NULL, id TEXT NOT NULL,
        routing TEXT, canonical_name TEXT NOT NULL, canonical_id TEXT NOT NULL, distance INTEGER NOT NULL,
        created TEXT NOT NULL, text INTEGER NOT NULL, begin INTEGER NOT NULL, length INTEGER NOT NULL,
        digest BLOB NOT NULL) STRICT""",
        "INDEX of_line ON archived (line)",
        """TABLE events (line INTEGER NOT NULL, number INTEGER NOT NULL, kind TEXT NOT NULL, at INTEGER NOT NULL,
        decisions INTEGER NOT NULL, PRIMARY KEY (line, number)) STRICT, WITHOUT ROWID""",
    )
]
_ORDER = "ORDER BY similarity, distance DESC, number"
_ARCHIVED = "line, name, id, routing, canonical_name, canonical_id, distance, created, text, begin, length, digest"
PLAN_AGAIN = "make the plan again"
_NO_LINE = (KeyError, TypeError, ValueError, RecursionError, DamagedError)

Which: TypeAlias = Literal["all", "going", "leaving"] | Loss
"""Lines of a plan: all, those that go, those of them that nobody keeps, or those of a class."""
_GOING = "loss IN (SELECT value FROM json_each(?2)) OR number IN (SELECT value FROM json_each(?3))"
_LEAVING = f"({_GOING}) AND number NOT IN (SELECT value FROM json_each(?4))"
_WHICH = f"(?1 = 'all' OR loss = ?1 OR (?1 = 'going' AND ({_GOING})) OR (?1 = 'leaving' AND {_LEAVING}))"


class Lines:
    """
    The lines of a plan, by number, least similar first; those of one similarity by distance, the largest first.
    *allowed*: the classes that go. *decided*: the numbers of other lines that people remove, *staying*: of those that
    they keep.
    """

    allowed: Collection[Loss] = ()
    decided: Collection[int] = ()
    staying: Collection[int] = ()

    def __init__(self, path: Path, database: sqlite3.Connection, *, writes: bool = False) -> None:
        self.path, self._db, self.writes = path, database, writes
        self._identity = identity(path) if writes else None
        if self._identity:
            WRITTEN[self._identity] = self

    def batches(self, size: int, which: Which = "all") -> Iterator[dict[int, PlannedRemoval]]:
        """Yield the lines, or some of them, *size* at a time."""
        for rows in self._rows(size, which):
            yield {number: self._parse(line, number) for number, *_, line in rows}

    def _rows(self, size: int, which: Which = "all") -> Iterator[list[Any]]:
        """Yield rows of the table, in order. No cursor stays open: one would keep the file open when it is closed."""
        query = f"SELECT number FROM lines WHERE {_WHICH} {_ORDER}"
        with self._reading(), closing(self._db.execute(query, self._asked(which))) as found:
            numbers = array("q", (number for (number,) in found))
        for begin in range(0, len(numbers), size):
            part = json.dumps(list(numbers[begin : begin + size]))
            named = "number IN (SELECT value FROM json_each(?))"
            yield self._all(
                f"SELECT number, similarity, distance, loss, line FROM lines WHERE {named} {_ORDER}", [part]
            )

    def _asked(self, which: Which) -> tuple[str, ...]:
        return which, *(json.dumps(list(named)) for named in (self.allowed, self.decided, self.staying))

    def removals(self, which: Which = "all") -> Iterator[PlannedRemoval]:
        """Yield the lines, or some of them."""
        for batch in self.batches(BATCH, which):
            yield from batch.values()

    def count_losses(self) -> dict[Loss, int]:
        """Return how many lines have each class, what loses most first."""
        counts = dict(self._all("SELECT loss, count(*) FROM lines GROUP BY loss"))
        return {loss: counts[loss] for loss in RISKY_FIRST if loss in counts}

    def count_lines(self, which: Which = "all") -> int:
        return int(self._one(f"SELECT count(*) FROM lines WHERE {_WHICH}", *self._asked(which))[0])

    def count_kept_shorter(self) -> int:
        """Return in how many of the lines that are held back the longer document would go."""
        query = f"SELECT count(*) FROM lines WHERE json_extract(line, '$.is_kept_shorter') AND NOT {_WHICH}"
        return int(self._one(query, *self._asked("going"))[0])

    def find_large_group(self, documents: int) -> OneStays | None:
        """Return the document for which very many of *documents* go, if there is one."""
        key = ", ".join(f"json_extract(line, '$.canonical.{name}')" for name in ("id", "index", "routing"))
        query = f"SELECT number, line, count(*) AS c FROM lines WHERE {_WHICH} GROUP BY {key} ORDER BY c DESC LIMIT 1"
        for number, line, count in self._all(query, self._asked("leaving")):
            found = OneStays(self._parse(line, number).canonical.id, count, documents)
            return found if found.is_suspicious else None
        return None

    def find_refusals(self, guards: Guards) -> tuple[Excess | None, OneStays | None]:
        """Return what ``apply`` refuses of what is not kept, by the numbers of the plan."""
        return guards.find_excess(self.count_lines("leaving")), self.find_large_group(guards.documents)

    def close(self) -> None:
        self._db.close()
        if self._identity:
            WRITTEN.pop(self._identity, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _parse(self, line: str, number: int) -> PlannedRemoval:
        try:
            return PlannedRemoval.read(json.loads(line))
        except (TypeError, ValueError, RecursionError) as error:
            raise DamagedError(
                f"{self.path}: line {number} is not a line of a plan ({why_unreadable(error)}): {PLAN_AGAIN}"
            ) from error

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.ProgrammingError:
            raise
        except UNREADABLE as error:
            raise failure(self.path, error) from error

    def _all(self, query: str, values: Sequence[object] = ()) -> list[Any]:
        with self._reading():
            return self._db.execute(query, values).fetchall()

    def _one(self, query: str, *values: object) -> Any:
        """Return the first row; ``None`` if there is none."""
        return next(iter(self._all(query, values)), None)


class PlanWriter(Lines):
    """
    Makes the file of a removal; ``None`` keeps the plan aside, in no file that has a name. A context manager.
    The file appears at once, and only its owner may read it. If the plan is not finished, it is deleted again. A file,
    or a link, of that name is refused.
    """

    def __init__(self, path: FilePath | None) -> None:
        self._made = path is not None
        self._count = 0
        name = self.path = Path(path or "")
        if self._made:
            create(name)
        try:
            # A database without a name is gone when it is closed.
            aside = None if self._made else sqlite3.connect("", isolation_level=None, check_same_thread=False)
            super().__init__(name, aside or connect(name, "rw"), writes=self._made)
            with self._reading():
                for statement in (f"PRAGMA application_id({APPLICATION})", f"PRAGMA user_version({VERSION})"):
                    self._db.execute(statement)
                for command in ("BEGIN IMMEDIATE", *_SCHEMA):
                    self._db.execute(command)
        except BaseException:
            if hasattr(self, "_db"):
                self._db.close()  # Windows deletes no file that is open
            self._discard()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()
        self._discard()

    def _discard(self) -> None:
        for suffix in ("", "-journal") if self._made else ():
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)

    def add(self, removal: PlannedRemoval) -> None:
        with self._reading():
            self._db.execute(
                "INSERT INTO lines VALUES (?, ?, ?, ?, ?)",
                (self._count, removal.similarity, removal.distance, removal.loss, to_json(removal.to_dict())),
            )
        self._count += 1

    def finish(self, header: PlanHeader) -> str:
        """Write the header, make the plan last, and return its SHA-256."""
        with self._reading():
            text = to_json(header.to_dict())
            sha256 = digest_lines(text, (line for rows in self._rows(BATCH) for *_, line in rows))
            self._db.execute("INSERT INTO removal VALUES (?, ?)", (text, sha256))
            self._db.execute("COMMIT")
        if self._made:
            sync_folder(self.path)
        self._made = False
        return sha256


class RemovalFile(Lines):
    """
    The file of a removal, open. *writes*: for this process alone, until it is closed.
    *header*, *sha256*: of the plan. *kept*, *decided*, *approved*: what people decided so far. With *is_checked* all
    lines are read once, and must be those that were planned. *is_damaged*: see :func:`open_archived`.
    """

    is_damaged = False

    def __init__(self, path: FilePath, *, writes: bool = False, is_checked: bool = True) -> None:
        name = Path(path)
        beside = check_head(name)
        # Who reads it undoes an unfinished change, too: without that it is not whole.
        super().__init__(name, connect(name, "rw" if writes or beside else "ro"), writes=writes)
        if beside is not None:
            warnings.warn(
                f"{beside} belongs to {name}: a run stopped while it wrote; its unfinished change is undone",
                stacklevel=2,
            )
        self._deleted: list[tuple[int, str]] = []
        self._text: tuple[int, bytes] = (0, b"")
        self.kept: frozenset[Key] = frozenset()
        self.decision_files: list[bytes] = []
        self.log: list[Decisions] = []
        self.approved: tuple[tuple[str, str], ...] = ()
        try:
            self._check_schema()
            self.header, self.sha256 = self._read_header()
            self.allowed = self.header.allowed
            if is_checked:
                self._check_lines()
            self._read_decisions()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        try:
            if self._deleted:
                with suppress(InvalidInputError), self._changing():
                    pass
        finally:
            super().close()

    # What is decided

    def _read_decisions(self) -> None:
        rows = self._all("SELECT at, file, sha256 FROM decisions ORDER BY number")
        if any(not isinstance(data, bytes) or hashlib.sha256(data).hexdigest() != sha256 for _, data, sha256 in rows):
            raise damaged(self.path, "a file of decisions is not as it was")
        self._count([(data, at) for at, data, _ in rows])

    def _count(self, files: Sequence[tuple[bytes, str]]) -> None:
        for data, at in files:
            self.decision_files.append(data)
            self.log.append(replace(parse_decisions(data, f"a file of decisions in {self.path}"), taken_in=at))
        self.kept = frozenset[Key]().union(*(decisions.keep for decisions in self.log))
        removed = frozenset[Key]().union(*(decisions.remove for decisions in self.log))
        numbers = self.find_numbers(self.kept | removed)
        self.staying = frozenset(numbers[key] for key in self.kept if key in numbers)
        self.decided = frozenset(numbers.values()) - self.staying
        self.approved = approvals(self.log)

    def find_numbers(self, keys: Collection[Key]) -> dict[Key, int]:
        """Return the lines of the documents *keys*, as far as the plan has them."""
        return {
            line.document.key: number
            for batch in (self.batches(BATCH) if keys else ())
            for number, line in batch.items()
            if line.document.key in keys
        }

    def add_decisions(self, data: bytes, at: str) -> None:
        """Let a file of decisions count, from now on; in a file that is only read, until it is closed."""
        if self.writes:
            with self._changing():
                row = at, data, hashlib.sha256(data).hexdigest()
                self._db.execute("INSERT INTO decisions (at, file, sha256) VALUES (?, ?, ?)", row)
        self._count([(data, at)])

    # What was archived

    def may_have_deleted(self, number: int) -> bool:
        """Return whether a run deleted the document, or was ended before it noted that it did not."""
        # A copy elsewhere brings nothing back to where it was deleted.
        query = "SELECT kind FROM events WHERE line = ? AND kind != 'copied' ORDER BY number DESC LIMIT 1"
        event = self._one(query, number)
        return event is not None and event[0] in ("archived", "deleted")

    def archive(self, batch: Sequence[Archived], at: str) -> set[int]:
        """
        Note that *batch* is about to be deleted; return the lines whose documents the file gives back exactly so.
        What it does not give back, or has in another state, is added first. Errors are those of :meth:`append`.
        """
        whole = self._given_back(batch)
        fresh = [archived for archived in batch if archived.line not in whole]
        self.append(fresh, [archived.line for archived in batch], at)
        return whole | self._given_back(fresh)

    def _given_back(self, batch: Sequence[Archived]) -> set[int]:
        if not self.path.exists() or identity(self.path) != self._identity:
            raise InvalidInputError(
                f"{self.path} was moved, deleted or replaced while this run writes to it, so nothing more was deleted: "
                "put it back, and run the same command again"
            )
        self._text = (0, b"")
        self._one("PRAGMA shrink_memory")  # what sqlite3 remembers of the file is not what lies there
        found = self.find([archived.line for archived in batch])
        return {held.line for held in batch if held.line in found and found[held.line].source == held.source}

    def append(self, batch: Sequence[Archived], numbers: Collection[int], at: str) -> None:
        """
        Add *batch*, and note that the lines *numbers* are about to be deleted; both are on the disk on return.
        On an error, which is an InvalidInputError, the file is as it was.
        """
        with self._changing():
            for part in in_parts(batch, lambda archived: len(archived.source), len(batch), TOGETHER):
                sources = [archived.source.encode("utf-8", "surrogatepass") for archived in part]
                data = zlib.compress(b"".join(sources))
                text = self._db.execute("INSERT INTO texts (data) VALUES (?)", (data,)).lastrowid
                begin = 0
                for archived, source in zip(part, sources, strict=True):
                    canonical = archived.canonical
                    names = (*archived.key, canonical.index, canonical.id, archived.distance, archived.created)
                    self._db.execute(
                        f"INSERT INTO archived ({_ARCHIVED}) VALUES ({', '.join('?' * 12)})",
                        (archived.line, *names, text, begin, len(source), archived.digest),
                    )
                    begin += len(source)
            self._note("archived", numbers, at)

    def note(self, kind: EventKind, numbers: Sequence[int], at: str) -> None:
        """Note what was done with lines. That documents are deleted may be lost by a kill: they were archived."""
        if kind == "deleted":
            self._deleted += [(number, at) for number in numbers]
        elif numbers:
            with self._changing():
                self._note(kind, numbers, at)

    def find(self, numbers: Sequence[int]) -> dict[int, Archived]:
        """Return the documents of the lines *numbers*, as they were archived last, where these texts are whole."""
        query = f"SELECT {_ARCHIVED} FROM archived WHERE line = ? ORDER BY number DESC LIMIT 1"
        found = (self._archived(self._one(query, number)) for number in numbers)
        return {archived.line: archived for archived in found if archived is not None}

    def archived(self) -> Iterator[Archived | None]:
        """Yield each document as it was archived last, in the order of archiving; ``None``: some are not whole."""
        try:
            query = "SELECT max(number) FROM archived NOT INDEXED GROUP BY line ORDER BY 1"
            with closing(self._db.execute(query)) as found:
                numbers = array("q", (number for (number,) in found))
        except (*UNREADABLE, TypeError, OverflowError):
            yield None
            numbers = self._salvage()
        for number in numbers:
            try:
                row = self._db.execute(f"SELECT {_ARCHIVED} FROM archived WHERE number = ?", (number,)).fetchone()
            except UNREADABLE:
                row = None
            yield self._archived(row)

    def _salvage(self) -> array[int]:
        """Return the last number of each line that can be read without an index, though pages are damaged."""
        lines: dict[int, int] = {}
        for number in range(1, self.path.stat().st_size // ROW_BYTES):  # they are given in turn
            with suppress(*UNREADABLE):
                row = self._db.execute("SELECT line FROM archived WHERE number = ?", (number,)).fetchone()
                lines |= {} if row is None else {row[0]: number}
        return array("q", sorted(lines.values()))

    def removed(self, where: str, *values: object) -> Iterator[tuple[int, Key, Key, int]]:
        """Yield line, key, canonical and distance of archived documents; *where* is a condition of SQL."""
        columns = "line, name, id, routing, canonical_name, canonical_id, distance"
        rows = self._all(f"SELECT DISTINCT {columns} FROM archived WHERE {where}", values)
        for line, name, id_, routing, *canonical, distance in rows:
            yield line, Key(name, id_, routing), Key(*canonical), distance

    def events(self, line: int) -> list[Event]:
        """Return what was done with *line*, in order."""
        at = "strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000.0, 'unixepoch')"
        rows = self._all(f"SELECT line, kind, {at}, decisions FROM events WHERE line = ? ORDER BY number", (line,))
        return [Event(*row) for row in rows]

    # Inside

    def _archived(self, row: Sequence[Any] | None) -> Archived | None:
        """Return the document of a row; ``None`` if its text is not whole, or it is not the document of its line."""
        try:
            line, name, id_, routing, *canonical, distance, created, text, begin, length, digest = row or ()
            if self._text[0] != text:
                (data,) = self._one("SELECT data FROM texts WHERE number = ?", text) or (b"",)
                self._text = text, zlib.decompressobj().decompress(data, LONGEST + TOGETHER)
            source = self._text[1][begin : begin + length].decode("utf-8", "surrogatepass")
            archived = Archived(name, id_, routing, source, Key(*canonical), line, distance, created)
            return archived if archived.digest == digest and self._is_of_its_line(archived) else None
        except (zlib.error, *_NO_LINE):
            return None

    def _is_of_its_line(self, archived: Archived) -> bool:
        row = self._one("SELECT line FROM lines WHERE number = ?", archived.line)
        if row is None:
            return False
        plain = json.loads(row[0])
        stays = plain["canonical"]
        is_same = Key(plain["index"], plain["id"], plain["routing"]) == archived.key
        return is_same and (stays["index"], stays["id"]) == archived.canonical[:2]

    def _check_schema(self) -> None:
        (version,) = self._one("PRAGMA user_version")
        if version != VERSION:
            raise InvalidInputError(
                f"{self.path} is a removal of version {version}, and this program reads {VERSION}: use the program "
                "that made it"
            )
        found = self._all("SELECT sql FROM sqlite_master")
        if not found:
            raise InvalidInputError(
                f"{self.path} holds no plan, because the run stopped before the plan was complete: delete the file, "
                "and plan again"
            )
        if found != [(definition,) for definition in _SCHEMA]:
            raise InvalidInputError(f"{self.path} has other tables than a removal has: give one that es-simhash made")

    def _read_header(self) -> tuple[PlanHeader, str]:
        rows = self._all("SELECT header, sha256 FROM removal")
        try:
            if len(rows) != 1:
                raise ValueError(f"{len(rows)} rows, where one must be")
            [(text, sha256)] = rows
            self._header_text = text
            return PlanHeader.read(json.loads(text)), sha256
        except (TypeError, ValueError, RecursionError) as error:
            raise DamagedError(
                f"{self.path} has no header of a plan ({why_unreadable(error)}): {PLAN_AGAIN}"
            ) from error

    def _check_lines(self) -> None:
        """Read each line, and refuse a plan that is not as it was made, or that no grouping makes."""
        going, staying = array("q"), array("q")  # hashes of keys

        def lines() -> Iterator[str]:
            for number, *columns, line in chain.from_iterable(self._rows(BATCH)):
                removal = self._parse(line, number)
                if [removal.similarity, removal.distance, removal.loss] != columns:
                    raise self._changed()
                going.append(hash(removal.document.key))
                staying.append(hash(removal.canonical.key))
                yield line

        sha256 = digest_lines(self._header_text, lines())
        if (sha256, len(going)) != (self.sha256, self.header.count):
            raise self._changed()
        goes = set(going)
        if len(goes) < len(going) or not goes.isdisjoint(staying):
            raise DamagedError(f"{self.path}: a document goes twice, or for one that goes itself: {PLAN_AGAIN}")

    def _parse(self, line: str, number: int) -> PlannedRemoval:
        removal = super()._parse(line, number)
        for document in (removal.document, removal.canonical):
            if document.index not in self.header.index_uuids:
                raise DamagedError(
                    f"{self.path}: line {number} names the index {shorten(document.index)}, which is none of the plan: "
                    f"{PLAN_AGAIN}"
                )
        return removal

    def _changed(self) -> DamagedError:
        return DamagedError(f"{self.path}: its plan was changed after it was made: {PLAN_AGAIN}")

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """A change that is on the disk at the end, or is not made at all; what waits goes with it."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            for line, at in self._deleted:
                self._note("deleted", [line], at)
            yield
            self._db.execute("COMMIT")
            self._deleted.clear()
        except BaseException as error:
            if self._db.in_transaction:
                with suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
            if not isinstance(error, sqlite3.Error):
                raise
            of_disk = disk_failure(self.path, error)
            why = of_disk.strerror if of_disk else error
            raise InvalidInputError(
                f"{self.path} cannot be written ({why}), so nothing more was deleted: check the disk, and "
                "run the same command again"
            ) from error

    def _note(self, kind: EventKind, numbers: Collection[int], at: str) -> None:
        number = "(SELECT coalesce(max(number), 0) + 1 FROM events WHERE line = ?1)"
        statement = f"INSERT INTO events VALUES (?1, {number}, ?2, ?3, (SELECT count(*) FROM decisions))"
        moment = round(datetime.fromisoformat(at).timestamp() * 1_000)
        self._db.executemany(statement, [(line, kind, moment) for line in numbers])


def open_archived(path: FilePath, *, writes: bool, is_checked: bool = True) -> RemovalFile:
    """
    Open what was archived, to restore it. *writes*: to note what is restored, if the file can be written.
    Of a file that was cut or damaged, what is whole can be read; its *is_damaged* says so.
    """
    try:
        return RemovalFile(path, writes=writes, is_checked=is_checked)
    except OSError as error:
        if not writes or isinstance(error, FileNotFoundError):
            raise
        return open_archived(path, writes=False, is_checked=is_checked)
    except DamagedError:
        return _Damaged(path)


class _Damaged(RemovalFile):
    """A file of which a part cannot be read; only what was archived is asked of it."""

    is_damaged = True

    def __init__(self, path: FilePath) -> None:
        # sqlite3 would refuse a file that is shorter than it says.
        Lines.__init__(self, Path(path), connect(Path(path), "ro", "writable_schema(ON)"))
        self._deleted, self._text = [], (0, b"")
        self.header, self.sha256 = PlanHeader({}, "", {}), ""
        with suppress(InvalidInputError):
            self.header, self.sha256 = self._read_header()

    def _is_of_its_line(self, archived: Archived) -> bool:
        try:
            return super()._is_of_its_line(archived)
        except _NO_LINE:
            return True  # the line is lost, and the text is whole


def digest_lines(header: str, lines: Iterator[str]) -> str:
    digest = hashlib.sha256(f"{header}\n".encode())
    for line in lines:
        digest.update(f"{line}\n".encode())
    return digest.hexdigest()
