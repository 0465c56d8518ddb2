"""The base classes of both clients. What differs between sync and async is here and in the two ports."""

from __future__ import annotations

import os
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, aclosing
from typing import Any, TypeVar, cast

from es_simhash.arguments import check_flags, check_function
from es_simhash.client.dialects import find_dialect, is_async_client
from es_simhash.client.port import BlockingServer, ClientPort, DryRun, ReadOnly, finish, run, stream
from es_simhash.errors import InvalidInputError, WrongTypeError
from es_simhash.hashing import Scheme, get_scheme
from es_simhash.hashing.registry import find_files
from es_simhash.mapping.context import Context
from es_simhash.mapping.fields import DEFAULT_PREFIX, Fields
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import begin_anew
from es_simhash.transport.protocol import OnProgress

_T = TypeVar("_T")


class BaseClient:
    _is_async: bool
    _port: Callable[[], type[ClientPort]]

    def __init__(
        self,
        client: Any,
        *,
        scheme: str | Scheme | None = None,
        files: Mapping[str, str | os.PathLike[str]] | None = None,
        prefix: str = DEFAULT_PREFIX,
        dialect: str | None = None,
        progress: OnProgress | None = None,
        read_only: bool = False,
    ) -> None:
        check_flags(read_only=read_only)
        self._read_only = read_only
        self._client = client
        self._progress = progress if progress is None else check_function("progress", progress)
        self._dialect = find_dialect(client, dialect)
        if dialect is None and is_async_client(client) != self._is_async:
            other = "SimHashClient" if self._is_async else "AsyncSimHashClient"
            raise WrongTypeError(f"{type(client).__name__} does not fit {type(self).__name__}: use {other}")
        if scheme is not None:
            get_scheme(scheme)  # refuses an unknown one now
        known: dict[str, str | bytes] = {**find_files(files or {})}
        self._context = Context(Fields(prefix).prefix, scheme, time.monotonic, known)
        self._process: int | None = None  # in which it was used first

    def _server(self, progress: OnProgress | None = None, *, is_dry: bool = False) -> Port:
        """
        Return the port of one operation; who is told of its *progress* is by default whom the client has.
        An operation that would share connections with a parent is refused.
        """
        process = os.getpid()
        if self._process not in (None, process):
            raise InvalidInputError(
                "this client was used before the process was forked, and connections that two processes share mix up "
                "their answers: make a new search client in each process, and a client of es_simhash of it"
            )
        self._process = process
        listener = self._progress if progress is None else check_function("progress", progress)
        port = self._port()(self._client, self._dialect, listener, self._context)
        if is_dry:
            return DryRun(port, may_refresh=not self._read_only)
        return ReadOnly(port) if self._read_only else port

    _check_flags = staticmethod(check_flags)

    def __repr__(self) -> str:
        context = self._context
        # The repr of opensearch-py's client has the password in it.
        client = f"<{type(self._client).__name__}>"
        return f"{type(self).__name__}({client}, scheme={context.wanted!r}, prefix={context.prefix!r})"

    @property
    def dialect(self) -> str:
        """The product that the client speaks to: ``"elasticsearch"`` or ``"opensearch"``."""
        return self._dialect.name


class SyncBase(BaseClient):
    """Carries operations out on the caller's thread."""

    _is_async = False
    _port = staticmethod(lambda: BlockingServer)
    # Without a method around them, which every traceback would show.
    _run = staticmethod(run)
    _stream = staticmethod(stream)

    def _feed(
        self, documents: Iterable[Any], make: Callable[[Any], AsyncGenerator[Sequence[_T], None]]
    ) -> Generator[_T, None, None]:
        """Stream what *make* makes of the caller's documents, as its items are read."""
        return stream(make(documents))

    def _convert(
        self,
        documents: Iterable[Any],
        operation: Callable[[], Coroutine[Any, Any, _T]],
        convert: Callable[[Iterable[Any], _T], Iterator[Any]],
    ) -> Iterator[Any]:
        """Carry *operation* out and return what *convert* makes of the caller's documents and of its result."""
        return convert(documents, finish(operation()))


class AsyncBase(BaseClient):
    """Carries operations out on asyncio; the caller's documents may come from an async iterable."""

    _is_async = True

    @staticmethod
    def _port() -> type[ClientPort]:
        from es_simhash.client.async_port import AsyncioServer  # noqa: PLC0415 -- sync callers do without its 50 ms

        return AsyncioServer

    _run = staticmethod(begin_anew)

    async def _stream(self, parts: AsyncGenerator[Sequence[_T], None]) -> AsyncGenerator[_T, None]:
        async with aclosing(parts) as every:
            async for part in every:
                for item in part:
                    yield item

    async def _feed(
        self,
        documents: Iterable[Any] | AsyncIterable[Any],
        make: Callable[[Any], AsyncGenerator[Sequence[_T], None]],
    ) -> AsyncGenerator[_T, None]:
        """Stream what *make* makes of the caller's documents, as its items are read."""
        from es_simhash.client.async_port import Feed  # noqa: PLC0415

        async with AsyncExitStack() as stack:
            # An operation reads documents in a thread, beside the requests; the loop goes on producing them.
            items: Any = documents
            if isinstance(documents, AsyncIterable):
                items = await stack.enter_async_context(aclosing(Feed(documents)))
            async with aclosing(self._stream(make(items))) as found:
                async for item in found:
                    yield item

    async def _convert(
        self,
        documents: Iterable[Any] | AsyncIterable[Any],
        operation: Callable[[], Coroutine[Any, Any, _T]],
        convert: Callable[[AsyncIterable[Any], _T], AsyncIterator[Any]],
    ) -> AsyncIterator[Any]:
        """Carry *operation* out when the first item is read, and yield what *convert* makes of both."""
        from es_simhash.client.async_port import as_async  # noqa: PLC0415

        source = documents if isinstance(documents, AsyncIterable) else as_async(documents)
        converted = cast("AsyncGenerator[Any, None]", convert(source, await operation()))
        async with aclosing(converted) as found:
            async for item in found:
                yield item
