"""DataFrames and their columns: checked, kept between steps, their texts fingerprinted and compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, functions as sql
from pyspark.sql.functions import arrow_udf
from pyspark.sql.types import ArrayType, LongType, StringType, TimestampType

from es_simhash.arguments import check_name
from es_simhash.errors import InvalidInputError, WrongTypeError, shorten
from es_simhash.hashing import DEFAULT_SCHEME, Scheme, fingerprints, get_scheme, to_hex
from es_simhash.hashing.registry import with_contents
from es_simhash.lookup.lookup_options import Verification
from es_simhash.mapping.rule import PairRule
from es_simhash.texts.measures import TextMeasure, check_bound

# More fingerprints than these are not sent to each executor.
BROADCAST = 10_000_000


def check_column(df: DataFrame, name: str, column: Any) -> Column:
    """Return the column of *df*, which must be a DataFrame of Spark, that the argument *name* names."""
    if not isinstance(df, DataFrame):
        raise WrongTypeError(f"df must be a DataFrame of Spark, not {type(df).__name__}")
    check_name(name, column, wanted="the name of a column")
    if column not in df.columns:
        raise InvalidInputError(f"{name} {shorten(column)} is no column: give one of {shorten(df.columns)}")
    # A dot in a name would mean a field of a structure.
    return df["`" + column.replace("`", "``") + "`"]


def check_against(df: DataFrame, against: Any, names: Sequence[str]) -> None:
    """Raise unless *against* is a DataFrame that has the columns *names* of *df*, of the same types."""
    if not isinstance(against, DataFrame):
        raise WrongTypeError(f"against must be a DataFrame of Spark, not {type(against).__name__}")
    for name in names:
        if name not in against.columns:
            raise InvalidInputError(f"against has no column {shorten(name)}, which df has: select it under this name")
        kinds = [frame.schema[name].dataType.simpleString() for frame in (df, against)]
        if kinds[0] != kinds[1]:
            raise WrongTypeError(f"column {shorten(name)} is {kinds[1]} in against, and {kinds[0]} in df: cast it")


def check_text(df: DataFrame, name: str, column: Any) -> Column:
    found = check_column(df, name, column)
    kind = df.schema[column].dataType
    if not isinstance(kind, StringType):
        raise WrongTypeError(f"{name} {shorten(column)} is a column of {kind.simpleString()}: give one of strings")
    return found


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
    df: DataFrame,
    id: str,
    fingerprint: str,
    *,
    others: Sequence[Column] = (),
    among: DataFrame | None = None,
) -> DataFrame:
    """
    Return the documents with a fingerprint: ``id``, the number ``value``, and *others*; kept.
    Each id is there once and none is null, else InvalidInputError is raised. *among*: only documents with one of the
    fingerprints of this frame, each once and kept; these go to the executors, so that *df* is read where it is.
    """
    columns = check_column(df, "id", id), parsed(check_text(df, "fingerprint", fingerprint))
    selected = df.select(columns[0].alias("id"), columns[1].alias("value"), *others).where("value is not null")
    if among is not None:
        few = sql.broadcast(among) if among.count() <= BROADCAST else among
        selected = selected.join(few, "value", "left_semi")
    documents = keep(selected)
    counts = documents.groupBy("id").agg(sql.count("*").alias("documents"))
    for row in counts.where("id is null or documents > 1").limit(1).collect():
        raise InvalidInputError(
            f"id {shorten(row.id)} comes {row.documents} times: give each document an id of its own"
        )
    return documents


def keep(frame: DataFrame) -> DataFrame:
    """
    Compute *frame*, and return one that reads what was computed: so no step is computed twice, and plans stay short.
    It is kept in the folder of checkpoints, where the session has one; else by the executors, in memory and on their
    disks, until nobody uses the frame: if an executor is lost then, the work ends with an error of Spark.
    """
    context = getattr(frame.sparkSession, "sparkContext", None)  # Spark Connect has none
    has_folder = context is not None and context.getCheckpointDir() is not None
    return frame.checkpoint() if has_folder else frame.localCheckpoint()


def with_fingerprints(
    df: DataFrame, text: str, *, scheme: str | Scheme | None = None, output: str = "fingerprint"
) -> DataFrame:
    """
    Return *df* with the fingerprint of a column of texts: 16 hex digits, as in an index.

    The bits are those of :func:`es_simhash.fingerprints`. A text that is null or has no features has no fingerprint:
    null. Only the texts pass through Python, in Arrow batches. The files of the scheme are sent along, so executors
    need this library and no file.

    Args:
        df:
            The documents.
        text:
            Name of the column of texts.
        scheme:
            Name, id or :class:`Scheme`; by default ``"shingles"``.
        output:
            Name of the new column.

    Raises:
        TypeError: If an argument has the wrong type, or the column does not consist of strings.
        InvalidInputError: If *df* has no column *text*, or has one *output*.
        SchemeError: If the scheme is unknown, or a file that it needs is missing or differs.
    """
    column = check_text(df, "text", text)
    check_name("output", output, wanted="the name of a column")
    if output in df.columns:
        raise InvalidInputError(f"output {shorten(output)} is a column of df: give another name, or drop the column")
    resolved = with_contents(get_scheme(DEFAULT_SCHEME if scheme is None else scheme))

    def compute(texts: list[str]) -> list[str | None]:
        return [None if value is None else to_hex(value) for value in fingerprints(texts, scheme=resolved)]

    return df.withColumn(output, _of_texts(compute, pa.string())(column))


def prepared_of(text: Column, measure: TextMeasure) -> Column:
    """Return a column of texts as *measure* compares them, 8 bytes a shingle or unit; null where there is no text."""

    def prepare(texts: list[str]) -> list[bytes]:
        return [prepared.tobytes() for prepared in measure.prepare(texts)]

    return _of_texts(prepare, pa.binary())(text)


def _of_texts(compute: Callable[[list[str]], Sequence[Any]], kind: pa.DataType) -> Callable[[Column], Column]:
    """Return the function of a column that gives what *compute* makes of texts, and null where there is no text."""

    def of_batches(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for batch in batches:
            texts = batch.to_pylist()
            found = iter(compute([text for text in texts if text is not None]))
            yield pa.array([None if text is None else next(found) for text in texts], kind)

    # As if its result could vary: otherwise a filter on the column would have it computed a second time.
    return arrow_udf(of_batches, str(kind)).asNondeterministic()


def check_verify(verify: Any) -> tuple[float, TextMeasure]:
    """Return the smallest similarity of texts that *verify* means, and its measure."""
    if not isinstance(verify, Verification):
        verify = Verification(check_bound("verify", verify))
    rule = verify.put_on(PairRule())
    return rule.similarity or 0.0, rule.measure


def similar_texts(pairs: DataFrame, sets: DataFrame, similarity: float, measure: TextMeasure) -> DataFrame:
    """
    Return those of *pairs* whose texts have at least *similarity* by *measure*; kept.
    *pairs*: digests ``left_text, right_text`` of different texts. *sets*: what is compared of these by digest:
    ``text, shingles``.
    """
    found = pairs.select("left_text", "right_text").distinct()
    for side in ("left", "right"):
        own = sets.select(sql.col("text").alias(f"{side}_text"), sql.col("shingles").alias(f"{side}_shingles"))
        found = found.join(own, f"{side}_text")
    is_similar = _similarity_of(sql.col("left_shingles"), sql.col("right_shingles"), measure, similarity) >= similarity
    return keep(found.where(is_similar).select("left_text", "right_text"))


def _similarity_of(left: Column, right: Column, measure: TextMeasure, bound: float) -> Column:
    """Return the similarity of two columns of prepared texts, 0 to 1, exact from *bound* on; null where one is null."""

    def compare(left: pa.Array, right: pa.Array) -> pa.Array:
        found = []
        for pair in zip(left, right, strict=True):
            sets = [np.frombuffer(prepared.as_buffer(), np.uint64) for prepared in pair if prepared.is_valid]
            found.append(measure.compare(*sets, bound=bound).similarity if len(sets) == 2 else None)
        return pa.array(found, pa.float64())

    compare.__annotations__ = {"left": pa.Array, "right": pa.Array, "return": pa.Array}  # arrow_udf reads types
    return arrow_udf(compare, "double")(left, right)


def per_column(df: DataFrame, name: str) -> Column:
    """Return the values of a document that keep it apart, each once, in order; null where it has none."""
    column, kind = check_column(df, "per", name), df.schema[name].dataType
    values = column if isinstance(kind, ArrayType) else sql.array(column)
    if not isinstance(kind.elementType if isinstance(kind, ArrayType) else kind, StringType):
        raise WrongTypeError(f"per {shorten(name)} is a column of {kind.simpleString()}: give one of strings")
    known = sql.array_sort(sql.array_distinct(sql.array_compact(values)))
    return sql.when(sql.size(known) > 0, known)


def date_column(df: DataFrame, name: str) -> Column:
    """Return the date of a document in milliseconds since 1970, the earliest of several; null where it has none."""
    column, kind = check_column(df, "within", name), df.schema[name].dataType
    if isinstance(kind, ArrayType):
        column, kind = sql.array_min(sql.array_compact(column)), kind.elementType
    if isinstance(kind, TimestampType):
        return sql.unix_millis(column)
    if isinstance(kind, LongType):
        return column
    raise WrongTypeError(
        f"within {shorten(name)} is a column of {kind.simpleString()}: give timestamps, or milliseconds since 1970"
    )


def order_column(df: DataFrame, name: str) -> Column:
    """Return the values that decide which document stays, as ``groups.table`` ranks them."""
    column, kind = check_column(df, "canonical", name), df.schema[name].dataType
    if isinstance(kind, TimestampType):
        return sql.unix_millis(column)
    return column.cast("double") if isinstance(kind, LongType) else column
