"""The joins that find all pairs of fingerprints, held to slow and obvious code, and the threads that run them."""

from dataclasses import replace
from itertools import combinations
from threading import Event

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from es_simhash.groups import all_pairs, joins
from es_simhash.groups.all_pairs import Shares, distances_between, distinct_pairs, in_order
from es_simhash.groups.joins import Family, Swaps, choose_keys, families
from tests.groups.strategies import related_fingerprints


@pytest.fixture
def tiny(monkeypatch):
    """Cut everything into the smallest steps, so that few fingerprints pass through every branch."""
    of_joins = {"WINDOW": 5, "SCAN_WINDOW": 5, "_ROWS": 2, "HOT": 3, "FOUND": 3, "SAMPLE": 7, "MOST_KEYS": 10}
    of_pairs = {"STEP": 4, "_ROWS": 4, "CHUNK": 7, "_THREADED": 2}
    for module, values in ((joins, {**of_joins, "BLOCK": 1 << 10}), (all_pairs, of_pairs)):
        for name, value in values.items():
            monkeypatch.setattr(module, name, value)
    families.cache_clear()
    # Keys are chosen as for many fingerprints.
    monkeypatch.setattr(joins, "IN_MEMORY", replace(joins.IN_MEMORY, join=0.0, element=0.0))
    yield
    families.cache_clear()


def listed(values, max_distance):
    """Return the pairs of places of the distinct values as they are yielded."""
    ordered = np.unique(np.array(values, np.uint64))
    found = distinct_pairs(ordered, max_distance)
    return [pair for part in found for pair in zip(*map(np.ndarray.tolist, part), strict=True)]


def compared(values, max_distance):
    """Return all pairs, found by comparing every two."""
    values = np.unique(np.array(values, np.uint64))
    left, right = np.triu_indices(len(values), 1)
    near = distances_between(values[left], values[right]) <= max_distance
    return list(zip(left[near].tolist(), right[near].tolist(), strict=True))


@pytest.mark.parametrize("bits", [1, 2, 7, 11])
@pytest.mark.parametrize("max_distance", [1, 2, 3, 4, 6])
def test_within_the_distance_some_key_is_equal(bits, max_distance):
    """In every family, whichever bits differ."""
    numbers = list(range(3, 3 + bits))
    differences = [
        sum(1 << bit for bit in some)
        for count in range(min(max_distance, bits) + 1)
        for some in combinations(numbers, count)
    ]
    for family in families(bits, max_distance):
        masks = family.keys(numbers)
        assert len(masks) == family.count
        assert all(any(not difference & key for key in masks) for difference in differences)


@given(st.integers(1, 2**64 - 1), st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=9))
def test_an_exchange_moves_the_key_to_the_top(key, values):
    """A second one restores the fingerprints; distances stay."""
    array = np.array(values, np.uint64)
    moved = array.copy()
    swaps = Swaps(key)
    swaps.apply(moved)
    rest = np.uint64(64 - swaps.width)
    agree = (array[:-1] & np.uint64(key)) == (array[1:] & np.uint64(key))
    assert (((moved[:-1] ^ moved[1:]) >> rest == 0) == agree).all()
    assert (distances_between(moved[:-1], moved[1:]) == distances_between(array[:-1], array[1:])).all()
    swaps.apply(moved)
    assert moved.tolist() == values


def draw_family(data, max_distance):
    return data.draw(st.sampled_from([each for each in families(64, max_distance) if each.count <= 10]))


@pytest.mark.usefixtures("tiny")
@settings(max_examples=50)
@given(related_fingerprints(), st.integers(0, 64), st.data())
def test_every_family_finds_each_pair_once(values, max_distance, data):
    """With hot buckets, several shares, and threads."""
    family = draw_family(data, max_distance)

    def choose(_, bits, distance):
        # Of the fingerprints in a hot bucket all pairs are compared.
        return (family if len(bits) == 64 else Family(distance, 0, 0)).keys(bits)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(all_pairs, "choose_keys", choose)
        assert sorted(listed(values, max_distance)) == compared(values, max_distance)


@pytest.mark.usefixtures("tiny")
@settings(max_examples=30)
@given(related_fingerprints(), st.integers(0, 64))
def test_every_pair_is_found_once(values, max_distance):
    """With the keys that seem to cost least."""
    assert sorted(listed(values, max_distance)) == compared(values, max_distance)


@pytest.mark.usefixtures("tiny")
@settings(max_examples=10)
@given(related_fingerprints(), st.integers(1, 20), st.integers(2, 3))
def test_the_order_of_pairs_does_not_depend_on_the_threads(values, max_distance, threads):
    found = []
    for cores in (1, threads):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(all_pairs, "usable_cores", lambda cores=cores: cores)
            found.append(listed(values, max_distance))
    assert found[0] == found[1]


def test_the_pairs_of_a_full_bucket_come_in_parts():
    """Who needs no more than some does not wait for millions."""
    sizes = [len(left) for left, _ in joins.scan(np.arange(2_000, dtype=np.uint64), 32, 11, [])]
    assert sum(sizes) == 2_000 * 1_999 // 2
    assert max(sizes) < 1 << 18


def uniform(chance, count):
    return chance.integers(0, 2**64, count, dtype=np.uint64)


def with_few_bits(chance, count):
    return uniform(chance, count) & uniform(chance, count) & uniform(chance, count)


def with_equal_halves(chance, count):
    return uniform(chance, count) & np.uint64(0xFFFFFFFF) | np.uint64(7 << 60)


def around_one(chance, count):
    values = np.full(count, 0x1234_5678_9ABC_DEF0, np.uint64)
    for _ in range(5):
        values ^= np.uint64(1) << chance.integers(0, 64, count, dtype=np.uint64)
    return values


MADE = pytest.mark.parametrize(
    ("make", "max_distance"),
    [(uniform, 3), (uniform, 8), (with_few_bits, 1), (with_few_bits, 8), (with_equal_halves, 3), (around_one, 21)],
)


@MADE
def test_thousands_are_joined_as_they_are_compared(make, max_distance, monkeypatch):
    """Evenly spread fingerprints and uneven ones, with buckets that are hot."""
    monkeypatch.setattr(joins, "HOT", 64)
    monkeypatch.setattr(all_pairs, "_THREADED", 1)
    monkeypatch.setattr(joins, "IN_MEMORY", replace(joins.IN_MEMORY, join=1_000.0))
    chance = np.random.default_rng(max_distance)
    values = make(chance, 400)
    values[:100] = values[-100:] ^ np.uint64(1 << 40)
    assert sorted(listed(values, max_distance)) == compared(values, max_distance)


@pytest.mark.parametrize(
    ("make", "max_distance", "count", "keys", "widths"),
    [
        (uniform, 3, 10**3, 1, {0}),
        (uniform, 3, 10**5, 4, {16}),
        (uniform, 3, 10**7, 6, {21, 22}),
        (uniform, 8, 10**7, 105, {16, 17, 18}),
        (with_few_bits, 3, 10**5, 20, {31, 32, 33}),
        (with_few_bits, 3, 10**7, 84, {42, 43}),
        (with_few_bits, 8, 10**7, 18, {10, 11, 12}),
        (with_equal_halves, 3, 10**5, 8, {12}),
        (with_equal_halves, 8, 10**5, 63, {6, 7, 8, 9}),
        (around_one, 3, 10**7, 4, {16}),
    ],
)
def test_the_keys_that_cost_least(make, max_distance, count, keys, widths):
    """So many, of so many bits: more of both for more fingerprints, and where these are unevenly spread."""
    values = np.unique(make(np.random.default_rng(1), 500))
    chosen = choose_keys(values, list(range(64)), max_distance, count=count)
    assert (len(chosen), {key.bit_count() for key in chosen}) == (keys, widths)


def test_costs_are_estimated_by_a_sample():
    """Of few fingerprints all are looked at; of many some, in their order."""
    values = np.arange(100_000, dtype=np.uint64)
    few = values[: joins.SAMPLE]
    assert joins.sample_of(few) is few
    sample = joins.sample_of(values)
    assert joins.SAMPLE / 2 < len(sample) <= joins.SAMPLE
    assert (np.diff(sample) > 0).all()


def routed(values, max_distance, *, sample, batch):
    """Return the pairs of all shares, whose fingerprints arrive there batch by batch, and how many shares there are."""
    planned = Shares.plan(sample, len(values), max_distance)
    shares = {}
    for begin in range(0, len(values), batch):
        for share, part in planned.route(values[begin : begin + batch]):
            shares.setdefault(share, []).append(part)
    assert set(shares) <= set(range(len(planned.keys) * planned.sections))
    found = []
    for share, parts in shares.items():
        for left, right in planned.pairs(share, np.concatenate(parts)):
            smaller, larger = np.minimum(left, right), np.maximum(left, right)
            found += zip(smaller.tolist(), larger.tolist(), strict=True)
    return found, len(shares)


@MADE
def test_every_pair_comes_out_of_one_share(make, max_distance, monkeypatch):
    """Also where very many have the same key, and where the sample is small."""
    monkeypatch.setattr(all_pairs, "COSTS", joins.Costs(20.0, 1.3, 1_000.0))
    monkeypatch.setattr(all_pairs, "SHARE", 40)
    chance = np.random.default_rng(max_distance)
    values = np.unique(make(chance, 400))
    chance.shuffle(values)
    found, count = routed(values, max_distance, sample=values[:60], batch=250)
    ordered = np.unique(values).tolist()
    assert sorted(found) == [(ordered[a], ordered[b]) for a, b in compared(values, max_distance)]
    assert count > 1


@pytest.mark.parametrize("threads", [1, 2, 9])
def test_results_come_in_the_order_of_the_tasks(threads):
    """Whichever task ends first, and however many results it has."""
    tasks = [lambda number=number: iter([(number, each) for each in range(number * 3 % 20)]) for number in range(30)]
    assert list(in_order(tasks, threads)) == [result for task in tasks for result in task()]


def test_tasks_run_at_the_same_time():
    """The first task waits for the second one."""
    reached = Event()

    def first():
        assert reached.wait(60)
        yield "first"

    def second():
        reached.set()
        yield "second"

    assert list(in_order([first, second], 2)) == ["first", "second"]


@pytest.mark.parametrize("threads", [1, 2])
def test_an_exception_is_raised_in_its_place(threads):
    """What tasks before it found is there."""

    def fail():
        yield 2
        raise KeyError("gone")

    stream = in_order([lambda: iter([1]), fail, lambda: iter([3])], threads)
    assert next(stream) == 1
    with pytest.raises(KeyError, match="gone"):
        next(stream)


def test_no_task_begins_after_the_caller_stopped():
    """Those that run are waited for; of many others few have begun."""
    begun = []

    def task():
        begun.append(None)
        yield 1

    stream = in_order([task] * 100, 2)
    assert next(stream) == 1
    stream.close()
    assert len(begun) <= 4
