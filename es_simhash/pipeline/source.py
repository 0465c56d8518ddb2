"""
The source of the script: the files in ``painless/``, with what a scheme decides filled in.

Which schemes can be computed on a server at all is decided in ``build``.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from string import Template

from es_simhash.hashing import Scheme
from es_simhash.hashing.scripts import KANA, LOGOGRAPHS, Ranges
from es_simhash.pipeline.xxh3 import hash_function

__all__ = ["LONGEST", "script_source"]

LONGEST = 1_000_000
"""Characters (of UTF-16) of the longest text that gets a fingerprint on the server."""

# Characters that are normalised at once: a function may take no more than 1,000,000 steps of its loops.
_STEP = 2_000
# No logograph below this belongs to a range that begins above it, and no kana is below.
_FIRST_KANA = 0x3041
# OpenSearch does not compile some expressions with hexadecimal constants.
_HEXADECIMAL = re.compile(r"\b0x[0-9A-F]+")
_WEIGHTS = {
    "linear": "(long) count * 1048576L",
    "log": "count == 1 ? 1048576L : Math.round(1048576.0 * (1.0 + Math.log((double) (count < 65536 ? count : 65536))))",
    "set": "1048576L",
}


def script_source(scheme: Scheme) -> str:
    """
    Return the script that computes fingerprints of *scheme*, without comments.

    Args:
        scheme:
            ``shingles-1`` or ``shingles-2``, with XXH3.
    """
    size, seed = scheme.parameters["size"], scheme.parameters["seed"]
    early = [each for each in LOGOGRAPHS if each[0] < _FIRST_KANA]
    filled = {
        "size": size,
        "step": _STEP,
        "line_feed": "\n",
        "longest": LONGEST,
        "worth": 3 * size,
        "weight": _WEIGHTS[scheme.parameters["weighting"]],
        "early_logographs": _is_within(early),
        "logographs": _is_within([each for each in LOGOGRAPHS if each not in early]),
        "kana": _is_within(KANA),
        "short": "\n".join(
            f"  if (size == {short}) {{ count_hash(keys, counts, hash{short}(codes, 0)); }}" for short in range(1, size)
        ),
    }
    if scheme.version == 1:
        hashes = [hash_function(f"hash{each}", each, seed, counts=False) for each in range(1, size + 1)]
    else:
        hashes = [hash_function("hash", size, seed, counts=True)]
    before = ["characters", "counts"]
    after = [f"shingles-{scheme.version}", "fingerprint", "document", "lookup", "main"]
    parts = [*map(_read, before), *hashes, *map(_read, after)]
    return Template("\n".join(parts)).substitute(filled)


def _is_within(ranges: Ranges | list[tuple[int, int]]) -> str:
    """Return the condition that the character ``c`` is in one of *ranges*, ends included."""
    return " || ".join(f"c >= {first} && c <= {last}" for first, last in ranges)


@cache
def _read(name: str) -> str:
    """
    Return a file of ``painless/`` with decimal constants, and without comments: a server keeps the script in memory.
    """
    text = resources.files(__package__).joinpath("painless", f"{name}.painless").read_text(encoding="utf-8")
    lines = map(str.strip, text.splitlines())
    code = "\n".join(line for line in lines if line and not line.startswith("//"))
    return _HEXADECIMAL.sub(lambda found: str(int(found[0], 16)), code)
