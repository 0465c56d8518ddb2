"""``es-simhash mcp``: a server for agents over stdio. Its tools are elsewhere."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from es_simhash import MissingDependencyError, __version__
from es_simhash.cli import options
from es_simhash.cli.agent_answers import NOTE
from es_simhash.cli.failures import describe
from es_simhash.cli.options import Target
from es_simhash.cli.output import note, visible, warn
from es_simhash.connection import ca_file_of_environment, login_of_environment, split_url

if TYPE_CHECKING:
    from mcp.server import Server

    from es_simhash.cli.agent_tools import Reader


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
    url, login_of_url = split_url(target.server.url)
    server = replace(target.server, url=url, ca_file=ca_file_of_environment())
    if server.is_insecure:
        warn(f"the certificate of {url} is not verified: anybody on the way can read and change everything")
    login = login_of_environment()
    login = login if login.headers else login_of_url
    try:
        import mcp  # noqa: F401, PLC0415 -- an extra
    except ImportError as error:
        raise MissingDependencyError("mcp is not installed: pip install 'es-simhash[mcp]'") from error
    from es_simhash.cli.agent_tools import Reader  # noqa: PLC0415 -- loads numpy

    if sys.stdin is not None and sys.stdin.isatty():
        note("an agent starts this command, and speaks to it over stdin: see docs/agents.md; Ctrl-C ends it")
    reader = Reader(replace(target, server=server), login, patterns, None if plans is None else Path(plans))
    asyncio.run(_serve(reader))


def _make(reader: Reader) -> Server[Any]:
    import mcp_types as types  # noqa: PLC0415 -- an extra
    from mcp.server import Server  # noqa: PLC0415

    hints = types.ToolAnnotations(
        read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )
    output = {"type": "object", "properties": {"note": {"type": "string"}}, "required": ["note"]}
    tools = []
    for name, tool in reader.tools.items():
        schemas: Any = {"input_schema": tool.schema(reader.patterns), "output_schema": output}
        tools.append(types.Tool(name=name, description=tool.description, annotations=hints, **schemas))

    async def list_tools(*_: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(_: Any, asked: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            answer = await reader.call(asked.name, asked.arguments or {})
        except Exception as failure:  # noqa: BLE001 -- each is one line for the agent
            text = visible(describe(failure, url=reader.target.server.url))
            return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)
        text = json.dumps(answer, ensure_ascii=False)
        return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=answer)

    about = f"Near-duplicates in Elasticsearch or OpenSearch; nothing can be changed. {NOTE}"
    return Server(
        "es-simhash", version=__version__, instructions=about, on_list_tools=list_tools, on_call_tool=call_tool
    )


async def _serve(reader: Reader) -> None:
    from mcp.server.stdio import stdio_server  # noqa: PLC0415 -- an extra

    server = _make(reader)

    def end(number: int) -> None:
        note("stopped")
        sys.stderr.flush()
        # A thread waits for input, and Python would wait for the thread.
        os._exit(128 + number)

    def stop(number: int) -> None:
        asyncio.ensure_future(reader.close()).add_done_callback(lambda _: end(number))

    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows
            asyncio.get_running_loop().add_signal_handler(number, stop, number)
    try:
        async with stdio_server() as (received, sent):
            await server.run(received, sent, server.create_initialization_options())
    finally:
        await reader.close()
