"""
The end of an archive that was cut off in a member: what is there, and where it is kept. Knows gzip, but no lines.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import BinaryIO

from es_simhash.removal.files import sync_file, sync_folder

__all__ = ["EMPTY", "has_member", "is_inflated", "save_end"]

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
