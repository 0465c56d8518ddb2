"""
Where an ingest of files has got to, in a file, so that a run that was stopped or killed can be continued.

The file is one JSON object: what the ingest does, into which index (its UUID), which files it reads, up to which line
the server has answered, and the counts so far. It is replaced as a whole, so that it is never half written. Documents
without an id get one from the name of the run, the file and the line: sent again after a kill, they are not doubled. No
document is read here.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from es_simhash.cli.index_identity import IndexIdentity
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.removal.files import write_whole

FORMAT = "es-simhash-ingest"
VERSION = 1
_BLOCK = 64 * 1024
# The checkpoint is written at least after so many answers.
CHECKPOINT_LINES = 500


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """
    What tells a file from another one, or from a changed one.

    Attributes:
        name:
            Its path, as it was given.
        size:
            Its size in bytes.
        digest:
            SHA-256 of its first and last 64 KiB.
    """

    name: str
    size: int
    digest: str

    @classmethod
    def read(cls, name: str) -> FileIdentity:
        """Return the identity of the file *name* now."""
        with Path(name).open("rb") as file:
            digest = hashlib.sha256(file.read(_BLOCK))
            size = file.seek(0, os.SEEK_END)
            file.seek(max(_BLOCK, size - _BLOCK))
            digest.update(file.read())
        return cls(name, size, digest.hexdigest())


@dataclass(frozen=True, slots=True)
class Position:
    """
    How far an ingest has got.

    Attributes:
        file:
            Place of the file among those given, from 0.
        line:
            Number of the last line that was dealt with, from 1; 0 for none.
        lines:
            Number of lines dealt with, of all files together.
        counts:
            How many documents had which outcome.
        report_bytes:
            Size of the report file then.
        is_finished:
            Whether nothing is left to do.
    """

    file: int = 0
    line: int = 0
    lines: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    report_bytes: int = 0
    is_finished: bool = False


class IngestCheckpoint:
    """
    The checkpoint of one ingest.

    Args:
        path:
            The file. If it exists, the ingest continues where it says.
        purpose:
            The options that decide what is written; a checkpoint with others is refused.
        files:
            The files that are read, in order.

    Attributes:
        position:
            How far the ingest has got.
        is_new:
            Whether there was no file.

    Raises:
        InvalidInputError: If the file is no such checkpoint, or belongs to another ingest, or a file has changed.
    """

    def __init__(self, path: str, purpose: Mapping[str, Any], files: Sequence[str]) -> None:
        self._path = Path(path)
        self._purpose = dict(purpose)
        self._files = [FileIdentity.read(name) for name in files]
        self.is_new = not self._path.exists()
        self._index_uuid: str | None = None
        if self.is_new:
            self._run, self.position = secrets.token_hex(8), Position()
            self.save(self.position)
        else:
            self._run, self.position, self._index_uuid = self._read()

    def check_index(self, now: IndexIdentity | None) -> None:
        """
        Check that the index is the one that the ingest was begun with, as far as both are known.

        Raises:
            InvalidInputError: If another index has its name now, or none.
        """
        if now is None or self._index_uuid is None or self._index_uuid in now.behind:
            return
        name = shorten(self._purpose.get("index"))
        what = "has been replaced by another index" if now.behind else "has been deleted"
        raise InvalidInputError(
            f"index {name} {what} since checkpoint {self._path} was begun: ingest the files whole with another "
            "--checkpoint"
        )

    def record_index(self, now: IndexIdentity | None) -> None:
        """Record the index that is written to; one that is recorded already stays."""
        if now is not None and self._index_uuid is None and now.written is not None:
            self._index_uuid = now.written
            self.save(self.position)

    def id_for(self, file: int, line: int) -> str:
        """Return the id of the document at *line* of the file at place *file*; the same in each run."""
        return f"{self._run}-{file}-{line}"

    def made(self, id: str) -> bool:
        """Return whether *id* is one that :meth:`id_for` returns, which no other document has."""
        return id.startswith(f"{self._run}-")

    def save(self, position: Position) -> None:
        """Put *position* into the file, and return when it is on the disk."""
        self.position = position
        content = {
            "format": FORMAT,
            "version": VERSION,
            "run": self._run,
            "purpose": self._purpose,
            "index_uuid": self._index_uuid,
            "files": [asdict(each) for each in self._files],
            "position": asdict(position) | {"counts": dict(position.counts)},
        }
        write_whole(self._path, [json.dumps(content, indent=1), "\n"])

    def _read(self) -> tuple[str, Position, str | None]:
        try:
            held = json.loads(self._path.read_bytes())
            if held["format"] != FORMAT:
                raise ValueError(held["format"])
            version = held["version"]
            found = (
                str(held["run"]),
                dict(held["purpose"]),
                [FileIdentity(**each) for each in held["files"]],
                _position(held["position"]),
                _uuid(held.get("index_uuid")),
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InvalidInputError(
                f"{self._path} is no checkpoint of an ingest: name another file, or a new one"
            ) from error
        if version != VERSION:
            raise InvalidInputError(
                f"checkpoint {self._path} has version {shorten(version)}, and this program reads {VERSION}: continue "
                "with the program that began"
            )
        run, purpose, files, position, index_uuid = found
        self._check(purpose, files)
        return run, position, index_uuid

    def _check(self, purpose: Mapping[str, Any], files: Sequence[FileIdentity]) -> None:
        for name in sorted(self._purpose.keys() | purpose.keys()):
            if purpose.get(name) != self._purpose.get(name):
                raise InvalidInputError(
                    f"checkpoint {self._path} was begun with {name} {shorten(purpose.get(name))}, not "
                    f"{shorten(self._purpose.get(name))}: give the same options, or another --checkpoint"
                )
        named, given = [each.name for each in files], [each.name for each in self._files]
        if named != given:
            raise InvalidInputError(
                f"checkpoint {self._path} is for the files {shorten(named)}, not {shorten(given)}: give the same "
                "files, or another --checkpoint"
            )
        for before, now in zip(files, self._files, strict=True):
            if before != now:
                raise InvalidInputError(
                    f"{now.name} has changed since checkpoint {self._path} was begun ({before.size:,} bytes then, "
                    f"{now.size:,} now): ingest it whole with another --checkpoint"
                )


def _uuid(held: Any) -> str | None:
    if held is not None and not isinstance(held, str):
        raise ValueError(held)
    return held


def _position(held: Mapping[str, Any]) -> Position:
    if held.keys() != asdict(Position()).keys() or not isinstance(held["counts"], dict):
        raise ValueError(held)
    position = replace(Position(**held), counts=dict(held["counts"]))
    numbers = [position.file, position.line, position.lines, position.report_bytes, *position.counts.values()]
    if any(isinstance(each, bool) or not isinstance(each, int) or each < 0 for each in numbers):
        raise ValueError(held)
    return position
