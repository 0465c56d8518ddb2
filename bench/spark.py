"""
All pairs and groups by Spark on this machine, next to the same in memory: times, their ratio, and whether they agree.

    python bench/spark.py                                      1 and 4 million within 3 bits
    python bench/spark.py --documents 1e6 --distance 8 --kill
    python bench/spark.py --documents 1e6 --self-join          also the self join that SQL would do
    python bench/spark.py --documents 1e6 --against 1e7        only a new million, against ten older ones

Needs the extra spark and a Java 17. The fingerprints are those of bench/pairs.py. Both ways are measured in turn in one
run; what Spark takes includes reading the documents from Parquet files, and not its start. With --kill the first Python
worker that reads documents is killed. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
from pairs import planted
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession, functions as sql

from es_simhash.groups.all_pairs import near_pairs as pairs_in_memory
from es_simhash.groups.assign import group_fingerprints
from es_simhash.hashing import to_hex
from es_simhash.lookup.fingerprint_table import FingerprintTable
from es_simhash.spark import groups, near_pairs

BLOCKS = 4


def timed(step: str, function: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of a step and its seconds, which are also printed at once: a run takes minutes."""
    started = time.perf_counter()
    result = function()
    seconds = round(time.perf_counter() - started, 2)
    print(f"{step}: {seconds} s", file=sys.stderr, flush=True)
    return result, seconds


def start(memory: str) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.driver.memory": memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "8",
    }
    return SparkSession.builder.master("local[2,4]").config(map=settings).getOrCreate()


def write(values: np.ndarray, folder: Path) -> None:
    """Write documents whose ids are in the order of the array."""
    for number, part in enumerate(np.array_split(np.arange(len(values)), 8)):
        digits = [to_hex(value) for value in values[part].tolist()]
        parquet.write_table(pa.table({"id": part, "fingerprint": digits}), folder / f"{number}.parquet")


def killed_once(df: DataFrame, marker: Path) -> DataFrame:
    """Return *df*, whose first Python worker is killed."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if not marker.exists():
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    return df.mapInArrow(read, df.schema)


def self_join(df: DataFrame, distance: int) -> int:
    """Count pairs as SQL would: join by equal blocks, compare, and make the pairs distinct. Exact up to 3 bits."""
    value = sql.shiftleft(sql.conv(sql.substring("fingerprint", 1, 8), 16, 10).cast("bigint"), 32)
    value = value.bitwiseOR(sql.conv(sql.substring("fingerprint", 9, 8), 16, 10).cast("bigint"))
    blocks = sql.array(
        *(sql.concat(sql.lit(str(n)), sql.substring("fingerprint", 1 + 4 * n, 4)) for n in range(BLOCKS))
    )
    exploded = df.select("id", value.alias("value"), sql.explode(blocks).alias("block"))
    left, right = exploded.alias("l"), exploded.alias("r")
    joined = left.join(right, sql.expr("l.block = r.block and l.id < r.id"))
    near = joined.where(sql.bit_count(sql.col("l.value").bitwiseXOR(sql.col("r.value"))) <= distance)
    return near.select(sql.col("l.id").alias("a"), sql.col("r.id").alias("b")).distinct().count()


def measure(spark: SparkSession, documents: int, options: argparse.Namespace) -> dict[str, Any]:
    values = planted(documents, options.distance)
    with tempfile.TemporaryDirectory() as folder:
        write(values, Path(folder))
        df = spark.read.parquet(folder)
        if options.kill:
            df = killed_once(df, Path(folder) / "killed")
        found, seconds = timed("pairs, Spark", lambda: near_pairs(df, options.distance).count())
        counted, memory = timed("pairs, memory", lambda: sum(map(len, pairs_in_memory(values, options.distance))))
        report = {
            "documents": documents,
            "distance": options.distance,
            "killed": options.kill,
            "pairs": {
                "spark": seconds,
                "memory": memory,
                "ratio": round(seconds / memory, 1),
                "agree": found == counted,
            },
        }
        if options.self_join:
            found, joined = timed("self join", lambda: self_join(df, options.distance))
            report["self_join"] = {"seconds": joined, "ratio": round(joined / seconds, 1), "agree": found == counted}
        how = {"max_distance": options.distance}
        table, seconds = timed("groups, Spark", lambda: groups(df, **how).toArrow())
        canonical, memory = timed("groups, memory", lambda: group_fingerprints(values, **how))
        found = np.empty(documents, np.int64)
        found[table["id"].to_numpy()] = table["group"].to_numpy()
        ratio = round(seconds / memory, 1)
        report["star"] = {"spark": seconds, "memory": memory, "ratio": ratio, "agree": bool((found == canonical).all())}
    return report


def measure_against(spark: SparkSession, documents: int, options: argparse.Namespace) -> dict[str, Any]:
    """Look new documents up among older ones, and those among each other, next to a table in memory."""
    older = int(options.against)
    values = planted(documents + older, options.distance)
    values = values[np.random.default_rng(2).permutation(len(values))]
    new, old = values[:documents], values[documents:]
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        for part, folder in ((new, first), (old, second)):
            write(part, Path(folder))
        df, against = spark.read.parquet(first), spark.read.parquet(second)
        rows, seconds = timed(
            "against, Spark",
            lambda: near_pairs(df, options.distance, against=against).groupBy("against").count().collect(),
        )
        grouped, grouping = timed(
            "groups against, Spark",
            lambda: groups(df, max_distance=options.distance, against=against).where("against").count(),
        )

        def in_memory() -> tuple[int, int, int]:
            table = FingerprintTable(options.distance)
            table.add(new)
            counts = [len(table.near_pairs(part)[0]) for part in np.array_split(old, 16)]
            mine = FingerprintTable(options.distance)
            mine.add(old)
            near = len(np.unique(mine.near_pairs(new)[0]))
            return sum(counts), sum(map(len, pairs_in_memory(new, options.distance))), near

        (across, among, near), memory = timed("against, memory", in_memory)
        counted = {row["against"]: row["count"] for row in rows}
    return {
        "new": documents,
        "older": older,
        "distance": options.distance,
        "spark": seconds,
        "groups": grouping,
        "memory": memory,
        "ratio": round(seconds / memory, 1),
        "agree": (counted[True], counted[False], grouped) == (across, among, near),
        "peak_MB": {name: round(value) for name, value in peak_memory().items()},
    }


def peak_memory() -> dict[str, float]:
    """Return the largest resident memory so far, of the JVM and of the largest Python worker that is left, in MB."""
    found = {"jvm": 0.0, "worker": 0.0}
    for each in psutil.Process().children(recursive=True):
        peak = next(line for line in Path(f"/proc/{each.pid}/status").read_text().splitlines() if "VmHWM" in line)
        name = "jvm" if each.name() == "java" else "worker"
        found[name] = max(found[name], int(peak.split()[1]) / 1_000)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=float, action="append")
    parser.add_argument("--distance", type=int, default=3)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--self-join", action="store_true")
    parser.add_argument("--against", type=float, help="so many older documents, against which the others are new")
    parser.add_argument("--memory", default="2g", help="heap of the one JVM (default 2g)")
    options = parser.parse_args()
    spark = start(options.memory)
    near_pairs(spark.createDataFrame([("a", "0" * 16)], "id string, fingerprint string"), 1).count()  # started by now
    for documents in options.documents or [1e6, 4e6]:
        report = (measure if options.against is None else measure_against)(spark, int(documents), options)
        print(json.dumps(report, indent=1), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
