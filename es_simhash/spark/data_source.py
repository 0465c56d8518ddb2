"""
The format ``es_simhash`` of Spark: an index as a DataFrame, in slices.

Python on the driver and the executors talks to the server; no JVM connector is needed.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    InputPartition,
)
from pyspark.sql.types import StructType

from es_simhash.arguments import check_choice, check_count, check_fields
from es_simhash.client.port import port_of, run, stream
from es_simhash.connection import Login, Server, ca_file_of_environment, login_of_environment, open_client, split_url
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.hashing import Scheme
from es_simhash.lookup.query import check_filter
from es_simhash.mapping.context import Context
from es_simhash.mapping.faults import refuse_hidden_fields
from es_simhash.mapping.fields import (
    DEFAULT_PREFIX,
    Fields,
    read_values,
)
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import agree, resolve_index
from es_simhash.transport.answers import check_whole
from es_simhash.transport.pages import Hits, Reading
from es_simhash.transport.protocol import document_key
from es_simhash.transport.raw_json import why_unreadable

OPTIONS = {
    "index", "path", "url", "product", "api_key", "user", "password", "ca_file", "timeout_seconds", "prefix",
    "filter", "columns", "slices", "page", "scheme",
}  # fmt: skip


_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Connection:
    """How an index is reached: what goes to the executors. The login is never shown."""

    server: Server
    index: str
    prefix: str
    login: Login = field(repr=False)
    scheme: str | Scheme | None = None

    @contextmanager
    def open(self) -> Iterator[Port]:
        client, _ = open_client(self.server, self.login.headers, self.index)
        try:
            yield port_of(client, Context(self.prefix, self.scheme))
        finally:
            client.close()

    def run(self, operation: Callable[[Port], Coroutine[Any, Any, _T]]) -> _T:
        """Carry *operation* out with a client of its own, and return its result."""
        with self.open() as server:
            return run(lambda: operation(server))


def read_connection(options: Mapping[str, str]) -> Connection:
    """Return the connection; the login is in *options*, else in the environment of the driver, else in a URL."""
    index = options.get("index") or options.get("path")
    if not index or not options.get("url"):
        raise InvalidInputError("the options url and index are needed, such as https://host:9200 and news")
    urls, logins = zip(*map(split_url, read_list(options, "url")), strict=True)
    own = Login(options.get("api_key"), options.get("user"), options.get("password"))
    login = next((candidate for candidate in (own, login_of_environment(), *logins) if candidate.headers), Login())
    if (own.user is None) != (own.password is None) or (own.user and own.api_key):
        raise InvalidInputError("give the option api_key, or the options user and password together")
    product = check_choice("product", options.get("product", "auto"), ("auto", "elasticsearch", "opensearch"))
    Fields(prefix := options.get("prefix", DEFAULT_PREFIX))
    timeout = read_number(options, "timeout_seconds", 60)
    server = Server(urls[0], product, options.get("ca_file") or ca_file_of_environment(), False, timeout, urls[1:])
    return Connection(server, index, prefix, login)


def refuse_unknown(options: Mapping[str, str]) -> None:
    """Raise InvalidInputError if an option is unknown; its value, which may be a secret, is not shown."""
    if unknown := sorted({name.lower() for name in options} - OPTIONS):
        raise InvalidInputError(f"option {shorten(unknown[0])} is not known: give {', '.join(sorted(OPTIONS))}")


def read_list(options: Mapping[str, str], name: str) -> list[str]:
    return [part.strip() for part in options.get(name, "").split(",") if part.strip()]


def read_number(options: Mapping[str, str], name: str, default: int) -> int:
    """Return an option that is a whole number of 1 or more."""
    return check_count(name, read_json({name: str(default), **options}, name))


def read_scheme(options: Mapping[str, str]) -> str | Scheme | None:
    """Return the scheme that an option names or describes; ``None`` where it is not given."""
    given = options.get("scheme") or None
    return Scheme.from_dict(read_json(options, "scheme")) if given and given.startswith("{") else given


def read_json(options: Mapping[str, str], name: str) -> Any:
    """Return an option that is JSON; ``None`` where it is not given."""
    if not options.get(name):
        return None
    try:
        return json.loads(options[name])
    except (ValueError, RecursionError) as error:
        why = why_unreadable(error)
        raise InvalidInputError(f"option {name} {shorten(options[name])} is not JSON: {why}") from None


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
SLICES, PAGE = 8, 1_000


def register(spark: SparkSession) -> None:
    """Let *spark* read the format ``es_simhash``."""
    spark.dataSource.register(SimHashSource)


class SimHashSource(DataSource):
    """The format ``es_simhash``; docs/services.md lists its options."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "es_simhash"

    def schema(self) -> str:
        """Return the columns that a document has, and those of the option ``columns``, which are strings."""
        kinds = _kinds(_extra_columns(self.options))
        return ", ".join(f"`{name.replace('`', '``')}` {_DDL[kind]}" for name, kind in kinds.items())

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return what reads the index."""
        refuse_unknown(self.options)
        if schema.names != [*OWN_COLUMNS, *_extra_columns(self.options)]:
            raise InvalidInputError("the columns are those of the option columns: give no schema")
        return _Reader(
            replace(read_connection(self.options), scheme=read_scheme(self.options)),
            _extra_columns(self.options),
            check_filter(read_json(self.options, "filter")),
            read_number(self.options, "slices", SLICES),
            read_number(self.options, "page", PAGE),
        )


def _kinds(extra: Sequence[str]) -> dict[str, pa.DataType]:
    """Return the kind of each column that a document has, with the *extra* ones."""
    return OWN_COLUMNS | dict.fromkeys(extra, pa.string())


def _extra_columns(options: Mapping[str, str]) -> tuple[str, ...]:
    names = check_fields("columns", tuple(read_list(options, "columns")), may_lack=True)
    if taken := [name for name in names if name in OWN_COLUMNS]:
        raise InvalidInputError(f"columns {shorten(taken[0])} is a column already: leave it out")
    return names


@dataclass
class _Slice(InputPartition):
    number: int


@dataclass(frozen=True)
class _Reader(DataSourceReader):
    """
    Reads the documents that match *filter*, in slices by ``_id``; each slice is a partition, and sees the index as it
    is when its reading begins. No view is shared: nobody would know when to close it, as Spark may read it again.
    """

    connection: Connection
    columns: Sequence[str]
    filter: Sequence[Mapping[str, Any]] = field(default_factory=list)
    slices: int = SLICES
    page: int = PAGE

    def partitions(self) -> Sequence[InputPartition]:
        """Return the slices of the index, after a check of scheme, fields and columns."""
        self.connection.run(self._check)
        return [_Slice(number) for number in range(self.slices)]

    async def _check(self, server: Port) -> None:
        resolved = await resolve_index(server, self.connection.index)
        agree(resolved, server.context)
        refuse_hidden_fields(resolved.mappings, self.columns)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Slice)  # noqa: S101 -- what partitions() returned
        with self.connection.open() as server:
            for hits in stream(self._read(server, partition)):
                yield self._batch(hits)

    async def _read(self, server: Port, part: _Slice) -> AsyncGenerator[Sequence[Hits], None]:
        query = {"bool": {"filter": list(self.filter)}} if self.filter else {"match_all": {}}
        body: dict[str, Any] = {"query": query, "_source": list(self.columns) or False, "seq_no_primary_term": True}
        # From doc values: _source may leave our fields out.
        body["docvalue_fields"] = [Fields(self.connection.prefix).fingerprint]
        if self.slices > 1:
            body["slice"] = {"id": part.number, "max": self.slices}
        reading = Reading(server.patient, self.connection.index, body, page=self.page)
        async with aclosing(reading.pages()) as pages:
            async for hits in pages:
                if hits:
                    yield [hits]
        check_whole(reading.gaps)

    def _batch(self, hits: Hits) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist(list(map(self._row, hits)), pa.schema(_kinds(self.columns)))

    def _row(self, hit: Mapping[str, Any]) -> dict[str, Any]:
        key, source = document_key(hit), hit.get("_source") or {}
        own = {"id": key.id, "index": key.index, "routing": key.routing}
        own |= {"seq_no": hit["_seq_no"], "primary_term": hit["_primary_term"]}
        own["fingerprint"] = _as_string(hit.get("fields", {}).get(Fields(self.connection.prefix).fingerprint, ()))
        return own | {name: _as_string(read_values(source, name)) for name in self.columns}


def _as_string(values: Sequence[Any]) -> str | None:
    """Return the values of a field: strings joined by line feeds, as a text is read; anything else as JSON."""
    values = [value for value in values if value is not None]
    if not values:
        return None
    if all(isinstance(value, str) for value in values):
        return "\n".join(values).encode("utf-8", "replace").decode("utf-8")
    return json.dumps(values[0] if len(values) == 1 else values, ensure_ascii=True)
