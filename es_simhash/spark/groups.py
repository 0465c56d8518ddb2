"""
The groups of documents in Spark, made in rounds, equal to those of ``reconcile``, whatever the partitions.

Documents that nothing tells apart are one node, as in ``groups.assign``: the same fingerprint and, if texts are
compared, the same shingles. The driver groups what fits into its memory, with ``groups.assign``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions as sql

from es_simhash.arguments import check_count, check_names
from es_simhash.errors import InvalidInputError, SimHashError
from es_simhash.groups.assign import group_pairs
from es_simhash.lookup.lookup_options import Verification
from es_simhash.mapping.meta import check_max_distance
from es_simhash.mapping.rule import Within, parse_within
from es_simhash.spark.columns import (
    check_against,
    check_text,
    check_verify,
    date_column,
    documents_of,
    keep,
    order_column,
    per_column,
    prepared_of,
    similar_texts,
    to_array,
)
from es_simhash.spark.pairs import distance_of, pairs_of_values, read_against
from es_simhash.texts.measures import WORD_SHINGLES, TextMeasure

# Most rounds; in a random order few decide nearly all.
ROUNDS = 50


def _canonicals(pairs: DataFrame, driver_pairs: int) -> DataFrame:
    """
    Return ``place, canonical`` of every place of *pairs* that is not a canonical itself, or raise.

    *pairs*: the neighbours ``earlier, later``, as places in canonical order, each pair once; already kept.
    A place is canonical if no canonical is a neighbour before it. In a round, undecided places with no undecided
    neighbour before them become canonicals, and their neighbours members (Blelloch, Fineman and Shun, SPAA 2012).
    """
    undecided, without_members = pairs, pairs
    for _ in range(ROUNDS):
        is_last = undecided.count() <= driver_pairs
        if is_last:
            members = _members_on_driver(undecided)
        else:
            later = undecided.select(sql.col("later").alias("earlier")).distinct()
            fresh = undecided.join(later, "earlier", "left_anti")
            members = keep(fresh.select(sql.col("later").alias("place")).distinct())
            undecided = keep(_without(_without(undecided, "earlier", members), "later", members))
        without_members = _without(without_members, "earlier", members)
        if is_last:
            found = without_members.groupBy(sql.col("later").alias("place"))
            return found.agg(sql.min("earlier").alias("canonical"))
    raise SimHashError(f"{undecided.count():,} pairs are undecided after {ROUNDS} rounds: allow more driver_pairs")


def _members_on_driver(pairs: DataFrame) -> DataFrame:
    """Return every ``place`` of *pairs* that is not a canonical."""
    table = pairs.toArrow()
    ends = to_array(table["earlier"]), to_array(table["later"])
    places, numbers = np.unique(np.concatenate(ends), return_inverse=True)
    canonical = group_pairs(len(places), numbers[: len(table)], numbers[len(table) :])
    found = pa.table({"place": places[canonical != np.arange(len(places))]})
    return pairs.sparkSession.createDataFrame(found, "place bigint")


def _without(pairs: DataFrame, side: str, places: DataFrame) -> DataFrame:
    return pairs.join(places.withColumnRenamed("place", side), side, "left_anti").select("earlier", "later")


def groups(
    df: DataFrame,
    *,
    max_distance: int,
    against: DataFrame | None = None,
    verify: float | Verification | None = None,
    text: str | None = None,
    per: str | None = None,
    within: tuple[str, str] | None = None,
    id: str = "id",
    fingerprint: str = "fingerprint",
    canonical: Sequence[str] = (),
    driver_pairs: int = 5_000_000,
) -> DataFrame:
    """
    Return the group of every document with a fingerprint: ``id, group, duplicate_of, distance``.

    ``group`` is the id of the canonical, ``duplicate_of`` the same for duplicates and null for canonicals, ``distance``
    the distance of a duplicate to its canonical. The groups are those of ``reconcile`` (docs/dedup.md), whatever the
    partitions. All but the last step is computed before this returns.

    Args:
        df:
            The documents.
        max_distance:
            Largest distance of neighbours in bits, inclusive, 0 to 64.
        against:
            Older documents, with all columns that are named here, of the same types. Each of them stays: a new one that
            is a neighbour of some of them is a duplicate of the first of these, and has ``True`` in a fifth column,
            ``against``; only the others make groups among themselves. ``ingest`` decides so where the older documents
            are the canonicals of the index, and the new ones come in canonical order. What
            it costs says :func:`near_pairs`; texts are read of the older documents near a new one.
        verify:
            Smallest similarity of the texts of neighbours, 0 to 1; a :class:`Verification` where numbers count;
            ``None`` compares no texts. A document without a text (null) has no neighbours; nor has a text without
            words, unless *verify* is 0.
        text:
            Name of the column of texts; needed for *verify*.
        per:
            A column of strings, or of arrays of these: neighbours have the same values. Without one, none.
        within:
            A column of timestamps, or of milliseconds since 1970, or of arrays of these, of which the earliest counts,
            and a span, as in ``("published", "7d")``: the dates of neighbours differ by at most that.
        id:
            Name of the column of ids: of any type with an order, each id once.
        fingerprint:
            Name of the column of fingerprints, 16 hex digits; documents without one (null) are left out.
        canonical:
            Columns that decide which document of a group is its canonical: the smallest value of the first counts,
            null comes last, then the next column, at last the id. Timestamps count to the millisecond, long numbers as
            doubles, as in an index.
        driver_pairs:
            Pairs of neighbours are decided in rounds; once no more are undecided, the driver groups them in its memory,
            32 bytes each.

    Raises:
        TypeError: If an argument or a column has the wrong type.
        InvalidInputError: If an argument cannot be used, *df* has no such column, or an id is null or not the only one.
        SimHashError: If 50 rounds do not suffice.
    """
    check_max_distance(max_distance)
    similarity, measure = (None, WORD_SHINGLES) if verify is None else check_verify(verify)
    span = None if within is None else parse_within(within)
    if (text is None) != (similarity is None):
        raise InvalidInputError("verify and text belong together: give both, or none to group by distance alone")
    order = check_names("canonical", canonical)
    if against is not None:
        fields = (text, per, None if span is None else span.field)
        named = [*order, *(field for field in fields if field is not None)]
        check_against(df, against, (id, fingerprint, *named))
    check_count("driver_pairs", driver_pairs, 0)

    def columns(frame: DataFrame, *, is_older: bool = False) -> list[Column]:
        """Return what decides about a document besides its fingerprint."""
        keys = [order_column(frame, name) for name in order]
        # Spark's order of structures has null first.
        parts = [sql.lit(not is_older), *(part for key in keys for part in (key.isNull(), key))]
        found = [sql.struct(*parts).alias("order"), sql.lit(is_older).alias("is_older")]
        found += [] if text is None else [check_text(frame, "text", text).alias("text")]
        found += [] if per is None else [per_column(frame, per).alias("per")]
        return found + ([] if span is None else [date_column(frame, span.field).alias("date")])

    deciding = ["is_older", *([] if per is None else ["per"]), *([] if span is None else ["date"])]
    documents = documents_of(df, id, fingerprint, others=columns(df))
    pairs = keep(pairs_of_values(keep(documents.select("value").distinct()), max_distance))
    if against is not None:
        others = columns(against, is_older=True)
        across, older = read_against(documents, against, max_distance, id, fingerprint, others)
        documents, pairs = documents.unionByName(older), keep(_each_once(pairs, across))
    sets = None
    if similarity is not None:
        documents, sets = _with_texts(documents, pairs, similarity, measure, deciding)
        deciding.append("text")
    documents = documents.withColumn("node", _node(["value", *deciding]))
    nodes = _nodes(documents)
    neighbours = _candidates(nodes, pairs, deciding, span)
    if sets is not None:
        neighbours = _similar(keep(neighbours), sets, similarity or 0.0, measure)
    assigned = _assign(keep(neighbours), nodes, driver_pairs)
    return _report(documents, nodes, assigned, with_older=against is not None)


def _each_once(pairs: DataFrame, across: DataFrame) -> DataFrame:
    """Return all pairs of different fingerprints, each once whichever side it has which."""
    both = sql.col("left"), sql.col("right")
    found = across.where(both[0] != both[1]).unionByName(pairs)
    return found.select(sql.least(*both).alias("left"), sql.greatest(*both).alias("right")).distinct()


def _nodes(documents: DataFrame) -> DataFrame:
    """Return the nodes, and the ``first`` document of each."""
    first = sql.min(sql.struct("order", "id")).alias("first")
    return keep(documents.where("node is not null").groupBy("node").agg(first))


def _node(names: Sequence[str]) -> Column:
    """Return what nothing tells apart has in common; null where a document lacks a part, and so has no neighbours."""
    known = reduce(Column.__and__, (sql.col(name).isNotNull() for name in names))
    return sql.when(known, sql.struct(*names))


def _with_texts(
    documents: DataFrame, pairs: DataFrame, similarity: float, measure: TextMeasure, deciding: Sequence[str]
) -> tuple[DataFrame, DataFrame]:
    """Return the documents with the digests of their texts, where they may have neighbours; texts by digest."""
    copies = documents.groupBy("value").agg(sql.count("*").alias("copies")).where("copies > 1").select("value")
    near = pairs.select("left").unionAll(pairs.select("right")).toDF("value").unionAll(copies)
    near = near.distinct().withColumn("is_near", sql.lit(True))
    flagged = documents.join(near, "value", "left")
    shingles = prepared_of(sql.when(sql.col("is_near"), sql.col("text")), measure).alias("shingles")
    cut = keep(flagged.select("id", "order", "value", *deciding, shingles))
    if similarity > 0:
        # A text without words has nothing in common with any, not even with itself.
        cut = cut.withColumn("shingles", sql.when(sql.octet_length("shingles") > 0, sql.col("shingles")))
    cut = cut.withColumn("text", sql.sha2("shingles", 256))
    digested = cut.select("id", "order", "value", *deciding, "text")
    return digested, cut.where("text is not null").groupBy("text").agg(sql.any_value("shingles").alias("shingles"))


def _candidates(nodes: DataFrame, pairs: DataFrame, deciding: Sequence[str], span: Within | None) -> DataFrame:
    """Return the pairs ``left, right`` of nodes that distance, values and dates allow."""
    left, right = (nodes.select(sql.col("node").alias(side)) for side in ("left", "right"))
    equal = left.join(right, sql.expr("left.value = right.value and left < right"))
    near = pairs.toDF("left_value", "right_value").join(left, sql.expr("left.value = left_value"))
    found = near.join(right, sql.expr("right.value = right_value")).select("left", "right").unionByName(equal)
    found = found.where("not (left.is_older and right.is_older)")
    if "per" in deciding:
        found = found.where("left.per = right.per")
    if span is not None:
        found = found.where(sql.abs(sql.col("left.date") - sql.col("right.date")) <= span.milliseconds)
    return found


def _similar(candidates: DataFrame, sets: DataFrame, similarity: float, measure: TextMeasure) -> DataFrame:
    equal = candidates.where("left.text = right.text")
    others = candidates.where("left.text != right.text")
    digests = others.select(sql.col("left.text").alias("left_text"), sql.col("right.text").alias("right_text"))
    alike = similar_texts(digests, sets, similarity, measure)
    found = others.join(alike, sql.expr("left.text = left_text and right.text = right_text"))
    return found.select("left", "right").unionByName(equal)


def _assign(neighbours: DataFrame, nodes: DataFrame, driver_pairs: int) -> DataFrame:
    """Return ``node``, and its canonical: ``canonical_id``, and the node ``to``; for nodes that are not canonicals."""
    ends = neighbours.select(sql.col("left").alias("node")).unionAll(neighbours.select("right")).distinct()
    # In a frame that is sorted, this number grows with the order.
    place = sql.monotonically_increasing_id().alias("place")
    ranked = keep(nodes.join(ends, "node", "left_semi").orderBy("first").select("node", "first", place))
    placed = neighbours
    for side in ("left", "right"):
        placed = placed.join(ranked.select(sql.col("node").alias(side), sql.col("place").alias(f"{side}_place")), side)
    both = sql.col("left_place"), sql.col("right_place")
    found = placed.select(sql.least(*both).alias("earlier"), sql.greatest(*both).alias("later"))
    chosen = _canonicals(keep(found), driver_pairs)
    members = chosen.join(ranked.select("node", "place"), "place").withColumnRenamed("node", "member")
    canonicals = ranked.select(
        sql.col("place").alias("canonical"),
        sql.col("first.id").alias("canonical_id"),
        sql.col("node").alias("to"),
    )
    return members.join(canonicals, "canonical").select(sql.col("member").alias("node"), "canonical_id", "to")


def _report(documents: DataFrame, nodes: DataFrame, assigned: DataFrame, *, with_older: bool) -> DataFrame:
    own = nodes.select("node", sql.col("first.id").alias("first_id"))
    joined = documents.join(own, "node", "left").join(assigned, "node", "left")
    group = sql.coalesce("canonical_id", "first_id", "id")
    # An older document may have the id of a new one.
    is_duplicate = sql.col("canonical_id").isNotNull() | (group != sql.col("id"))
    found = [
        sql.col("id"),
        group.alias("group"),
        sql.when(is_duplicate, group).alias("duplicate_of"),
        sql.when(is_duplicate, distance_of("value", sql.coalesce("to.value", "value"))).alias("distance"),
    ]
    if not with_older:
        return joined.select(*found)
    return joined.where("not is_older").select(*found, sql.coalesce("to.is_older", sql.lit(False)).alias("against"))
