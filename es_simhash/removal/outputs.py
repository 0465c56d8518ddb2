"""
Which files may be written over: never an archive, nor what the same command reads. Only their first bytes are read.
"""

from __future__ import annotations

import errno
import zlib
from collections.abc import Iterable
from pathlib import Path

from es_simhash.errors import InvalidInputError
from es_simhash.removal.files import FilePath

__all__ = ["refuse_archive_name", "refuse_output"]

_GZIP = b"\x1f\x8b"
_ARCHIVE = b'{"_index":'
# Of a compressed file, enough for its first line to begin.
_HEAD = 4_096
_PLAN = b'{"format": "es-simhash-plan"'


def refuse_output(path: FilePath, *, inputs: Iterable[FilePath] = (), kind: str = "report") -> None:
    """
    Refuse to write a file over one that may be needed: an archive, a plan, or an input of the same command.

    Args:
        path:
            Where the new file goes.
        inputs:
            Files that the command reads.
        kind:
            What the new file is. A ``"plan"`` may replace a plan. A plan, a ``"page"`` and a ``"mask"`` replace the
            file of that name, so it must be a regular file; other kinds may go to a pipe or a terminal.

    Raises:
        InvalidInputError: If the file of that name must stay.
        FileNotFoundError: If its folder is missing: long work must not end in a file that cannot be made.
    """
    path = Path(path)
    if not path.exists():
        if not path.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(path.parent))
        return
    if not path.is_file():
        if kind in ("plan", "page", "mask"):
            raise InvalidInputError(f"{path} is no regular file: give the {kind} another name")
        return
    for each in map(Path, inputs):
        if each.exists() and each.samefile(path):
            raise InvalidInputError(f"{path} is read by the same command: give the {kind} another name")
    with path.open("rb") as file:
        begin = file.read(len(_PLAN))
    if begin.startswith(_GZIP) and _may_be_archive(path):
        raise InvalidInputError(f"{path} may be an archive of removed documents: give the {kind} another name")
    if begin == _PLAN and kind != "plan":
        raise InvalidInputError(f"{path} is a plan of removal: give the {kind} another name")


def _may_be_archive(path: Path) -> bool:
    """Return whether a gzip file begins as archives do, or so little of it is there that nobody can say."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    try:
        begin = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, len(_ARCHIVE))
    except zlib.error:
        return True
    return _ARCHIVE.startswith(begin)


def refuse_archive_name(archive: FilePath, plan: FilePath) -> None:
    """
    Refuse the name of an archive that cannot be one.

    Raises:
        InvalidInputError: If it is the plan, or a pipe or a device, which keeps nothing.
    """
    archive = Path(archive)
    if not archive.exists():
        return
    if archive.samefile(plan):
        raise InvalidInputError(f"{archive} is the plan: give the archive another name")
    if not archive.is_file():
        raise InvalidInputError(f"{archive} is no regular file, so it keeps nothing: give the archive another name")
