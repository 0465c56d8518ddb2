"""A command with its examples and ``--json``, and the options of several commands, named for the values they give."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from random import randrange
from typing import Any

import click
from click.core import ParameterSource

from es_simhash import DEFAULT_PREFIX, DEFAULT_SCHEME, InvalidInputError, Scheme, get_scheme
from es_simhash.arguments import LARGEST_COUNT, Choice, Count, parameters
from es_simhash.cli.parameter_types import DELIMITER, INPUT_FILE, QUERY
from es_simhash.connection import Server
from es_simhash.hashing.scheme import FILES as SCHEME_FILES, STEPS

DEFAULT_URL = "http://localhost:9200"
PRODUCTS = ("elasticsearch", "opensearch")
_ALL = "es_simhash.help_all"

Function = Callable[..., Any]

_FILES = "es_simhash.files"
Decorator = Callable[[Function], Function]


class Manual(click.Command):
    """
    A command with ``--json``, whose help shows defaults and ends with examples; ``docs/cli.md`` shows them, too.
    *common*: the options that ``--help`` shows, and ``--help-all`` shows all; by default ``--help`` shows all.
    """

    def __init__(self, *args: Any, examples: Sequence[str], common: str = "", **settings: Any) -> None:
        super().__init__(*args, **settings)
        for parameter in self.params:
            if isinstance(parameter, click.Option) and isinstance(parameter.default, str | int | float):
                parameter.show_default = True if parameter.show_default is None else parameter.show_default
        self.examples = tuple(examples)
        self.common = frozenset(f"{common} --help-all --help".split() if common else ())
        self.params.append(click.Option(["--json", "as_json"], is_flag=True, help="Print JSON, for programs."))
        if common:
            about_help: dict[str, Any] = {"is_eager": True, "expose_value": False, "callback": _show_all}
            text = "Show all options and exit."
            self.params.append(click.Option(["--help-all"], is_flag=True, help=text, **about_help))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if not self.common or ctx.meta.get(_ALL):
            super().format_options(ctx, formatter)
            return
        found = [parameter for parameter in self.get_params(ctx) if self.common.intersection(parameter.opts)]
        with formatter.section("Common options"):
            formatter.write_dl([row for option in found if (row := option.get_help_record(ctx))])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 -- click's
        """Write each example on one line, so that it can be copied."""
        with formatter.section("Examples"):
            for example in self.examples:
                formatter.write(f"{'':{formatter.current_indent}}{example}\n")


def _show_all(ctx: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001 -- click's signature
    if value:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()


def manual(*examples: str, common: str = "", group: click.Group | None = None) -> Callable[[Function], Manual]:
    """Make a command, or a command of *group*."""

    def make(function: Function) -> Manual:
        made = click.command(cls=Manual, examples=examples, common=common)(function)
        if group is not None:
            group.add_command(made)
        return made

    return make


def refuse_given(why: str, *names: str) -> None:
    """Raise UsageError if the command line has one of the options whose values are *names*; *why*: what it needs."""
    context = click.get_current_context()
    for parameter in context.command.params:
        if parameter.name in names and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{parameter.opts[-1]} {why}")


def number(*names: str, help: str, least: int = 1, most: int | None = None, **more: Any) -> Decorator:
    return click.option(*names, type=click.IntRange(least, most), help=help, **{"metavar": "N", **more})


def share(name: str, *, help: str, **more: Any) -> Decorator:
    return click.option(name, type=click.FloatRange(0, 1), metavar="SHARE", help=help, **more)


def seconds(*names: str, help: str, **more: Any) -> Decorator:
    return click.option(*names, type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help=help, **more)


# What a word for a value of an option means, where it is no count.
_KINDS: dict[str, Any] = {
    "N": click.FloatRange(min=0, min_open=True),
    "SHARE": click.FloatRange(0, 1),
    "SECONDS": click.FloatRange(min=0, min_open=True),
}


def takes(options: type[Any], *, has_defaults: bool = True) -> Decorator:
    """Add an option for each field of a class of *options* that has a text; without a default it is ``None``."""

    def add(command: Function) -> Function:
        for taken in reversed([parameter for parameter in parameters(options).values() if parameter.help]):
            check, default, more = taken.check, taken.default, dict[str, Any](multiple=taken.default == ())
            metavar: str | None = taken.metavar
            kind = _KINDS.get(taken.metavar)
            if metavar == "FIELDS":
                more["callback"] = split_names
            if isinstance(check, Choice):
                kind, metavar = click.Choice(check.choices), None
            elif isinstance(check, Count):
                kind = click.IntRange(check.smallest, None if check.largest == LARGEST_COUNT else check.largest)
            if has_defaults and default is not None:
                more["default"] = default
            flag = taken.flag or f"--{taken.name.replace('_', '-')}"
            command = click.option(flag, taken.name, type=kind, metavar=metavar, help=taken.help, **more)(command)
        return command

    return add


@dataclass(frozen=True, slots=True)
class Target:
    """Where a command works: a server, the object that holds the fields, a scheme if one was given, files of others."""

    server: Server
    prefix: str
    scheme: Scheme | str | None
    files: Mapping[str, Any] = field(default_factory=dict)


def target(command: Function) -> Function:
    """
    Add the options that name a server, and ``--prefix``; the command gets them as *target*.
    Put :func:`scheme` above it if the command takes a scheme: the scheme then becomes part of the target.
    """

    @prefix
    @click.option(
        "--url",
        metavar="URL",
        envvar="ES_SIMHASH_URL",
        show_envvar=True,
        default=DEFAULT_URL,
        help="Address of the server.",
    )
    @click.option(
        "--product",
        "server_product",
        type=click.Choice(["auto", *PRODUCTS]),
        envvar="ES_SIMHASH_PRODUCT",
        show_envvar=True,
        default="auto",
        help="Product of the server; auto asks the server.",
    )
    @click.option("--insecure", is_flag=True, help="Do not verify the server's TLS certificate.")
    @seconds("--timeout", default=60, help="Longest time that one request may take.")
    @wraps(command)
    def with_target(
        *,
        url: str,
        insecure: bool,
        timeout: float,
        prefix: str,
        server_product: str,
        scheme: Scheme | str | None = None,
        **rest: Any,
    ) -> Any:
        server = Server(url, server_product, is_insecure=insecure, timeout_seconds=timeout)
        files = click.get_current_context().meta.get(_FILES, {})
        return command(target=Target(server, prefix, scheme, files), **rest)

    return with_target


def scheme(command: Function) -> Function:
    """Add the options that describe a scheme; the command gets them as ``scheme``, ``None`` if none is given."""

    @click.option(
        "--scheme",
        "scheme_name",
        metavar="NAME",
        help="Scheme of the fingerprints: shingles or keywords, or with a version, such as shingles-3.",
    )
    @click.option(
        "--set",
        "scheme_settings",
        metavar="KEY=VALUE",
        multiple=True,
        callback=_parse_settings,
        help="Set a parameter of the scheme, as in --set size=5; keywords also takes files as dictionary, idf and "
        "stop_words. Repeatable.",
    )
    @click.option(
        "--preprocess",
        type=click.Choice(STEPS),
        multiple=True,
        help="Change texts first: html to text; leave out numbers, times and ids; traditional to simplified Chinese "
        "(t2s). Repeatable; the order counts.",
    )
    @wraps(command)
    def with_scheme(
        *, scheme_name: str | None, scheme_settings: dict[str, Any], preprocess: tuple[str, ...], **rest: Any
    ) -> Any:
        return command(scheme=_build_scheme(scheme_name, scheme_settings, preprocess), **rest)

    return with_scheme


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
    ctx.meta[_FILES] = {key: settings[key] for key in SCHEME_FILES if key in settings}
    return settings


def _find_files(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> None:
    """Note the files for the client: the scheme of a mapping has their digests."""
    given = _parse_settings(ctx, param, values)
    if len(given) > len(ctx.meta[_FILES]):
        raise click.BadParameter("INDEX records the scheme, so only its files can be given", ctx=ctx, param=param)


scheme_files = click.option(
    "--set",
    metavar="KEY=FILE",
    multiple=True,
    expose_value=False,
    callback=_find_files,
    help=f"Give a file that the scheme of INDEX was made with: {', '.join(SCHEME_FILES)}. Repeatable.",
)


def _build_scheme(name: str | None, settings: dict[str, Any], steps: tuple[str, ...]) -> Scheme | str | None:
    if not settings and not steps:
        if name is not None:
            get_scheme(name)  # refuses an unknown name before anything is done
        return name
    if name is None and not settings.keys().isdisjoint(SCHEME_FILES):
        name = "keywords"
    if name is None and settings:
        raise click.UsageError("--set needs --scheme: each scheme has its own parameters")
    if "preprocess" in settings:
        raise click.UsageError("preprocess is an option of its own: pass --preprocess STEP")
    try:
        return get_scheme(name or DEFAULT_SCHEME, **settings, **({"preprocess": steps} if steps else {}))
    except TypeError as error:
        raise InvalidInputError(str(error)) from error


def split_names(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names in *values*, each of which may be several names separated by commas."""
    return tuple(name for value in values for part in value.split(",") if (name := part.strip()))


def _parse_fields(_ctx: click.Context, _param: click.Parameter, source: str | None) -> bool | list[str]:
    """Return the fields that ``--source`` names: all of them for ``*``, none where it is not given."""
    if source is None or source.strip() == "*":
        return source is not None
    if not (names := list(split_names(_ctx, _param, (source,)))):
        raise click.UsageError("--source has no name of a field: pass names separated by commas, or *")
    return names


prefix = click.option(
    "--prefix",
    metavar="NAME",
    default=DEFAULT_PREFIX,
    help="Name of the object field that holds the fingerprint fields.",
)

max_distance = number(
    "-d",
    "--max-distance",
    least=0,
    most=64,
    metavar="BITS",
    help="Largest distance of a near-duplicate in bits, inclusive, 0 to 64. Default: that of the index's rule, else "
    "12.",
)


def filter_option(help: str) -> Decorator:
    """Add ``--filter``; the command gets a query or a list of queries as ``filter``, or ``None``."""
    return click.option("--filter", type=QUERY, metavar="JSON", help=help)


_FILTER_EXAMPLE = 'match this query, as in \'{"range": {"date": {"gte": "now-7d"}}}\'.'
filter_query = filter_option(f"Only documents that also {_FILTER_EXAMPLE}")
counted_filter = filter_option(f"Count only documents that {_FILTER_EXAMPLE}")

routing = click.option(
    "--routing",
    metavar="VALUE",
    help="With --id: the routing value of the document. Else search only where it leads to.",
)
source = click.option(
    "--source",
    metavar="FIELDS",
    callback=_parse_fields,
    help="Show these fields of the documents, separated by commas; * for all.",
)
text_field = click.option(
    "-t",
    "--text-field",
    metavar="FIELD",
    multiple=True,
    help="Field that holds the text. Repeatable; the order counts.",
)
time_field = click.option("--time-field", metavar="FIELD", help="Date field of the documents.")
source_field = click.option(
    "--source-field", metavar="FIELD", help="Keyword field that says where a document comes from."
)
document_id = click.option(
    "--id", "document_id", metavar="ID", help="Search for this document of the index; it is left out."
)
text_file = click.option("--file", metavar="FILE", type=INPUT_FILE, help="Search for the text of this file.")
format_ = click.option(
    "--format",
    "format_",
    type=click.Choice(["auto", "jsonl", "csv"]),
    default="auto",
    help="Format of the input; auto goes by the name of the file, and means jsonl for any other name.",
)
delimiter = click.option(
    "--delimiter",
    type=DELIMITER,
    metavar="CHARACTER",
    help="What separates the columns of CSV. Default: the one of , ; and tab that the header has most of.",
)
workers = number("--workers", help="Compute fingerprints in N additional processes.")
dry_run = click.option("--dry-run", is_flag=True, help="Say what would be done, and change nothing.")
yes = click.option("-y", "--yes", is_flag=True, help="Do it. Without --yes the command says what it would do.")


def yes_for(option: str) -> Decorator:
    """Add a ``--yes`` that only *option* needs."""
    said = f"With {option}: do it. Without --yes the command says what it would do."
    return click.option("-y", "--yes", is_flag=True, help=said)


passages = click.option(
    "--passages/--no-passages",
    default=None,
    help="Whether documents also hold hashes of their passages, which es-simhash passages needs.",
)


quiet = click.option(
    "-q", "--quiet", is_flag=True, help="Print a summary and what went wrong, and no line for each document."
)


def value_option(*, default: bool | None) -> Decorator:
    return click.option(
        "--value/--no-value",
        default=default,
        help="Whether documents also hold the fingerprint as a number, which scripts need.",
    )


def sample(default: int | None, *, help: str = "Number of documents that are drawn at random and read.") -> Decorator:
    """
    Add ``--sample`` and ``--seed`` for commands that read *default* documents at random.
    Without a default, and without ``--seed``, each run draws others, so that in time all are seen.
    """
    is_reseeded = default is None
    size = number("--sample", most=10_000, default=default, help=help)
    seed = click.option(
        "--seed",
        type=click.IntRange(min=0),
        default=None if is_reseeded else 0,
        callback=lambda _, __, given: randrange(2**31) if given is None else given,
        help=f"Seed of the random choice.{' Default: another one each time.' if is_reseeded else ''}",
    )
    return lambda command: size(seed(command))
