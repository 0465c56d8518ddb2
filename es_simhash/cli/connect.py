"""From a URL, a product and a login to a client. The login comes from the environment: arguments are seen by all."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from urllib.parse import urlsplit

import click

from es_simhash import IndexSettings, NoIndexError, SimHashClient
from es_simhash.cli.options import Target
from es_simhash.cli.output import tracking, warn
from es_simhash.cli.stopping import watch_requests
from es_simhash.client.port import run
from es_simhash.connection import (
    Server,
    ca_file_of_environment,
    hide_login,
    login_of_environment,
    open_client,
    split_url,
)
from es_simhash.transport.protocol import status_of
from es_simhash.transport.refusals import is_no_index

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Connection:
    """
    A client of this library, the search client below it, and the *url* of the server without a login.
    *to_refresh*: the indices that are refreshed at the end, if anything was written.
    """

    simhash: SimHashClient
    client: Any
    product: str
    url: str
    to_refresh: set[str]

    def run(self, operation: Callable[[Any], Coroutine[Any, Any, _T]]) -> _T:
        """Carry out an *operation* for which the library has no method."""
        return run(lambda: operation(self.simhash._server()))  # noqa: SLF001 -- the port of this client

    def settings(self, index: str) -> Mapping[str, IndexSettings]:
        """Return what each index behind *index* records; a lookup by the same client needs no request for it again."""
        try:
            return self.simhash.get_settings(index)
        except NoIndexError:
            return {}  # which a lookup says


def _names_like(server: Server, headers: Mapping[str, str], index: str) -> list[str]:
    """Return the indices and aliases that the user may see with names nearly *index*, at most three; one request."""
    try:
        client, _ = open_client(server, headers, index)
        try:
            found = client.indices.get_alias(index="*")
        finally:
            client.close()
    except Exception:  # noqa: BLE001 -- a login may see no other index; that the first is not there is said anyway
        return []
    aliases = [alias for described in found.values() for alias in described.get("aliases") or ()]
    return difflib.get_close_matches(index, dict.fromkeys([*found, *aliases]), n=3)


@contextmanager
def connect(target: Target, index: str, *, is_quiet: bool = False) -> Iterator[Connection]:
    """
    Connect to the server of *target*, and close the connection at the end.
    *index*: only where it is missing, one request asks for names like it. A *target* without a scheme adopts that of
    the index. A command that wrote and did not fail refreshes its indices once, so that the next one sees what was
    written; who may not refresh sees it later. Progress is shown, unless *is_quiet*.
    """
    given = target.server.url
    url, login_of_url = split_url(given)
    click.get_current_context().meta["es_simhash.url"] = url
    headers = login_of_environment().headers or login_of_url.headers
    server = replace(target.server, url=url, ca_file=ca_file_of_environment())
    if server.is_insecure:
        warn(f"the certificate of {url} is not verified: anybody on the way can read and change everything")
    try:
        client, product = open_client(server, headers, index)
        has_written = watch_requests(client.transport)
        try:
            with tracking() as progress:
                tell = None if is_quiet else progress
                simhash = SimHashClient(
                    client, scheme=target.scheme, files=target.files, prefix=target.prefix, progress=tell
                )
                connection = Connection(simhash, client, product, url, {index})
                yield connection
            if has_written.is_set():
                with suppress(Exception):
                    client.indices.refresh(index=",".join(sorted(connection.to_refresh)), ignore_unavailable=True)
        finally:
            client.close()
    except Exception as error:
        hide_login(error, headers)
        if is_no_index(error):
            click.get_current_context().meta["es_simhash.like"] = _names_like(server, headers, index)
        if status_of(error) is None and urlsplit(url).port != urlsplit(f"//{given.rpartition('//')[2]}").port:
            error.add_note(f"port {urlsplit(url).port} was tried, because the URL names none")
        raise
