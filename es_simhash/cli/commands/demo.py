"""``es-simhash demo``: near-duplicates in a small corpus, for a person to judge; and ``serve``: a local server."""

from __future__ import annotations

import shutil
import socket
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from es_simhash import (
    DEFAULT_MAX_DISTANCE,
    DEFAULT_PREFIX,
    EmbeddedServerError,
    InvalidInputError,
    MissingDependencyError,
    SimHashClient,
    SimHashError,
    fingerprints,
    hamming_distance,
)
from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.options import PRODUCTS, Target
from es_simhash.cli.output import note, print_json, print_line, print_text, show
from es_simhash.connection import Server
from es_simhash.demo.known_copies import EDIT_KINDS, Document, Report, Status, Verdict, judge, load_corpus

if TYPE_CHECKING:
    from rich.console import RenderableType

DEMO_MAX_DISTANCE = 10


@options.manual("es-simhash demo", "es-simhash demo --max-distance 3", "es-simhash demo --url http://localhost:9200")
@click.option("--url", metavar="URL", help="Use this server, in a new index that is deleted at the end.")
@click.option(
    "--product",
    type=click.Choice(["auto", *PRODUCTS]),
    default="auto",
    help="Product of --url, or the product to start; auto asks --url, or starts OpenSearch.",
)
@click.option("--insecure", is_flag=True, help="Do not verify the TLS certificate of --url.")
@options.distance(default=DEMO_MAX_DISTANCE, help="Largest distance of a near-duplicate in bits, inclusive.")
def command(url: str | None, product: str, max_distance: int, *, insecure: bool, as_json: bool) -> None:
    """
    Find near-duplicates in a small corpus that comes with es-simhash.

    Starts a real OpenSearch on this machine (the first start downloads 60 MB) and indexes news, listings, laws, mails
    and posts in Chinese, English and Japanese, together with edited copies of them. Then looks each document up, and
    shows the groups, the words that differ, and what was missed and why. Leaves nothing behind.
    """
    documents = load_corpus()
    found = dict(zip((document.id for document in documents), fingerprints([d.text for d in documents]), strict=True))
    with _server(url, product, is_insecure=insecure) as server:
        index = f"es-simhash-demo-{uuid.uuid4().hex[:8]}"
        with connect(Target(server, DEFAULT_PREFIX, None), index) as connection:
            note(f"indexing {len(documents)} documents into {connection.product} at {connection.url} ...")
            try:
                _index(connection.simhash, index, documents)
                connection.client.indices.refresh(index=index)
                pairs = _find(connection.simhash, index, documents, max_distance)
                report = judge(documents, pairs, fingerprints=found, max_distance=max_distance)
                by_part = _find_by_part(connection.simhash, index, report)
            finally:
                connection.client.indices.delete(index=index, ignore_unavailable=True)
    if as_json:
        print_json(_to_dict(report) | {"found_by_passages": by_part})
    else:
        show(*_story(report, documents, found, by_part))
        print_text(_how_to(max_distance))  # not through rich, which would wrap lines that people copy


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


def _index(simhash: SimHashClient, index: str, documents: Sequence[Document]) -> None:
    simhash.create_index(index, text_field="text", passages=True)
    actions = ({"_id": document.id, "_source": document.source} for document in documents)
    for written in simhash.ingest(index, actions, on_duplicate=None):
        if written.action == "refused":
            raise SimHashError(f"document {written.id} of the demo was refused: {written.reason}")


def _find(
    simhash: SimHashClient, index: str, documents: Sequence[Document], max_distance: int
) -> list[tuple[str, str, int]]:
    answers = simhash.find_near_dups_many(index, [document.text for document in documents], max_distance=max_distance)
    pairs = []
    for document, answer in zip(documents, answers, strict=True):
        if isinstance(answer, Exception):
            raise answer
        pairs += [(document.id, near_dup.id, near_dup.distance) for near_dup in answer]
    return pairs


def _find_by_part(simhash: SimHashClient, index: str, report: Report) -> list[str]:
    """Return the ids of copies that were missed and share a passage with their original, or stand in it."""
    missed = [verdict for verdict in report.verdicts if verdict.status is Status.MISSED]
    answers = simhash.find_passages_many(index, [verdict.document.text for verdict in missed], min_run=100)
    found = []
    for verdict, answer in zip(missed, answers, strict=True):
        if isinstance(answer, Exception):
            raise answer
        if any(each.id == verdict.original.id for each in answer):
            found.append(verdict.document.id)
    return found


def _story(
    report: Report, documents: Sequence[Document], found: dict[str, int | None], by_part: Sequence[str]
) -> Iterator[RenderableType]:
    from rich.rule import Rule  # noqa: PLC0415 -- slow to import
    from rich.text import Text  # noqa: PLC0415

    from es_simhash.demo.render import (  # noqa: PLC0415
        diff_panel,
        edits_table,
        groups_table,
        summary_text,
        verdicts_table,
    )

    yield Rule("Which documents are near-duplicates of which", align="left")
    yield groups_table(report)
    yield Rule("Which words differ: one example of each kind of edit that was found", align="left")
    for verdict in _examples(report):
        yield diff_panel(verdict.original, verdict.document, distance=verdict.distance or 0, max_changes=2)
    yield Rule("What was missed, and why", align="left")
    yield verdicts_table(report, statuses=[Status.MISSED, Status.SURPRISE, Status.LOST])
    if by_part:
        yield Text(
            f"{', '.join(by_part)}: found by their parts. The index also has passages (create --passages), so "
            "es-simhash passages finds quotes, excerpts and texts inside texts."
        )
    yield Rule("In short", align="left")
    yield edits_table(report)
    yield summary_text(report)
    yield Text(_about_distance(report, documents, found))
    yield Text("Each document within the distance was found: a lookup is exact, on an index of any size.")
    yield Rule("On your own index", align="left")


def _examples(report: Report) -> list[Verdict]:
    """Return one copy of each kind of edit that was found above distance 0, in as many languages as possible."""
    examples: dict[str, Verdict] = {}
    shown: Counter[str] = Counter()
    for edit in EDIT_KINDS:
        found = [v for v in report.verdicts if v.status is Status.FOUND and v.distance and v.document.edit == edit]
        if found:
            examples[edit] = min(found, key=lambda verdict: shown[verdict.document.lang])
            shown[examples[edit].document.lang] += 1
    return list(examples.values())


def _about_distance(report: Report, documents: Sequence[Document], found: dict[str, int | None]) -> str:
    """Return what other distances would have found, because users have to choose one."""
    copies = [(found[each.id], found[each.edit_of]) for each in documents if each.edit_of]
    distances = [hamming_distance(a, b) for a, b in copies if a is not None and b is not None]
    numbers = ", ".join(
        f"{sum(distance <= limit for distance in distances)} within {limit}"
        for limit in sorted({DEFAULT_MAX_DISTANCE, 8, 12, report.max_distance})
    )
    return (
        f"You choose the distance: of {len(distances)} copies, {numbers} bits. A larger distance finds more "
        "copies and, on a large index, more documents that are only similar."
    )


def _how_to(max_distance: int) -> str:
    program = "es-simhash" if shutil.which("es-simhash") else sys.argv[0]
    return f"""\
# your own server, or a local one that keeps its data: {program} serve
export ES_SIMHASH_URL=http://localhost:9200
# its login, if it has one: ES_SIMHASH_USER and ES_SIMHASH_PASSWORD, or ES_SIMHASH_API_KEY
{program} ingest my-index documents.jsonl --create --text-field body --max-distance {max_distance}
{program} find my-index --file article.txt
{program} find my-index --input new-documents.jsonl >found.jsonl
{program} check my-index

# in Python, with your own client
from opensearchpy import helpers  # or from elasticsearch
from es_simhash import SimHashClient
simhash = SimHashClient(client)  # an Elasticsearch(...) or OpenSearch(...)
simhash.create_index("my-index", text_field="body", max_distance={max_distance})
helpers.bulk(client, simhash.with_fingerprints("my-index", actions), index="my-index")
for near_dup in simhash.find_near_dups("my-index", text):
    print(near_dup.distance, near_dup.id)"""


def _to_dict(report: Report) -> dict[str, Any]:
    return {
        "documents": report.documents,
        "max_distance": report.max_distance,
        "groups": [[group.canonical.id, *(member.document.id for member in group.members)] for group in report.groups],
        "copies": [
            {
                "id": verdict.document.id,
                "edit_of": verdict.original.id,
                "edit": verdict.document.edit,
                "distance": verdict.distance,
                "status": verdict.status.value,
            }
            for verdict in report.verdicts
        ],
        "unexpected": [pair._asdict() for pair in report.unexpected],
    }


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
