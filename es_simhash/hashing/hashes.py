"""
The named 64-bit hashes of features, one feature at a time, and the constants of XXH3.

Seeds and byte order are pinned, so that a hash is the same on every machine. ``xxh3_64`` (with the default
secret) and ``xxh64`` use the seed of the algorithm. ``fnv1a_64`` adds the seed to the usual offset basis by
exclusive or. ``md5`` is the last 8 bytes of the digest, big-endian; a seed other than 0 is hashed first, as 8
little-endian bytes. ``shingles.py`` hashes runs of code points in arrays, with the same results.
Source: Y. Collet, "xxHash fast digest algorithm", version 0.2.0, section XXH3.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

import xxhash

from es_simhash.errors import SchemeError, shorten

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


def short_flip(seed: int) -> int:
    """Return what an input of 4 to 8 bytes is combined with, in 64 bits."""
    swapped = int.from_bytes((seed & 0xFFFF_FFFF).to_bytes(4, "little"), "big")
    return ((SECRET[1] ^ SECRET[2]) - (seed ^ swapped << 32)) & _MASK


_FNV_OFFSET = 0xCBF2_9CE4_8422_2325
_FNV_PRIME = 0x0000_0100_0000_01B3


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
    "xxh3_64": lambda seed: lambda data: xxhash.xxh3_64_intdigest(data, seed),
    "xxh64": lambda seed: lambda data: xxhash.xxh64_intdigest(data, seed),
}

HASHES = tuple(sorted(_MAKERS))
"""The names of the hashes."""


def bytes_hasher(name: str, seed: int = 0) -> Callable[[bytes], int]:
    """
    Return the function that maps bytes to an unsigned 64-bit integer; *seed* is 0 to 2**64 - 1.
    >>> f"{bytes_hasher('fnv1a_64')(b'a'):016x}"
    'af63dc4c8601ec8c'
    """
    if name not in _MAKERS:
        raise SchemeError(f"unknown hash {shorten(name)}: give one of {', '.join(HASHES)}")
    return _MAKERS[name](seed)


def hash_words(words: Iterable[str], name: str, *, seed: int = 0) -> list[int]:
    """Return the hash of the UTF-8 of each word."""
    hash_bytes = bytes_hasher(name, seed)
    return [hash_bytes(word.encode()) for word in words]
