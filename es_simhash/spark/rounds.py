"""
The rules of grouping in rounds: pairs of places in canonical order in, the canonical of each place out.

What the rules mean is written in ``index.grouping.assign``, which also groups what fits into the memory of the driver.
Here are the rounds until it fits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, functions as sql

from es_simhash.errors import RoundsError
from es_simhash.groups.assign import group_pairs
from es_simhash.groups.rule import Rule
from es_simhash.spark.frames import Keeper, to_array


@dataclass(frozen=True)
class Rounds:
    """
    How places are grouped.

    Attributes:
        keeper:
            Keeps what a round leaves.
        most:
            Largest number of rounds.
        driver_pairs:
            Pairs that the driver groups in its memory: 16 bytes each, and as much again for a moment.
    """

    keeper: Keeper
    most: int
    driver_pairs: int

    def group(self, pairs: DataFrame, rule: Rule) -> DataFrame:
        """
        Return ``place, canonical`` of every place of *pairs* that is not a canonical itself.

        Args:
            pairs:
                ``earlier, later``: neighbours, as places in canonical order, each pair once; kept.
            rule:
                ``"star"`` or ``"connected"``.

        Raises:
            RoundsError: If the rounds do not suffice.
        """
        return self._star(pairs) if rule == "star" else self._connected(pairs)

    def _star(self, pairs: DataFrame) -> DataFrame:
        """
        A place is canonical if no canonical is a neighbour before it.

        A place is decided when all of its neighbours before it are: in a round, those with no undecided neighbour
        before them become canonicals, and their neighbours members. In a random order few rounds decide nearly all
        (Blelloch, Fineman and Shun, SPAA 2012).
        """
        undecided = pairs
        members: list[DataFrame] = []
        for _ in range(self.most):
            if undecided.count() <= self.driver_pairs:
                if not members:
                    return self._on_driver(pairs, "star")
                members.append(self._on_driver(undecided, "star").select("place"))
                break
            later = undecided.select(sql.col("later").alias("earlier")).distinct()
            fresh = undecided.join(later, "earlier", "left_anti").select(sql.col("later").alias("place")).distinct()
            members.append(self.keeper.keep(fresh))
            undecided = self.keeper.keep(_without(_without(undecided, "earlier", members[-1]), "later", members[-1]))
        else:
            raise self._spent(undecided)
        for each in members:
            pairs = _without(pairs, "earlier", each)
        found = pairs.groupBy(sql.col("later").alias("place"))
        return found.agg(sql.min("earlier").alias("canonical"))

    def _connected(self, pairs: DataFrame) -> DataFrame:
        """
        The canonical of a place is the first place that it is connected with.

        Large-star and small-star in turn, until nothing changes: both connect the neighbours of a place with the first
        of them (Kiveris, Lattanzi, Mirrokni, Rastogi and Vassilvitskii, SoCC 2014).
        """
        before = None
        for _ in range(self.most):
            if pairs.count() <= self.driver_pairs:
                return self._on_driver(pairs, "connected")
            pairs = self.keeper.keep(_small_star(_large_star(pairs)))
            sums = sql.count("*"), sql.bit_xor(sql.xxhash64("earlier", "later"))
            after = tuple(pairs.agg(*sums).collect()[0])
            if after == before:
                return pairs.select(sql.col("later").alias("place"), sql.col("earlier").alias("canonical"))
            before = after
        raise self._spent(pairs)

    def _on_driver(self, pairs: DataFrame, rule: Rule) -> DataFrame:
        table = pairs.toArrow()
        ends = to_array(table["earlier"]), to_array(table["later"])
        places, numbers = np.unique(np.concatenate(ends), return_inverse=True)
        canonical = group_pairs(len(places), [(numbers[: len(table)], numbers[len(table) :])], rule)
        some = canonical != np.arange(len(places))
        found = pa.table({"place": places[some], "canonical": places[canonical[some]]})
        return pairs.sparkSession.createDataFrame(found, "place bigint, canonical bigint")

    def _spent(self, rest: DataFrame) -> RoundsError:
        left = rest.count()
        return RoundsError(
            f"{left:,} pairs are undecided after {self.most} rounds: allow more rounds, or more pairs on the driver",
            pairs=left,
        )


def _without(pairs: DataFrame, side: str, places: DataFrame) -> DataFrame:
    return pairs.join(places.withColumnRenamed("place", side), side, "left_anti").select("earlier", "later")


def _large_star(pairs: DataFrame) -> DataFrame:
    """Connect the neighbours after each place with the first of all its neighbours and itself."""
    both = pairs.unionByName(pairs.select(sql.col("later").alias("earlier"), sql.col("earlier").alias("later")))
    first = both.groupBy(sql.col("earlier").alias("place")).agg(sql.min("later").alias("least"))
    joined = pairs.join(first, pairs["earlier"] == first["place"])
    return joined.select(sql.least("earlier", "least").alias("earlier"), "later").distinct()


def _small_star(pairs: DataFrame) -> DataFrame:
    """Connect each place and its neighbours before it with the first of these."""
    first = pairs.groupBy(sql.col("later").alias("place")).agg(sql.min("earlier").alias("least"))
    joined = pairs.join(first, pairs["later"] == first["place"])
    others = joined.where("earlier != least").select(
        sql.col("least").alias("earlier"), sql.col("earlier").alias("later")
    )
    own = first.select(sql.col("least").alias("earlier"), sql.col("place").alias("later"))
    return others.unionByName(own).distinct()
