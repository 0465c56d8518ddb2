"""
The constants of XXH3. Plain integers; the arithmetic is where they are used.

Source: Y. Collet, "xxHash fast digest algorithm", version 0.2.0, section XXH3.
"""

from __future__ import annotations

__all__ = ["LANES", "MIX_PRIME_1", "MIX_PRIME_2", "PRIME_1", "SECRET", "XXH64_PRIMES", "long_secret", "short_flip"]

_MASK = (1 << 64) - 1
XXH64_PRIMES = (
    0x9E37_79B1_85EB_CA87,
    0xC2B2_AE3D_27D4_EB4F,
    0x1656_67B1_9E37_79F9,
    0x85EB_CA77_C2B2_AE63,
    0x27D4_EB2F_1656_67C5,
)
_XXH32_PRIMES = (0x9E37_79B1, 0x85EB_CA77, 0xC2B2_AE3D)
PRIME_1 = XXH64_PRIMES[0]
LANES = (_XXH32_PRIMES[2], *XXH64_PRIMES[:4], _XXH32_PRIMES[1], XXH64_PRIMES[4], _XXH32_PRIMES[0])
"""What the eight sums of an input of more than 240 bytes begin with; the last is also the factor between blocks."""

MIX_PRIME_1 = 0x1656_6791_9E37_79F9
MIX_PRIME_2 = 0x9FB2_1C65_1E98_DF25

_SECRET_BYTES = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)

SECRET = tuple(int.from_bytes(_SECRET_BYTES[at : at + 8], "little") for at in range(0, len(_SECRET_BYTES), 8))
"""The default secret, as little-endian words of 64 bits."""


def short_flip(seed: int) -> int:
    """
    Return what an input of 4 to 8 bytes is combined with, in 64 bits.
    """
    swapped = int.from_bytes((seed & 0xFFFF_FFFF).to_bytes(4, "little"), "big")
    return ((SECRET[1] ^ SECRET[2]) - (seed ^ swapped << 32)) & _MASK


def long_secret(seed: int) -> tuple[int, ...]:
    """
    Return the secret for inputs of more than 240 bytes, as words.
    """
    return tuple((word - seed if place % 2 else word + seed) & _MASK for place, word in enumerate(SECRET))
