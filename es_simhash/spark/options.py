"""
The options of the format ``es_simhash``: read from the strings that Spark has, checked. No connection is opened here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from es_simhash.arguments import check_choice, check_count, check_fields
from es_simhash.client.dialects import Dialect, find_dialect
from es_simhash.client.drivers import run
from es_simhash.connection import Login, Server, ca_file_of_environment, login_of_environment, open_client, split_url
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.hashing import Scheme
from es_simhash.mapping.fields import DEFAULT_PREFIX, Fields
from es_simhash.mapping.limits_flow import ServerLimits, within_limits
from es_simhash.transport.protocol import Flow

KNOWN = {
    "connection": (
        "index", "path", "url", "product", "api_key", "user", "password", "ca_file", "timeout_seconds", "prefix",
    ),
    "reading": ("filter", "columns", "slices", "page", "scheme"),
    "writing": ("scheme", "max_distance", "rule", "verify", "canonical", "conflicts"),
}  # fmt: skip
"""The names of all options, by what they are for."""


@dataclass(frozen=True, slots=True)
class Connection:
    """
    How an index is reached: what goes to the executors.

    Attributes:
        server:
            The server.
        index:
            The index.
        prefix:
            Name of the object that holds the fields.
        login:
            Never shown.
    """

    server: Server
    index: str
    prefix: str
    login: Login = field(repr=False)

    @contextmanager
    def open(self) -> Iterator[tuple[Any, Dialect]]:
        """Open a client, and close it at the end."""
        client, _ = open_client(self.server, self.login.headers, self.index)
        try:
            yield client, find_dialect(client)
        finally:
            client.close()

    def run(self, flow: Flow[Any]) -> Any:
        """Carry *flow* out with a client of its own, and return its result."""
        with self.open() as (client, dialect):
            return run(within_limits(flow, ServerLimits()), client, dialect)


def read_connection(options: Mapping[str, str]) -> Connection:
    """
    Return the connection that *options* describe. The login is in the options, else in the environment of the driver.

    Raises:
        InvalidInputError: If an option is missing or cannot be used. No message has a secret.
    """
    index = options.get("index") or options.get("path")
    if not index or not options.get("url"):
        raise InvalidInputError("the options url and index are needed, such as https://host:9200 and news")
    urls, logins = zip(*map(split_url, read_list(options, "url")), strict=True)
    own = Login(options.get("api_key"), options.get("user"), options.get("password"))
    login = next((each for each in (own, login_of_environment(), *logins) if each.headers), Login())
    if (own.user is None) != (own.password is None) or (own.user and own.api_key):
        raise InvalidInputError("give the option api_key, or the options user and password together")
    product = check_choice("product", options.get("product", "auto"), ("auto", "elasticsearch", "opensearch"))
    Fields(prefix := options.get("prefix", DEFAULT_PREFIX))
    timeout = read_number(options, "timeout_seconds", 60)
    server = Server(urls[0], product, options.get("ca_file") or ca_file_of_environment(), False, timeout, urls[1:])
    return Connection(server, index, prefix, login)


def refuse_unknown(options: Mapping[str, str], *groups: str) -> None:
    """
    Refuse options that mean nothing here.

    Raises:
        InvalidInputError: If there is one. Its value is not shown: it may be a secret.
    """
    known = {name for group in groups for name in KNOWN[group]}
    if unknown := sorted({name.lower() for name in options} - known):
        raise InvalidInputError(f"option {shorten(unknown[0])} is not known: give {', '.join(sorted(known))}")


def read_list(options: Mapping[str, str], name: str) -> list[str]:
    """Return the parts of an option between commas."""
    return [part.strip() for part in options.get(name, "").split(",") if part.strip()]


def read_fields(options: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Return the fields that an option names."""
    return check_fields(name, read_list(options, name), may_lack=True)


def read_number(options: Mapping[str, str], name: str, default: int) -> int:
    """Return an option that is a whole number of 1 or more."""
    try:
        return check_count(name, int(options.get(name, default)))
    except ValueError:
        raise InvalidInputError(f"option {name} {shorten(options[name])} is not a whole number of 1 or more") from None


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
    except ValueError as error:
        raise InvalidInputError(f"option {name} {shorten(options[name])} is not JSON: {error}") from None
