"""
Which files may be written over: those of the same kind, and none that is compressed. Only their first bytes are read.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from pathlib import Path

from es_simhash.errors import InvalidInputError
from es_simhash.removal.files import FilePath

__all__ = ["refuse_archive_name", "refuse_output"]

# Archives begin so, and so does much that is the user's; nothing else that is written here does.
_GZIP = b"\x1f\x8b"
_PLAN = b'{"format": "es-simhash-plan"'
# How the files of a kind begin. Reports and results are lines and pictures of many kinds.
_BEGINS = {"plan": _PLAN, "page": b'<!DOCTYPE html>\n<html lang="', "mask": b'{\n  "format": "es-simhash boilerplate"'}


def refuse_output(path: FilePath, *, inputs: Iterable[FilePath] = (), kind: str = "report") -> None:
    """
    Refuse to write a file over one that may be needed: an archive, a plan, an input, or a file that is not ours.

    Args:
        path:
            Where the new file goes.
        inputs:
            Files that the command reads.
        kind:
            What the new file is. A ``"plan"``, a ``"page"`` and a ``"mask"`` replace only a regular file that is
            empty or one of these; other kinds may go to a pipe or a terminal, or replace any text.

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
        if kind in _BEGINS:
            raise InvalidInputError(f"{path} is no regular file: give the {kind} another name")
        return
    for each in map(Path, inputs):
        if each.exists() and each.samefile(path):
            raise InvalidInputError(f"{path} is read by the same command: give the {kind} another name")
    with path.open("rb") as file:
        begin = file.read(64).replace(b"\r\n", b"\n")
    if begin.startswith(_GZIP):
        raise InvalidInputError(f"{path} is gzip, and may be an archive: give the {kind} another name")
    if begin.startswith(_PLAN) and kind != "plan":
        raise InvalidInputError(f"{path} is a plan of removal: give the {kind} another name")
    if kind in _BEGINS and begin and not begin.startswith(_BEGINS[kind]):
        raise InvalidInputError(f"{path} is no {kind} that may be replaced: give the {kind} another name")


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
