"""
From URL, login and product to a client of the library.

The login comes from environment variables only: arguments are seen by everybody on the machine. The product is told by
the headers of an answer to a harmless request on the index that the user named, since a login with rights on that
index alone may not ask the server what it is.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import click

from es_simhash import Scheme, SimHashClient
from es_simhash.cli.output import warn
from es_simhash.cli.shared_options import Server
from es_simhash.errors import InvalidInputError, MissingDependencyError, shorten
from es_simhash.index.fields import DEFAULT_PREFIX

__all__ = ["Connection", "connect"]

_DEFAULT_PORTS = {"http": 9200, "https": 443}


@dataclass(frozen=True, slots=True)
class Connection:
    """
    A client of ours, and the search client below it.

    Attributes:
        product:
            ``"elasticsearch"`` or ``"opensearch"``.
    """

    simhash: SimHashClient
    client: Any
    product: str


@dataclass(frozen=True, slots=True)
class _Login:
    """The login of the environment: an API key, a user and password, or nothing."""

    api_key: str | None
    user: str | None
    password: str | None
    ca_file: str | None

    def headers(self) -> dict[str, str]:
        if self.api_key is not None:
            # Both products give out the form that is encoded already; id:key is what people write down.
            key = _base64(self.api_key) if ":" in self.api_key else self.api_key
            return {"authorization": f"ApiKey {key}"}
        if self.user is not None:
            return {"authorization": f"Basic {_base64(f'{self.user}:{self.password}')}"}
        return {}


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode("ascii")


def _read_login() -> _Login:
    names = ("API_KEY", "USER", "PASSWORD", "CA_FILE")
    login = _Login(*((os.environ.get(f"ES_SIMHASH_{name}") or None) for name in names))
    if login.api_key and login.user:
        raise InvalidInputError("both ES_SIMHASH_API_KEY and ES_SIMHASH_USER are set: unset one of them")
    if login.user and login.password is None:
        raise InvalidInputError("ES_SIMHASH_USER is set without ES_SIMHASH_PASSWORD: set both")
    if login.api_key and not login.api_key.isascii():
        raise InvalidInputError("ES_SIMHASH_API_KEY holds characters that no key has: set it again")
    if login.ca_file and not os.path.isfile(login.ca_file):  # noqa: PTH113 -- a string is what the clients take
        raise InvalidInputError(f"ES_SIMHASH_CA_FILE {shorten(login.ca_file)} is no file: give the certificate's path")
    return login


@contextmanager
def connect(
    server: Server, index: str, *, prefix: str = DEFAULT_PREFIX, scheme: str | Scheme | None = None
) -> Iterator[Connection]:
    """
    Connect to *server*, and close the connection at the end.

    Args:
        server:
            Where it is, and what.
        index:
            The index that the command is about; the only thing asked about.
        prefix:
            Name of the object that holds the fields.
        scheme:
            Scheme to insist on; ``None`` adopts the index's own.

    Raises:
        InvalidInputError: If the URL or a variable cannot be used, or the server is neither product.
        MissingDependencyError: If the client for the product is not installed.
    """
    url, shown = _check_url(server.url)
    click.get_current_context().meta["es_simhash.url"] = shown
    login = _read_login()
    if server.is_insecure:
        warn(f"the certificate of {shown} is not verified: anybody in between can read and change everything")
    client = _elasticsearch_client(url, server, login)
    try:
        product = _detect(client, index, login, shown) if server.product == "auto" else server.product
        if product == "opensearch":
            client.close()
            client = _opensearch_client(url, server, login)
        yield Connection(SimHashClient(client, scheme=scheme, prefix=prefix), client, product)
    finally:
        client.close()


def _check_url(url: str) -> tuple[str, str]:
    """Return *url* with its port, and the same without user and password, to be shown."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port = parts.port
    except ValueError as error:
        raise InvalidInputError(
            f"URL {shorten(url)} cannot be used ({error}): give one like https://host:9200"
        ) from error
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        raise InvalidInputError(f"URL {shorten(url)} cannot be used: give one like https://host:9200")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    place = f"{host}:{port or _DEFAULT_PORTS[parts.scheme]}"
    login, at, _ = parts.netloc.rpartition("@")
    path = parts.path.rstrip("/")
    shown = urlunsplit((parts.scheme, place, path, "", ""))
    return urlunsplit((parts.scheme, f"{login}{at}{place}", path, "", "")), shown


def _elasticsearch_client(url: str, server: Server, login: _Login) -> Any:
    from elasticsearch import Elasticsearch  # noqa: PLC0415 -- slow to import, and useless with OpenSearch

    options: dict[str, Any] = {"headers": login.headers(), "request_timeout": server.timeout_seconds}
    if url.startswith("https:"):
        if login.ca_file:
            options["ca_certs"] = login.ca_file
        if server.is_insecure:
            options |= {"verify_certs": False, "ssl_show_warn": False}
    return Elasticsearch(url, **options)


def _opensearch_client(url: str, server: Server, login: _Login) -> Any:
    try:
        from opensearchpy import OpenSearch  # noqa: PLC0415 -- an extra
    except ImportError as error:
        raise MissingDependencyError(
            "this server is an OpenSearch, and its client is not installed: pip install 'es-simhash[opensearch]'"
        ) from error
    options: dict[str, Any] = {"headers": login.headers(), "timeout": server.timeout_seconds}
    if url.startswith("https:"):
        options |= {"use_ssl": True, "verify_certs": not server.is_insecure, "ssl_show_warn": False}
        if login.ca_file:
            options["ca_certs"] = login.ca_file
    return OpenSearch([url], **options)


def _detect(client: Any, index: str, login: _Login, shown: str) -> str:
    """Return the product that answers; any answer tells it, a refusal as well as a success."""
    headers = {"accept": "application/json", **login.headers()}
    meta = client.transport.perform_request("HEAD", f"/{quote(index, safe=',*')}", headers=headers).meta
    if "x-elastic-product" in meta.headers:
        return "elasticsearch"
    # Elasticsearch has sent its header since 7.14. OpenSearch's came later, and its Security refuses without it.
    realm = meta.headers.get("www-authenticate", "")
    if "x-opensearch-version" in meta.headers or "opensearch" in realm.lower() or _is_json(meta.headers):
        return "opensearch"
    raise InvalidInputError(
        f"{shown} answers (HTTP {meta.status}) but does not say that it is Elasticsearch or OpenSearch: check the URL, "
        "or give --product"
    )


def _is_json(headers: Any) -> bool:
    return "json" in headers.get("content-type", "")
