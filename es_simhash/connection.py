"""
From URL, login and product to a search client, for programs that open connections themselves: the command line, Spark.

A login inside a URL is taken out of it before anything else sees the URL. The product is read from the headers of the
answer to a harmless request on the index that is worked on: a login with rights on that index alone may not ask the
server what it is. Where the login comes from is decided by the caller.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from es_simhash.arguments import check_choice
from es_simhash.errors import InvalidInputError, MissingDependencyError, shorten
from es_simhash.transport.secrets import login_in, secrets_of

_DEFAULT_PORTS = {"http": 9200, "https": 443}
_LONGEST_SECONDS = 86_400
_SCHEME = re.compile(r"^[\w+.-]*://")
_NO_HOST = "it names no host"
_CUT_LOGIN = "a character of its login ends the host"


@dataclass(frozen=True, slots=True)
class Login:
    """An API key, a user and password, or nothing; never shown."""

    api_key: str | None = field(default=None, repr=False)
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.api_key and not (self.api_key.isascii() and self.api_key.isprintable()):
            raise InvalidInputError(
                "ES_SIMHASH_API_KEY, or the option api_key, has characters that no API key has, such as a line break: "
                "set it again"
            )

    @property
    def headers(self) -> dict[str, str]:
        if self.api_key is not None:
            # Both products give out the encoded form; people write down id:key.
            key = _base64(self.api_key) if ":" in self.api_key else self.api_key
            return {"authorization": f"ApiKey {key}"}
        if self.user is not None:
            return {"authorization": f"Basic {_base64(f'{self.user}:{self.password}')}"}
        return {}


@dataclass(frozen=True, slots=True)
class Server:
    """A server, its other nodes, and how to reach it; *ca_file*: the certificate to trust, not those of the system."""

    url: str
    product: str = "auto"
    ca_file: str | None = None
    is_insecure: bool = False
    timeout_seconds: float = 60.0
    others: tuple[str, ...] = ()

    @property
    def urls(self) -> list[str]:
        """The addresses of all nodes that are known."""
        return [self.url, *self.others]


def _variable(name: str) -> str | None:
    return os.environ.get(f"ES_SIMHASH_{name}") or None


def login_of_environment() -> Login:
    """Return the login that ``ES_SIMHASH_API_KEY``, or ``ES_SIMHASH_USER`` and ``ES_SIMHASH_PASSWORD``, name."""
    login = Login(_variable("API_KEY"), _variable("USER"), _variable("PASSWORD"))
    if login.api_key and login.user:
        raise InvalidInputError("both ES_SIMHASH_API_KEY and ES_SIMHASH_USER are set: unset one of them")
    if login.user and login.password is None:
        raise InvalidInputError("ES_SIMHASH_USER is set without ES_SIMHASH_PASSWORD: set both")
    return login


def ca_file_of_environment() -> str | None:
    """Return the path in ``ES_SIMHASH_CA_FILE``, if it is set; raise InvalidInputError if there is no file."""
    path = _variable("CA_FILE")
    if path is not None and not os.path.isfile(path):  # noqa: PTH113 -- a string is what the clients take
        raise InvalidInputError(f"ES_SIMHASH_CA_FILE {shorten(path)} is not a file: give the path of the certificate")
    return path


def server_of_environment(url: str) -> Server:
    """Return the server at *url*; ``ES_SIMHASH_PRODUCT``, ``_CA_FILE``, ``_INSECURE``, ``_TIMEOUT`` say the rest."""
    product = check_choice(
        "ES_SIMHASH_PRODUCT", _variable("PRODUCT") or "auto", ("auto", "elasticsearch", "opensearch")
    )
    insecure = check_choice("ES_SIMHASH_INSECURE", _variable("INSECURE") or "0", ("0", "1"))
    given = _variable("TIMEOUT") or "60"
    seconds = 0.0
    with suppress(ValueError):
        seconds = float(given)
    if not 0 < seconds <= _LONGEST_SECONDS:
        raise InvalidInputError(
            f"ES_SIMHASH_TIMEOUT {shorten(given)} is out of range: give seconds above 0 and up to {_LONGEST_SECONDS:,}"
        )
    return Server(url, product, ca_file_of_environment(), insecure == "1", seconds)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode("ascii")


def split_url(url: str) -> tuple[str, Login]:
    """
    Return *url* with its port, 9200 or 443 where it has none, and without a login, and the login that it had.
    The message of an InvalidInputError has no part of the URL that could be a password.
    """
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
    except ValueError:
        raise _bad_url(url, _CUT_LOGIN if "@" in url else _NO_HOST) from None
    try:
        port = parts.port
    except ValueError:
        port = 0
    host = parts.hostname or ""
    # A "#", "?" or "/" in a password ends the host there; the rest, with the "@", lands in what follows.
    rest = f"{parts.path}{parts.query}{parts.fragment}"
    faults = {
        _CUT_LOGIN: "@" in rest,
        "its port must be a number from 1 to 65535": port == 0,
        # Else the login would go out without TLS, and the scheme as the name of a user.
        "two slashes are missing behind its scheme": "://" not in url and parts.username in _DEFAULT_PORTS,
        "it must begin with http:// or https://": parts.scheme not in _DEFAULT_PORTS,
        _NO_HOST: not host,
        "its host has a character that no host has": not host.isprintable() or " " in host,
    }
    for fault, is_there in faults.items():
        if is_there:
            raise _bad_url(url, fault)
    if parts.query or parts.fragment:
        # Not shown: it may be a key.
        raise InvalidInputError(
            "the URL has a parameter, which no request would carry: leave out what follows its path, and set a key by "
            "ES_SIMHASH_API_KEY"
        )
    host = f"[{host}]" if ":" in host else host
    place = f"{host}:{port or _DEFAULT_PORTS[parts.scheme]}"
    shown = urlunsplit((parts.scheme, place, parts.path.rstrip("/"), "", ""))
    if parts.username is None:
        return shown, Login()
    return shown, Login(user=unquote(parts.username), password=unquote(parts.password or ""))


def _bad_url(url: str, reason: str) -> InvalidInputError:
    advice = "give one like https://host:9200"
    if reason == _CUT_LOGIN:
        advice = "set the login by ES_SIMHASH_USER and ES_SIMHASH_PASSWORD, or write # as %23 and / as %2F in it"
    rest = _SCHEME.sub("", url)
    scheme = url.removesuffix(rest)
    _, at, place = rest.rpartition("@")
    # Without a login, what follows a colon may be a password whose host was forgotten.
    name, colon, _ = rest.partition(":")
    shown = f"***@{place}" if at else f"{name}{colon and ':***'}"
    return InvalidInputError(f"URL {shorten(scheme + shown)} cannot be used, {reason}: {advice}")


def open_client(server: Server, login: Mapping[str, str], index: str) -> tuple[Any, str]:
    """
    Return a client for *server*, which the caller closes, and its product; *login* has the headers that log in.
    Where the product is not known, *index* is asked for, and nothing else.
    """
    headers, product = dict(login), server.product
    client = _make_client("elasticsearch" if product == "auto" else product, server, headers)
    if product != "auto":
        return client, product
    try:
        product = _detect(client, index, headers, server.url)
        if product == "opensearch":
            client.close()
            client = _make_client(product, server, headers)
    except BaseException as error:
        client.close()
        hide_login(error, headers)
        raise
    return client, product


def open_async_client(server: Server, login: Mapping[str, str], index: str) -> Any:
    """Return an async client, as :func:`open_client` does, which its caller closes on its event loop."""
    client, product = open_client(server, login, index)
    client.close()
    return _make_client(product, server, dict(login), kind="Async")


def hide_login(error: BaseException, headers: Mapping[str, str]) -> None:
    """Take the login in *headers* out of what *error* says: a server or a proxy may repeat it."""
    secrets_of(*login_in(headers)).hide_in(error)


def _make_client(product: str, server: Server, headers: dict[str, str], kind: str = "") -> Any:
    is_opensearch = product == "opensearch"
    try:
        library = import_module("opensearchpy" if is_opensearch else "elasticsearch")  # slow, and one is useless
    except ImportError as error:
        raise MissingDependencyError(
            f"the client of {product} is not installed: pip install 'es-simhash[{product}]'"
        ) from error
    options = {"headers": headers, "timeout" if is_opensearch else "request_timeout": server.timeout_seconds}
    if server.url.startswith("https:"):
        options |= {"use_ssl": True} if is_opensearch else {}
        options |= {"verify_certs": not server.is_insecure, "ssl_show_warn": False}
        options |= {"ca_certs": server.ca_file} if server.ca_file else {}
    return getattr(library, f"{kind}{'OpenSearch' if is_opensearch else 'Elasticsearch'}")(server.urls, **options)


def _detect(client: Any, index: str, login: dict[str, str], url: str) -> str:
    """Return the product that answers. Any answer names it, also a refusal."""
    headers = {"accept": "application/json", **login}
    meta = client.transport.perform_request("HEAD", f"/{quote(index, safe=',*')}", headers=headers).meta
    if "x-elastic-product" in meta.headers:
        return "elasticsearch"
    # Elasticsearch has sent its header since 7.14. OpenSearch's came later, and its Security refuses without it.
    realm = meta.headers.get("www-authenticate", "")
    is_json = "json" in meta.headers.get("content-type", "")
    if "x-opensearch-version" in meta.headers or "opensearch" in realm.lower() or is_json:
        return "opensearch"
    raise InvalidInputError(
        f"{url} answers (HTTP {meta.status}) but does not say that it is Elasticsearch or OpenSearch: check the URL, "
        "or name the product (ES_SIMHASH_PRODUCT)"
    )
