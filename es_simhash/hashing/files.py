"""
The user's own files: dictionary, IDF, stop words, boilerplate. They are read whole, and identified by SHA-256.

A process on a machine that lacks such a file can be given its content (``provide_file``).

Their content is parsed in ``segment.py``, ``keywords.py`` and ``boilerplate``.
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


def digest_of(content: bytes, *, purpose: str = "") -> str:
    """
    Return the SHA-256 of *content* as 64 lower-case hexadecimal digits; of boilerplate, that of its passages.

    Raises:
        SchemeError: If it is to be boilerplate, and cannot be used.
    """
    if purpose == "boilerplate":
        from es_simhash.hashing.boilerplate.mask import mask_digest, read_mask  # noqa: PLC0415 - loads numpy

        return mask_digest(read_mask(content))
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

    Raises:
        SchemeError: If it cannot be read or used.
    """
    content = read_file(path, purpose=purpose)
    try:
        return digest_of(content, purpose=purpose)
    except SchemeError as error:
        raise SchemeError(f"cannot use {purpose} {shorten(str(path))}: {error}") from error


def provide_file(content: bytes, *, purpose: str) -> None:
    """
    Let schemes that name *content* by its digest find it in this process, wherever the file is.
    """
    _provided[digest_of(content, purpose=purpose)] = content


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
    found = digest_of(content, purpose=purpose)
    if found != digest:
        raise SchemeError(
            f"{purpose} {shorten(path)} has digest sha256:{found[:12]}…, but scheme {scheme.id} was made with "
            f"sha256:{digest[:12]}…: restore the file, or make a new scheme and backfill"
        )
    return content
