"""
From URL, login and product to a client of the library.

The login comes from the environment, because everybody on a machine can read the arguments of its programs; a login
inside the URL is taken out of it before anything else sees the URL. The product is read from the headers of the answer
to a harmless request on the index of the command: a login with rights on that index alone may not ask the server what
it is.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

import click

from es_simhash import SimHashClient
from es_simhash.cli.options import Server, Target
from es_simhash.cli.output import warn
from es_simhash.errors import InvalidInputError, MissingDependencyError, shorten

__all__ = ["Connection", "connect"]

_DEFAULT_PORTS = {"http": 9200, "https": 443}


@dataclass(frozen=True, slots=True)
class Connection:
    """
    A client of ours, and the search client below it.

    Attributes:
        product:
            ``"elasticsearch"`` or ``"opensearch"``.
        url:
            Address of the server, without a login.
    """

    simhash: SimHashClient
    client: Any
    product: str
    url: str


@dataclass(frozen=True, slots=True)
class _Login:
    """An API key, a user and password, or nothing; never shown."""

    api_key: str | None = field(default=None, repr=False)
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)

    @property
    def headers(self) -> dict[str, str]:
        if self.api_key is not None:
            # Both products give out the encoded form; people write down id:key.
            key = _base64(self.api_key) if ":" in self.api_key else self.api_key
            return {"authorization": f"ApiKey {key}"}
        if self.user is not None:
            return {"authorization": f"Basic {_base64(f'{self.user}:{self.password}')}"}
        return {}


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode("ascii")


def _variable(name: str) -> str | None:
    return os.environ.get(f"ES_SIMHASH_{name}") or None


def _read_login() -> _Login:
    """Return the login of the environment."""
    login = _Login(_variable("API_KEY"), _variable("USER"), _variable("PASSWORD"))
    if login.api_key and login.user:
        raise InvalidInputError("both ES_SIMHASH_API_KEY and ES_SIMHASH_USER are set: unset one of them")
    if login.user and login.password is None:
        raise InvalidInputError("ES_SIMHASH_USER is set without ES_SIMHASH_PASSWORD: set both")
    if login.api_key and not login.api_key.isascii():
        raise InvalidInputError("ES_SIMHASH_API_KEY has characters that no API key has: set it again")
    return login


def _read_ca_file() -> str | None:
    path = _variable("CA_FILE")
    if path is not None and not os.path.isfile(path):  # noqa: PTH113 -- a string is what the clients take
        raise InvalidInputError(f"ES_SIMHASH_CA_FILE {shorten(path)} is not a file: give the path of the certificate")
    return path


@contextmanager
def connect(target: Target, index: str) -> Iterator[Connection]:
    """
    Connect to the server of *target*, and close the connection at the end.

    Args:
        target:
            The server, the object that holds the fields, and the scheme to insist on; no scheme adopts the index's.
        index:
            The index of the command. No request is made about anything else.

    Raises:
        InvalidInputError: If the URL or a variable cannot be used, or the server is neither product.
        MissingDependencyError: If the client for the product is not installed.
    """
    server = target.server
    url, login_of_url = _split_url(server.url)
    click.get_current_context().meta["es_simhash.url"] = url
    login = _read_login()
    headers = login.headers or login_of_url.headers
    ca_file = _read_ca_file()
    if server.is_insecure:
        warn(f"the certificate of {url} is not verified: anybody on the way can read and change everything")
    client = _elasticsearch_client(url, server, headers, ca_file)
    try:
        product = _detect(client, index, headers, url) if server.product == "auto" else server.product
        if product == "opensearch":
            client.close()
            client = _opensearch_client(url, server, headers, ca_file)
        simhash = SimHashClient(client, scheme=target.scheme, prefix=target.prefix)
        yield Connection(simhash, client, product, url)
    finally:
        client.close()


def _split_url(url: str) -> tuple[str, _Login]:
    """
    Return *url* with its port and without a login, and the login that it had.

    Raises:
        InvalidInputError: If it is not a URL of a server. The message has no part of it that could be a password.
    """
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
    except ValueError:
        raise _bad_url(url) from None
    try:
        port = parts.port
    except ValueError:
        raise _bad_url(url, "its port must be a number from 1 to 65535") from None
    # A "#", "?" or "/" in a password ends the host there; the rest, with the "@", lands in what follows.
    rest = (parts.path, parts.query, parts.fragment)
    if port == 0:
        raise _bad_url(url, "its port must be a number from 1 to 65535")
    if parts.scheme not in _DEFAULT_PORTS:
        raise _bad_url(url, "it must begin with http:// or https://")
    if not parts.hostname or any("@" in part for part in rest):
        raise _bad_url(url)
    if any(character.isspace() or not character.isprintable() for character in parts.hostname):
        raise _bad_url(url, "its host has a character that no host has")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    place = f"{host}:{port or _DEFAULT_PORTS[parts.scheme]}"
    shown = urlunsplit((parts.scheme, place, parts.path.rstrip("/"), "", ""))
    return shown, _login_of(parts)


def _login_of(parts: SplitResult) -> _Login:
    if parts.username is None:
        return _Login()
    return _Login(user=unquote(parts.username), password=unquote(parts.password or ""))


def _bad_url(url: str, reason: str = "it names no host") -> InvalidInputError:
    before, at, rest = url.rpartition("@")
    if at:
        scheme, separator, _ = before.partition("://")
        return InvalidInputError(
            f"URL {shorten(f'{scheme}{separator}***@{rest}' if separator else f'***@{rest}')} cannot be used: set the "
            "login by ES_SIMHASH_USER and ES_SIMHASH_PASSWORD, or write # as %23 and / as %2F in it"
        )
    # What follows a colon may be a password whose host was forgotten.
    scheme, separator, host = url.rpartition("://")
    name, colon, _ = host.partition(":")
    shown = f"{scheme}{separator}{name}{colon and ':***'}"
    return InvalidInputError(f"URL {shorten(shown)} cannot be used, {reason}: give one like https://host:9200")


def _elasticsearch_client(url: str, server: Server, headers: dict[str, str], ca_file: str | None) -> Any:
    from elasticsearch import Elasticsearch  # noqa: PLC0415 -- slow to import, and useless with OpenSearch

    options: dict[str, Any] = {"headers": headers, "request_timeout": server.timeout_seconds}
    if url.startswith("https:"):
        if ca_file:
            options["ca_certs"] = ca_file
        if server.is_insecure:
            options |= {"verify_certs": False, "ssl_show_warn": False}
    return Elasticsearch(url, **options)


def _opensearch_client(url: str, server: Server, headers: dict[str, str], ca_file: str | None) -> Any:
    try:
        from opensearchpy import OpenSearch  # noqa: PLC0415 -- an extra
    except ImportError as error:
        raise MissingDependencyError(
            "this server is an OpenSearch, and its client is not installed: pip install 'es-simhash[opensearch]'"
        ) from error
    options: dict[str, Any] = {"headers": headers, "timeout": server.timeout_seconds}
    if url.startswith("https:"):
        options |= {"use_ssl": True, "verify_certs": not server.is_insecure, "ssl_show_warn": False}
        if ca_file:
            options["ca_certs"] = ca_file
    return OpenSearch([url], **options)


def _detect(client: Any, index: str, login: dict[str, str], url: str) -> str:
    """Return the product that answers. Any answer names it, also a refusal."""
    headers = {"accept": "application/json", **login}
    meta = client.transport.perform_request("HEAD", f"/{quote(index, safe=',*')}", headers=headers).meta
    if "x-elastic-product" in meta.headers:
        return "elasticsearch"
    # Elasticsearch has sent its header since 7.14. OpenSearch's came later, and its Security refuses without it.
    realm = meta.headers.get("www-authenticate", "")
    if "x-opensearch-version" in meta.headers or "opensearch" in realm.lower() or _is_json(meta.headers):
        return "opensearch"
    raise InvalidInputError(
        f"{url} answers (HTTP {meta.status}) but does not say that it is Elasticsearch or OpenSearch: check the URL, "
        "or give --product"
    )


def _is_json(headers: Any) -> bool:
    return "json" in headers.get("content-type", "")
