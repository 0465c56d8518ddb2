"""
The named 64-bit hashes of features, one feature at a time, and the constants of XXH3.

Byte order is pinned, so that a hash is the same on every machine. ``xxh3_64`` has the default secret and no seed;
``md5`` is the last 8 bytes of the digest, big-endian. ``shingles.py`` hashes runs of code points in arrays, with the
same results.
Source: Y. Collet, "xxHash fast digest algorithm", version 0.2.0, section XXH3.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import xxhash

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
