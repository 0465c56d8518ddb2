"""
Where an ingest of files has got to, in a file and in the index that it names, so that a killed run can be resumed.

The file is one JSON object, replaced as a whole, so that it is never half written. Its position is the last line
that the server has answered. Documents without an id get one from the name of the run, the file and the line: sent
again after a kill, they are not doubled. Behind an alias or a data stream an id is unique only within one index,
so lines that an index before a rollover has are looked up.
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

from es_simhash.cli.connect import Connection
from es_simhash.client.dialects import find_dialect
from es_simhash.client.drivers import run
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.ingest.source_flow import LARGEST_BATCH
from es_simhash.ingest.written import Written
from es_simhash.mapping.context import Context
from es_simhash.mapping.limits_flow import ServerLimits, within_limits
from es_simhash.removal.files import write_whole
from es_simhash.transport.protocol import status_of
from es_simhash.writes.targets_flow import find_copies, last_generation, write_index


@dataclass(frozen=True, slots=True)
class IndexIdentity:
    """The UUIDs of the indices *behind* a name; *written*, *index*: UUID and name of the one that writes go to."""

    written: str | None
    behind: frozenset[str]
    index: str | None = None

    @classmethod
    def read(cls, client: Any, index: str) -> IndexIdentity | None:
        """Return the identity of *index* now, without any UUID if it does not exist; ``None`` if it may not be read."""
        try:
            answer = dict(client.indices.get_settings(index=index, name="index.uuid"))
            uuids = {name: str(each["settings"]["index"]["uuid"]) for name, each in answer.items()}
            written = next(iter(uuids)) if len(uuids) == 1 else _find_written(client, index, uuids)
        except Exception as error:
            if status_of(error) == 404:
                return cls(None, frozenset())
            if status_of(error) in (401, 403):
                return None
            raise
        return cls(uuids.get(written), frozenset(uuids.values()), written or None)


def _find_written(client: Any, index: str, uuids: dict[str, str]) -> str:
    if all(name.startswith(".ds-") for name in uuids):
        return last_generation(uuids)
    return write_index(dict(client.indices.get_alias(name=index)), index) or ""


FORMAT = "es-simhash-ingest"
VERSION = 1
CHECKPOINT_LINES = 500  # the file is written at least after so many answers
_BLOCK = 64 * 1024


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """What tells a file from another or a changed one; *digest* is the SHA-256 of its first and last 64 KiB."""

    name: str
    size: int
    digest: str

    @classmethod
    def read(cls, name: str) -> FileIdentity:
        with Path(name).open("rb") as file:
            digest = hashlib.sha256(file.read(_BLOCK))
            size = file.seek(0, os.SEEK_END)
            file.seek(max(_BLOCK, size - _BLOCK))
            digest.update(file.read())
        return cls(name, size, digest.hexdigest())


@dataclass(frozen=True, slots=True)
class Position:
    """
    How far an ingest has got: *line*, from 1, of the *file* at that place, from 0, is the last one dealt with.

    *lines*: number of lines dealt with, of all files together. *counts*: documents by outcome.
    """

    file: int = 0
    line: int = 0
    lines: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    report_bytes: int = 0
    is_finished: bool = False


class IngestCheckpoint:
    """
    The checkpoint of one ingest; if the file exists, the ingest continues where it says.

    *purpose*: the options that decide what is written. A checkpoint with others, or with other or changed *files*, is
    refused by InvalidInputError.
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
        """Raise InvalidInputError if the index of the ingest was replaced or deleted, as far as both are known."""
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
            run, index_uuid, purpose = str(held["run"]), held.get("index_uuid"), dict(held["purpose"])
            files, position = [FileIdentity(**each) for each in held["files"]], _position(held["position"])
            if not isinstance(index_uuid, str | None):
                raise TypeError(index_uuid)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InvalidInputError(
                f"{self._path} is no checkpoint of an ingest: name another file, or a new one"
            ) from error
        if version != VERSION:
            raise InvalidInputError(
                f"checkpoint {self._path} has version {shorten(version)}, and this program reads {VERSION}: continue "
                "with the program that began"
            )
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


def _position(held: Mapping[str, Any]) -> Position:
    if held.keys() != asdict(Position()).keys() or not isinstance(held["counts"], dict):
        raise ValueError(held)
    position = replace(Position(**held), counts=dict(held["counts"]))
    numbers = [position.file, position.line, position.lines, position.report_bytes, *position.counts.values()]
    if any(isinstance(each, bool) or not isinstance(each, int) or each < 0 for each in numbers):
        raise ValueError(held)
    return position


class WrittenBefore:
    """
    The documents that may have been written after the place that the checkpoint records.

    *left*: how many more of them there may be; 0 if no search is needed, or the indices may not be read.
    """

    def __init__(
        self, connection: Connection, index: str, now: IndexIdentity | None, saved: IngestCheckpoint, *, prefix: str
    ) -> None:
        self._connection = connection
        self._index = index
        self._current = now.index if now is not None else None
        self._saved = saved
        self._prefix = prefix
        has_earlier = now is not None and len(now.behind) > 1 and not saved.is_new
        # Those whose answer came after the last save, and one batch without an answer.
        self.left = CHECKPOINT_LINES + LARGEST_BATCH if has_earlier else 0

    def find(self, actions: Sequence[Mapping[str, Any]]) -> list[Written | None]:
        """Return for each of the next *actions* its report if an earlier index behind the name has it."""
        self.left = max(0, self.left - len(actions))
        if not actions:
            return []
        flow = find_copies(Context(), self._index, [each["_id"] for each in actions])
        client = self._connection.client
        copies: dict[str, list[Mapping[str, Any]]] = {}
        for hit in run(within_limits(flow, ServerLimits()), client, find_dialect(client, self._connection.product)):
            if hit["_index"] != self._current:
                copies.setdefault(hit["_id"], []).append(hit)
        return [self._report(each, copies.get(each["_id"], ())) for each in actions]

    def _report(self, action: Mapping[str, Any], copies: Sequence[Mapping[str, Any]]) -> Written | None:
        for hit in copies:
            source = hit.get("_source") or {}
            # An id from the file may be that of another document.
            if self._saved.made(hit["_id"]) or self._plain(source) == self._plain(action["_source"]):
                return Written(0, hit["_id"], hit["_index"], "unchanged", fingerprinted=self._prefix in source)
        return None

    def _plain(self, source: Mapping[str, Any]) -> str:
        """Return a document without our fields, so that any difference shows."""
        return json.dumps({key: value for key, value in source.items() if key != self._prefix}, sort_keys=True)
