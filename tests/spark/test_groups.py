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
from tests.reference import are_neighbours, star_of
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
            "published": None if number % 11 == 3 else 86_400_000 * chance.randrange(1, 7),
        }
        for number, body in enumerate(bodies)
    ]
    how = {} if verify is None else {"verify": verify, "text": "body"}
    kinds = "id string, fingerprint string, body string, source array<string>, published bigint"
    df = spark.createDataFrame([tuple(row.values()) for row in rows], kinds)
    found = groups(df, max_distance=3, per="source", within=("published", "2d"), **how)

    by = None if verify is None else verify.put_on(PairRule()).measure
    known = [
        {
            "fingerprint": int(row["fingerprint"], 16),
            "text": row["body"],
            "source": row["source"],
            "published": [] if row["published"] is None else [row["published"]],
        }
        for row in rows
    ]
    rule = {"max_distance": 3, "per": "source", "within": ("published", 2 * 86_400_000)}
    if by is not None:
        rule |= {"similarity": 0.5, "measure": lambda *texts: by.compare(*by.prepare(list(texts))).similarity}
    places = star_of(len(rows), lambda a, b: are_neighbours(known[a], known[b], **rule))
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


def test_new_documents_join_older_ones_or_make_groups(spark):
    """An older one stays, whatever its id, and stands before each new one."""
    values = uneven(np.random.default_rng(8), 900)
    np.random.default_rng(9).shuffle(values)
    new, old = values[:300].tolist(), values[300:].tolist()
    ids = [f"{number:04}" for number in range(600)]

    def near(one, other):
        return (one ^ other).bit_count() <= 3

    wanted, canonicals = [], []
    for place, value in enumerate(new):
        older = next((n for n, other in enumerate(old) if near(value, other)), None)
        to = older if older is not None else next((n for n in canonicals if near(value, new[n])), None)
        if to is None:
            canonicals.append(place)
            wanted.append((ids[place], ids[place], None, None, False))
        else:
            distance = (value ^ (new if older is None else old)[to]).bit_count()
            wanted.append((ids[place], ids[to], ids[to], distance, older is not None))
    df, against = frame(spark, ids[:300], new), frame(spark, ids, old)
    for options in ({}, {"driver_pairs": 20}):
        found = groups(df, max_distance=3, against=against, **options)
        assert found.columns == ["id", "group", "duplicate_of", "distance", "against"]
        assert sorted(map(tuple, found.collect())) == wanted
    assert len(canonicals) > 50
    assert len({row[4] for row in wanted if row[2] is not None}) == 2


def test_new_documents_are_compared_with_older_ones_by_texts_values_and_dates(spark):
    """Each limit of the rule keeps a new document apart from an older one as from a new one."""
    text = "The council approved the new bridge over the river on Tuesday after a long debate about its cost."
    other = "A goat ate the flowers of the mayor while everybody was at the market buying flowers for the mayor."
    schema = "id long, fingerprint string, body string, site string, at long, rank long"
    day = 86_400_000
    bits = "00000000000000"
    against = spark.createDataFrame([(1, f"{bits}ff", text, "x", 0, 7), (2, f"{bits}ff", text, "x", 0, 3)], schema)
    new = [
        (1, f"{bits}fe", text + " Yes.", "x", day, 0),  # of the older one with the smallest rank
        (2, f"{bits}fe", text, "y", day, 0),
        (3, f"{bits}fe", text, "x", 9 * day, 0),
        (4, f"{bits}ff", other, "x", day, 0),
        (5, f"{bits}fd", text, "y", 2 * day, 1),  # of a new one
    ]
    df = spark.createDataFrame(new, schema)
    options = {"verify": 0.8, "text": "body", "per": "site", "within": ("at", "7d"), "canonical": ["rank"]}
    found = groups(df, max_distance=3, against=against, **options)
    rows = {row.id: (row.duplicate_of, row.distance, row.against) for row in found.collect()}
    apart = (None, None, False)
    assert rows == {1: (2, 1, True), 2: apart, 3: apart, 4: apart, 5: (2, 2, False)}
