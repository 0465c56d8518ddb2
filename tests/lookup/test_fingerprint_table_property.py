"""
The table of fingerprints: it holds against brute force, and the reading of shards against a model of a
server.
"""

import random

import numpy as np
import pytest
from hypothesis import given, strategies as st

from es_simhash.lookup import fingerprint_table as module
from es_simhash.lookup.fingerprint_table import FingerprintTable, bytes_for, choose_parts
from es_simhash.mapping.shards import Position, ShardReading

FULL = 2**64 - 1


def spread(chance, count, bits):
    """Return fingerprints that differ only in some *bits*, many of them near one another."""
    origins = [chance.getrandbits(64) for _ in range(1 + count // 8)]
    found = []
    for _ in range(count):
        value = chance.choice(origins)
        for bit in chance.sample(range(64), chance.randint(0, 12)):
            value ^= 1 << bit
        found.append(value & bits)
    return found


def near(values, wanted, max_distance):
    return sorted({each for each in values if (each ^ wanted).bit_count() <= max_distance})


@given(
    st.integers(0, 2**32),
    st.integers(0, 64),
    st.integers(0, 300),
    st.sampled_from([FULL, 0xFFFF, 0xFFFFFFFF00000000, 0xF0F0F0F0F0F0F0F0]),
)
def test_the_table_has_what_brute_force_has(seed, max_distance, count, bits):
    """At every distance, for even and uneven fingerprints, in whatever parts they are added."""
    chance = random.Random(seed)
    values = spread(chance, count, bits)
    limits = module.TAIL, module.SCANNED, module.BLOCK
    # Levels and columns are for many fingerprints: here for a few.
    module.TAIL, module.SCANNED, module.BLOCK = chance.choice([1, 8, 64]), chance.choice([1.0, 1e9]), 1 << 10
    try:
        table, known = FingerprintTable(max_distance), set()
        begin = 0
        while begin < len(values):
            part = values[begin : begin + chance.randint(1, 100)]
            begin += len(part)
            assert set(table.add(np.array(part, np.uint64)).tolist()) == set(part) - known
            known |= set(part)
        assert len(table) == len(known)
        wanted = [*spread(chance, 5, bits), *values[:5], chance.getrandbits(64)]
        found = table.near(np.array(wanted, np.uint64))
        assert found == {each: some for each in wanted if (some := near(known, each, max_distance))}
        among = table.near_among(np.array(wanted, np.uint64), np.array(values[:50], np.uint64))
        assert among == {each: some for each in wanted if (some := near(values[:50], each, max_distance))}
    finally:
        module.TAIL, module.SCANNED, module.BLOCK = limits


@given(st.integers(1, 10**8), st.integers(0, 64))
def test_parts_allow_no_more_than_the_distance(count, max_distance):
    """A fingerprint that differs in more than its radius in every part is beyond the distance; parts do not overlap."""
    parts = choose_parts(count, max_distance)
    if parts:
        assert sum(each.radius + 1 for each in parts) == max_distance + 1
        assert all(each.radius <= each.width for each in parts)
    ends = [each.begin + each.width for each in parts]
    assert all(end <= each.begin for end, each in zip(ends, parts[1:], strict=False))
    assert not parts or ends[-1] <= 64


@pytest.mark.parametrize(
    ("count", "max_distance", "parts"),
    [
        (15, 3, []),
        (1_000, 3, [(11, 0)] * 4),
        (10**5, 3, [(16, 0)] * 4),
        (10**7, 3, [(21, 1), (21, 0), (22, 0)]),
        (10**5, 12, [(12, 2), (13, 2), (13, 2), (13, 1), (13, 1)]),
        (10**7, 12, [(21, 4), (21, 3), (22, 3)]),
        (10**6, 0, [(21, 0)]),
        (10**6, 24, []),
    ],
)
def test_the_parts_that_cost_least(count, max_distance, parts):
    """Width and radius of each: fewer parts for more fingerprints, and none where all are compared sooner."""
    assert [(each.width, each.radius) for each in choose_parts(count, max_distance)] == parts
    words = sum(1 << width for width, _ in parts)
    assert bytes_for(count, max_distance) == 8 * count * max(1, len(parts)) + 5 * words


def test_levels_of_nearly_equal_size_are_joined(monkeypatch):
    """So that there are few; a large one is not sorted again for each small one."""
    monkeypatch.setattr(module, "TAIL", 10)
    table, lengths = FingerprintTable(3), []
    for first, count in ((0, 1_000), (1_000, 20), (1_020, 8), (1_028, 8), (1_036, 100)):
        table.add(np.arange(first, first + count, dtype=np.uint64))
        lengths.append([*map(len, table._levels), len(table._tail)])
    assert lengths == [[1_000, 0], [1_000, 20, 0], [1_000, 20, 8], [1_000, 36, 0], [1_136, 0]]


class Copy:
    """A copy of a shard: operations come in any order, and a refresh makes those that came visible."""

    def __init__(self):
        self.processed = set()
        self.visible = set()


def test_no_visible_operation_stays_unread():
    """Operations become visible out of order, on each copy in its own; positions are read before searches are sent."""
    for seed in range(300):
        simulate(random.Random(seed))


def simulate(chance):
    copies = [Copy() for _ in range(chance.randint(1, 3))]
    given_numbers, read = 0, set()
    reading = ShardReading(Position(-1, -1))
    for _ in range(200):
        [step] = chance.choices(range(5), (1, 3, 2, 2, 3))
        copy = chance.choice(copies)
        if step == 0:
            given_numbers += 1
        elif step == 1:
            waiting = [each for each in range(given_numbers) if each not in copy.processed]
            copy.processed |= set(waiting[: chance.randint(0, 4)][chance.randint(0, 2) :])
        elif step == 2:
            copy.visible = set(copy.processed)
        elif step == 3:
            checkpoint = -1
            while all(checkpoint + 1 in each.processed for each in copies):
                checkpoint += 1
            reading.note(Position(checkpoint, given_numbers - 1))
            if chance.random() < 0.2:
                for each in copies:
                    each.visible = set(each.processed)
                reading.note_refresh()
        elif reading.is_behind:
            shown = {each for each in copy.visible if each > reading.certain}
            read |= shown
            reading.advance(max(shown, default=None) if chance.random() < 0.8 else None)
            assert copy.visible <= read
    assert reading.certain < given_numbers
