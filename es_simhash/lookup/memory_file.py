"""
The file of a table of fingerprints, so that a later run reads only what is new; it is never believed by halves.

Layout: one line of JSON, padded with spaces so that the line is a multiple of 64 bytes; then the fingerprints as
64-bit numbers, little-endian, in order, each once. The JSON says format, version and count, which of the shards'
operations were read (``certain``, by the history of the shard), and a digest of all this and of the fingerprints.
The file is written beside the old one and takes its place at once, so a killed process leaves the old one.
"""

from __future__ import annotations

import json
import logging
import os
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xxhash

from es_simhash.arguments import check_output
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.mapping.shards import Shard

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

logger = logging.getLogger("es_simhash")

FORMAT, VERSION = "es-simhash-fingerprints", 1
ALIGNED = 64
LONGEST_LINE = 1 << 24


class UnusableFileError(Exception):
    """The file cannot be believed; its words say why. Caught here."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What a file holds: the *fingerprints*, in order, and up to which operation each shard was read for them."""

    fingerprints: NDArray[np.uint64]
    certain: Mapping[Shard, int]


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """The file at *path* of the fingerprints in the fields below *prefix*, made by *scheme*."""

    path: Path
    prefix: str
    scheme: Mapping[str, Any]

    def read(self) -> Kept | None:
        """Return what the file holds, with its fingerprints; ``None`` where it cannot be believed."""
        try:
            return self._read()
        except FileNotFoundError:
            return None
        except (OSError, UnusableFileError) as error:
            why = str(error)
        except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError):
            why = "it is damaged"
        logger.warning("memory_file %s is not used, and the fingerprints are read anew: %s", self.path, why)
        return None

    def _read(self) -> Kept:
        import numpy as np  # noqa: PLC0415 -- loads slowly

        with self.path.open("rb") as file:
            _check_owner(os.fstat(file.fileno()))
            if not _lock(file):
                raise UnusableFileError("another process has locked it")
            line = file.readline(LONGEST_LINE)
            header = json.loads(line)
            if not isinstance(header, dict) or header.get("format") != FORMAT:
                raise UnusableFileError("it is no file of fingerprints")
            if header["version"] != VERSION:
                raise UnusableFileError(f"it has the format of another version, {shorten(header['version'])}")
            if (header["prefix"], header["scheme"]) != (self.prefix, dict(self.scheme)):
                raise UnusableFileError("it is of another scheme, or of the fields below another prefix")
            size, count = os.fstat(file.fileno()).st_size, int(header["count"])
            if size != len(line) + 8 * count:
                raise UnusableFileError("it was cut, or something was added to it")
            values: NDArray[np.uint64] = np.empty(0, "<u8")
            if count:
                file.seek(len(line))
                values = np.fromfile(file, "<u8", count)  # not mapped: the file may be written over, or cut
        if header.pop("digest") != _digest(header, values):
            raise UnusableFileError("it was changed since it was written")
        shards = {Shard(*each[:4]): int(each[4]) for each in header["shards"]}
        return Kept(values, shards)

    def write(self, kept: Kept) -> None:
        """Put *kept* in the place of the file; where that cannot be, the old file stays, and a warning says so."""
        shards = [[each.index, each.uuid, each.number, each.history, end] for each, end in kept.certain.items()]
        header: dict[str, Any] = {"format": FORMAT, "version": VERSION, "prefix": self.prefix}
        header |= {"scheme": dict(self.scheme), "count": len(kept.fingerprints), "shards": sorted(shards)}
        header["digest"] = _digest(header, kept.fingerprints)
        text = json.dumps(header).encode()
        text += b" " * (-(len(text) + 1) % ALIGNED) + b"\n"
        written: Path | None = None
        try:
            if self.path.exists():
                with self.path.open("rb") as old:
                    if not _lock(old):
                        raise OSError("another process has locked it")
            # Only the owner may read what this makes.
            handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
            written = Path(name)
            with os.fdopen(handle, "wb") as file:
                file.write(text)
                file.write(kept.fingerprints.astype("<u8", copy=False).data)
                file.flush()
                os.fsync(file.fileno())
            written.replace(self.path)
            written = None
        except OSError as error:
            logger.warning("memory_file %s was not written: %s", self.path, error)
        finally:
            if written is not None:
                with suppress(OSError):
                    written.unlink()


def check_memory_file(value: Any) -> Path:
    """Return *value* as a path; raise InvalidInputError if no file of fingerprints can stand there."""
    # What a link leads to is written, and not the link.
    path = os.path.realpath(check_output("memory_file", value))
    given, expected = f"memory_file {shorten(path)}", f'{{"format": "{FORMAT}"'.encode()
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116 -- as above
            raise InvalidInputError(f"{given} is no file: give the path of a file")
        with suppress(PermissionError), Path(path).open("rb") as file:
            # Also an empty one: it may be the output of somebody who has just begun.
            if file.read(len(expected)) != expected:
                raise InvalidInputError(f"{given} is a file of something else, which would be lost: give another path")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise InvalidInputError(f"{given} cannot be used: {error.strerror}") from None
    return Path(path)


def _digest(header: Mapping[str, Any], values: NDArray[np.uint64]) -> str:
    found = xxhash.xxh3_128(json.dumps(header, sort_keys=True).encode())
    found.update(values.astype("<u8", copy=False).data)
    return found.hexdigest()


def _check_owner(found: os.stat_result) -> None:
    """Refuse a file that others own or may write: they could hide duplicates."""
    if hasattr(os, "geteuid") and (found.st_uid != os.geteuid() or found.st_mode & 0o022):
        raise UnusableFileError("others own it, or may write to it")


def _lock(file: Any) -> bool:
    """Return whether no other process has locked the *file*; the lock ends when it is closed."""
    try:
        import fcntl  # noqa: PLC0415 -- not on every system
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
