"""
Schemes by name, and the user's files that belong to them: dictionary, IDF, stop words.

Files are read whole and identified by SHA-256; a scheme for a machine that lacks them has their content
(:func:`with_contents`). ``segment.py`` and ``features.py`` parse them.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from es_simhash.errors import SchemeError, WrongTypeError, shorten
from es_simhash.hashing.scheme import (
    FILES,
    Scheme,
    check_parameters,
    check_steps,
    check_version,
    defaults_of,
    file_parameters_of,
    known_versions,
    libraries_of,
    library_version,
    sorted_items,
)

KNOWN = r"\u4E00-\u9FD5a-zA-Z0-9+#&._%\-"
"""The characters that jieba looks for words in, for a regular expression; all others stand between words."""

_UNKNOWN = re.compile(f"[^{KNOWN}]")

# How jieba reads a line: whatever is no frequency and no tag is part of the word.
_ENTRY = re.compile(r"(.+?)(?: [0-9]+)?(?: [a-z]+)?")


def check_dictionary(content: bytes) -> None:
    """Raise SchemeError, with the number of the line, if *content* is no dictionary or a word can match no text."""
    for number, raw in enumerate(content.split(b"\n"), 1):
        try:
            line = raw.decode().strip().removeprefix("\ufeff")
        except UnicodeDecodeError as error:
            raise SchemeError(
                f"line {number} of the dictionary is not UTF-8: convert the file, as with iconv -f GB18030 -t UTF-8"
            ) from error
        entry = _ENTRY.fullmatch(line)
        if entry is not None and (unknown := _UNKNOWN.search(entry[1])) is not None:
            raise SchemeError(
                f"line {number} of the dictionary, {shorten(line)}, can match no text: jieba ends a word at "
                f"{shorten(unknown[0])}; write the word, then perhaps a space and its frequency (a whole number), then "
                "perhaps a space and its tag (small letters)"
            )


DEFAULT_SCHEME = "shingles"
"""Name of the scheme that is used when none is given."""

_IDENTIFIER = re.compile(r"([a-z][a-z0-9_]*)(?:-([1-9][0-9]*))?")


def schemes() -> tuple[str, ...]:
    """
    Return the ids of all schemes that this version knows, oldest version of each name first.

    Examples:
        >>> schemes()
        ('keywords-1', 'shingles-3')
    """
    return tuple(f"{name}-{version}" for name, version in known_versions())


def get_scheme(scheme: str | Scheme = DEFAULT_SCHEME, **settings: Any) -> Scheme:
    """
    Return a scheme by name or id, with parameters of the caller's choice.

    Args:
        scheme:
            A name (``"shingles"``: its newest version), an id (``"shingles-3"``) or a :class:`Scheme`, whose
            parameters are then the defaults.
        **settings:
            The scheme's parameters; docs/design.md lists them. All take ``hash`` and
            ``preprocess``: a sequence of ``"html"``, ``"links"``, ``"numbers"`` and ``"t2s"``. ``keywords`` takes paths
            as ``dictionary``, ``idf`` and ``stop_words``. Files are read at once, and become part of the scheme by
            SHA-256.

    Raises:
        TypeError: If *scheme* is neither, or a parameter has the wrong type.
        SchemeError: If the scheme or a parameter is unknown, a value cannot be used, or a file cannot be read or is
            not the one that *scheme* names by digest.
        MissingDependencyError: If ``preprocess`` needs a library that is not installed.

    Examples:
        >>> str(get_scheme("shingles")), str(get_scheme("keywords", top="auto"))
        ('shingles-3', 'keywords-1(top=auto)')
    """
    if isinstance(scheme, Scheme):
        return _change(scheme, settings) if settings else scheme
    if not isinstance(scheme, str):
        raise WrongTypeError(f"scheme must be a str or a Scheme, not {type(scheme).__name__}")
    return _change(_by_id(scheme), settings) if settings else _by_id(scheme)


@lru_cache(maxsize=64)
def _by_id(identifier: str) -> Scheme:
    match = _IDENTIFIER.fullmatch(identifier)
    name = match[1] if match else identifier
    versions = [version for known, version in known_versions() if known == name]
    if not match or not versions:
        raise SchemeError(f"unknown scheme {shorten(identifier)}: give one of {', '.join(schemes())}, or upgrade")
    version = int(match[2]) if match[2] else max(versions)
    check_version(name, version)
    return Scheme(name, version, sorted_items(defaults_of(name, version)))


def _change(scheme: Scheme, changes: Mapping[str, Any]) -> Scheme:
    settings = dict(changes)
    steps, libraries = scheme.preprocess, dict(scheme.libraries)
    if "preprocess" in settings:
        given = settings.pop("preprocess")
        steps = (given,) if isinstance(given, str) else tuple(given or ())
        check_steps(steps)
        libraries = {name: library_version(name) for name in libraries_of(steps)}
    digests, files = dict(scheme.digests), dict[str, str]()
    for key in file_parameters_of(scheme.name):
        path = settings.pop(key, None)
        if path is not None:
            _, digest = read_file(path, purpose=key)
            if digests.get(key, digest) != digest:
                raise SchemeError(
                    f"{key} {shorten(str(path))} has digest sha256:{digest[:12]}…, but the scheme names "
                    f"sha256:{digests[key][:12]}…: give the {key} that the scheme was made with"
                )
            digests[key], files[digest] = digest, str(Path(path).resolve())
    parameters = check_parameters(scheme.name, scheme.version, {**scheme.parameters, **settings})
    changed = replace(
        scheme,
        _parameters=sorted_items(parameters),
        preprocess=steps,
        _libraries=sorted_items(libraries),
        _digests=sorted_items(digests),
    )
    return changed.with_files(files)


def read_file(path: str | os.PathLike[str], *, purpose: str) -> tuple[bytes, str]:
    """Return the content of one of the user's files, if it can be used as *purpose*, and its SHA-256 in hex digits."""
    if not isinstance(path, (str, os.PathLike)):
        raise WrongTypeError(f"{purpose} must be a path, not {type(path).__name__}")
    try:
        content = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SchemeError(f"cannot read {purpose} {shorten(str(path))}: {reason}") from error
    if purpose == "dictionary":
        check_dictionary(content)
    return content, hashlib.sha256(content).hexdigest()


def find_files(files: Mapping[str, str | os.PathLike[str]]) -> dict[str, str]:
    """Return where the *files* of a scheme are, given by parameter, by digest."""
    for purpose in files:
        if purpose not in FILES:
            raise SchemeError(f"no scheme has a file {shorten(purpose)}: give some of {', '.join(FILES)}")
    return {read_file(path, purpose=purpose)[1]: str(Path(path).resolve()) for purpose, path in files.items()}


def with_contents(scheme: Scheme) -> Scheme:
    """Return *scheme* with the content of its files, for a process on a machine that lacks them."""
    contents = {digest: scheme_file(scheme, purpose) for purpose, digest in scheme.digests.items()}
    return scheme.with_files({digest: content for digest, content in contents.items() if content is not None})


def find_file(scheme: Scheme, purpose: str) -> str | bytes | None:
    """Return the path or the content of one of a scheme's files, or ``None`` if it has none; raise if it is missing."""
    digest = scheme.digests.get(purpose)
    file = None if digest is None else scheme.files_by_digest().get(digest)
    if digest is not None and file is None:
        raise SchemeError(
            f'scheme {scheme.id} needs the {purpose} with digest sha256:{digest}: give files={{"{purpose}": PATH}}',
            missing_file=purpose,
        )
    return file


def scheme_file(scheme: Scheme, purpose: str) -> bytes | None:
    """Return the content of one of a scheme's files, or ``None`` if it has none; raise if it has changed."""
    path = find_file(scheme, purpose)
    if not isinstance(path, str):
        return path
    digest = scheme.digests[purpose]
    content, found = read_file(path, purpose=purpose)
    if found != digest:
        raise SchemeError(
            f"{purpose} {shorten(path)} has digest sha256:{found[:12]}…, but scheme {scheme.id} was made with "
            f"sha256:{digest[:12]}…: restore the file, or make a new scheme and backfill"
        )
    return content
