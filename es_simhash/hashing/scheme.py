"""
A scheme, which is everything that decides the bits of a fingerprint, and the checks of its parts.

A released version never changes its bits: a change becomes a new version, and the old one stays. It may get a new
parameter only with a default that leaves its bits as they were. A scheme loads nothing: it names files by digest and
says where they are, or has their content. ``registry.py`` makes schemes by name.

Byte order of the hashes of features is pinned, so that a hash is the same on every machine: ``xxh3_64`` has the default
secret and no seed, ``md5`` is the last 8 bytes of the digest, big-endian. ``shingles.py`` hashes runs of code points in
arrays, with the same results. Source: Y. Collet, "xxHash fast digest algorithm", version 0.2.0, section XXH3.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import xxhash

from es_simhash.arguments import check_integer
from es_simhash.errors import MissingDependencyError, SchemeError, WrongTypeError, shorten

_MASK = (1 << 64) - 1

PRIME_1 = 0x9E37_79B1_85EB_CA87
MIX_PRIME_1 = 0x1656_6791_9E37_79F9
MIX_PRIME_2 = 0x9FB2_1C65_1E98_DF25

_SECRET_BYTES = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
)

SECRET = tuple(int.from_bytes(_SECRET_BYTES[at : at + 8], "little") for at in range(0, len(_SECRET_BYTES), 8))
"""The default secret, as little-endian words of 64 bits: as much of it as inputs of up to 64 bytes need."""


SHORT_FLIP = SECRET[1] ^ SECRET[2]
"""What an input of 4 to 8 bytes is combined with, in 64 bits."""

_FNV_OFFSET = 0xCBF2_9CE4_8422_2325
_FNV_PRIME = 0x0000_0100_0000_01B3


def _fnv1a_64(data: bytes) -> int:
    value = _FNV_OFFSET
    for byte in data:
        value = (value ^ byte) * _FNV_PRIME & _MASK
    return value


def _md5(data: bytes) -> int:
    return int.from_bytes(hashlib.md5(data, usedforsecurity=False).digest()[8:], "big")


HASHES: dict[str, Callable[[bytes], int]] = {
    "fnv1a_64": _fnv1a_64,
    "md5": _md5,
    "xxh3_64": xxhash.xxh3_64_intdigest,
}
"""
The hashes by name: functions from bytes to an unsigned 64-bit integer.
>>> f"{HASHES['fnv1a_64'](b'a'):016x}"
'af63dc4c8601ec8c'
"""


WEIGHTINGS = ("linear", "log", "set")
"""Weight of a feature that comes n times: n; 1 + ln n; 1."""

MAX_SIZE = 16
MAX_TOP = 10_000


class _Parameter(NamedTuple):
    """What a parameter may be: one of *choices*, or a number from 1 to *largest*."""

    default: int | str
    choices: Sequence[str] = ()
    largest: int = 0

    def check(self, name: str, value: Any) -> int | str:
        if self.largest and not (self.choices and isinstance(value, str)):
            number = check_integer(name, value)
            if not 1 <= number <= self.largest:
                raise SchemeError(f"{name} {shorten(number)} is out of range: give 1 to {self.largest}")
            return number
        if not isinstance(value, str):
            raise WrongTypeError(f"{name} must be a str, not {type(value).__name__}")
        if value not in self.choices:
            raise SchemeError(f"unknown {name} {shorten(value)}: give one of {', '.join(self.choices)}")
        return value


_HASH = _Parameter("xxh3_64", [*HASHES])

_PARAMETERS: dict[tuple[str, int], dict[str, _Parameter]] = {
    ("keywords", 1): {"hash": _HASH, "top": _Parameter(20, ["auto"], MAX_TOP)},
    ("shingles", 3): {
        "hash": _HASH,
        "size": _Parameter(4, largest=MAX_SIZE),
        "weighting": _Parameter("log", WEIGHTINGS),
    },
}

FILES = ("dictionary", "idf", "stop_words")
"""The parameters that are files of the user."""


def known_versions() -> list[tuple[str, int]]:
    return sorted(_PARAMETERS)


def check_version(name: str, version: int) -> None:
    if (name, version) not in _PARAMETERS:
        if newer := [number for known_name, number in known_versions() if known_name == name and number > version]:
            raise SchemeError(
                f"{name}-{version} is a former scheme, this version makes {name}-{newer[0]}: run remove_fields(index), "
                "then setup(index)"
            )
        known = ", ".join(f"{known_name}-{number}" for known_name, number in known_versions())
        raise SchemeError(f"unknown scheme {shorten(f'{name}-{version}')}: upgrade es_simhash, or give one of {known}")


def defaults_of(name: str, version: int) -> dict[str, Any]:
    return {key: known.default for key, known in _PARAMETERS[name, version].items()}


def file_parameters_of(name: str) -> tuple[str, ...]:
    return FILES if name == "keywords" else ()


def check_parameters(name: str, version: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return every parameter of a scheme, checked: those *given*, and the defaults of the others."""
    known = _PARAMETERS[name, version]
    unknown = sorted(map(str, given.keys() - known.keys()))
    if unknown:
        allowed = ", ".join([*sorted(known), *file_parameters_of(name)])
        raise SchemeError(f"scheme {name}-{version} has no parameter {shorten(unknown[0])}: give {allowed}")
    return {key: one.check(key, given[key]) if key in given else one.default for key, one in known.items()}


_UPGRADE = "upgrade es_simhash, or correct it"
_PARTS: dict[str, Any] = {"parameters": {}, "preprocess": [], "libraries": {}, "digests": {}}
# What indices may record of former parameters that had one value in use; it never changed a bit.
_ONCE_RECORDED = (("seed", 0), ("method", "tfidf"))


@dataclass(frozen=True, slots=True)
class Scheme:
    """
    Everything that decides the bits of a fingerprint; equal when all of that is equal.

    Made by :func:`get_scheme` or :meth:`from_dict`, which check what they are given. Hashable and picklable.

    Attributes:
        name:
            What kind of features: ``shingles`` or ``keywords``.
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
        ('shingles-3', 5, True)
    """

    name: str
    version: int
    _parameters: tuple[tuple[str, Any], ...] = ()
    preprocess: tuple[str, ...] = ()
    _libraries: tuple[tuple[str, str], ...] = ()
    _digests: tuple[tuple[str, str], ...] = ()
    _files: tuple[tuple[str, str | bytes], ...] = field(default=(), compare=False, repr=False)

    @property
    def id(self) -> str:
        """Name and version: ``shingles-3``. Two schemes with one id may still differ in parameters; compare schemes."""
        return f"{self.name}-{self.version}"

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Every parameter that is not a file, by name."""
        return MappingProxyType(dict(self._parameters))

    @property
    def libraries(self) -> Mapping[str, str]:
        """Version by distribution name of the libraries that *preprocess* needs."""
        return MappingProxyType(dict(self._libraries))

    def has_features_of(self, other: Scheme) -> bool:
        """Return whether texts have the same features as in *other*, whatever is done with them before."""
        one, another = (replace(scheme, preprocess=(), _libraries=()) for scheme in (self, other))
        return one == another

    @property
    def digests(self) -> Mapping[str, str]:
        """SHA-256 (hex) of the user's files, by parameter."""
        return MappingProxyType(dict(self._digests))

    @property
    def files(self) -> Mapping[str, str]:
        """Paths of the user's files, by parameter; files that were named by digest only are absent."""
        return MappingProxyType({key: path for key, path in self._files if isinstance(path, str)})

    def with_files(self, files: Mapping[str, str | bytes]) -> Scheme:
        """Return this scheme with those of its files that *files* has: paths, or contents, by digest."""
        found = {key: files[digest] for key, digest in self._digests if digest in files}
        return replace(self, _files=sorted_items({**dict(self._files), **found})) if found else self

    def files_by_digest(self) -> dict[str, str | bytes]:
        """Return the files of this scheme as :meth:`with_files` takes them."""
        return {self.digests[key]: file for key, file in self._files}

    def __str__(self) -> str:
        """Return the id with whatever differs from the defaults: ``shingles-3(size=5)``."""
        defaults = defaults_of(self.name, self.version)
        parts = [f"{key}={value}" for key, value in self._parameters if defaults[key] != value]
        parts += [f"{key}=sha256:{digest[:12]}" for key, digest in self._digests]
        if self.preprocess:
            parts.append(f"preprocess={'+'.join(self.preprocess)}")
            parts += [f"{name}=={version}" for name, version in self._libraries]
        return f"{self.id}({', '.join(parts)})" if parts else self.id

    def to_dict(self) -> dict[str, Any]:
        """Return the scheme as plain JSON, to be kept in an index: no paths, nothing that depends on this machine."""
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
        unknown = sorted(map(str, data.keys() - _PARTS.keys() - {"name", "version"}))
        if unknown:
            raise SchemeError(f"scheme {name}-{version} has unknown parts {', '.join(unknown)}: {_UPGRADE}")
        check_version(name, version)
        parts = {key: data.get(key, empty) for key, empty in _PARTS.items()}
        for key, part in parts.items():
            is_list = key == "preprocess"
            if not (isinstance(part, (list, tuple)) if is_list else hasattr(part, "keys")):
                wanted = "list" if is_list else "mapping"
                raise SchemeError(f"{key} {shorten(part)} of scheme {name}-{version} must be a {wanted}")
        recorded = dict(parts["parameters"]).items()
        given = {key: value for key, value in recorded if (key, value) not in _ONCE_RECORDED}
        parameters = check_parameters(name, version, given)
        steps, libraries, digests = tuple(parts["preprocess"]), dict(parts["libraries"]), dict(parts["digests"])
        check_steps(steps)
        if list(libraries) != libraries_of(steps) or not all(isinstance(known, str) for known in libraries.values()):
            raise SchemeError(f"preprocess {shorten(list(steps))} does not fit its libraries {shorten(libraries)}")
        for key, digest in digests.items():
            if key not in file_parameters_of(name):
                raise SchemeError(f"scheme {name}-{version} has a digest for unknown {shorten(key)}: {_UPGRADE}")
            if not isinstance(digest, str) or not re.fullmatch(r"[0-9a-f]{64}", digest):
                raise SchemeError(f"{shorten(digest)} is not a SHA-256 digest: give 64 lower-case hex digits")
        return cls(name, version, sorted_items(parameters), steps, sorted_items(libraries), sorted_items(digests))


def sorted_items(mapping: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return *mapping* as pairs in the order of their keys, so that equal mappings make equal schemes."""
    pairs: Iterable[tuple[str, Any]] = mapping.items()
    return tuple(sorted(pairs))


STEPS = ("html", "links", "numbers", "t2s")
"""The names of the steps."""


def check_steps(steps: tuple[Any, ...]) -> None:
    for step in steps:
        if step not in STEPS:
            raise SchemeError(f"unknown preprocess step {shorten(step)}: give some of {', '.join(STEPS)}")
    if len(set(steps)) < len(steps):
        raise SchemeError(f"preprocess {shorten(list(steps))} names a step twice: once is enough")


def libraries_of(steps: tuple[str, ...]) -> list[str]:
    """Return the names of the distributions that *steps* need."""
    return ["OpenCC"] if "t2s" in steps else []


def library_version(name: str) -> str:
    import importlib.metadata  # noqa: PLC0415 - brings the e-mail package with it, a quarter of our import time

    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError as error:
        raise MissingDependencyError(f'{name} is not installed: pip install "es-simhash[preprocess]"') from error
