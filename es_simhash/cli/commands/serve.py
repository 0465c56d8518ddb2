"""``es-simhash serve``: a local server that keeps its data."""

from __future__ import annotations

import socket
import sys
import time
from pathlib import Path

import click

from es_simhash.cli import options
from es_simhash.cli.options import PRODUCTS
from es_simhash.cli.output import note, print_json, print_line
from es_simhash.errors import EmbeddedServerError, InvalidInputError, MissingDependencyError

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
def command(product: str, version: str | None, port: int, data: Path | None, heap: str, *, as_json: bool) -> None:
    """
    Run a local server until Ctrl-C. It keeps its data.

    It is a real OpenSearch or Elasticsearch on 127.0.0.1 without a login, to try things out, not for production. The
    first start downloads it (60 MB). The command prints the URL when the server answers; the other commands use that
    server by default if it has the default port.
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
