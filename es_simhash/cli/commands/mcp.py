"""``es-simhash mcp``: a server for agents over stdio. Its tools are elsewhere."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

import click

from es_simhash import MissingDependencyError
from es_simhash.cli import options
from es_simhash.cli.options import Target
from es_simhash.cli.output import note, warn
from es_simhash.connection import ca_file_of_environment, login_of_environment, split_url


@options.manual(
    "es-simhash mcp --index 'news-*'",
    "es-simhash mcp --index news,laws --plans plans/",
)
@click.option(
    "--index",
    "patterns",
    metavar="PATTERN",
    multiple=True,
    callback=options.split_names,
    help="Answer about names that fit this pattern alone. Repeatable. Default: whatever the login may read.",
)
@click.option(
    "--plans",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False),
    help="Show plans of removal in this folder.",
)
@options.scheme_files
@options.target
def command(patterns: tuple[str, ...], plans: str | None, target: Target, *, as_json: bool) -> None:
    """
    Serve agents by the Model Context Protocol: they find and explain near-duplicates, and cannot change anything.

    An agent starts this command and speaks to it over stdin and stdout (docs/agents.md). Its login needs the right to
    read. An alias that fits --index is allowed with whatever it stands for.
    """
    del as_json  # the messages are JSON with it; the protocol always is
    try:
        from es_simhash.cli.mcp import Tools, serve  # noqa: PLC0415 -- an extra
    except ImportError as error:
        raise MissingDependencyError("mcp is not installed: pip install 'es-simhash[mcp]'") from error
    url, login_of_url = split_url(target.server.url)
    server = replace(target.server, url=url, ca_file=ca_file_of_environment())
    if server.is_insecure:
        warn(f"the certificate of {url} is not verified: anybody on the way can read and change everything")
    login = login_of_environment()
    if sys.stdin is not None and sys.stdin.isatty():
        note("an agent starts this command, and speaks to it over stdin: see docs/agents.md; Ctrl-C ends it")
    tools = Tools(
        replace(target, server=server),
        login if login.headers else login_of_url,
        patterns,
        None if plans is None else Path(plans),
    )
    asyncio.run(serve(tools))
