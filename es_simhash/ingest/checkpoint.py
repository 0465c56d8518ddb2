"""
Where an ingest has got to, in a file and in the index that it names, so that a killed run can be resumed.

The position is the last document whose outcome is known. Documents without an id get one from the name of the run and
their place: sent again after a kill, they are not doubled. Behind an alias or a data stream an id is unique only
within one index, so documents that an index before a rollover may have are looked up.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from es_simhash.arguments import FilePath
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.ingest.written import Written
from es_simhash.mapping.port import Port
from es_simhash.transport.protocol import status_of
from es_simhash.writes.targets import find_copies, find_write_index


@dataclass(frozen=True, slots=True)
class IndexIdentity:
    """The UUIDs of the indices *behind* a name; *written*, *index*: UUID and name of the one that writes go to."""

    written: str | None
    behind: frozenset[str]
    index: str | None = None


async def read_identity(server: Port, index: str) -> IndexIdentity | None:
    """Return the identity of *index* now, without any UUID if it does not exist; ``None`` if it may not be read."""
    try:
        answer = await server.get_settings(index=index, name="index.uuid")
        uuids = {name: str(each["settings"]["index"]["uuid"]) for name, each in answer.items()}
        written = next(iter(uuids)) if len(uuids) == 1 else await find_write_index(server, index, uuids)
    except Exception as error:
        if status_of(error) == 404:
            return IndexIdentity(None, frozenset())
        if status_of(error) in (401, 403):
            return None
        raise
    return IndexIdentity(uuids.get(written), frozenset(uuids.values()), written or None)


LARGEST_BATCH = 10_000
CHECKPOINT_LINES = 500  # the position is recorded at least after so many answers
_BLOCK = 64 * 1024


def _identify(name: str) -> dict[str, Any]:
    """Return what tells a file from another or a changed one, with a SHA-256 of its first and last 64 KiB."""
    with Path(name).open("rb") as file:
        digest = hashlib.sha256(file.read(_BLOCK))
        size = file.seek(0, os.SEEK_END)
        file.seek(max(_BLOCK, size - _BLOCK))
        digest.update(file.read())
    return {"name": name, "size": size, "digest": digest.hexdigest()}


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
    refused by InvalidInputError. Without *files* the documents are the caller's, and are taken to be the same.
    """

    def __init__(self, path: FilePath, purpose: Mapping[str, Any], files: Sequence[str] = ()) -> None:
        self._path = Path(path)
        self._purpose = dict(purpose)
        self._files = [_identify(name) for name in files]
        self._what, self._option = ("files", "--checkpoint") if files else ("documents", "checkpoint")
        begun = {
            "run": secrets.token_hex(8),
            "purpose": self._purpose,
            "files": self._files,
            "index_uuid": None,
            "position": asdict(Position()),
        }
        from es_simhash.journal import Journal  # noqa: PLC0415 -- sqlite3

        refusal = f"{self._path} is no checkpoint of an ingest: name another file, or a new one"
        self._journal = Journal(self._path, "ingest", begun, refusal=refusal, is_synced=True)
        self.is_new = self._journal.is_new
        held = self._journal.values
        try:
            self._run, self._index_uuid = str(held["run"]), held["index_uuid"]
            self.position = Position(**held["position"])
            self._check(held["purpose"], held["files"])
        except (ValueError, KeyError, TypeError) as error:
            self.close()
            if isinstance(error, InvalidInputError):
                raise
            raise InvalidInputError(refusal) from error

    def check_index(self, now: IndexIdentity | None) -> None:
        """Raise InvalidInputError if the index of the ingest was replaced or deleted, as far as both are known."""
        if now is None or self._index_uuid is None or self._index_uuid in now.behind:
            return
        name = shorten(self._purpose.get("index"))
        what = "has been replaced by another index" if now.behind else "has been deleted"
        raise InvalidInputError(
            f"index {name} {what} since checkpoint {self._path} was begun: ingest the {self._what} whole with another "
            f"{self._option}"
        )

    def record_index(self, now: IndexIdentity | None) -> None:
        """Record the index that is written to; one that is recorded already stays."""
        if now is not None and self._index_uuid is None and now.written is not None:
            self._index_uuid = now.written
            self._journal.put("index_uuid", now.written)

    def id_for(self, file: int, line: int) -> str:
        """Return the id of the document at *line* of the file at place *file*; the same in each run."""
        return f"{self._run}-{file}-{line}"

    def made(self, id: str) -> bool:
        """Return whether *id* is one that :meth:`id_for` returns, which no other document has."""
        return id.startswith(f"{self._run}-")

    def save(self, position: Position) -> None:
        """Record *position*, and return when it is on the disk."""
        self.position = position
        self._journal.put("position", asdict(position) | {"counts": dict(position.counts)})

    def close(self) -> None:
        """Let another run use the file."""
        self._journal.close()

    def remove(self) -> None:
        """Remove the file, with which nothing was done."""
        self.close()
        self._path.unlink()

    def _check(self, purpose: Mapping[str, Any], files: Sequence[Mapping[str, Any]]) -> None:
        for name in sorted(self._purpose.keys() | purpose.keys()):
            if purpose.get(name) != self._purpose.get(name):
                raise InvalidInputError(
                    f"checkpoint {self._path} was begun with {name} {shorten(purpose.get(name))}, not "
                    f"{shorten(self._purpose.get(name))}: give the same options, or another {self._option}"
                )
        named, given = [each["name"] for each in files], [each["name"] for each in self._files]
        if named != given:
            raise InvalidInputError(
                f"checkpoint {self._path} is for the files {shorten(named)}, not {shorten(given)}: give the same "
                "files, or another --checkpoint"
            )
        for before, now in zip(files, self._files, strict=True):
            if before != now:
                raise InvalidInputError(
                    f"{now['name']} has changed since checkpoint {self._path} was begun ({before['size']:,} bytes "
                    f"then, {now['size']:,} now): ingest it whole with another --checkpoint"
                )


class WrittenBefore:
    """
    The documents that may have been written after the place that the checkpoint records.
    *left*: how many more of them there may be; 0 if no search is needed, or the indices may not be read.
    """

    def __init__(self, index: str, now: IndexIdentity | None, saved: IngestCheckpoint, *, prefix: str) -> None:
        self._index = index
        self._current = now.index if now is not None else None
        self._saved = saved
        self._prefix = prefix
        has_earlier = now is not None and len(now.behind) > 1 and not saved.is_new
        # Those whose answer came after the last save, and one batch without an answer.
        self.left = CHECKPOINT_LINES + LARGEST_BATCH if has_earlier else 0

    async def find(self, server: Port, actions: Sequence[Mapping[str, Any]]) -> list[Written | None]:
        """Return for each of the next *actions* its report if an earlier index behind the name has it."""
        self.left = max(0, self.left - len(actions))
        if not actions:
            return []
        copies: dict[str, list[Mapping[str, Any]]] = {}
        for hit in await find_copies(server, self._index, [each["_id"] for each in actions]):
            if hit["_index"] != self._current:
                copies.setdefault(hit["_id"], []).append(hit)
        return [self._report(each, copies.get(each["_id"], ())) for each in actions]

    def _report(self, action: Mapping[str, Any], copies: Sequence[Mapping[str, Any]]) -> Written | None:
        for hit in copies:
            source = hit.get("_source") or {}
            # An id from the file may be that of another document.
            if self._saved.made(hit["_id"]) or self._plain(source) == self._plain(action.get("_source", {})):
                return Written(0, hit["_id"], hit["_index"], "unchanged", fingerprinted=self._prefix in source)
        return None

    def _plain(self, source: Mapping[str, Any]) -> str:
        """Return a document without our fields, so that any difference shows."""
        return json.dumps({key: value for key, value in source.items() if key != self._prefix}, sort_keys=True)
