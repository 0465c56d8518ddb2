"""All pairs within a distance: Spark carries fingerprints to the joins that ``groups.all_pairs`` decides on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, functions as sql

from es_simhash.groups.all_pairs import Shares
from es_simhash.lookup.fingerprint_table import FingerprintTable
from es_simhash.mapping.meta import check_max_distance
from es_simhash.spark.columns import as_values, check_against, check_column, documents_of, keep, parsed, to_array

Batches = Iterator[pa.RecordBatch]
# Fingerprints of the sample that decides which joins are made.
SAMPLE = 1 << 17
# Fingerprints that a task shares out at once.
FLUSH = 1 << 20
# Fingerprints in a row on the way to a share: an Arrow batch has up to 10,000 rows.
ROW = 1 << 10
# New fingerprints that are looked for in one reading of the others: each task makes a table of them.
TABLE = 1 << 20


def near_pairs(
    df: DataFrame,
    max_distance: int,
    *,
    against: DataFrame | None = None,
    id: str = "id",
    fingerprint: str = "fingerprint",
) -> DataFrame:
    """
    Return every pair of documents within *max_distance*, each once: ``id, other_id, distance``.

    ``id`` is the smaller of the two. Distinct fingerprints are joined once, however many documents have them; then each
    pair of fingerprints becomes the pairs of its documents. There are n * (n - 1) / 2 pairs of n documents with one
    fingerprint: to group documents, use :func:`groups`, which makes none of these.

    Some steps are computed before this returns: the fingerprints are read, and a sample of them decides which joins are
    made.

    Args:
        df:
            The documents.
        max_distance:
            Largest distance of a pair in bits, inclusive, 0 to 64.
        against:
            Older documents, with the same columns: the pairs of these among themselves are left out. A pair of *df* and
            one of these has the ``id`` of *df*, and ``True`` in a fourth column, ``against``. The older documents are
            read once for every million new fingerprints, and once more, where they are: they are not sorted or moved.
            The fingerprints of *df* go through the driver, 8 bytes each.
        id:
            Name of the column of ids: of any type with an order, each id once.
        fingerprint:
            Name of the column of fingerprints, 16 hex digits; documents without one (null) are in no pair.

    Raises:
        TypeError: If an argument or a column has the wrong type.
        InvalidInputError: If *max_distance* is out of range, *df* has no such column, or an id is null or not the only
            one.
    """
    check_max_distance(max_distance)
    if against is not None:
        check_against(df, against, (id, fingerprint))
    documents = documents_of(df, id, fingerprint)
    counts = keep(documents.groupBy("value").agg(sql.count("*").alias("copies")))
    pairs = pairs_of_values(counts.select("value"), max_distance)
    equal = counts.where("copies > 1").select(sql.col("value").alias("left"), sql.col("value").alias("right"))
    found = _with_documents(pairs.unionByName(equal), documents, documents)
    left, right = sql.col("left_id"), sql.col("right_id")
    among = found.where((sql.col("left") != sql.col("right")) | (left < right)).select(
        sql.least(left, right).alias("id"), sql.greatest(left, right).alias("other_id"), distance_of("left", "right")
    )
    if against is None:
        return among
    across, older = read_against(documents, against, max_distance, id, fingerprint)
    found = _with_documents(across, documents, older)
    found = found.select(left.alias("id"), right.alias("other_id"), distance_of("left", "right"))
    return among.withColumn("against", sql.lit(False)).unionByName(found.withColumn("against", sql.lit(True)))


def _with_documents(pairs: DataFrame, *documents: DataFrame) -> DataFrame:
    """Return *pairs* of fingerprints once for each two documents with them, and their ids."""
    for side, some in zip(("left", "right"), documents, strict=True):
        pairs = pairs.join(some.select(sql.col("value").alias(side), sql.col("id").alias(f"{side}_id")), side)
    return pairs


def read_against(
    documents: DataFrame,
    against: DataFrame,
    max_distance: int,
    id: str,
    fingerprint: str,
    others: Sequence[Column] = (),
) -> tuple[DataFrame, DataFrame]:
    """
    Return the pairs ``left, right`` of a fingerprint of *documents* and one of *against*, each once; and those of
    *against* that are in a pair, as :func:`documents_of` returns them.
    """
    older = against.select(parsed(check_column(against, "fingerprint", fingerprint)).alias("value"))
    older = older.where("value is not null")
    new = np.sort(as_values(documents.select("value").distinct().toArrow()["value"]))
    parts = [new[begin : begin + TABLE] for begin in range(0, max(1, len(new)), TABLE)]
    found = [older.mapInArrow(_looking_up(part, max_distance), "left bigint, right bigint") for part in parts]
    across = keep(reduce(DataFrame.unionByName, found).distinct())
    near = keep(across.select(sql.col("right").alias("value")).distinct())
    return across, documents_of(against, id, fingerprint, others=others, among=near)


def _looking_up(values: NDArray[np.uint64], max_distance: int) -> Callable[[Batches], Batches]:
    def look_up(batches: Batches) -> Batches:
        table = FingerprintTable(max_distance)
        table.add(values)
        for older in _collected(as_values(batch.column(0)) for batch in batches):
            distinct = np.unique(older)
            row, near = table.near_pairs(distinct)
            yield pa.record_batch([pa.array(side.view(np.int64)) for side in (near, distinct[row])], ["left", "right"])

    return look_up


def distance_of(left: str | Column, right: str | Column) -> Column:
    """Return the column ``distance`` of two columns of fingerprints as numbers, in bits."""
    columns = [sql.col(column) if isinstance(column, str) else column for column in (left, right)]
    return sql.bit_count(columns[0].bitwiseXOR(columns[1])).cast("int").alias("distance")


def pairs_of_values(values: DataFrame, max_distance: int) -> DataFrame:
    """
    Return the pairs ``left, right`` of fingerprints within *max_distance*, each once.
    *values*: the column ``value`` of signed numbers, each once. It is read three times.
    """
    count = values.count()
    # By their hash: the same ones each time.
    sample = values.where(sql.pmod(sql.xxhash64("value"), sql.lit(max(1, count))) < SAMPLE) if max_distance else values
    if not max_distance or count < 2:
        return values.select(sql.col("value").alias("left"), sql.col("value").alias("right")).limit(0)
    sampled = np.sort(as_values(sample.toArrow()["value"]))
    shares = Shares.plan(sampled if len(sampled) else np.zeros(1, np.uint64), count, max_distance)
    shared = values.mapInArrow(_sharing(shares), "share bigint, part binary")
    # Sorted, so that a task has one share at a time; Spark sorts on disk where memory does not suffice.
    gathered = shared.repartition("share").sortWithinPartitions("share")
    return gathered.mapInArrow(_joining(shares), "left bigint, right bigint")


def _sharing(shares: Shares) -> Callable[[Batches], Batches]:
    def share(batches: Batches) -> Batches:
        for values in _collected(as_values(batch.column(0)) for batch in batches):
            for number, part in shares.route(values):
                rows = [part[begin : begin + ROW].tobytes() for begin in range(0, len(part), ROW)]
                numbers = np.full(len(rows), number, np.int64)
                yield pa.record_batch([pa.array(numbers), pa.array(rows, pa.binary())], ["share", "part"])

    return share


def _collected(parts: Iterator[NDArray[np.uint64]]) -> Iterator[NDArray[np.uint64]]:
    waiting: list[NDArray[np.uint64]] = []
    for part in parts:
        waiting.append(part)
        if sum(map(len, waiting)) >= FLUSH:
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)


def _joining(shares: Shares) -> Callable[[Batches], Batches]:
    def join(batches: Batches) -> Batches:
        for number, values in _shares(batches):
            for left, right in shares.pairs(number, values):
                columns = [pa.array(column.view(np.int64)) for column in (left, right)]
                yield pa.record_batch(columns, ["left", "right"])

    return join


def _shares(batches: Batches) -> Iterator[tuple[int, NDArray[np.uint64]]]:
    """Yield the number and the fingerprints of each share, of rows that are sorted by that number."""
    current, parts = None, bytearray()
    for batch in batches:
        numbers = to_array(batch.column(0))
        starts = np.flatnonzero(np.diff(numbers, prepend=numbers[:1] - 1)).tolist() if len(numbers) else []
        for begin, end in zip(starts, [*starts[1:], len(numbers)], strict=False):
            if current != numbers[begin]:
                if current is not None:
                    yield current, np.frombuffer(bytes(parts), np.uint64)
                current, parts = int(numbers[begin]), bytearray()
            for row in batch.column(1)[begin:end]:
                parts += row.as_buffer()
    if current is not None:
        yield current, np.frombuffer(bytes(parts), np.uint64)
