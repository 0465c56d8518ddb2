"""
Options that several commands share, and the types of their values. No command is here.

A decorator is named after the value that it gives to the command. Options about groups are in
``grouping_options.py``, because they import more.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from es_simhash.errors import InvalidInputError
from es_simhash.hashing import DEFAULT_SCHEME, Scheme, from_hex, get_scheme
from es_simhash.mapping.fields import DEFAULT_PREFIX
from es_simhash.removal.files import refuse_output

DEFAULT_URL = "http://localhost:9200"
PRODUCTS = ("elasticsearch", "opensearch")

_T = TypeVar("_T")
Command = Callable[..., _T]


class JsonType(click.ParamType):  # type: ignore[type-arg]  # generic only in newer clicks
    """An argument that is a JSON object or list."""

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
INPUT_FILE = click.Path(exists=True, dir_okay=False, allow_dash=True)


@dataclass(frozen=True, slots=True)
class Server:
    """How to reach a server, apart from the login, which comes from the environment."""

    url: str
    product: str
    is_insecure: bool
    timeout_seconds: float


@dataclass(frozen=True, slots=True)
class Target:
    """Where a command works: a server, the object that holds the fields, and a scheme if one was given."""

    server: Server
    prefix: str
    scheme: Scheme | str | None


def target(command: Command[_T]) -> Command[_T]:
    """
    Add the options that name a server, and ``--prefix``; the command gets them as *target*.

    Put :func:`scheme` above it if the command takes a scheme: the scheme then becomes part of the target.
    """
    product = click.option(
        "--product",
        "server_product",
        type=click.Choice(["auto", *PRODUCTS]),
        envvar="ES_SIMHASH_PRODUCT",
        show_envvar=True,
        default="auto",
        show_default=True,
        help="Product of the server; auto asks the server.",
    )
    return _with_target(command, product)


def target_of_any_product(command: Command[_T]) -> Command[_T]:
    """Add the options of :func:`target` without ``--product``: the server is asked for its product."""
    return _with_target(command, lambda same: same)


def _with_target(command: Command[_T], product: Callable[[Command[_T]], Command[_T]]) -> Command[_T]:
    @prefix
    @click.option(
        "--url",
        metavar="URL",
        envvar="ES_SIMHASH_URL",
        show_envvar=True,
        default=DEFAULT_URL,
        show_default=True,
        help="Address of the server.",
    )
    @product
    @click.option("--insecure", is_flag=True, help="Do not verify the server's TLS certificate.")
    @click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        default=60,
        show_default=True,
        help="Longest time that one request may take.",
    )
    @wraps(command)
    def with_target(
        *,
        url: str,
        insecure: bool,
        timeout: float,
        prefix: str,
        server_product: str = "auto",
        scheme: Scheme | str | None = None,
        **rest: Any,
    ) -> _T:
        return command(target=Target(Server(url, server_product, insecure, timeout), prefix, scheme), **rest)

    return with_target


def scheme(command: Command[_T]) -> Command[_T]:
    """Add the options that describe a scheme; the command gets them as ``scheme``, ``None`` if none is given."""

    @click.option(
        "--scheme",
        "scheme_name",
        metavar="NAME",
        help="Scheme of the fingerprints: shingles, words or keywords, or with a version, such as shingles-1.",
    )
    @click.option(
        "--set",
        "scheme_settings",
        metavar="KEY=VALUE",
        multiple=True,
        callback=_parse_settings,
        help="Set a parameter of the scheme, as in --set size=5. Repeatable.",
    )
    @click.option("--boilerplate", type=_FILE, help="Mask of template text that the scheme leaves out.")
    @click.option("--dictionary", type=_FILE, help="Dictionary of the scheme keywords.")
    @click.option("--idf", type=_FILE, help="IDF file of the scheme keywords.")
    @click.option("--stop-words", type=_FILE, help="Stop words of the scheme keywords.")
    @wraps(command)
    def with_scheme(
        *,
        scheme_name: str | None,
        scheme_settings: dict[str, Any],
        boilerplate: str | None,
        dictionary: str | None,
        idf: str | None,
        stop_words: str | None,
        **rest: Any,
    ) -> _T:
        files = {"boilerplate": boilerplate, "dictionary": dictionary, "idf": idf, "stop_words": stop_words}
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
            get_scheme(name)  # refuses an unknown name before anything is done
        return name
    if name is None and settings:
        raise click.UsageError("--set needs --scheme: each scheme has its own parameters")
    usual = DEFAULT_SCHEME if files.keys() <= {"boilerplate"} else "keywords"
    try:
        return get_scheme(name or usual, **settings, **files)
    except TypeError as error:
        raise InvalidInputError(str(error)) from error


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
"""``--json``."""

prefix = click.option(
    "--prefix",
    metavar="NAME",
    default=DEFAULT_PREFIX,
    show_default=True,
    help="Name of the object field that holds the fingerprint fields.",
)
"""``--prefix``; part of :func:`target`."""

max_distance = click.option(
    "-d",
    "--max-distance",
    type=click.IntRange(0, 64),
    metavar="BITS",
    help="Largest distance of a near-duplicate in bits, inclusive, 0 to 64. Default: the index's own, else 3.",
)
"""``--max-distance``, ``None`` if it is not given."""


class _FilterType(JsonType):
    """An argument that is a query, or a list of queries."""

    name = "query"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the query, or the queries."""
        parsed = super().convert(value, param, ctx)
        if isinstance(parsed, list) and not (parsed and all(isinstance(each, dict) for each in parsed)):
            self.fail(f'{value[:80]!r} is no query: give one such as \'{{"term": {{"lang": "en"}}}}\'', param, ctx)
        return parsed


def filter_option(help: str) -> Callable[[Command[_T]], Command[_T]]:
    """Add ``--filter``; the command gets a query or a list of queries as ``filter``, or ``None``."""
    return click.option("--filter", type=_FilterType(), metavar="JSON", help=help)


filter_query = filter_option(
    'Only documents that also match this query, as in \'{"range": {"date": {"gte": "now-7d"}}}\'.'
)
"""``--filter`` of the commands that look at documents."""

counted_filter = filter_option(
    'Count only documents that match this query, as in \'{"range": {"date": {"gte": "now-7d"}}}\'.'
)
"""``--filter`` of the commands that count documents."""

routing = click.option(
    "--routing",
    metavar="VALUE",
    help="With --id: the routing value of the document. Else search only where it leads to.",
)
"""``--routing``, ``None`` if it is not given."""

source = click.option(
    "--source",
    metavar="FIELDS",
    callback=lambda _ctx, _param, value: _parse_fields(value),
    help="Show these fields of the documents, separated by commas; * for all.",
)
"""``--source``: what the client's methods take."""

text_fields = click.option(
    "-t",
    "--text-field",
    "text_fields",
    metavar="FIELD",
    multiple=True,
    help="Field that holds the text. Repeatable; the order counts.",
)
"""``--text-field``: a tuple of names."""

time_field = click.option("--time-field", metavar="FIELD", help="Date field of the documents.")
"""``--time-field``, ``None`` if it is not given."""

source_field = click.option(
    "--source-field", metavar="FIELD", help="Keyword field that says where a document comes from."
)
"""``--source-field``, ``None`` if it is not given."""

text_file = click.option("--file", metavar="FILE", type=INPUT_FILE, help="Search for the text of this file.")
"""``--file``: a path, or ``None``."""

format_ = click.option(
    "--format",
    "format_",
    type=click.Choice(["auto", "jsonl", "csv", "tsv"]),
    default="auto",
    show_default=True,
    help="Format of the input; auto goes by the name of the file, and means jsonl for any other name.",
)
"""``--format`` of files with documents."""

workers = click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Compute fingerprints in N additional processes once there is enough work.",
)
"""``--workers``, ``None`` if it is not given."""

processes = click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Number of processes that compute fingerprints.",
)
"""``--workers`` of the commands that always say how many."""

# Eager: the value of a file to write is judged by it.
dry_run = click.option("--dry-run", is_flag=True, is_eager=True, help="Say what would be done, and change nothing.")
"""``--dry-run``."""

yes = click.option("-y", "--yes", is_flag=True, help="Do it. Without --yes the command says what it would do.")
"""``--yes``."""


def _parse_fields(source: str | None) -> bool | list[str]:
    """Return the fields that ``--source`` names: all of them for ``*``, none where it is not given."""
    if source is None or source.strip() == "*":
        return source is not None
    names = [name.strip() for name in source.split(",") if name.strip()]
    if not names:
        raise click.UsageError("--source has no name of a field: pass names separated by commas, or *")
    return names


def refuse_in_dry_run(path: str) -> None:
    """Raise InvalidInputError if a dry run that writes to *path* would replace what is there."""
    file = Path(path)
    if file.is_file() and file.stat().st_size:
        raise InvalidInputError(f"{path} exists, and a dry run replaces no file: give another name")


class _Report(click.File):
    """A file to write, which must not be an archive or a plan."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the file, open."""
        if isinstance(value, str) and value != "-":
            try:
                refuse_output(value)
                if ctx is not None and ctx.params.get("dry_run"):
                    refuse_in_dry_run(value)
            except InvalidInputError as error:
                self.fail(str(error), param, ctx)
            except FileNotFoundError as error:
                self.fail(f"{error.strerror}: {error.filename}", param, ctx)
        return super().convert(value, param, ctx)


def report_file(name: str, *, help: str) -> Callable[[Command[_T]], Command[_T]]:
    """Add an option for a file to write JSON Lines to; the command gets it open, or ``None``."""
    file = _Report("w", encoding="utf-8", errors="backslashreplace", lazy=False)
    return click.option(name, type=file, metavar="FILE", help=help)


def sample(default: int) -> Callable[[Command[_T]], Command[_T]]:
    """Add ``--sample`` and ``--seed`` for commands that read *default* documents at random."""

    def decorate(command: Command[_T]) -> Command[_T]:
        size = click.option(
            "--sample",
            type=click.IntRange(1, 10_000),
            default=default,
            show_default=True,
            metavar="N",
            help="Number of documents that are drawn at random and read.",
        )
        seed = click.option(
            "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the random choice."
        )
        return size(seed(command))

    return decorate
