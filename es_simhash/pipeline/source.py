"""
The source of the script: the files in ``painless/``, with what a scheme decides filled in.

Which schemes can be computed on a server at all is decided in ``build``.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from string import Template
from typing import Any

from es_simhash.hashing import Scheme
from es_simhash.hashing.scripts import KANA, LOGOGRAPHS, Ranges
from es_simhash.pipeline.xxh3 import constants, hash_function

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
            ``shingles`` or ``weighted``, with XXH3.
    """
    parts, filled = _of_features(scheme) if scheme.name == "weighted" else _of_texts(scheme)
    every = [_read("sums"), *parts, *map(_read, ("document", "lookup", "main"))]
    return Template("\n".join(every)).substitute(filled, longest=LONGEST)


def _of_features(scheme: Scheme) -> tuple[list[str], dict[str, Any]]:
    """Return the part of the script that reads features, and what is to be filled in."""
    levels = scheme.parameters["levels"]
    filled = {
        **constants(scheme.parameters["seed"]),
        "is_usable": f"weight >= 0.0 && weight < {2.0**42}"
        if levels is None
        else f"weight >= 1.0 && weight <= {levels}.0 && weight == Math.rint(weight)",
        "is_read": " && (!path.isEmpty() || ((List) node).isEmpty())",
        "nothing": "there are no features",
        "empty": "no feature has a weight",
    }
    return [_read("xxh3"), _read("features")], filled


def _of_texts(scheme: Scheme) -> tuple[list[str], dict[str, Any]]:
    """Return the part of the script that reads texts, and what is to be filled in."""
    size, seed = scheme.parameters["size"], scheme.parameters["seed"]
    early = [each for each in LOGOGRAPHS if each[0] < _FIRST_KANA]
    filled = {
        "size": size,
        "step": _STEP,
        "line_feed": "\n",
        "worth": 3 * size,
        "weight": _WEIGHTS[scheme.parameters["weighting"]],
        "early_logographs": _is_within(early),
        "logographs": _is_within([each for each in LOGOGRAPHS if each not in early]),
        "kana": _is_within(KANA),
        "short": "\n".join(
            f"  if (size == {short}) {{ count_hash(table, hash{short}(codes, 0)); }}" for short in range(1, size)
        )
        or "  return;",  # a function without a statement does not compile
        "is_read": "",
        "nothing": "there is no text",
        "empty": "the text has no word characters",
    }
    if scheme.version == 1:
        hashes = [hash_function(f"hash{each}", each, seed, counts=False) for each in range(1, size + 1)]
    else:
        hashes = [hash_function("hash", size, seed, counts=True)]
    parts = [_read("characters"), _read("counts"), *hashes, _read(f"shingles-{scheme.version}"), _read("fingerprint")]
    return parts, filled


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
