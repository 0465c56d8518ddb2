"""
The groups of documents in Spark, made in rounds, equal to those of ``reconcile``, whatever the partitions.

Documents that nothing tells apart are one node, as in ``groups.assign``: the same fingerprint and, if texts are
compared, the same shingles. The driver groups what fits into its memory, with ``groups.assign``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions as sql

from es_simhash.arguments import FilePath, check_count, check_names
from es_simhash.errors import InvalidInputError, SimHashError
from es_simhash.groups.assign import group_pairs
from es_simhash.lookup.lookup_options import Verification
from es_simhash.mapping.meta import check_max_distance
from es_simhash.mapping.rule import Within, parse_within
from es_simhash.spark.columns import (
    Keeper,
    check_against,
    check_text,
    check_verify,
    date_column,
    documents_of,
    order_column,
    per_column,
    prepared_of,
    similar_texts,
    to_array,
)
from es_simhash.spark.pairs import distance_of, pairs_of_values, read_against
from es_simhash.texts.measures import WORD_SHINGLES, TextMeasure


@dataclass(frozen=True)
class Rounds:
    """
    How places are grouped.
    *most*: largest number of rounds. *driver_pairs*: pairs that the driver groups in its memory: 16 bytes each, and as
    much again for a moment.
    """

    keeper: Keeper
    most: int
    driver_pairs: int

    def group(self, pairs: DataFrame) -> DataFrame:
        """
        Return ``place, canonical`` of every place of *pairs* that is not a canonical itself, or raise.
        *pairs*: the neighbours ``earlier, later``, as places in canonical order, each pair once; already kept.
        A place is canonical if no canonical is a neighbour before it. In a round, undecided places with no undecided
        neighbour before them become canonicals, and their neighbours members. In a random order few rounds decide
        nearly all (Blelloch, Fineman and Shun, SPAA 2012).
        """
        undecided = pairs
        members: list[DataFrame] = []
        for _ in range(self.most):
            if undecided.count() <= self.driver_pairs:
                if not members:
                    return self._on_driver(pairs)
                members.append(self._on_driver(undecided).select("place"))
                break
            later = undecided.select(sql.col("later").alias("earlier")).distinct()
            fresh = undecided.join(later, "earlier", "left_anti").select(sql.col("later").alias("place")).distinct()
            members.append(self.keeper.keep(fresh))
            undecided = self.keeper.keep(_without(_without(undecided, "earlier", members[-1]), "later", members[-1]))
        else:
            raise SimHashError(
                f"{undecided.count():,} pairs are undecided after {self.most} rounds: allow more rounds, or more pairs "
                "on the driver"
            )
        for member in members:
            pairs = _without(pairs, "earlier", member)
        found = pairs.groupBy(sql.col("later").alias("place"))
        return found.agg(sql.min("earlier").alias("canonical"))

    def _on_driver(self, pairs: DataFrame) -> DataFrame:
        table = pairs.toArrow()
        ends = to_array(table["earlier"]), to_array(table["later"])
        places, numbers = np.unique(np.concatenate(ends), return_inverse=True)
        canonical = group_pairs(len(places), [(numbers[: len(table)], numbers[len(table) :])])
        some = canonical != np.arange(len(places))
        found = pa.table({"place": places[some], "canonical": places[canonical[some]]})
        return pairs.sparkSession.createDataFrame(found, "place bigint, canonical bigint")


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
    checkpoints: FilePath | None = None,
    rounds: int = 50,
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
        checkpoints:
            A folder that all executors reach, for what is kept between steps; by default the executors keep it.
        rounds:
            Largest number of rounds.
        driver_pairs:
            Once no more pairs of neighbours are undecided, the driver groups them in its memory, 32 bytes each.

    Raises:
        TypeError: If an argument or a column has the wrong type.
        InvalidInputError: If an argument cannot be used, *df* has no such column, or an id is null or not the only one.
        SimHashError: If the rounds do not suffice.
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
    keeper = Keeper(checkpoints)
    limits = Rounds(keeper, check_count("rounds", rounds), check_count("driver_pairs", driver_pairs, 0))

    def columns(frame: DataFrame, *, is_older: bool = False) -> list[Column]:
        """Return what decides about a document besides its fingerprint."""
        keys = [order_column(frame, name) for name in order]
        # Spark's order of structures has null first.
        parts = [sql.lit(not is_older), *(part for key in keys for part in (key.isNull(), key))]
        found = [sql.struct(*parts).alias("order"), sql.lit(is_older).alias("is_older")]
        found += [] if text is None else [check_text(frame, "text", text).alias("text")]
        found += [] if per is None else [per_column(frame, per).alias("per")]
        return found + ([] if span is None else [date_column(frame, span.field).alias("date")])

    limiting = [*([] if per is None else ["per"]), *([] if span is None else ["date"])]
    limiting += [] if against is None else ["is_older"]
    documents = documents_of(df, id, fingerprint, keeper, others=columns(df))
    values = keeper.keep(documents.groupBy("value").agg(sql.count("*").alias("copies")))
    pairs = keeper.keep(pairs_of_values(values.select("value"), max_distance))
    if against is not None:
        others = columns(against, is_older=True)
        across, older = read_against(documents, against, max_distance, id, fingerprint, keeper, others)
        documents, pairs = documents.unionByName(older), keeper.keep(_each_once(pairs, across))
        values = keeper.keep(documents.groupBy("value").agg(sql.count("*").alias("copies")))
    if similarity is None and not limiting:
        documents = documents.select("id", "order", "value", sql.struct("value").alias("node"))
        nodes = _nodes(documents, keeper)
        neighbours = pairs.select(
            sql.struct(sql.col("left").alias("value")), sql.struct(sql.col("right").alias("value"))
        )
        neighbours = neighbours.toDF("left", "right")
    else:
        sets = None
        if similarity is not None:
            documents, sets = _with_texts(documents, values, pairs, similarity, measure, limiting, keeper)
        documents = documents.withColumn(
            "node", _node(["value", *limiting, *(["text", "size"] if sets is not None else [])])
        )
        nodes = _nodes(documents, keeper)
        found = _candidates(nodes, pairs, limiting, span)
        if similarity is not None and sets is not None:
            found = _similar(found, sets, similarity, measure, keeper)
        neighbours = keeper.keep(found)
    assigned = _assign(neighbours, nodes, limits)
    return _report(documents, nodes, assigned, with_older=against is not None)


def _each_once(pairs: DataFrame, across: DataFrame) -> DataFrame:
    """Return all pairs of different fingerprints, each once whichever side it has which."""
    both = sql.col("left"), sql.col("right")
    found = across.where(both[0] != both[1]).unionByName(pairs)
    return found.select(sql.least(*both).alias("left"), sql.greatest(*both).alias("right")).distinct()


def _nodes(documents: DataFrame, keeper: Keeper) -> DataFrame:
    """Return the nodes, and the ``first`` document of each."""
    first = sql.min(sql.struct("order", "id")).alias("first")
    return keeper.keep(documents.where("node is not null").groupBy("node").agg(first))


def _node(names: Sequence[str]) -> Column:
    """Return what nothing tells apart has in common; null where a document lacks a part, and so has no neighbours."""
    known = reduce(Column.__and__, (sql.col(name).isNotNull() for name in names))
    return sql.when(known, sql.struct(*names))


def _with_texts(
    documents: DataFrame,
    values: DataFrame,
    pairs: DataFrame,
    similarity: float,
    measure: TextMeasure,
    limiting: Sequence[str],
    keeper: Keeper,
) -> tuple[DataFrame, DataFrame]:
    """Return the documents with digest and size of their texts, where they may have neighbours; texts by digest."""
    near = pairs.select("left").unionAll(pairs.select("right")).toDF("value")
    near = near.unionAll(values.where("copies > 1").select("value")).distinct().withColumn("is_near", sql.lit(True))
    flagged = documents.join(near, "value", "left")
    shingles = prepared_of(sql.when(sql.col("is_near"), sql.col("text")), measure).alias("shingles")
    cut = keeper.keep(flagged.select("id", "order", "value", *limiting, shingles))
    size = sql.floor(sql.octet_length("shingles") / 8)
    if similarity > 0:
        # A text without words has nothing in common with any, not even with itself.
        cut = cut.withColumn("shingles", sql.when(size > 0, sql.col("shingles")))
    cut = cut.withColumn("text", sql.sha2("shingles", 256))
    digested = cut.select("id", "order", "value", *limiting, "text", size.alias("size"))
    return digested, cut.where("text is not null").groupBy("text").agg(sql.any_value("shingles").alias("shingles"))


def _candidates(nodes: DataFrame, pairs: DataFrame, limiting: Sequence[str], span: Within | None) -> DataFrame:
    """Return the pairs ``left, right`` of nodes that distance, values and dates allow."""
    left, right = (nodes.select(sql.col("node").alias(side)) for side in ("left", "right"))
    equal = left.join(right, sql.expr("left.value = right.value and left < right"))
    near = pairs.toDF("left_value", "right_value").join(left, sql.expr("left.value = left_value"))
    found = near.join(right, sql.expr("right.value = right_value")).select("left", "right").unionByName(equal)
    if "per" in limiting:
        found = found.where("left.per = right.per")
    if "is_older" in limiting:
        found = found.where("not (left.is_older and right.is_older)")
    if span is not None:
        found = found.where(sql.abs(sql.col("left.date") - sql.col("right.date")) <= span.milliseconds)
    return found


def _similar(
    candidates: DataFrame, sets: DataFrame, similarity: float, measure: TextMeasure, keeper: Keeper
) -> DataFrame:
    if similarity == 0:
        return candidates
    candidates = keeper.keep(candidates)
    equal = candidates.where("left.text = right.text")
    others = candidates.where("left.text != right.text")
    names = [f"{side}.{name}" for name in ("text", "size") for side in ("left", "right")]
    columns = [sql.col(name).alias(name.replace(".", "_")) for name in names]
    alike = similar_texts(others.select(*columns), sets, similarity, measure, keeper)
    found = others.join(alike, sql.expr("left.text = left_text and right.text = right_text"))
    return found.select("left", "right").unionByName(equal)


def _assign(neighbours: DataFrame, nodes: DataFrame, rounds: Rounds) -> DataFrame:
    """Return ``node``, and its canonical: ``canonical_id``, and the node ``to``; for nodes that are not canonicals."""
    ends = neighbours.select(sql.col("left").alias("node")).unionAll(neighbours.select("right")).distinct()
    # In a frame that is sorted, this number grows with the order.
    place = sql.monotonically_increasing_id().alias("place")
    ranked = rounds.keeper.keep(nodes.join(ends, "node", "left_semi").orderBy("first").select("node", "first", place))
    placed = neighbours
    for side in ("left", "right"):
        placed = placed.join(ranked.select(sql.col("node").alias(side), sql.col("place").alias(f"{side}_place")), side)
    both = sql.col("left_place"), sql.col("right_place")
    found = placed.select(sql.least(*both).alias("earlier"), sql.greatest(*both).alias("later"))
    chosen = rounds.group(rounds.keeper.keep(found))
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
