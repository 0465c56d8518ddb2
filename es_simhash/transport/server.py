"""
The port between the operations and a server: what an operation may ask for, and what it gives back.

``client/port.py`` and ``client/async_port.py`` implement it. A port may stand around another one: ``mapping/port.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar

from es_simhash.transport.protocol import Call, Compute, Index, Progress, in_parts

_T = TypeVar("_T")
_P = ParamSpec("_P")

Answer: TypeAlias = dict[str, Any]
"""What a server answers, as plain JSON values: the APIs are wide, and each reader takes what it needs."""

Body: TypeAlias = Mapping[str, Any]
Lines: TypeAlias = Sequence[Any]  # of a bulk request or a multi-search, some of them text


def _given(**arguments: Any) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None}


class Server(Protocol):
    """
    What operations ask for. A request that fails raises the client's own exception.
    A method of a blocking client never suspends, so one ``send`` finishes an operation.
    """

    attempts: int = 1
    """How often a request is sent while the server is busy."""

    @property
    def patient(self) -> Server:
        """A port that sends what a busy server refuses again, within about a minute."""
        ...

    async def send(self, call: Call) -> Answer:
        """Return the answer to a request that was prepared before."""
        ...

    async def together(self, calls: Sequence[Call | Compute], *, concurrency: int = 4) -> list[Any]:
        """Return the answers to several requests at once, and to work meanwhile, in order; a failure is a value."""
        ...

    async def compute(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Return what *function* returns: work for the processor, or for the disk, kept off an event loop."""
        ...

    async def sleep(self, seconds: float) -> None: ...

    async def to_the_end(self, work: Coroutine[Any, Any, _T]) -> tuple[_T, BaseException | None]:
        """Return what *work* returns, however often the task is cancelled meanwhile, and that cancellation."""
        ...

    def tell(self, progress: Progress) -> None:
        """Tell how far the work is, if the caller wants to know."""
        ...

    async def bulk(self, *, body: Lines) -> Answer:
        return await self.send(Call("bulk", {"body": body}))

    async def close_point_in_time(self, *, body: Body) -> Answer:
        return await self.send(Call("close_point_in_time", {"body": body}))

    async def create_index(self, *, index: str, body: Body) -> Answer:
        return await self.send(Call("create_index", {"index": index, "body": body}))

    async def field_caps(self, *, index: Index, fields: Sequence[str]) -> Answer:
        return await self.send(Call("field_caps", {"index": index, "fields": fields}))

    async def get_alias(self, *, index: str | None = None, name: str | None = None) -> Answer:
        return await self.send(Call("get_alias", _given(index=index, name=name)))

    async def get_data_stream(self, *, name: str) -> Answer:
        return await self.send(Call("get_data_stream", {"name": name}))

    async def get_mapping(
        self, *, index: Index, filter_path: str | None = None, ignore_unavailable: bool | None = None
    ) -> Answer:
        given = _given(filter_path=filter_path, ignore_unavailable=ignore_unavailable)
        return await self._of_each("get_mapping", index, given)

    async def get_pipeline(self, *, id: str) -> Answer:
        return await self.send(Call("get_pipeline", {"id": id}))

    async def get_settings(self, *, index: Index, name: str | None = None) -> Answer:
        return await self._of_each("get_settings", index, _given(name=name))

    async def _of_each(self, api: str, index: Index, arguments: Mapping[str, Any]) -> Answer:
        """Return the answers about each index, together; more names than a request can have go in several."""
        found: Answer = {}
        for part in in_parts(index):
            found |= await self.send(Call(api, {"index": part, **arguments}))
        return found

    async def index_stats(self, *, index: Index, metric: str, level: str) -> Answer:
        return await self.send(Call("index_stats", {"index": index, "metric": metric, "level": level}))

    async def mget(self, *, body: Body, raw_source: bool = False) -> Answer:
        return await self.send(Call("mget", {"body": body}, raw_source=raw_source))

    async def msearch(self, *, body: Lines) -> Answer:
        return await self.send(Call("msearch", {"body": body}))

    async def open_point_in_time(
        self, *, index: Index, keep_alive: str, routing: str | None = None, preference: str | None = None
    ) -> Answer:
        given = _given(index=index, keep_alive=keep_alive, routing=routing, preference=preference)
        return await self.send(Call("open_point_in_time", given))

    async def put_mapping(self, *, index: Index, body: Body) -> Answer:
        return await self.send(Call("put_mapping", {"index": index, "body": body}))

    async def put_pipeline(self, *, id: str, body: Body) -> Answer:
        return await self.send(Call("put_pipeline", {"id": id, "body": body}))

    async def put_settings(self, *, index: Index, body: Body) -> Answer:
        return await self.send(Call("put_settings", {"index": index, "body": body}))

    async def refresh(self, *, index: Index) -> Answer:
        return await self.send(Call("refresh", {"index": index}))

    async def search(self, *, body: Body, index: Index | None = None, preference: str | None = None) -> Answer:
        given = _given(index=index, body=body, preference=preference)
        return await self.send(Call("search", given))

    async def simulate_index(self, *, name: str) -> Answer:
        return await self.send(Call("simulate_index", {"name": name}))

    async def simulate_pipeline(self, *, body: Body) -> Answer:
        return await self.send(Call("simulate_pipeline", {"body": body}))

    async def simulate_template(self, *, name: str) -> Answer:
        return await self.send(Call("simulate_template", {"name": name}))
