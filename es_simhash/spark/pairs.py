"""All pairs within a distance: Spark carries fingerprints to the joins that ``groups.shares`` decides on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, functions as sql

from es_simhash.arguments import FilePath
from es_simhash.groups.shares import Routes, plan_routes
from es_simhash.mapping.meta import check_max_distance
from es_simhash.spark.columns import Keeper, as_values, documents_of, to_array

Batches = Iterator[pa.RecordBatch]
# Fingerprints of the sample that decides which joins are made.
SAMPLE = 1 << 17
# Fingerprints that a task shares out at once.
FLUSH = 1 << 20
# Fingerprints in a row on the way to a share: an Arrow batch has up to 10,000 rows.
ROW = 1 << 10
# Documents with one fingerprint that a task looks at together.
COPIES = 10_000


def near_pairs(
    df: DataFrame,
    max_distance: int,
    *,
    id: str = "id",
    fingerprint: str = "fingerprint",
    checkpoints: FilePath | None = None,
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
        id:
            Name of the column of ids: of any type with an order, each id once.
        fingerprint:
            Name of the column of fingerprints, 16 hex digits; documents without one (null) are in no pair.
        checkpoints:
            A folder that all executors reach, for what is kept between steps; by default the executors keep it.

    Raises:
        TypeError: If an argument or a column has the wrong type.
        InvalidInputError: If *max_distance* is out of range, *df* has no such column, or an id is null or not the only
            one.
    """
    check_max_distance(max_distance)
    keeper = Keeper(checkpoints)
    documents = documents_of(df, id, fingerprint, keeper)
    counts = keeper.keep(documents.groupBy("value").agg(sql.count("*").alias("copies")))
    pairs = pairs_of_values(counts.select("value"), max_distance)
    equal = counts.where("copies > 1").select(sql.col("value").alias("left"), sql.col("value").alias("right"))
    # Documents with a hot fingerprint are divided: each part meets every pair that the fingerprint is in.
    hot = counts.where(sql.col("copies") > COPIES)
    hot = hot.select("value", sql.ceil(sql.col("copies") / COPIES).cast("int").alias("parts"))
    part = sql.coalesce(sql.pmod(sql.xxhash64("id"), sql.col("parts")).cast("int"), sql.lit(0))
    divided = documents.join(sql.broadcast(hot), "value", "left").select("value", "id", part.alias("part"))
    found = pairs.unionByName(equal)
    for side in ("left", "right"):
        found = _with_documents(found, side, divided, hot)
    left, right = sql.col("left_id"), sql.col("right_id")
    return found.where((sql.col("left") != sql.col("right")) | (left < right)).select(
        sql.least(left, right).alias("id"), sql.greatest(left, right).alias("other_id"), distance_of("left", "right")
    )


def _with_documents(pairs: DataFrame, side: str, documents: DataFrame, hot: DataFrame) -> DataFrame:
    """Return *pairs* once for each document with the fingerprint on that *side*, with its id."""
    parts = sql.explode(sql.sequence(sql.lit(0), sql.coalesce("parts", sql.lit(1)) - 1)).alias("part")
    keyed = pairs.withColumnRenamed(side, "value").join(sql.broadcast(hot), "value", "left").drop("part")
    keyed = keyed.select(*(name for name in keyed.columns if name != "parts"), parts)
    joined = keyed.join(documents.withColumnRenamed("id", f"{side}_id"), ["value", "part"]).drop("part")
    return joined.withColumnRenamed("value", side)


def distance_of(left: str | Column, right: str | Column) -> Column:
    """Return the column ``distance`` of two columns of fingerprints as numbers, in bits."""
    columns = [sql.col(each) if isinstance(each, str) else each for each in (left, right)]
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
    routes = plan_routes(sampled if len(sampled) else np.zeros(1, np.uint64), count, max_distance)
    shared = values.mapInArrow(_sharing(routes), "share bigint, part binary")
    # Sorted, so that a task has one share at a time; Spark sorts on disk where memory does not suffice.
    gathered = shared.repartition("share").sortWithinPartitions("share")
    return gathered.mapInArrow(_joining(routes), "left bigint, right bigint")


def _sharing(routes: Routes) -> Callable[[Batches], Batches]:
    def share(batches: Batches) -> Batches:
        for values in _collected(as_values(batch.column(0)) for batch in batches):
            for number, part in routes.route(values):
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


def _joining(routes: Routes) -> Callable[[Batches], Batches]:
    def join(batches: Batches) -> Batches:
        for number, values in _shares(batches):
            for left, right in routes.pairs(number, values):
                columns = [pa.array(each.view(np.int64)) for each in (left, right)]
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
