"""From a URL, a product and a login to a client. The login comes from the environment: arguments are seen by all."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from es_simhash import (
    IndexSettings,
    InvalidInputError,
    NoIndexError,
    Scheme,
    SimHashClient,
)
from es_simhash.cli.failures import EndedError, WrongUseError, describe, kind_of
from es_simhash.cli.options import To, files_of_environment
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
from es_simhash.errors import shorten
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


def _names_like(client: Any, index: str) -> list[str]:
    """Return the indices and aliases that the user may see with names nearly *index*, at most three; one request."""
    try:
        found = client.indices.get_alias(index="*")
    except Exception:  # noqa: BLE001 -- a login may see no other index; that the first is not there is said anyway
        return []
    aliases = [alias for described in found.values() for alias in described.get("aliases") or ()]
    names = dict.fromkeys([*found, *aliases])
    return [] if index in names else difflib.get_close_matches(index, names, n=3)


@contextmanager
def connect(
    to: To,
    index: str,
    *,
    scheme: Scheme | str | None = None,
    files: Mapping[str, Any] | None = None,
    is_quiet: bool = False,
) -> Iterator[Connection]:
    """
    Connect to a server, and close the connection at the end; a failure becomes an EndedError.
    *index*: only where it is missing, one request asks for names like it. Without a *scheme* the client adopts that of
    the index, with its *files*. A command that wrote and did not fail refreshes its indices once, so that the next one
    sees what was written; who may not refresh sees it later. Progress is shown, unless *is_quiet*.
    """
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
                files={**files_of_environment(), **(files or {})},
                progress=None if is_quiet else progress,
            )
            connection = Connection(simhash, client, product, server.url, {index})
            yield connection
        if has_written.is_set():
            with suppress(Exception):
                client.indices.refresh(index=",".join(sorted(connection.to_refresh)), ignore_unavailable=True)
    except (EndedError, WrongUseError, BrokenPipeError):
        raise
    except Exception as error:
        hide_login(error, login.headers)
        is_missing = is_no_index(error)
        like = _names_like(client, index) if is_missing else []
        if os.environ.get("ES_SIMHASH_DEBUG"):
            raise
        # A name without a folder may be that of an index, too.
        if (is_missing or os.path.dirname(index)) and os.path.isfile(index):  # noqa: PTH113, PTH120 -- of any length
            error = InvalidInputError(f"{shorten(index)} is a file: give the name of an index")
        raise EndedError(describe(error, url=server.url, like=like), kind_of(error)) from error
    finally:
        if client is not None:
            client.close()


def warn_of_lacking(
    connection: Connection,
    to: To,
    index: str,
    lacking: tuple[int, int] | None = None,
    *,
    unfilled: str = "they are in no group",
    ungrouped: str | None = "the index shows no group of them",
) -> None:
    """
    Say which documents of *index* nobody has looked at, or grouped: a setup was interrupted, or others write.
    *lacking*: how many; by default they are counted, with a request or two. *unfilled*, *ungrouped*: what follows.
    """
    from es_simhash.groups.read import count_lacking, count_wordless  # noqa: PLC0415 -- loads numpy

    try:
        settings, with_groups = connection.settings(index), ungrouped is not None
        if lacking is None:
            lacking = connection.run(lambda server: count_lacking(server, index, settings, with_groups=with_groups))
        unfilled_documents, never_grouped = lacking
        if unfilled_documents:
            unfilled_documents -= connection.run(lambda server: count_wordless(server, index, settings))
    except Exception:  # noqa: BLE001 -- the command itself says what is wrong with the index
        return
    for number, kind, what, so in (
        (unfilled_documents, "without_fingerprint", "with a text and without fingerprint", unfilled),
        (never_grouped, "ungrouped", "never grouped", ungrouped),
    ):
        if number > 0 and so is not None:
            said = f"{count(number, 'document')} {what}: {so}; run {to.command('setup', index, '--yes')}"
            warn(said, kind=kind, number=number)


def warn_of_shared_ids(number: int) -> None:
    """Say that *number* names of groups stand for several groups, if any do."""
    if number:
        said = f"{count(number, 'name')} of several groups, because indices that were not grouped together repeat an id"
        advice = "run es-simhash reconcile over all of them, or look at each by itself"
        warn(f"{said}: {advice}", kind="shared_ids", number=number)
