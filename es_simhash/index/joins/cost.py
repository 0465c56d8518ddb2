"""
Choosing the family of keys that costs least for a set of fingerprints: the cost model.

A wrong estimate makes the search for pairs slower, never less exact. How evenly keys are spread is measured in a
sample.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from es_simhash.index.joins.keys import Family, families
from es_simhash.index.joins.scan import HOT

__all__ = ["IN_MEMORY", "Costs", "choose_keys", "sample_of"]

Fingerprints = NDArray[np.uint64]

SAMPLE = 1 << 14
# Keys of a family that are tried on the sample.
_TRIED = 8


@dataclass(frozen=True, slots=True)
class Costs:
    """
    What the parts of a join cost, in nanoseconds of one core.

    Attributes:
        element:
            To move, sort and scan one fingerprint.
        candidate:
            To compare one candidate.
        join:
            To begin one join.
    """

    element: float
    candidate: float
    join: float


IN_MEMORY = Costs(35.0, 1.3, 300_000.0)


def choose_keys(
    values: Fingerprints,
    bits: list[int],
    max_distance: int,
    *,
    count: int | None = None,
    costs: Costs | None = None,
) -> list[int]:
    """
    Return the keys that find all pairs of *values* within *max_distance* at the least estimated cost.

    The same values in the same order always get the same keys.

    Args:
        values:
            Distinct fingerprints.
        bits:
            The bits that keys may be made of.
        max_distance:
            Largest distance in bits, inclusive.
        count:
            How many fingerprints there are, where *values* are a random sample of them.
        costs:
            What the parts of a join cost; by default in the memory of this process.
    """
    costs = costs or IN_MEMORY
    count = len(values) if count is None else count
    if costs.candidate * count * (count - 1) / 2 <= costs.join:
        return [0]
    sample = sample_of(values)
    varying = int(np.bitwise_or.reduce(sample ^ sample[0])) if len(sample) else 0
    # A bit that is the same in all of the sample tells nothing apart.
    bits = [bit for bit in bits if varying >> bit & 1]
    estimates = [(_uniform_cost(each, count, len(bits), costs), each) for each in families(len(bits), max_distance)]
    *rest, (best, without_key) = estimates
    for cost, family in sorted(rest, key=lambda each: each[0]):
        # Uneven keys only add to the cost of even ones.
        if cost >= best:
            break
        measured = _measured_cost(family.keys(bits), count, sample, costs)
        if measured < best:
            best, without_key = measured, family
    return without_key.keys(bits)


def sample_of(values: Fingerprints) -> Fingerprints:
    """Return some of *values*, at random but always the same ones."""
    if len(values) <= SAMPLE:
        return values
    chance = np.random.default_rng(0)
    return values[np.unique(chance.integers(0, len(values), SAMPLE))]


def _uniform_cost(family: Family, count: int, bits: int, costs: Costs) -> float:
    pairs = count * (count - 1) / 2
    if not family.parts:
        return costs.candidate * pairs
    width = bits * family.agreeing / family.pieces
    return family.count * (costs.join + costs.element * count + costs.candidate * pairs / 2**width)


def _measured_cost(keys: list[int], count: int, sample: Fingerprints, costs: Costs) -> float:
    """Estimate the cost from the buckets that some of the keys make of the sample."""
    tried = keys[:: -(-len(keys) // _TRIED)]
    scale = count / len(sample)
    total = 0.0
    for key in tried:
        masked = np.sort(sample & np.uint64(key))
        sizes = np.diff(np.flatnonzero(np.concatenate(([True], masked[1:] != masked[:-1], [True]))))
        # A fingerprint of the sample has sizes - 1 others in its bucket, and of all fingerprints scale times as many.
        others = np.minimum((sizes - 1) * scale, HOT)
        total += float((others * sizes).sum()) * scale / 2
    pairs = max(total / len(tried), count * (count - 1) / 2 / 2 ** max(key.bit_count() for key in tried))
    return float(len(keys) * (costs.join + costs.element * count + costs.candidate * pairs))
