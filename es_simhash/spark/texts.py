"""
Comparing texts in Spark: the shingles of the texts that may be neighbours, and which pairs of them are similar.

The similarity is that of ``index.similarity``; what follows from it is decided in ``groups``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions as sql
from pyspark.sql.functions import arrow_udf

from es_simhash.errors import InvalidInputError
from es_simhash.lookup.verification import Verification
from es_simhash.spark.fingerprints import read_strings
from es_simhash.spark.frames import Keeper
from es_simhash.texts.similarity import check_bound, compare_shingles, shingle_sets


def shingles_of(text: Column) -> Column:
    """Return the sorted shingles of a column of texts, 8 bytes each; null where there is no text."""
    return arrow_udf(_shingles, "binary").asNondeterministic()(text)


def _shingles(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
    for batch in batches:
        texts = read_strings(batch)
        found = iter(shingle_sets([each for each in texts if each is not None]))
        yield pa.array([None if each is None else next(found).tobytes() for each in texts], pa.binary())


def check_verify(verify: Any) -> float:
    """
    Return *verify*, the smallest similarity of texts, as a float.

    Raises:
        TypeError: If it is not a number.
        InvalidInputError: If it is not between 0 and 1, or names another measure: here texts are compared by their
            shingles of words.
    """
    if isinstance(verify, Verification):
        raise InvalidInputError(
            f"Spark compares texts by the jaccard of words, not by the {verify.text_measure}: give verify as a number"
        )
    return check_bound(verify)


def similar_texts(pairs: DataFrame, sets: DataFrame, similarity: float, keeper: Keeper) -> DataFrame:
    """
    Return those of *pairs* whose texts are at least so similar.

    Args:
        pairs:
            ``left_text, right_text``: digests of different texts, and their numbers of shingles ``left_size`` and
            ``right_size``.
        sets:
            The shingles by digest: ``text, shingles``.
        similarity:
            Smallest shingle Jaccard similarity, 0 to 1.
        keeper:
            Keeps the result.
    """
    sizes = sql.col("left_size"), sql.col("right_size")
    # No two sets share more than the smaller has.
    may_be = sql.least(*sizes).cast("double") / sql.greatest(*sizes, sql.lit(1)) >= similarity
    found = pairs.where(may_be).select("left_text", "right_text").distinct()
    for side in ("left", "right"):
        own = sets.select(sql.col("text").alias(f"{side}_text"), sql.col("shingles").alias(f"{side}_shingles"))
        found = found.join(own, f"{side}_text")
    is_similar = jaccard_of(sql.col("left_shingles"), sql.col("right_shingles")) >= similarity
    return keeper.keep(found.where(is_similar).select("left_text", "right_text"))


def jaccard_of(left: Column, right: Column) -> Column:
    """Return the similarity of two columns of shingles, 0 to 1; null where either is null."""
    return arrow_udf(_jaccard, "double")(left, right)


def _jaccard(left: pa.Array, right: pa.Array) -> pa.Array:
    found = []
    for pair in zip(left, right, strict=True):
        sets = [np.frombuffer(each.as_buffer(), np.uint64) for each in pair if each.is_valid]
        found.append(compare_shingles(*sets).jaccard if len(sets) == 2 else None)
    return pa.array(found, pa.float64())
