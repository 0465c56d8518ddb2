"""
Defines a scheme: everything that decides the bits of a fingerprint, frozen, named and versioned.

A scheme contains no dictionary and loads nothing: it names files by digest, and remembers where they were found.
``registry.py`` makes schemes by name; ``shingles.py``, ``features.py`` and ``keywords.py`` turn a text into features by
a scheme's parameters.

A released version never changes its bits. A change of bits becomes a new version, and the old one stays.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from es_simhash.errors import SchemeError, WrongTypeError, shorten
from es_simhash.hashing.libraries import installed_versions
from es_simhash.hashing.parameters import check_parameters, check_version, defaults_of, file_parameters_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Scheme", "sorted_items"]

_UPGRADE = "upgrade es_simhash, or correct it"
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
            SHA-256 of the user's own files, by parameter (``dictionary``, ``idf``, ``stop_words``; of ``boilerplate``
            that of its passages).
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
    def changes_texts(self) -> bool:
        """
        Whether a text is changed before its features are made: by the steps of *preprocess*, or by boilerplate.
        """
        return bool(self.preprocess) or "boilerplate" in self.digests

    def without_boilerplate(self) -> Scheme:
        """
        Return the scheme that leaves no template text out.
        """
        digests, files = (
            tuple((key, value) for key, value in pairs if key != "boilerplate")
            for pairs in (self._digests, self._files)
        )
        return replace(self, _digests=digests, _files=files)

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
            raise WrongTypeError(f"a scheme's description must be a mapping, not {type(data).__name__}")
        name, version = data.get("name"), data.get("version")
        if not isinstance(name, str) or not isinstance(version, int) or isinstance(version, bool):
            raise SchemeError(f"{shorten(dict(data))} is not a scheme's description: it needs a name and a version")
        unknown = sorted(map(str, data.keys() - _KEYS))
        if unknown:
            raise SchemeError(f"scheme {name}-{version} has unknown parts {', '.join(unknown)}: {_UPGRADE}")
        check_version(name, version)
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
        return cls(name, version, sorted_items(parameters), steps, sorted_items(libraries), sorted_items(digests))


def sorted_items(mapping: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """
    Return *mapping* as pairs in the order of their keys, so that equal mappings make equal schemes.
    """
    pairs: Iterable[tuple[str, Any]] = mapping.items()
    return tuple(sorted(pairs))


def _mapping(data: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = data.get(key, {})
    if not hasattr(value, "keys"):
        raise SchemeError(f"{key} {shorten(value)} of a scheme must be a mapping")
    return dict(value)
