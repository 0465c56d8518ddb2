"""
The user's own dictionary, IDF and stop-word files: read whole, identified by SHA-256.

A process on a machine that lacks such a file can be given its content (``provide_file``).

Their content is parsed in ``segment.py`` and ``keywords.py``.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from es_simhash.errors import SchemeError, WrongTypeError, shorten
from es_simhash.hashing.scheme import Scheme

__all__ = ["digest_of", "file_digest", "provide_file", "read_file", "scheme_file"]

# Contents by digest, for schemes whose files this machine need not have.
_provided: dict[str, bytes] = {}


def digest_of(content: bytes) -> str:
    """
    Return the SHA-256 of *content* as 64 lower-case hexadecimal digits.
    """
    return hashlib.sha256(content).hexdigest()


def read_file(path: str | os.PathLike[str], *, purpose: str) -> bytes:
    """
    Return the content of one of the user's files.

    Raises:
        TypeError: If *path* is not a path.
        SchemeError: If it cannot be read; the message names its *purpose*.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise WrongTypeError(f"{purpose} must be a path, not {type(path).__name__}")
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SchemeError(f"cannot read {purpose} {shorten(str(path))}: {reason}") from error


def file_digest(path: str | os.PathLike[str], *, purpose: str) -> str:
    """
    Return the SHA-256 of one of the user's files.
    """
    return digest_of(read_file(path, purpose=purpose))


def provide_file(content: bytes) -> None:
    """
    Let schemes that name *content* by its digest find it in this process, wherever the file is.
    """
    _provided[digest_of(content)] = content


def scheme_file(scheme: Scheme, purpose: str) -> bytes | None:
    """
    Return the content of one of a scheme's files, or ``None`` if the scheme has no such file.

    Raises:
        SchemeError: If the scheme knows the file by digest only, the file cannot be read, or it has changed.
    """
    digest = scheme.digests.get(purpose)
    if digest is None:
        return None
    if digest in _provided:
        return _provided[digest]
    path = scheme.files.get(purpose)
    if path is None:
        raise SchemeError(
            f"scheme {scheme.id} needs the {purpose} with digest sha256:{digest}: "
            f'pass get_scheme("{scheme.name}", {purpose}=PATH) with that file',
            missing_file=purpose,
            scheme=scheme.id,
            digest=digest,
        )
    content = read_file(path, purpose=purpose)
    found = digest_of(content)
    if found != digest:
        raise SchemeError(
            f"{purpose} {shorten(path)} has digest sha256:{found[:12]}…, but scheme {scheme.id} was made with "
            f"sha256:{digest[:12]}…: restore the file, or make a new scheme and backfill"
        )
    return content
