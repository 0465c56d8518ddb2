"""Groups that Spark makes are those that are made in memory, and so those of ``reconcile``."""

import random
from datetime import UTC, datetime, timedelta
from importlib import import_module

import numpy as np
import pytest

pytest.importorskip("pyspark", reason="needs the extra spark")
pa = pytest.importorskip("pyarrow", reason="needs the extra spark")

from es_simhash.errors import InvalidInputError, SimHashError
from es_simhash.groups.assign import Documents, group_documents
from es_simhash.lookup.lookup_options import Verification
from es_simhash.mapping.rule import PairRule
from es_simhash.spark import groups
from tests.reference import star_of
from tests.servers.support import texts
from tests.spark.test_pairs import frame, uneven


def listed(found):
    table = found.toArrow()
    assert table.column_names == ["id", "group", "duplicate_of", "distance"]
    return sorted(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))


def reported(ids, values, canonical):
    """Return the rows of documents in canonical order, of the places of their canonicals."""
    found = []
    for place, to in enumerate(canonical.tolist()):
        distance = int(values[place] ^ values[to]).bit_count()
        found.append((ids[place], ids[to], *((None, None) if place == to else (ids[to], distance))))
    return sorted(found)


@pytest.fixture(scope="module")
def documents(spark):
    """Ids in canonical order, their fingerprints, and both as a frame in another order."""
    values = uneven(np.random.default_rng(3), 800)
    ids = [f"{number:04}" for number in range(len(values))]
    order = np.random.default_rng(4).permutation(len(ids))
    return ids, values, frame(spark, [ids[place] for place in order], values[order].tolist())


@pytest.fixture
def checkpoints(spark, tmp_path):
    """The session keeps checkpoints as files in a folder."""
    spark.sparkContext.setCheckpointDir(str(tmp_path))
    yield tmp_path
    spark._jsc.sc().setCheckpointDir(None)


def test_groups_are_those_in_memory(documents):
    ids, values, df = documents
    wanted = reported(ids, values, group_documents(Documents(values), 3))
    assert listed(groups(df, max_distance=3)) == wanted
    assert sum(row[2] is not None for row in wanted) > 100


def test_groups_by_rounds_are_those_in_memory(documents, checkpoints):
    """Whatever the partitions; what is kept between the rounds are files."""
    ids, values, df = documents
    found = groups(df.repartition(2), max_distance=3, driver_pairs=20)
    assert listed(found) == reported(ids, values, group_documents(Documents(values), 3))
    assert [path for path in checkpoints.rglob("part-*") if path.is_file()]


def test_a_chain_is_settled_by_the_driver(spark, monkeypatch):
    """Each document decides about the next one: more rounds than are allowed."""
    monkeypatch.setattr(import_module("es_simhash.spark.groups"), "ROUNDS", 2)
    values = np.cumsum(np.uint64(1) << np.arange(40, dtype=np.uint64))
    ids = list(range(40))
    df = frame(spark, ids, values.tolist())
    wanted = reported(ids, values, group_documents(Documents(values), 1))
    assert listed(groups(df, max_distance=1)) == wanted
    with pytest.raises(SimHashError, match="pairs are undecided after 2 rounds"):
        groups(df, max_distance=1, driver_pairs=3)


def test_dates_and_numbers_order_as_in_an_index(spark):
    """Dates to the millisecond, whole numbers as doubles, then the id; and so does the span of ``within``."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [("b", 2**53, 1_001), ("a", 2**53 + 1, 1_999), ("c", 2**53 + 1, 2_999)]
    rows = [(id_, "0" * 16, views, start + timedelta(microseconds=micros)) for id_, views, micros in rows]
    df = spark.createDataFrame(rows, "id string, fingerprint string, views bigint, at timestamp")
    for canonical in ("views", "at"):
        found = groups(df, max_distance=0, canonical=[canonical], within=("at", "1ms"))
        assert {group for _, group, *_ in listed(found)} == {"a"}


@pytest.mark.parametrize("verify", [Verification(0.5), Verification(0.5, numbers="same"), None])
def test_measures_values_and_dates_as_the_rule_says(spark, verify):
    """
    Compared with slow, obvious code, also texts of few words, whose numbers differ; without a text, a value or a date a
    document has no neighbours.
    """
    chance, bodies = random.Random(9), [" ".join(each.split()[:20]) for each in texts(100, edits=4)]
    bodies = [f"{body} The boats are {40 + number % 2}." for number, body in enumerate(bodies)]
    rows = [
        {
            "id": f"{number:02d}",
            "fingerprint": f"{chance.choice([0, 255]) ^ 1 << chance.randrange(4):016x}",
            "body": None if number % 17 == 5 else body,
            "source": [[], ["x"], ["y"], ["y", "x"], ["x", "y"]][chance.randrange(5)],
            "published": None if number % 11 == 3 else 86_400_000 * chance.randrange(6),
        }
        for number, body in enumerate(bodies)
    ]
    how = {} if verify is None else {"verify": verify, "text": "body"}
    kinds = "id string, fingerprint string, body string, source array<string>, published bigint"
    df = spark.createDataFrame([tuple(row.values()) for row in rows], kinds)
    found = groups(df, max_distance=3, per="source", within=("published", "2d"), **how)

    def near(a, b):
        one, two = rows[a], rows[b]
        if (int(one["fingerprint"], 16) ^ int(two["fingerprint"], 16)).bit_count() > 3:
            return False
        if not one["source"] or sorted(one["source"]) != sorted(two["source"]):
            return False
        days = one["published"], two["published"]
        if None in days or abs(days[0] - days[1]) > 2 * 86_400_000:
            return False
        if verify is None:
            return True
        if one["body"] is None or two["body"] is None:
            return False
        by = verify.put_on(PairRule()).measure
        return by.compare(*by.prepare([one["body"], two["body"]])).similarity >= 0.5

    places = star_of(len(rows), near)
    values = np.array([int(row["fingerprint"], 16) for row in rows], np.uint64)
    wanted = reported([row["id"] for row in rows], values, np.array(places))
    assert listed(found) == wanted
    assert sum(row[2] is not None for row in wanted) > 2


def test_arguments_are_checked(documents):
    df = documents[2]
    for arguments in (
        {"verify": 0.5},
        {"verify": 2.0, "text": "id"},
        {"within": ("id", "7x")},
        {"per": "missing"},
        {"text": "id"},
        {"canonical": ["missing"]},
        {"driver_pairs": -1},
    ):
        with pytest.raises(InvalidInputError):
            groups(df, max_distance=3, **arguments)


def decided(new, old, are_neighbours):
    """Return for each new document the place of what it duplicates, and whether that is an older one."""
    found, canonicals = [], []
    for place, document in enumerate(new):
        older = next((n for n, other in enumerate(old) if are_neighbours(document, other)), None)
        earlier = next((n for n in canonicals if are_neighbours(document, new[n])), None)
        if older is None and earlier is None:
            canonicals.append(place)
        found.append((older, True) if older is not None else (earlier, False))
    return found


def test_new_documents_join_older_ones_or_make_groups(spark):
    """An older one stays, whatever its id, and stands before each new one."""
    values = uneven(np.random.default_rng(8), 900)
    np.random.default_rng(9).shuffle(values)
    new, old = values[:300].tolist(), values[300:].tolist()
    ids = [f"{number:04}" for number in range(600)]
    wanted = decided(new, old, lambda one, other: (one ^ other).bit_count() <= 3)
    df, against = frame(spark, ids[:300], new), frame(spark, ids, old)
    for options in ({}, {"driver_pairs": 20}):
        found = groups(df, max_distance=3, against=against, **options)
        rows = {row.id: row for row in found.collect()}
        assert len(rows) == 300
        for place, (to, is_older) in enumerate(wanted):
            row = rows[ids[place]]
            value = None if to is None else old[to] if is_older else new[to]
            distance = None if value is None else (new[place] ^ value).bit_count()
            assert (row.duplicate_of, row.distance, row.against) == (
                (None, None, False) if to is None else (ids[to], distance, is_older)
            )
            assert row.group == (ids[place] if to is None else ids[to])
    assert sum(each == (None, False) for each in wanted) > 50
    assert len({each[1] for each in wanted if each[0] is not None}) == 2


def test_new_documents_are_compared_with_older_ones_by_texts_values_and_dates(spark):
    """Each limit of the rule keeps a new document apart from an older one as from a new one."""
    text = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."
    other = "A goat ate the flowers of the mayor while everybody was at the market buying flowers for the mayor."
    schema = "id long, fingerprint string, body string, site string, at long, rank long"
    day = 86_400_000
    against = spark.createDataFrame(
        [(1, "00000000000000ff", text, "x", 0, 7), (2, "00000000000000ff", text, "x", 0, 3)], schema
    )
    df = spark.createDataFrame(
        [
            (1, "00000000000000fe", text + " Yes.", "x", day, 0),  # of the older one with the smallest rank
            (2, "00000000000000fe", text, "y", day, 0),
            (3, "00000000000000fe", text, "x", 9 * day, 0),
            (4, "00000000000000ff", other, "x", day, 0),
            (5, "00000000000000fd", text, "y", 2 * day, 1),  # of a new one
        ],
        schema,
    )
    options = {"verify": 0.8, "text": "body", "per": "site", "within": ("at", "7d"), "canonical": ["rank"]}
    found = groups(df, max_distance=3, against=against, **options)
    rows = {row.id: (row.duplicate_of, row.distance, row.against) for row in found.collect()}
    apart = (None, None, False)
    assert rows == {1: (2, 1, True), 2: apart, 3: apart, 4: apart, 5: (2, 2, False)}
