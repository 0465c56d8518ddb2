"""From a URL, a product and a login to a client. The login comes from the environment: arguments are seen by all."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from es_simhash import (
    IndexSettings,
    InvalidInputError,
    NoIndexError,
    Progress,
    SimHashClient,
)
from es_simhash.cli.failures import EndedError, WrongUseError, describe, kind_of
from es_simhash.cli.options import Described, To, files_of_environment
from es_simhash.cli.show import count, tracking, warn
from es_simhash.cli.stopping import watch_requests
from es_simhash.client.port import run
from es_simhash.connection import (
    Login,
    Server,
    hide_login,
    login_of_environment,
    open_client,
    server_of_environment,
    split_url,
)

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Connection:
    """
    A client of this library, the search client below it, and the *url* of the server without a login.
    *to_refresh*: the indices that are refreshed at the end, if anything was written. *tell*: shows progress.
    """

    simhash: SimHashClient
    client: Any
    product: str
    url: str
    to_refresh: set[str]
    tell: Callable[[Progress], None]

    def run(self, operation: Callable[[Any], Coroutine[Any, Any, _T]]) -> _T:
        """Carry out an *operation* for which the library has no method."""
        return run(lambda: operation(self.simhash._server()))  # noqa: SLF001 -- the port of this client

    def settings(self, index: str) -> Mapping[str, IndexSettings]:
        """Return what each index behind *index* records; a lookup by the same client needs no request for it again."""
        try:
            return self.simhash.get_settings(index)
        except NoIndexError:
            return {}  # which a lookup says


def find_server(to: To) -> tuple[Server, Login]:
    """Return the server, whose address has no login, and the login."""
    try:
        url, login_of_url = split_url(to.url)
    except InvalidInputError as error:
        if to.url != os.environ.get("ES_SIMHASH_URL"):
            raise
        raise InvalidInputError(f"ES_SIMHASH_URL: {error}") from None  # the cause may show the login
    login = login_of_environment()
    server = server_of_environment(url)
    if server.is_insecure:
        warn(f"the certificate of {url} is not verified: anybody on the way can read and change everything")
    return server, login if login.headers else login_of_url


@contextmanager
def connect(
    to: To,
    index: str,
    *,
    described: Described = Described(),
    is_quiet: bool = False,
) -> Iterator[Connection]:
    """
    Connect to a server, and close the connection at the end; a failure becomes an EndedError.
    Where no scheme is *described* the client adopts that of *index*. A command that wrote and did not fail refreshes
    its indices once, so that the next one sees what was written; who may not refresh sees it later. Progress of the
    library is shown, unless *is_quiet*.
    """
    scheme = described.build()
    server, login = find_server(to)
    client: Any = None
    try:
        client, product = open_client(server, login.headers, index)
        has_written = watch_requests(client.transport)
        with tracking() as progress:
            simhash = SimHashClient(
                client,
                scheme=scheme,
                prefix=to.prefix,
                files=files_of_environment() | described.files,
                progress=None if is_quiet else progress,
            )
            connection = Connection(simhash, client, product, server.url, {index}, progress)
            yield connection
        if has_written.is_set():
            with suppress(Exception):
                client.indices.refresh(index=",".join(sorted(connection.to_refresh)), ignore_unavailable=True)
    except (EndedError, WrongUseError, BrokenPipeError):
        raise
    except Exception as error:
        hide_login(error, login.headers)
        if os.environ.get("ES_SIMHASH_DEBUG"):
            raise
        raise EndedError(describe(error, url=server.url), kind_of(error)) from error
    finally:
        if client is not None:
            client.close()


def warn_of_lacking(
    connection: Connection,
    to: To,
    index: str,
    lacking: tuple[int, int] | None = None,
    *,
    with_groups: bool = True,
) -> None:
    """
    Say which documents of *index* nobody has looked at, or grouped: a setup was interrupted, or others write.
    *lacking*: how many; by default they are counted, with a request or two, the second number only *with_groups*.
    """
    from es_simhash.groups.read import count_lacking, count_wordless  # noqa: PLC0415 -- loads numpy

    try:
        settings = connection.settings(index)
        if lacking is None:
            lacking = connection.run(lambda server: count_lacking(server, index, settings, with_groups=with_groups))
        unfilled, ungrouped = lacking
        if unfilled:
            unfilled -= connection.run(lambda server: count_wordless(server, index, settings))
    except Exception:  # noqa: BLE001 -- the command itself says what is wrong with the index
        return
    for number, kind, what in (
        (unfilled, "without_fingerprint", "with a text and without fingerprint: no lookup and no group has them"),
        (ungrouped, "ungrouped", "never grouped"),
    ):
        if number > 0:
            said = f"{count(number, 'document')} {what}; run {to.command('setup', index, '--yes')}"
            warn(said, kind=kind, number=number)


def warn_of_shared_ids(number: int) -> None:
    """Say that *number* names of groups stand for several groups, if any do."""
    if number:
        said = f"{count(number, 'name')} of several groups, because indices that were not grouped together repeat an id"
        advice = "run es-simhash reconcile over all of them, or look at each by itself"
        warn(f"{said}: {advice}", kind="shared_ids", number=number)
