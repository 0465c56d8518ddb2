"""
The constants of XXH3 for inputs of up to 64 bytes. Plain integers; the arithmetic is where they are used.

Source: Y. Collet, "xxHash fast digest algorithm", version 0.2.0, section XXH3.
"""

from __future__ import annotations

__all__ = ["MIX_PRIME_1", "MIX_PRIME_2", "PRIME_1", "SECRET", "short_flip"]

PRIME_1 = 0x9E37_79B1_85EB_CA87
MIX_PRIME_1 = 0x1656_6791_9E37_79F9
MIX_PRIME_2 = 0x9FB2_1C65_1E98_DF25

_SECRET_BYTES = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
)

SECRET = tuple(int.from_bytes(_SECRET_BYTES[at : at + 8], "little") for at in range(0, 64, 8))
"""The first 64 bytes of the default secret, as little-endian words of 64 bits."""


def short_flip(seed: int) -> int:
    """
    Return what an input of 4 to 8 bytes is combined with, in 64 bits.
    """
    swapped = int.from_bytes((seed & 0xFFFF_FFFF).to_bytes(4, "little"), "big")
    return ((SECRET[1] ^ SECRET[2]) - (seed ^ swapped << 32)) & 0xFFFF_FFFF_FFFF_FFFF
