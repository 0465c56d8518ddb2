"""``es-simhash demo``: near-duplicates in a small corpus, for a person to judge; and ``serve``: a local server."""

from __future__ import annotations

import json
import shutil
import socket
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import click

from es_simhash import DEFAULT_PREFIX, EmbeddedServerError, InvalidInputError, MissingDependencyError, SimHashError
from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.options import PRODUCTS, Target
from es_simhash.cli.output import note, print_json, print_line, print_result, print_sheets, print_text
from es_simhash.connection import Server
from es_simhash.tables.notebook import Sheet


@options.manual("es-simhash demo", "es-simhash demo --url http://localhost:9200")
@click.option("--url", metavar="URL", help="Use this server, in a new index that is deleted at the end.")
@click.option(
    "--product",
    type=click.Choice(["auto", *PRODUCTS]),
    default="auto",
    help="Product of --url, or the product to start; auto asks --url, or starts OpenSearch.",
)
@click.option("--insecure", is_flag=True, help="Do not verify the TLS certificate of --url.")
def command(url: str | None, product: str, *, insecure: bool, as_json: bool) -> None:
    """
    Find near-duplicates in a small corpus that comes with es-simhash.

    Starts a real OpenSearch on this machine (the first start downloads 60 MB), writes news, listings, laws, mails and
    posts in Chinese, English and Japanese, together with edited copies of them, and shows the groups of
    near-duplicates, and for one pair the words that differ. Leaves nothing behind.
    """
    lines = files("es_simhash.cli").joinpath("demo_corpus.jsonl").read_text(encoding="utf-8")
    documents = [json.loads(line) for line in lines.split("\n") if line]  # a text may have other ends of lines
    with _server(url, product, is_insecure=insecure) as server:
        index = f"es-simhash-demo-{uuid.uuid4().hex[:8]}"
        with connect(Target(server, DEFAULT_PREFIX, None), index) as connection:
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
    if as_json:
        print_json({"documents": len(documents), "groups": list(groups.values())})
        return
    rows = [
        {"canonical": name, "near-duplicates": ", ".join(id_ for id_ in members if id_ != name)}
        for name, members in groups.items()
    ]
    print_sheets(Sheet("", rows, folded=("near-duplicates",)), title=f"groups of near-duplicates {rule}")
    print_result(explained)
    print_text(_how_to())  # not through rich, which would wrap lines that people copy


@contextmanager
def _server(url: str | None, product: str, *, is_insecure: bool) -> Iterator[Server]:
    if url is not None:
        yield Server(url, product, is_insecure=is_insecure)
        return
    from es_simhash.servers import embedded_server  # noqa: PLC0415 -- an extra

    chosen = "opensearch" if product == "auto" else product
    note(f"starting {chosen} ...")
    with embedded_server(chosen) as embedded:
        yield Server(embedded.url, chosen, is_insecure=is_insecure)


def _how_to() -> str:
    program = "es-simhash" if shutil.which("es-simhash") else sys.argv[0]
    return f"""\
# your own server, or a local one that keeps its data: {program} serve
export ES_SIMHASH_URL=http://localhost:9200
# its login, if it has one: ES_SIMHASH_USER and ES_SIMHASH_PASSWORD, or ES_SIMHASH_API_KEY
{program} setup my-index --text-field body --yes
{program} find my-index --file article.txt
{program} find my-index --input new-documents.jsonl >found.jsonl
{program} check my-index

# in Python, with your own client
from es_simhash import SimHashClient
simhash = SimHashClient(client)  # an Elasticsearch(...) or OpenSearch(...)
simhash.setup("my-index", text_field="body")
for near_dup in simhash.find_near_dups("my-index", text):
    print(near_dup.distance, near_dup.id)"""


_POLL_SECONDS = 0.5


@options.manual("es-simhash serve", "es-simhash serve --product elasticsearch --port 9201 --data ./data")
@click.option(
    "--product",
    type=click.Choice(PRODUCTS),
    default="opensearch",
    help="Product to run. Elasticsearch needs a full JDK 21 or newer.",
)
@click.option("--version", metavar="VERSION", help="One of the versions that es-simhash supports. Default: the newest.")
@options.number(
    "--port", least=0, most=65535, metavar="PORT", default=9200, help="Port on 127.0.0.1; 0 for any free port."
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Folder for the data. Default: one for each product in your home.",
)
@click.option("--heap", metavar="SIZE", default="1g", help="Heap size of the server.")
def serve(product: str, version: str | None, port: int, data: Path | None, heap: str, *, as_json: bool) -> None:
    """
    Run a local server until Ctrl-C. It keeps its data.

    It is a real OpenSearch or Elasticsearch on 127.0.0.1 without a login, to try things out, not for production. The
    first start downloads it (60 MB). This Elasticsearch lacks Painless, ES|QL, data streams and GET /, for which no
    package is published. The command prints the URL when the server answers; the other commands use that server by
    default if it has the default port.
    """
    from es_simhash.servers import embedded_server  # noqa: PLC0415 -- an extra

    if port:
        _check_port(port)
    folder = data or _default_folder(product)
    note(f"starting {product}, data in {folder} ...")
    try:
        with embedded_server(product, version=version, data=folder, port=port, heap=heap) as server:
            if as_json:
                print_json({"url": server.url, "product": product, "version": server.version, "data": str(folder)})
            else:
                print_line(server.url)
            sys.stdout.flush()
            note(f"{product} {server.version} is running; Ctrl-C stops it")
            while server.is_running():
                time.sleep(_POLL_SECONDS)
            raise EmbeddedServerError(f"{product} stopped unexpectedly: see {server.log_path}")
    except KeyboardInterrupt:  # also SIGTERM, which service managers send
        note("stopped; the data are kept")


def _default_folder(product: str) -> Path:
    try:
        from platformdirs import user_data_path  # noqa: PLC0415 -- in the same extra as the server
    except ImportError as error:
        raise MissingDependencyError(
            "a local server needs packages that are not installed: pip install 'es-simhash[embedded]'"
        ) from error
    return Path(user_data_path("es-simhash")) / product


def _check_port(port: int) -> None:
    with socket.socket() as probe:
        # The server does the same: a connection that was just closed does not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise InvalidInputError(
                f"port {port} of 127.0.0.1 cannot be used ({error.strerror}): stop the program that uses it, or "
                "pass --port 0"
            ) from error
