"""
Options and types of arguments that several commands share.

Each decorator adds options and hands their values on as one object, so that a command names what it needs once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import click

from es_simhash.errors import InvalidInputError
from es_simhash.hashing import Scheme, from_hex, get_scheme
from es_simhash.index.fields import DEFAULT_PREFIX

__all__ = [
    "FINGERPRINT",
    "JSON",
    "Server",
    "filter_option",
    "json_option",
    "max_distance_option",
    "prefix_option",
    "scheme_options",
    "server_options",
    "text_field_option",
    "workers_option",
]

DEFAULT_URL = "http://localhost:9200"
PRODUCTS = ("elasticsearch", "opensearch")

_T = TypeVar("_T")
Command = Callable[..., _T]


class JsonType(click.ParamType):  # type: ignore[type-arg]  # generic only in newer clicks
    """An argument that is JSON: an object or a list."""

    name = "json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value that the JSON stands for."""
        if not isinstance(value, str):
            return value
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError) as error:
            self.fail(f"{value[:80]!r} is not JSON ({error}); quote it for the shell: '{{\"term\": ...}}'", param, ctx)
        if not isinstance(parsed, (dict, list)):
            self.fail(f"{value[:80]!r} is neither an object nor a list", param, ctx)
        return parsed


class FingerprintType(click.ParamType):  # type: ignore[type-arg]
    """An argument that is a fingerprint in 16 hex digits."""

    name = "fingerprint"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the fingerprint as an integer."""
        if isinstance(value, int):
            return value
        try:
            return from_hex(value)
        except InvalidInputError as error:
            self.fail(str(error), param, ctx)


JSON = JsonType()
FINGERPRINT = FingerprintType()


@dataclass(frozen=True, slots=True)
class Server:
    """
    Where the server is, apart from the login, which never is an argument.
    """

    url: str
    product: str
    is_insecure: bool
    timeout_seconds: float


def server_options(command: Command[_T]) -> Command[_T]:
    """
    Add the options that name a server; the command gets them as ``server``.
    """

    @click.option(
        "--url",
        metavar="URL",
        envvar="ES_SIMHASH_URL",
        show_envvar=True,
        default=DEFAULT_URL,
        show_default=True,
        help="Address of the server.",
    )
    @click.option(
        "--product",
        type=click.Choice(["auto", *PRODUCTS]),
        envvar="ES_SIMHASH_PRODUCT",
        show_envvar=True,
        default="auto",
        show_default=True,
        help="What the server is; auto asks it.",
    )
    @click.option("--insecure", is_flag=True, help="Do not verify the server's certificate.")
    @click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        default=60,
        show_default=True,
        help="How long one request may take.",
    )
    @wraps(command)
    def with_server(*, url: str, product: str, insecure: bool, timeout: float, **rest: Any) -> _T:
        return command(server=Server(url, product, insecure, timeout), **rest)

    return with_server


def scheme_options(command: Command[_T]) -> Command[_T]:
    """
    Add the options that describe a scheme; the command gets them as ``scheme``, ``None`` where none is given.
    """

    @click.option(
        "--scheme",
        "scheme_name",
        metavar="NAME",
        help="Scheme of the fingerprints: shingles, words or keywords; or shingles-1, with a version.",
    )
    @click.option(
        "--set",
        "scheme_settings",
        metavar="KEY=VALUE",
        multiple=True,
        callback=_parse_settings,
        help="A parameter of the scheme, as in --set size=5. Repeatable.",
    )
    @click.option("--dictionary", type=_FILE, help="Dictionary for the scheme keywords.")
    @click.option("--idf", type=_FILE, help="IDF file for the scheme keywords.")
    @click.option("--stop-words", type=_FILE, help="Stop words for the scheme keywords.")
    @wraps(command)
    def with_scheme(
        *,
        scheme_name: str | None,
        scheme_settings: dict[str, Any],
        dictionary: str | None,
        idf: str | None,
        stop_words: str | None,
        **rest: Any,
    ) -> _T:
        files = {"dictionary": dictionary, "idf": idf, "stop_words": stop_words}
        given = {key: path for key, path in files.items() if path is not None}
        return command(scheme=_build_scheme(scheme_name, scheme_settings, given), **rest)

    return with_scheme


_FILE = click.Path(exists=True, dir_okay=False)


def _parse_settings(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, Any]:
    settings = {}
    for value in values:
        key, equals, text = value.partition("=")
        if not key or not equals:
            raise click.BadParameter(f"{value!r} is not KEY=VALUE, as in size=5", ctx=ctx, param=param)
        try:
            settings[key] = json.loads(text)
        except (ValueError, RecursionError):
            settings[key] = text
    return settings


def _build_scheme(name: str | None, settings: dict[str, Any], files: dict[str, str]) -> Scheme | str | None:
    if not settings and not files:
        if name is not None:
            get_scheme(name)  # refuses an unknown one before anything is done
        return name
    if name is None and settings:
        raise click.UsageError("--set needs --scheme: the parameters of one scheme are not those of another")
    try:
        return get_scheme(name or "keywords", **settings, **files)
    except TypeError as error:
        raise InvalidInputError(str(error)) from error


def json_option(command: Command[_T]) -> Command[_T]:
    """Add ``--json``; the command gets it as ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")(command)


def prefix_option(command: Command[_T]) -> Command[_T]:
    """Add ``--prefix``."""
    return click.option(
        "--prefix", metavar="NAME", default=DEFAULT_PREFIX, show_default=True, help="Object that holds the fields."
    )(command)


def max_distance_option(command: Command[_T]) -> Command[_T]:
    """Add ``--max-distance``, ``None`` where it is not given."""
    return click.option(
        "-d",
        "--max-distance",
        type=click.IntRange(0, 64),
        metavar="BITS",
        help="Largest distance of a near-duplicate, 0 to 64 bits, inclusive. Default: the index's own, else 3.",
    )(command)


def filter_option(command: Command[_T]) -> Command[_T]:
    """Add ``--filter``, a query or a list of queries."""
    return click.option(
        "--filter",
        "filter_query",
        type=JSON,
        metavar="JSON",
        help='A query that near-duplicates also match, as in \'{"range": {"date": {"gte": "now-7d"}}}\'.',
    )(command)


def text_field_option(command: Command[_T]) -> Command[_T]:
    """Add ``--text-field``, repeatable; the command gets it as ``text_fields``."""
    return click.option(
        "-t",
        "--text-field",
        "text_fields",
        metavar="FIELD",
        multiple=True,
        help="Field that holds the text. Repeatable, in order.",
    )(command)


def workers_option(command: Command[_T]) -> Command[_T]:
    """Add ``--workers``; the command gets ``workers``, ``None`` where it is not given."""
    return click.option(
        "--workers",
        type=click.IntRange(min=1),
        metavar="N",
        help="Compute fingerprints in N more processes, once there is enough to do.",
    )(command)
