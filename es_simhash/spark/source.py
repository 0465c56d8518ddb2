"""
The format ``es_simhash`` of Spark: an index as a DataFrame, in slices, and its fields written back.

Python on the driver and the executors talks to the server; no JVM connector is needed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter, InputPartition
from pyspark.sql.types import StructType

from es_simhash.arguments import check_fields
from es_simhash.client.drivers import stream
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.hashing import Scheme
from es_simhash.lookup.query import check_filter
from es_simhash.mapping.context import Context
from es_simhash.mapping.faults import refuse_hidden_fields
from es_simhash.mapping.fields import Fields, read_values
from es_simhash.mapping.resolve_flow import agree, resolve_index
from es_simhash.spark.writing import (
    Connection,
    make_writer,
    read_connection,
    read_json,
    read_list,
    read_number,
    read_scheme,
    refuse_unknown,
)
from es_simhash.transport.answers import check_whole
from es_simhash.transport.pages_flow import Hits, View, open_ordered_view, read_part
from es_simhash.transport.protocol import Emit, Flow, document_key

# What a document is told from every other one by, its version, and its fingerprint.
OWN_COLUMNS = {
    "id": pa.string(),
    "index": pa.string(),
    "routing": pa.string(),
    "seq_no": pa.int64(),
    "primary_term": pa.int64(),
    "fingerprint": pa.string(),
}
_DDL = {pa.string(): "string", pa.int64(): "bigint"}
KEEP_ALIVE_SECONDS = 600
SLICES, PAGE = 8, 1_000


def register(spark: SparkSession) -> None:
    """Let *spark* read and write the format ``es_simhash``."""
    spark.dataSource.register(SimHashSource)


class SimHashSource(DataSource):
    """The format ``es_simhash``; docs/spark.md lists its options."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "es_simhash"

    def schema(self) -> str:
        """Return the columns that a document has, and those of the option ``columns``, which are strings."""
        columns = OWN_COLUMNS | dict.fromkeys(_extra_columns(self.options), pa.string())
        return ", ".join(f"`{name.replace('`', '``')}` {_DDL[kind]}" for name, kind in columns.items())

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return what reads the index."""
        refuse_unknown(self.options, "connection", "reading")
        if schema.names != [*OWN_COLUMNS, *_extra_columns(self.options)]:
            raise InvalidInputError("the columns are those of the option columns: give no schema")
        return _Reader(
            read_connection(self.options),
            _extra_columns(self.options),
            check_filter(read_json(self.options, "filter")),
            read_number(self.options, "slices", SLICES),
            read_number(self.options, "page", PAGE),
            read_scheme(self.options),
        )

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001 -- Spark's
        """Return what writes fingerprints and groups into documents of the index."""
        if overwrite:
            raise InvalidInputError("documents are changed, never replaced: give mode('append')")
        return make_writer(self.options, schema)


def _extra_columns(options: Mapping[str, str]) -> tuple[str, ...]:
    names = check_fields("columns", read_list(options, "columns"), may_lack=True)
    if taken := [name for name in names if name in OWN_COLUMNS]:
        raise InvalidInputError(f"columns {shorten(taken[0])} is a column already: leave it out")
    return names


@dataclass
class _Slice(InputPartition):
    """One slice of an index."""

    number: int
    view: View | None


@dataclass(frozen=True)
class _Reader(DataSourceReader):
    """
    Reads the documents that match *filter*, in slices of one view; each slice is a partition.

    *scheme*: the scheme that the fingerprints must have; ``None`` for that of the index.
    """

    connection: Connection
    columns: Sequence[str]
    filter: Sequence[Mapping[str, Any]] = field(default_factory=list)
    slices: int = SLICES
    page: int = PAGE
    scheme: str | Scheme | None = None

    def partitions(self) -> Sequence[InputPartition]:
        """Open a view of the index, and return its slices, after a check of scheme, fields and columns."""
        self.connection.run(self._check())
        view = self.connection.run(open_ordered_view(self.connection.index, KEEP_ALIVE_SECONDS))
        return [_Slice(number, view) for number in range(self.slices)]

    def _check(self) -> Flow[None]:
        context = Context(self.connection.prefix, self.scheme)
        resolved = yield from resolve_index(context, self.connection.index)
        agree(resolved, context)
        refuse_hidden_fields(resolved.mappings, self.columns)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the documents of a slice, page by page."""
        assert isinstance(partition, _Slice)  # noqa: S101 -- what partitions() returned
        with self.connection.open() as (client, dialect):
            for hits in stream(self._read(partition), client, dialect):
                yield self._batch(hits)

    def _read(self, part: _Slice) -> Flow[None]:
        def emit(hits: Hits) -> Flow[bool]:
            if hits:
                yield Emit(hits)
            return False

        query = {"bool": {"filter": list(self.filter)}} if self.filter else {"match_all": {}}
        body: dict[str, Any] = {"query": query, "_source": list(self.columns) or False, "seq_no_primary_term": True}
        # From doc values: _source may leave our fields out.
        body["docvalue_fields"] = [Fields(self.connection.prefix).fingerprint]
        place = (part.number, self.slices)
        gaps = yield from read_part(self.connection.index, body, emit, view=part.view, page=self.page, part=place)
        check_whole(gaps)

    def _batch(self, hits: Hits) -> pa.RecordBatch:
        fingerprint = Fields(self.connection.prefix).fingerprint
        rows = [(document_key(hit), hit, hit.get("_source") or {}) for hit in hits]
        columns: dict[str, list[Any]] = {
            "id": [key.id for key, _, _ in rows],
            "index": [key.index for key, _, _ in rows],
            "routing": [key.routing for key, _, _ in rows],
            "seq_no": [hit["_seq_no"] for _, hit, _ in rows],
            "primary_term": [hit["_primary_term"] for _, hit, _ in rows],
            "fingerprint": [_as_string(hit.get("fields", {}).get(fingerprint, ())) for _, hit, _ in rows],
        }
        columns |= {name: [_as_string(read_values(source, name)) for _, _, source in rows] for name in self.columns}
        arrays = [pa.array(values, OWN_COLUMNS.get(name, pa.string())) for name, values in columns.items()]
        return pa.record_batch(arrays, list(columns))


def _as_string(values: Sequence[Any]) -> str | None:
    """Return the values of a field: strings joined by line feeds, as a text is read; anything else as JSON."""
    values = [each for each in values if each is not None]
    if not values:
        return None
    if all(isinstance(each, str) for each in values):
        return "\n".join(values).encode("utf-8", "replace").decode("utf-8")
    return json.dumps(values[0] if len(values) == 1 else values, ensure_ascii=True)
