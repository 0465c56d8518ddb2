"""
Schemes: everything that decides the bits of a fingerprint, frozen, named and versioned; and the registry of them.

A scheme holds no dictionary and loads nothing: it names files by digest, and remembers where they were found. How its
parameters become features is told in ``features.py`` and ``keywords.py``.

A released version never changes its bits. What would change them is a new version, registered beside the old one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from es_simhash.errors import SchemeError, shorten
from es_simhash.hashing.files import file_digest
from es_simhash.hashing.parameters import check_parameters, defaults_of, file_parameters_of, known_versions
from es_simhash.hashing.preprocess import installed_versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["DEFAULT_SCHEME", "Scheme", "get_scheme", "schemes"]

DEFAULT_SCHEME = "shingles"
"""Name of the scheme that is used when none is given; docs/schemes.md has the measurements behind the choice."""

_IDENTIFIER = re.compile(r"([a-z][a-z0-9_]*)(?:-([1-9][0-9]*))?")
_KEYS = frozenset({"name", "version", "parameters", "preprocess", "libraries", "digests"})


@dataclass(frozen=True, slots=True)
class Scheme:
    """
    Everything that decides the bits of a fingerprint; equal when all of that is equal.

    Made by :func:`get_scheme` or :meth:`from_dict`, which check what they are given. Hashable and picklable.

    Attributes:
        name:
            What kind of features: ``shingles``, ``words``, ``keywords`` or ``weighted``.
        version:
            Which release of that kind, from 1.
        parameters:
            Read-only mapping of every parameter, defaults included.
        preprocess:
            Names of the steps that a text goes through first, in order.
        libraries:
            Versions of the libraries behind those steps, since another version can change bits.
        digests:
            SHA-256 of the user's own files, by parameter (``dictionary``, ``idf``, ``stop_words``).
        files:
            Where these files were found. No part of the scheme's identity, and never written into an index.

    Examples:
        >>> scheme = get_scheme("shingles", size=5)
        >>> scheme.id, scheme.parameters["size"], Scheme.from_dict(scheme.to_dict()) == scheme
        ('shingles-2', 5, True)
    """

    name: str
    version: int
    _parameters: tuple[tuple[str, Any], ...] = ()
    preprocess: tuple[str, ...] = ()
    _libraries: tuple[tuple[str, str], ...] = ()
    _digests: tuple[tuple[str, str], ...] = ()
    _files: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)

    @property
    def id(self) -> str:
        """
        Name and version: ``shingles-1``. Two schemes with one id may still differ in parameters; compare schemes.
        """
        return f"{self.name}-{self.version}"

    @property
    def parameters(self) -> Mapping[str, Any]:
        """
        Every parameter that is not a file, by name.
        """
        return MappingProxyType(dict(self._parameters))

    @property
    def libraries(self) -> Mapping[str, str]:
        """
        Version by distribution name of the libraries that *preprocess* needs.
        """
        return MappingProxyType(dict(self._libraries))

    @property
    def digests(self) -> Mapping[str, str]:
        """
        SHA-256 (hex) of the user's files, by parameter.
        """
        return MappingProxyType(dict(self._digests))

    @property
    def files(self) -> Mapping[str, str]:
        """
        Paths of the user's files, by parameter; files that were named by digest only are absent.
        """
        return MappingProxyType(dict(self._files))

    def __str__(self) -> str:
        """
        Return the id with whatever differs from the defaults: ``shingles-1(size=5)``.
        """
        defaults = defaults_of(self.name, self.version)
        parts = [f"{key}={value}" for key, value in self._parameters if defaults[key] != value]
        parts += [f"{key}=sha256:{digest[:12]}" for key, digest in self._digests]
        if self.preprocess:
            parts.append(f"preprocess={'+'.join(self.preprocess)}")
            parts += [f"{name}=={version}" for name, version in self._libraries]
        return f"{self.id}({', '.join(parts)})" if parts else self.id

    def to_dict(self) -> dict[str, Any]:
        """
        Return the scheme as plain JSON, to be kept in an index: no paths, nothing that depends on this machine.
        """
        return {
            "name": self.name,
            "version": self.version,
            "parameters": dict(self._parameters),
            "preprocess": list(self.preprocess),
            "libraries": dict(self._libraries),
            "digests": dict(self._digests),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Scheme:
        """
        Return the scheme that *data*, made by :meth:`to_dict`, describes.

        A parameter that is missing takes its default, so that a later version of this library may add parameters
        whose default leaves the bits as they are.

        Raises:
            TypeError: If *data* is not a mapping.
            SchemeError: If the name, version or a parameter is unknown here, or a value cannot be used.
        """
        if not hasattr(data, "keys"):
            raise TypeError(f"a scheme's description must be a mapping, not {type(data).__name__}")
        name, version = data.get("name"), data.get("version")
        if not isinstance(name, str) or not isinstance(version, int) or isinstance(version, bool):
            raise SchemeError(f"{shorten(dict(data))} is not a scheme's description: it needs a name and a version")
        unknown = sorted(map(str, data.keys() - _KEYS))
        if unknown:
            raise SchemeError(f"scheme {name}-{version} has unknown parts {', '.join(unknown)}: {_UPGRADE}")
        _check_version(name, version)
        parameters = check_parameters(name, version, _mapping(data, "parameters"))
        preprocess = data.get("preprocess", ())
        if not isinstance(preprocess, (list, tuple)):
            raise SchemeError(f"preprocess {shorten(preprocess)} of scheme {name}-{version} must be a list of names")
        steps = tuple(preprocess)
        libraries = _mapping(data, "libraries")
        installed_versions(steps, known=libraries)
        digests = _mapping(data, "digests")
        for key, digest in digests.items():
            if key not in file_parameters_of(name, version):
                raise SchemeError(f"scheme {name}-{version} has a digest for unknown {shorten(key)}: {_UPGRADE}")
            if not isinstance(digest, str) or not re.fullmatch(r"[0-9a-f]{64}", digest):
                raise SchemeError(f"{shorten(digest)} is not a SHA-256 digest: give 64 lower-case hex digits")
        return cls(name, version, _items(parameters), steps, _items(libraries), _items(digests))


_UPGRADE = "upgrade es_simhash, or correct it"


def schemes() -> tuple[str, ...]:
    """
    Return the ids of all schemes that this version knows, oldest version of each name first.

    Examples:
        >>> schemes()
        ('keywords-1', 'shingles-1', 'shingles-2', 'weighted-1', 'words-1')
    """
    return tuple(f"{name}-{version}" for name, version in known_versions())


def get_scheme(scheme: str | Scheme = DEFAULT_SCHEME, **settings: Any) -> Scheme:
    """
    Return a scheme by name or id, with parameters of the caller's choice.

    Args:
        scheme:
            A name (``"shingles"``: its newest version), an id (``"shingles-1"``) or a :class:`Scheme`, whose
            parameters are then the defaults.
        **settings:
            The scheme's parameters; docs/schemes.md lists them. All take ``hash``, ``seed`` and, unless the caller
            brings the features, ``preprocess``: a sequence of ``"html"`` and ``"t2s"``. ``keywords`` takes paths as
            ``dictionary``, ``idf`` and ``stop_words``: they are read at once and become part of the scheme by
            SHA-256.

    Raises:
        TypeError: If *scheme* is neither, or a parameter has the wrong type.
        SchemeError: If the scheme or a parameter is unknown, a value cannot be used, or a file cannot be read or is
            not the one that *scheme* names by digest.
        MissingDependencyError: If ``preprocess`` needs a library that is not installed.

    Examples:
        >>> str(get_scheme("shingles")), str(get_scheme("words", size=3))
        ('shingles-2', 'words-1(size=3)')
    """
    if isinstance(scheme, Scheme):
        return _change(scheme, settings) if settings else scheme
    if not isinstance(scheme, str):
        raise TypeError(f"scheme must be a str or a Scheme, not {type(scheme).__name__}")
    return _change(_by_id(scheme), settings) if settings else _by_id(scheme)


@lru_cache(maxsize=64)
def _by_id(identifier: str) -> Scheme:
    match = _IDENTIFIER.fullmatch(identifier)
    name = match[1] if match else identifier
    versions = [version for known, version in known_versions() if known == name]
    if not match or not versions:
        raise SchemeError(f"unknown scheme {shorten(identifier)}: give one of {', '.join(schemes())}, or upgrade")
    version = int(match[2]) if match[2] else max(versions)
    _check_version(name, version)
    return Scheme(name, version, _items(defaults_of(name, version)))


def _change(scheme: Scheme, changes: Mapping[str, Any]) -> Scheme:
    settings = dict(changes)
    steps, libraries = scheme.preprocess, dict(scheme.libraries)
    if "preprocess" in settings:
        given = settings.pop("preprocess")
        steps = (given,) if isinstance(given, str) else tuple(given or ())
        if steps and scheme.name == "weighted":
            raise SchemeError("scheme weighted takes features, not text: prepare the text before making the features")
        libraries = installed_versions(steps)
    digests, files = dict(scheme.digests), dict(scheme.files)
    for key in file_parameters_of(scheme.name, scheme.version):
        path = settings.pop(key, None)
        if path is not None:
            digest = file_digest(path, purpose=key)
            if digests.get(key, digest) != digest:
                raise SchemeError(
                    f"{key} {shorten(str(path))} has digest sha256:{digest[:12]}…, but the scheme names "
                    f"sha256:{digests[key][:12]}…: give the {key} that the scheme was made with"
                )
            digests[key], files[key] = digest, str(Path(path).resolve())
    parameters = check_parameters(scheme.name, scheme.version, {**scheme.parameters, **settings})
    return replace(
        scheme,
        _parameters=_items(parameters),
        preprocess=steps,
        _libraries=_items(libraries),
        _digests=_items(digests),
        _files=_items(files),
    )


def _check_version(name: str, version: int) -> None:
    versions = [known_version for known, known_version in known_versions() if known == name]
    if version not in versions:
        known = ", ".join(schemes())
        raise SchemeError(f"unknown scheme {shorten(f'{name}-{version}')}: upgrade es_simhash, or give one of {known}")


def _mapping(data: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = data.get(key, {})
    if not hasattr(value, "keys"):
        raise SchemeError(f"{key} {shorten(value)} of a scheme must be a mapping")
    return dict(value)


def _items(mapping: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    pairs: Iterable[tuple[str, Any]] = mapping.items()
    return tuple(sorted(pairs))
