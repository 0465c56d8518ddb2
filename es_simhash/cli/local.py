"""``serve`` and ``mcp``: a local server that keeps its data, or a demo; and a server for agents."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import time
import uuid
from importlib.resources import files
from pathlib import Path
from typing import Literal

from es_simhash import EmbeddedServerError, MissingDependencyError, SimHashError
from es_simhash.arguments import check_count
from es_simhash.cli.connect import connect, find_server
from es_simhash.cli.options import To, files_of_environment, split_names
from es_simhash.cli.show import Output, note, print_sheets, print_text, show
from es_simhash.tables.notebook import Sheet

_POLL_SECONDS = 0.5
_LACKS = {"opensearch": "k-NN", "elasticsearch": "Painless, ES|QL, data streams and GET /"}


def serve(
    *,
    demo: bool = False,
    product: Literal["opensearch", "elasticsearch"] = "opensearch",
    version: str | None = None,
    port: int | None = None,
    data: Path | None = None,
) -> None:
    """
    Run a local server until Ctrl-C. It keeps its data.

    It is a real OpenSearch or Elasticsearch on 127.0.0.1 without a login, to try things out, not for production. The
    first start downloads it (60 MB). This OpenSearch lacks k-NN, this Elasticsearch Painless, ES|QL, data streams and
    GET /, for which no package is published. The command prints the URL when the server answers, and waits; the other
    commands use that server by default if it has the default port.

    With --demo it writes news, listings, laws, mails and posts in Chinese, English and Japanese, together with edited
    copies of them, shows the groups of near-duplicates, and for one pair the words that differ, and ends. It leaves
    nothing behind.

    For example:

        es-simhash serve --demo
        es-simhash serve --product elasticsearch --port 9201 --data ./data

    Args:
        demo:
            Find near-duplicates in a small corpus that comes with es-simhash, and end.
        product:
            Product to run. Elasticsearch needs a full JDK 21 or newer.
        version:
            One of the versions that es-simhash supports. Default: the newest.
        port:
            Port on 127.0.0.1; 0 for any free port. Default: 9200, and any for --demo.
        data:
            Folder for the data. Default: one for each product in your home, and none for --demo.
    """
    from es_simhash.servers import embedded_server  # noqa: PLC0415 -- an extra

    port = check_count("port", (0 if demo else 9200) if port is None else port, 0, 65_535)
    folder = data or (None if demo else _default_folder(product))
    note(f"starting {product} ..." if folder is None else f"starting {product}, data in {folder} ...")
    try:
        with embedded_server(product, version=version, data=folder, port=port) as server:
            if demo:
                show_demo(To(url=server.url))
                return
            show({"url": server.url, "product": product, "version": server.version, "data": str(folder)}, server.url)
            sys.stdout.flush()
            note(
                f"{product} {server.version} is running, without {_LACKS[product]}; this terminal waits until Ctrl-C "
                "stops it: run the other commands in another one"
            )
            while server.is_running():
                time.sleep(_POLL_SECONDS)
            raise EmbeddedServerError(f"{product} stopped unexpectedly: see {server.log_path}")
    except KeyboardInterrupt:  # also SIGTERM, which service managers send
        if demo:
            raise
        note("stopped; the data are kept")


def show_demo(to: To) -> None:
    """Write the corpus into an index of its own, which is deleted at the end, and show what is near what."""
    lines = files("es_simhash.cli").joinpath("demo_corpus.jsonl").read_text(encoding="utf-8")
    documents = [json.loads(line) for line in lines.split("\n") if line]  # a text may have other ends of lines
    index = f"es-simhash-demo-{uuid.uuid4().hex[:8]}"
    with connect(to, index) as connection:
        note(f"indexing {len(documents)} documents into {connection.product} at {connection.url} ...")
        simhash = connection.simhash
        try:
            simhash.create_index(index, text_field="text")
            for written in simhash.ingest(index, documents):
                if written.action == "refused":
                    raise SimHashError(f"document {written.id} of the demo was refused: {written.reason}")
            connection.client.indices.refresh(index=index)
            groups = {group.id: [member.id for member in group.members] for group in simhash.groups(index)}
            canonical, (one, *_) = next(iter(groups.items()))
            explained = simhash.explain(index, one if one != canonical else groups[canonical][1], canonical)
            rule = simhash.get_rule(index)
        finally:
            connection.client.indices.delete(index=index, ignore_unavailable=True)
    if Output.as_json:
        show({"documents": len(documents), "groups": list(groups.values())})
        return
    rows = [
        {"canonical": name, "near-duplicates": ", ".join(id_ for id_ in members if id_ != name)}
        for name, members in groups.items()
    ]
    print_sheets(Sheet("", rows, folded=("near-duplicates",)), title=f"groups of near-duplicates {rule}")
    show(explained)
    program = "es-simhash" if shutil.which("es-simhash") else sys.argv[0]
    print_text(_HOW_TO.format(program=program))  # not through rich, which would wrap lines that people copy


_HOW_TO = """\
# your own server, or a local one that keeps its data: {program} serve
# its login, if it has one: ES_SIMHASH_USER and ES_SIMHASH_PASSWORD, or ES_SIMHASH_API_KEY
export ES_SIMHASH_URL=http://localhost:9200
# what it would do; then do it: fingerprints and groups
{program} setup news --text-field body --time-field published
{program} setup news --text-field body --time-field published --yes
# near-duplicates of 4711: put an id of yours
{program} find news --id 4711
# how many there are, and which words differ
{program} report news --out report.html
# what to delete, and a page to judge that
{program} plan news --out removal.db
{program} review removal.db --html removal.html"""


def _default_folder(product: str) -> Path:
    try:
        from platformdirs import user_data_path  # noqa: PLC0415 -- in the same extra as the server
    except ImportError as error:
        raise MissingDependencyError(
            "a local server needs packages that are not installed: pip install 'es-simhash[embedded]'"
        ) from error
    return Path(user_data_path("es-simhash")) / product


def mcp(*, index: tuple[str, ...] = (), to: To = To()) -> None:
    """
    Serve agents by the Model Context Protocol: they find and explain near-duplicates, and cannot change anything.

    An agent starts this command and speaks to it over stdin and stdout (docs/stores.md). Its login needs the right to
    read. An alias that fits --index is allowed with whatever it stands for.

    For example:

        es-simhash mcp --index 'news-*'
        es-simhash mcp --index news,laws

    Args:
        index:
            Answer about names that fit this pattern alone. Repeatable. Default: whatever the login may read.
    """
    try:
        from es_simhash.cli.mcp import Tools, serve as serve_agents  # noqa: PLC0415 -- an extra
    except ImportError as error:
        raise MissingDependencyError("mcp is not installed: pip install 'es-simhash[mcp]'") from error
    server, login = find_server(to)
    if sys.stdin is not None and sys.stdin.isatty():
        note("an agent starts this command, and speaks to it over stdin: see docs/stores.md; Ctrl-C ends it")
    tools = Tools(server, login, split_names(index), prefix=to.prefix, files=files_of_environment())
    asyncio.run(serve_agents(tools))
