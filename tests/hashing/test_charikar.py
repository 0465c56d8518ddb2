"""Charikar's sum, hexadecimal digits, blocks and distances: worked examples and refusals."""

import math
import subprocess
import sys

import numpy as np
import pytest

from es_simhash.errors import InvalidInputError
from es_simhash.hashing import hamming_distance, kernels, simhash, to_hex


def test_large_weights_are_summed_exactly():
    """A sum too large for 32 bits a lane takes the wide path, to the last unit."""
    big = 2.0**40
    assert simhash([0b1, 0b0], [big, big + 1]) == 0
    assert simhash([0b1, 0b0], [big + 1, big]) == 1


@pytest.mark.parametrize("weight", [-1, -1e-9, math.nan, math.inf, -math.inf, 2**42, 1e300, 10**400])
def test_weights_that_cannot_be_used(weight):
    """A weight that is negative, not finite or too large is refused, and weights that are so together."""
    with pytest.raises((InvalidInputError, TypeError), match="weight"):
        simhash([1, 2], [1, weight])
    with pytest.raises(InvalidInputError):
        simhash([1], [1, 2])
    with pytest.raises(TypeError):
        simhash([1], ["heavy"])
    with pytest.raises(InvalidInputError, match=r"2\*\*42"):
        simhash([1, 2], [2**41, 2**41])


def test_numpy_integers_are_integers():
    """Fingerprints that come out of an array can be handed on as they are."""
    value = np.uint64(2**64 - 1)
    assert to_hex(value) == "f" * 16
    assert hamming_distance(value, np.uint64(0)) == 64
    assert simhash(np.array([2**63], np.uint64)) == 2**63


def test_distances_without_bitwise_count(monkeypatch):
    """Numpy 1.26, which lacks bitwise_count, gives the same distances."""
    values = np.array([0, 1, 2**63, 2**64 - 1, 0x0123456789ABCDEF], np.uint64)
    monkeypatch.delattr(np, "bitwise_count", raising=False)
    assert kernels.count_bits(values).tolist() == [int(value).bit_count() for value in values]


def test_importing_loads_neither_numpy_nor_jieba():
    """Importing the package, and handling fingerprints, loads no arrays and no dictionary."""
    code = (
        "import sys, es_simhash.hashing as h; h.to_hex(1); h.block_terms(1); h.get_scheme('keywords');"
        "from es_simhash import SimHashClient;"
        "slow = ('numpy', 'jieba', 'jinja2', 'rjieba', 'opencc', 'multiprocessing', 'asyncio', 'email');"
        "print([name for name in slow if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
