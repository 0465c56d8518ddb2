"""
XXH3 in Painless: the function that hashes a run of code points, written out for one length and seed; its constants.

Painless has no multiplication to 128 bits, so ``multiply_fold`` of ``painless/sums.painless`` goes through halves.
``hashing.shingle_runs`` has the same formulas in arrays, and their source. ``painless/xxh3.painless`` hashes texts.
"""

from __future__ import annotations

from es_simhash.hashing.xxh3 import (
    LANES,
    MIX_PRIME_1,
    MIX_PRIME_2,
    PRIME_1,
    SECRET,
    XXH64_PRIMES,
    long_secret,
    short_flip,
)

__all__ = ["constants", "hash_function", "literal"]

_WORD = 1 << 64


def literal(value: int) -> str:
    """
    Return the 64 bits of *value* as a constant of Painless, whose numbers are signed.

    Examples:
        >>> literal(2**64 - 1)
        '(-1L)'
    """
    value %= _WORD
    if value == 1 << 63:
        return "Long.MIN_VALUE"
    return f"({value - _WORD}L)" if value >> 63 else f"{value}L"


def constants(seed: int) -> dict[str, str]:
    """
    Return what ``painless/xxh3.painless`` and ``painless/features.painless`` have to know of XXH3 with *seed*.
    """
    lists = {"secret": SECRET, "long_secret": long_secret(seed), "sums": LANES}
    words = {
        "seed": seed,
        "short_flip": short_flip(seed),
        "mix_prime_1": MIX_PRIME_1,
        "mix_prime_2": MIX_PRIME_2,
        "prime_1": PRIME_1,
        "prime_2": XXH64_PRIMES[1],
        "prime_3": XXH64_PRIMES[2],
        "short_prime_1": LANES[-1],
    }
    filled = {name: literal(word) for name, word in words.items()}
    return filled | {name: ", ".join(map(literal, each)) for name, each in lists.items()}


def hash_function(name: str, size: int, seed: int, *, counts: bool) -> str:
    """
    Return the function ``long name(int[] codes, int at)``: the hash of *size* code points from *at* on.

    Args:
        name:
            Its name.
        size:
            Code points to a run, 1 to 16.
        seed:
            Seed of the hash, 0 to 2**64 - 1.
        counts:
            Whether it has a third argument, ``int count``: how many of the code points count; the others are U+0000.
    """
    lines = [f"long {name}(int[] codes, int at{', int count' if counts else ''}) {{"]
    for place in range(size):
        code = f"(long) codes[at + {place}]"
        lines.append(f"  long c{place} = " + (f"count > {place} ? {code} : 0L;" if counts and place else f"{code};"))
    lines += _short(size, seed) if size <= 2 else _middle(size, seed) if size <= 4 else _long(size, seed)
    return "\n".join([*lines, "}"])


def _short(size: int, seed: int) -> list[str]:
    return [
        f"  long v = (c{size - 1} + (c0 << 32)) ^ {literal(short_flip(seed))};",
        "  v ^= (v << 49 | v >>> 15) ^ (v << 24 | v >>> 40);",
        f"  v *= {literal(MIX_PRIME_2)};",
        f"  v ^= (v >>> 35) + {4 * size}L;",
        f"  v *= {literal(MIX_PRIME_2)};",
        "  return v ^ (v >>> 28);",
    ]


def _middle(size: int, seed: int) -> list[str]:
    return [
        f"  long low = {_read(0)} ^ {literal((SECRET[3] ^ SECRET[4]) + seed)};",
        f"  long high = {_read(4 * size - 8)} ^ {literal((SECRET[5] ^ SECRET[6]) - seed)};",
        f"  long v = Long.reverseBytes(low) + high + {4 * size}L + multiply_fold(low, high);",
        *_avalanche(),
    ]


def _long(size: int, seed: int) -> list[str]:
    length = 4 * size
    lines = [f"  long v = {literal(length * PRIME_1)};"]
    for step in range((length - 1) // 32 + 1):
        for byte, word in ((16 * step, 4 * step), (length - 16 * (step + 1), 4 * step + 2)):
            low = f"{_read(byte)} ^ {literal(SECRET[word] + seed)}"
            high = f"{_read(byte + 8)} ^ {literal(SECRET[word + 1] - seed)}"
            lines.append(f"  v += multiply_fold({low}, {high});")
    return [*lines, *_avalanche()]


def _read(byte: int) -> str:
    return f"(c{byte // 4} | c{byte // 4 + 1} << 32)"


def _avalanche() -> list[str]:
    return ["  v ^= v >>> 37;", f"  v *= {literal(MIX_PRIME_1)};", "  return v ^ (v >>> 32);"]
