"""DataFrames and their columns: checked, named alike, and kept between steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, functions as sql
from pyspark.sql.types import DataType, StringType

from es_simhash.arguments import FilePath, check_name, check_path
from es_simhash.errors import InvalidInputError, WrongTypeError, shorten


def check_frame(df: Any) -> DataFrame:
    """Return *df* if it is a DataFrame of Spark."""
    if not isinstance(df, DataFrame):
        raise WrongTypeError(f"df must be a DataFrame of Spark, not {type(df).__name__}")
    return df


def check_column(df: DataFrame, name: str, column: Any) -> Column:
    """Return the column of *df* that the argument *name* names."""
    check_name(name, column, wanted="the name of a column")
    if column not in df.columns:
        raise InvalidInputError(f"{name} {shorten(column)} is no column: give one of {shorten(df.columns)}")
    return df[_quote(column)]


def check_text(df: DataFrame, name: str, column: Any) -> Column:
    """Return the column of strings of *df* that the argument *name* names."""
    found = check_column(df, name, column)
    kind = type_of(df, column)
    if not isinstance(kind, StringType):
        raise WrongTypeError(f"{name} {shorten(column)} is a column of {kind.simpleString()}: give one of strings")
    return found


def type_of(df: DataFrame, column: str) -> DataType:
    """Return the type of a column."""
    return next(field.dataType for field in df.schema.fields if field.name == column)


def _quote(column: str) -> str:
    # A dot in a name would mean a field of a structure.
    return "`" + column.replace("`", "``") + "`"


def parsed(fingerprint: Column) -> Column:
    """
    Return a column of fingerprints as signed 64-bit numbers, null where there is none.

    Anything but 16 lower-case hexadecimal digits is an error when the frame is computed.
    """

    def half(start: int) -> Column:
        return sql.conv(sql.substring(fingerprint, start, 8), 16, 10).cast("bigint")

    value = sql.shiftleft(half(1), 32).bitwiseOR(half(9))
    refused = sql.concat(
        sql.lit("fingerprint '"),
        sql.substring(fingerprint, 1, 40),
        sql.lit("' is not a fingerprint: give 16 lower-case hexadecimal digits"),
    )
    return (
        sql.when(fingerprint.isNull(), sql.lit(None).cast("bigint"))
        .when(fingerprint.rlike(r"\A[0-9a-f]{16}\z"), value)
        .otherwise(sql.raise_error(refused).cast("bigint"))
    )


def as_values(array: pa.Array | pa.ChunkedArray) -> NDArray[np.uint64]:
    """Return a column of signed numbers, none of them null, as fingerprints."""
    return to_array(array).view(np.uint64)


def to_array(array: pa.Array | pa.ChunkedArray) -> NDArray[np.int64]:
    """Return a column of 64-bit numbers, none of them null, as an array."""
    return np.ascontiguousarray(
        array.to_numpy(zero_copy_only=False) if isinstance(array, pa.Array) else array.to_numpy()
    )


def documents_of(
    df: DataFrame, id: str, fingerprint: str, keeper: Keeper, *, others: Sequence[Column] = ()
) -> DataFrame:
    """
    Return the documents with a fingerprint: ``id``, the number ``value``, and *others*; kept.

    Each id is there once and none is null, else InvalidInputError is raised.
    """
    columns = check_column(check_frame(df), "id", id), parsed(check_text(df, "fingerprint", fingerprint))
    selected = df.select(columns[0].alias("id"), columns[1].alias("value"), *others)
    documents = keeper.keep(selected.where("value is not null"))
    counts = documents.groupBy("id").agg(sql.count("*").alias("documents"))
    for row in counts.where("id is null or documents > 1").limit(1).collect():
        raise InvalidInputError(
            f"id {shorten(row.id)} comes {row.documents} times: give each document an id of its own"
        )
    return documents


class Keeper:
    """
    Keeps frames between steps, so that no step is computed twice and plans stay short.

    Without a folder, the executors keep them, in memory and on their disks, until nobody uses the frame: if an
    executor is lost, the work ends with an error of Spark. With a folder that all executors reach, such as
    ``s3a://bucket/work``, frames are files there; nothing is deleted.
    """

    def __init__(self, folder: FilePath | None) -> None:
        self._folder = None if folder is None else f"{str(check_path('checkpoints', folder)).rstrip('/')}/{uuid4().hex}"
        self._kept = 0

    def keep(self, frame: DataFrame) -> DataFrame:
        """Compute *frame*, and return one that reads what was computed."""
        if self._folder is None:
            return frame.localCheckpoint()
        path = f"{self._folder}/{self._kept}"
        self._kept += 1
        frame.write.parquet(path)
        return frame.sparkSession.read.schema(frame.schema).parquet(path)
