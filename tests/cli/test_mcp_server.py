"""``es-simhash mcp`` as agents use it: by the SDK's own client, in another process, over stdio."""

import contextlib
import functools
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.servers.command_line import NEAR, PROGRAM, TEXT
from tests.servers.security import let, program
from tests.servers.support import put, random_texts

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.server.mcpserver.exceptions import ToolError

from es_simhash.cli.connect import find_server
from es_simhash.cli.mcp import Agents, Tools
from es_simhash.cli.options import To

ROOT = Path(__file__).parents[2]


def environment(**more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ES_SIMHASH_")}
    return kept | {"PYTHONPATH": str(ROOT)} | more


@contextlib.asynccontextmanager
async def connected(log, *options, mode="auto", **variables):
    """
    Provide a client of a server of its own, which *log* shows to have said nothing at its end.
    *mode*: how it begins; agents of last year begin with a handshake, which the SDK calls ``"legacy"``.
    """
    command, *arguments = [*PROGRAM, "mcp", *map(str, options)]
    started = StdioServerParameters(command=command, args=arguments, env=environment(**variables))
    with log.open("w+") as stderr:
        async with Client(stdio_client(started, errlog=stderr), mode=mode) as client:
            yield client
        stderr.seek(0)
        assert stderr.read() == ""


async def answer(client, name, **arguments):
    """Return what a tool answers, and check that it is marked as data, and the same as text."""
    result = await client.call_tool(name, arguments)
    [content] = result.content
    assert not result.is_error, content.text
    assert json.loads(content.text) == result.structured_content
    assert next(iter(result.structured_content)) == "note"
    return result.structured_content


async def refusal(client, name, **arguments):
    """Return the one line that a tool says instead of an answer."""
    result = await client.call_tool(name, arguments)
    assert result.is_error
    [content] = result.content
    assert "Traceback" not in content.text
    assert "\n" not in content.text
    return content.text


@pytest.fixture
def log(tmp_path):
    return tmp_path / "stderr"


@pytest.fixture
def filled(server, index, sync_simhash):
    """A grouped index with passages: 30 copies of a text, of which one is edited, and others; and another index."""
    sync_simhash.create_index(index, text_field="body", max_distance=12, passages=True)
    documents = [{"_id": f"{n:02d}", "body": TEXT, "title": f"number {n}", "source": "x"} for n in range(30)]
    documents += [{"_id": "near", "body": NEAR, "source": "y"}]
    documents += [{"_id": f"other{n}", "body": text} for n, text in enumerate(random_texts(3, seed=1))]
    list(sync_simhash.ingest(index, documents))
    put(server, f"{index}-secret", [{"_id": "1", "body": TEXT}])
    server.request("POST", f"/{index}/_refresh")
    return index


def everything(server, index):
    """Return all documents with their versions, and all names that begin with that of *index*."""
    body = {"size": 100, "version": True, "seq_no_primary_term": True, "query": {"match_all": {}}}
    hits = server.request("POST", f"/{index}/_search", body)["hits"]["hits"]
    hits.sort(key=lambda hit: hit["_id"])
    return hits, server.request("GET", f"/{index}*/_mapping"), server.request("GET", f"/{index}*/_settings")


@pytest.mark.parametrize("server", ["opensearch"], indirect=True)
def test_every_tool_answers_and_none_writes(server, filled, runner, log):
    """
    Each is marked as one that reads; its answer is that of the library; the index is as it was. A name that is not
    allowed is refused, also an alias of one that is; test_mcp has the names.
    """
    server.request("PUT", f"/{filled}/_alias/{filled}x")
    before = everything(server, filled)

    async def use():
        async with connected(log, "--url", server.url) as client:
            tools = (await client.list_tools()).tools
            assert all(tool.annotations.read_only_hint and tool.input_schema["properties"] for tool in tools)
            ask = functools.partial(answer, client, index=filled)
            found = await ask("find", text=TEXT, source=["title"], limit=2)
            assert (found["total"], found["more"]) == (30, "call again with offset 2")
            assert found["rule"].startswith("within 12 bits, at least 80 % of the 7-letter shingles are the same")
            assert [hit["source"] for hit in found["near_dups"]] == [{"title": "number 0"}, {"title": "number 1"}]
            [hit] = (await ask("find", text=TEXT, limit=50, offset=29))["near_dups"]
            assert (hit["id"], hit["source"], hit["similarity"]) == ("29", {"body": TEXT}, 1.0)
            assert found["rejected"][0][:14] == "near: 5 bits, "
            found = await ask("find", id="near", max_distance=12, offset=3, limit=2)
            assert [(hit["id"], hit["distance"] > 0) for hit in found["near_dups"]] == [("03", True), ("04", True)]
            assert (await ask("find", text="..."))["unsure"][0].startswith("the text has no letters")
            assert (await ask("explain", first="00", second="near"))["distance"] == 5
            found = await ask("search_distinct", text="bridge river", limit=1)
            assert (bool(found["after"]), found["hits"][0]["similar_count"]) == (True, 29)
            again = await ask("search_distinct", text="bridge river", limit=1, after=found["after"])
            assert [hit["_id"] for hit in again["hits"]] == ["near"]
            found = await ask("passages", text=f"He said: {TEXT}", limit=3)
            assert (found["total"] > 3, found["overlaps"][0]["contains"]) == (True, 1.0)
            [group] = (await ask("groups", source=["title"]))["groups"]
            assert (group["id"], group["size"]) == ("00", 30)
            assert (await ask("stats"))["duplicates"] == 29
            [checked] = (await ask("check"))["indices"]
            assert (checked["ready"], checked["documents"]) == (True, 34)
            for arguments, part in (
                ({"index": "no-such-index", "text": "x"}, "no such index [no-such-index]"),
                ({"index": f"{filled}-secret", "text": TEXT}, "has no 'simhash' fields"),
                ({"index": filled, "text": "x", "max_distance": 65}, "max_distance 65 is out of range"),
                ({"text": TEXT}, "index '' is empty"),
            ):
                assert part in await refusal(client, "find", **arguments)
        # A text alone is enough where one index is allowed; a text may look like JSON.
        async with connected(log, "--url", server.url, "--index", filled, mode="legacy") as client:
            for tool, more in (("find", {"text": TEXT}), ("stats", {})):
                assert "is not allowed here" in await refusal(client, tool, index=f"{filled}x", **more)
            assert (await answer(client, "find", text='{"a": ["b"]}'))["total"] == 0

    runner.run(use())
    assert everything(server, filled) == before


def test_a_signal_ends_it_while_it_waits_for_input():
    with subprocess.Popen(
        [*PROGRAM, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        process.stdin.write(json.dumps(asked).encode() + b"\n")
        process.stdin.flush()
        assert b"es-simhash" in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert (process.wait(), process.stderr.read()) == (128 + signal.SIGTERM, b"stopped\n")


def test_a_server_that_is_down_is_one_line_without_a_password(runner):
    """Each call says what is wrong."""

    async def use():
        agents = Agents(Tools(*find_server(To(url="http://me:hidden-word@127.0.0.1:1"))))
        for _ in range(2):
            with pytest.raises(ToolError, match="cannot reach http://127.0.0.1:1: connection refused") as said:
                await agents.call_tool("find", {"index": "news", "text": TEXT})
            assert "hidden-word" not in str(said.value)

    runner.run(use())


def test_the_right_to_read_is_enough(secured, runner, monkeypatch):
    """Every tool works for who may read and nothing else, and shows no login; elsewhere there is a sentence."""
    role = {"index_patterns": ["agents*"], "allowed_actions": ["read", "indices:admin/mappings/get"]}
    user, password = let(secured, "agent", ["cluster_composite_ops_ro"], role)
    run, lines = program(secured, monkeypatch), [json.dumps({"_id": str(n), "body": TEXT}) for n in range(5)]
    assert run("create", "agents", "-t", "body", "--passages").exit_code == 0
    assert run("ingest", "agents", "-", stdin="\n".join(lines)).exit_code == 0
    monkeypatch.setenv("ES_SIMHASH_USER", user)
    monkeypatch.setenv("ES_SIMHASH_PASSWORD", password)
    asked = {"text": TEXT}
    needed = {"find": asked, "search_distinct": asked, "passages": asked, "explain": {"first": "1", "texts": [TEXT]}}

    async def use():
        agents = Agents(Tools(*find_server(To(url=secured.url))))
        for tool in await agents.list_tools():
            arguments = needed.get(tool.name, {})
            [content] = (await agents.call_tool(tool.name, {"index": "agents", **arguments})).content
            assert password not in content.text
            with pytest.raises(ToolError, match=r"\(403\)") as said:
                await agents.call_tool(tool.name, {"index": "other", **arguments})
            assert password not in str(said.value)
        await agents.close()

    runner.run(use())
