"""
The method names of the search clients, by API name; answers that are read as the text that the server sent.

No other module knows the names. No transport option is set, no connection opened, no client library
imported, and the caller's client is not changed.
"""

from __future__ import annotations

import base64
import copy
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import isawaitable
from operator import attrgetter
from typing import Any
from weakref import WeakKeyDictionary

from es_simhash.client.answer_shapes import is_answer, odd_answer, what_came
from es_simhash.errors import InvalidInputError, MappingError, WrongTypeError, shorten
from es_simhash.transport.protocol import Call
from es_simhash.transport.raw_json import split_items, split_members
from es_simhash.transport.refusals import NO_OPTION, TOO_LARGE, masked_field
from es_simhash.transport.secrets import Secrets, login_in, secrets_of

_JSON = {"accept": "application/json", "content-type": "application/json"}

_COMMON = {
    "bulk": "bulk",
    "create_index": "indices.create",
    "field_caps": "field_caps",
    "get_alias": "indices.get_alias",
    "get_data_stream": "indices.get_data_stream",
    "get_mapping": "indices.get_mapping",
    "get_pipeline": "ingest.get_pipeline",
    "get_settings": "indices.get_settings",
    "index_stats": "indices.stats",
    "mget": "mget",
    "msearch": "msearch",
    "put_mapping": "indices.put_mapping",
    "put_pipeline": "ingest.put_pipeline",
    "put_settings": "indices.put_settings",
    "refresh": "indices.refresh",
    "search": "search",
    "simulate_pipeline": "ingest.simulate",
    "simulate_index": "indices.simulate_index_template",
    "simulate_template": "indices.simulate_template",
}


@dataclass(frozen=True, slots=True)
class Dialect:
    """
    The method names of one product's clients.
    *modules*: top-level modules whose classes have these methods. *search_options*: put into the body of every search,
    so that no default of the server shortens the answer. *source_options*: the same for the URL of a multi-get of whole
    documents; the clients' method does not know it.
    """

    name: str
    methods: Mapping[str, str]
    modules: frozenset[str] = field(default_factory=frozenset)
    search_options: Mapping[str, Any] = field(default_factory=dict)
    source_options: Mapping[str, Any] = field(default_factory=dict)

    async def call(self, client: Any, call: Call) -> Any:
        """Make *call* with a sync or an async client and return the answer as plain values."""
        answer: Any = None
        with _explaining(client, call):
            ways = [call] if _is_old(client) else [self._with_options(call), call]
            for way in ways:
                try:
                    came = self._request(client, way)()
                    answer = _answer(client, call, await came if isawaitable(came) else came)
                except Exception as error:
                    if way is call or not NO_OPTION.meets(error):
                        raise
                else:
                    if way is not ways[0]:
                        _remember_old(client)
                    break
        return answer

    def _request(self, client: Any, call: Call) -> Callable[[], Any]:
        """Return what makes *call* by the method of *client*."""
        client = _reading_text(client) if call.raw_source else client
        if "params" in call.arguments:
            return partial(client.perform_request, "POST", "/_mget", headers=_JSON, **call.arguments)
        return partial(attrgetter(self.methods[call.api])(client), **call.arguments)

    def _with_options(self, call: Call) -> Call:
        """Return *call* with the search options in the body of each of its searches, or with the source options."""
        if call.raw_source and self.source_options:
            return replace(call, arguments={**call.arguments, "params": self.source_options})
        body = call.arguments.get("body")
        if not self.search_options or body is None or call.api not in ("search", "msearch"):
            return call
        if call.api == "search":
            body = {**body, **self.search_options}
        else:  # headers and bodies take turns
            body = [{**line, **self.search_options} if n % 2 else line for n, line in enumerate(body)]
        return replace(call, arguments={**call.arguments, "body": body})


# When the server of a client refused the options last. It may be upgraded, so it is asked again later.
_OLD: WeakKeyDictionary[Any, float] = WeakKeyDictionary()
_OLD_SECONDS = 600


def _is_old(client: Any) -> bool:
    return client in _OLD and time.monotonic() - _OLD[client] < _OLD_SECONDS


def _remember_old(client: Any) -> None:
    with suppress(TypeError):  # a wrapper that nothing can refer to weakly
        _OLD[client] = time.monotonic()


@contextmanager
def _explaining(client: Any, call: Call) -> Iterator[None]:
    """Take the login of *client* out of an exception, say what to do, and name an answer that cannot be read."""
    try:
        yield
    except Exception as error:
        _secrets(client).hide_in(error)
        if (came := what_came(error)) is not None:
            raise odd_answer(call, came, _place(client)) from error
        if (masked := masked_field(error)) is not None:
            raise MappingError(
                f"this login sees {masked} masked, and no server reads a masked number: use a login that sees the "
                "field as it is"
            ) from error
        if TOO_LARGE.meets(error):
            error.add_note(TOO_LARGE.at_last)
        raise


def _nodes(client: Any) -> list[Any]:
    """Return what holds the connections of *client*, one for each address; empty for a client of another kind."""
    transport = getattr(client, "transport", None)
    pool = getattr(transport, "node_pool", None)  # of elastic_transport
    return list(
        pool.all() if pool is not None else getattr(getattr(transport, "connection_pool", None), "connections", ())
    )


def _place(client: Any) -> str:
    """Return the addresses that *client* asks, without a login."""
    urls = [str(getattr(node, "base_url", None) or getattr(node, "host", "")) for node in _nodes(client)]
    return " or ".join(urls) or "the server"


def _secrets(client: Any) -> Secrets:
    """Return what *client* logs in with."""
    holders = [client, *_nodes(client)]
    headers = [getattr(holder, name, None) for holder in holders for name in ("_headers", "headers")]
    # Of opensearch-py's async client: a pair of aiohttp's, which knows its header.
    pairs: list[Any] = [getattr(node, "_http_auth", None) for node in _nodes(client)]
    # Of its client over requests: a tuple.
    tuples: list[Any] = [getattr(getattr(node, "session", None), "auth", None) for node in _nodes(client)]
    words = [base64.b64encode(":".join(pair).encode()).decode() for pair in tuples if type(pair) is tuple]
    return secrets_of(*login_in(*headers), *(pair.encode() for pair in pairs if hasattr(pair, "password")), *words)


def _answer(client: Any, call: Call, answer: Any) -> Any:
    """Return *answer* as plain values, without the login; raise if it is none, or if sources are no text as asked."""
    # elasticsearch-py wraps each answer in an object that keeps the response's headers beside its body.
    plain: Any = answer if isinstance(answer, (dict, list, bool)) else getattr(answer, "body", answer)
    if not is_answer(call, plain):
        raise odd_answer(call, _secrets(client).hide(plain), _place(client))
    if call.raw_source and not all(isinstance(item.get("_source", ""), str) for item in plain["docs"]):
        raise WrongTypeError(_WRAPPED)
    _hide_in_refusals(client, call, plain)
    return plain


_WRAPPED = (
    "the client, or its transport, is wrapped in code that reads answers itself, so no document can be archived as the "
    "server sent it: give a client without the wrapper"
)
# Where the answer to one request has answers to several.
_PARTS = {"msearch": "responses", "mget": "docs", "simulate_pipeline": "docs"}


def _hide_in_refusals(client: Any, call: Call, answer: dict[str, Any]) -> None:
    """Take the login out of what the server says of failures within its *answer*; documents stay as they are."""
    parts = answer[_PARTS[call.api]] if call.api in _PARTS else []
    if call.api == "bulk" and answer.get("errors"):
        parts = [result for item in answer["items"] for result in item.values()]
    for part in parts:
        if "error" in part:
            part["error"] = _secrets(client).hide(part["error"])
    for part in (answer, *parts):
        if failures := (part.get("_shards") or {}).get("failures"):
            part["_shards"]["failures"] = _secrets(client).hide(failures)


ELASTICSEARCH = Dialect(
    "elasticsearch",
    _COMMON | {"open_point_in_time": "open_point_in_time", "close_point_in_time": "close_point_in_time"},
    frozenset({"elasticsearch", "elasticsearch7", "elasticsearch8", "elasticsearch9", "elasticsearch_serverless"}),
    # By default, servers from 9.2 on leave vectors out of _source. Older ones leave nothing out, and refuse the option.
    source_options={"_source_exclude_vectors": "false"},
)

OPENSEARCH = Dialect(
    "opensearch",
    _COMMON | {"open_point_in_time": "create_pit", "close_point_in_time": "delete_pit"},
    frozenset({"opensearchpy"}),
    # The default search pipeline of an index may cut hits off, or add a filter. Known to servers from 2.18 on.
    {"search_pipeline": "_none"},
)

_DIALECTS = {dialect.name: dialect for dialect in (ELASTICSEARCH, OPENSEARCH)}


def find_dialect(client: Any, name: str | None = None) -> Dialect:
    """
    Return the dialect called *name*, or by default the one that *client* speaks; no request is made.
    The modules of the client's class and its bases decide, so subclasses are recognised.
    """
    if name is not None:
        if name not in _DIALECTS:
            raise InvalidInputError(f"dialect {shorten(name)} is not known: give 'elasticsearch' or 'opensearch'")
        return _DIALECTS[name]
    modules = {cls.__module__.partition(".")[0] for cls in type(client).__mro__}
    for dialect in _DIALECTS.values():
        if not dialect.modules.isdisjoint(modules):
            return dialect
    raise WrongTypeError(
        f"{type(client).__name__} is not a known Elasticsearch or OpenSearch client: "
        "pass dialect='elasticsearch' or dialect='opensearch' for one that behaves like them"
    )


def is_async_client(client: Any) -> bool:
    """Return whether *client* is one of the async clients, by the names of its class and bases."""
    known = frozenset().union(*(dialect.modules for dialect in _DIALECTS.values()))
    return any(
        cls.__name__.startswith("Async") and cls.__module__.partition(".")[0] in known for cls in type(client).__mro__
    )


# elastic_transport keeps what reads answers here, opensearch-py there.
_READERS = ("serializers", "deserializer")


def _reading_text(client: Any) -> Any:
    """
    Return a copy of *client* that reads each ``_source`` of a multi-get as text; raise TypeError if that cannot be.
    The copy shares the connections. Make a first request with *client* itself: an async client opens them then.
    """
    transport = getattr(client, "transport", None)
    try:
        [reader] = [name for name in _READERS if hasattr(transport, name)]
        transport, clone = copy.copy(transport), copy.copy(client)
    except Exception as error:  # whatever a wrapper around a client does
        raise WrongTypeError(_WRAPPED) from error
    setattr(transport, reader, _TextReader(getattr(transport, reader)))
    setattr(clone, "_transport" if hasattr(client, "_transport") else "transport", transport)
    return clone


class _TextReader:
    """Reads the sources of a multi-get as text; what is no multi-get, such as the error of a proxy, by *reader*."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def loads(self, data: bytes | str, mimetype: str | None = None) -> Any:
        try:
            return read_sources(data)
        except ValueError:
            return self._reader.loads(data, mimetype)


def read_sources(data: bytes | str) -> dict[str, Any]:
    """
    Read a multi-get, each ``_source`` as the text that the server sent.
    A number that is read as a double and written again may change; its text does not.
    """
    members = split_members(data.decode("utf-8", "surrogatepass") if isinstance(data, bytes) else data)
    if "docs" not in members:
        raise ValueError("the answer has no documents")
    docs = []
    for item in split_items(members.pop("docs")):
        parts = split_members(item)
        source = parts.pop("_source", None)
        plain = {name: json.loads(value) for name, value in parts.items()}
        docs.append(plain if source is None else {**plain, "_source": source})
    return {**{name: json.loads(value) for name, value in members.items()}, "docs": docs}
