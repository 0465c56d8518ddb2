"""Pairs that Spark finds are those that are found in memory."""

import numpy as np
import pytest

pytest.importorskip("pyspark", reason="needs the extra spark")
pa = pytest.importorskip("pyarrow", reason="needs the extra spark")

from es_simhash.errors import InvalidInputError
from es_simhash.groups import all_pairs, assign
from es_simhash.groups.joins import Costs
from es_simhash.spark import near_pairs, pairs


def uneven(chance, count):
    """Return fingerprints of which many are equal, and many agree in the bits of a key."""
    values = chance.integers(0, 1 << 64, count, dtype=np.uint64)
    values[: count // 20] = values[0]
    values[count // 10 : count // 5] = values[count // 5 : 2 * (count // 5) - count // 10] ^ np.uint64(1 << 63)
    part = np.arange(count // 6, dtype=np.uint64)
    values[count // 2 : count // 2 + len(part)] = values[7] ^ (part * np.uint64(977))
    return values


def frame(spark, ids, values):
    digits = [None if value is None else f"{value:016x}" for value in values]
    return spark.createDataFrame(pa.table({"id": ids, "fingerprint": pa.array(digits, pa.string())}))


def listed(found):
    table = found.toArrow()
    assert table.column_names == ["id", "other_id", "distance"]
    return sorted(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))


def compared(ids, values, max_distance):
    found = []
    for left, right in assign.near_pairs(assign.Documents(values), max_distance):
        bits = all_pairs.distances_between(values[left], values[right])
        for a, b, distance in zip(left.tolist(), right.tolist(), bits.tolist(), strict=True):
            found.append((*sorted((ids[a], ids[b])), distance))
    return sorted(found)


@pytest.fixture
def tiny(monkeypatch):
    """Plan as for many documents: several shares, and hot keys."""
    monkeypatch.setattr(all_pairs, "COSTS", Costs(20.0, 1.3, 1_000.0))
    monkeypatch.setattr(all_pairs, "SHARE", 100)


@pytest.mark.parametrize("max_distance", [0, 3])
def test_every_pair_is_found_once(spark, tiny, max_distance):
    """With hot fingerprints and hot keys, and a document without a fingerprint."""
    values = uneven(np.random.default_rng(1), 600)
    ids = [f"d{number}" for number in range(len(values))]
    df = frame(spark, [*ids, "none"], [*values.tolist(), None])
    wanted = compared(ids, values, max_distance)
    assert listed(near_pairs(df, max_distance)) == wanted
    assert len(wanted) > 400


def test_what_cannot_be_used_is_refused(spark):
    """An id that comes twice, and a fingerprint in upper case."""
    with pytest.raises(InvalidInputError, match="comes 2 times"):
        near_pairs(frame(spark, ["a", "a"], [1, 2]), 3)
    with pytest.raises(Exception, match="'ABC' is not a fingerprint"):
        near_pairs(spark.createDataFrame([("a", "ABC")], "id string, fingerprint string"), 3)


@pytest.mark.parametrize(("max_distance", "table"), [(0, 1 << 20), (3, 64), (9, 1 << 20)])
def test_new_documents_are_paired_with_older_ones(spark, tiny, monkeypatch, max_distance, table):
    """Those of the older ones among themselves are left out, also where both have the same ids."""
    monkeypatch.setattr(pairs, "TABLE", table)
    chance = np.random.default_rng(6)
    values = uneven(chance, 700)
    chance.shuffle(values)
    new, old = values[:200], values[200:]
    ids = [f"d{number}" for number in range(len(old))]
    df = frame(spark, [*ids[: len(new)], "none"], [*new.tolist(), None])
    against = frame(spark, [*ids, "none"], [*old.tolist(), None]).repartition(3)
    found = near_pairs(df, max_distance, against=against).toArrow()
    assert found.column_names == ["id", "other_id", "distance", "against"]
    rows = list(zip(*(found[name].to_pylist() for name in found.column_names), strict=True))
    bits = np.bitwise_count(new[:, np.newaxis] ^ old)
    wanted = [(ids[a], ids[b], int(bits[a, b])) for a, b in zip(*np.nonzero(bits <= max_distance), strict=True)]
    assert sorted(row[:3] for row in rows if row[3]) == sorted(wanted)
    assert sorted(row[:3] for row in rows if not row[3]) == compared(ids, new, max_distance)
    assert len(wanted) > 200


def test_older_documents_need_the_same_columns(spark):
    """One line says what is missing, in the words of the caller."""
    df = frame(spark, ["a"], [1])
    with pytest.raises(InvalidInputError, match="against has no column 'fingerprint', which df has"):
        near_pairs(df, 3, against=df.drop("fingerprint"))
    with pytest.raises(TypeError, match="column 'id' is bigint in against, and string in df: cast it"):
        near_pairs(df, 3, against=frame(spark, [1], [1]))
    with pytest.raises(TypeError, match="against must be a DataFrame of Spark, not list"):
        near_pairs(df, 3, against=[])
    with pytest.raises(InvalidInputError, match="comes 2 times"):
        near_pairs(df, 3, against=frame(spark, ["b", "b"], [1, 1])).collect()
    assert near_pairs(frame(spark, ["a"], [None]), 3, against=df).count() == 0
    assert near_pairs(df, 3, against=frame(spark, ["b"], [None])).count() == 0
