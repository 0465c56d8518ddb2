"""
The named 64-bit hashes of features, one feature at a time; ``shingle_runs.py`` hashes runs of code points in arrays.

Seeds and byte order are pinned, so that a hash is the same on every machine:

=========  =========================================================================================
xxh3_64    XXH3 with the default secret; the seed is XXH3's own. Equal on both paths.
xxh64      XXH64; the seed is XXH64's own.
fnv1a_64   FNV-1a with its usual offset basis, to which the seed is added by exclusive or.
md5        The last 8 bytes of the MD5 digest, big-endian (its low 64 bits); a seed other than 0 is hashed first,
           as 8 little-endian bytes.
=========  =========================================================================================
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import xxhash

from es_simhash.errors import SchemeError, shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["HASHES", "bytes_hasher", "hash_features"]

_MASK = (1 << 64) - 1
_FNV_OFFSET = 0xCBF2_9CE4_8422_2325
_FNV_PRIME = 0x0000_0100_0000_01B3


def _xxh3_64(seed: int) -> Callable[[bytes], int]:
    return lambda data: xxhash.xxh3_64_intdigest(data, seed)


def _xxh64(seed: int) -> Callable[[bytes], int]:
    return lambda data: xxhash.xxh64_intdigest(data, seed)


def _fnv1a_64(seed: int) -> Callable[[bytes], int]:
    def hash_bytes(data: bytes) -> int:
        value = _FNV_OFFSET ^ seed
        for byte in data:
            value = (value ^ byte) * _FNV_PRIME & _MASK
        return value

    return hash_bytes


def _md5(seed: int) -> Callable[[bytes], int]:
    start = hashlib.md5(seed.to_bytes(8, "little") if seed else b"", usedforsecurity=False)

    def hash_bytes(data: bytes) -> int:
        state = start.copy()
        state.update(data)
        return int.from_bytes(state.digest()[8:], "big")

    return hash_bytes


_MAKERS: dict[str, Callable[[int], Callable[[bytes], int]]] = {
    "fnv1a_64": _fnv1a_64,
    "md5": _md5,
    "xxh3_64": _xxh3_64,
    "xxh64": _xxh64,
}

HASHES = tuple(sorted(_MAKERS))
"""The names of the hashes."""


def bytes_hasher(name: str, seed: int = 0) -> Callable[[bytes], int]:
    """
    Return the function that maps bytes to an unsigned 64-bit integer.

    Args:
        name:
            One of :data:`HASHES`.
        seed:
            0 to 2**64 - 1.

    Raises:
        SchemeError: If there is no such hash.

    Examples:
        >>> f"{bytes_hasher('fnv1a_64')(b'a'):016x}"
        'af63dc4c8601ec8c'
    """
    if name not in _MAKERS:
        raise SchemeError(f"unknown hash {shorten(name)}: give one of {', '.join(HASHES)}")
    return _MAKERS[name](seed)


def hash_features(features: Iterable[str | bytes], name: str, *, seed: int = 0) -> list[int]:
    """
    Return the hash of each feature; text is hashed as UTF-8, a lone surrogate like any other code point.
    """
    hash_bytes = bytes_hasher(name, seed)
    return [
        hash_bytes(feature.encode("utf-8", "surrogatepass") if isinstance(feature, str) else feature)
        for feature in features
    ]
