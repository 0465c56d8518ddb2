"""
The table of commands, and what all of them share: exit codes, errors on one line, quiet ends.

A command's module is imported when the command is used, so that ``es-simhash --help`` is quick. No command lives here.
"""

from __future__ import annotations

import io
import logging
import os
import sys
import warnings
from importlib import import_module
from typing import Any, NoReturn

import click

from es_simhash import __version__
from es_simhash.cli.failures import describe
from es_simhash.cli.output import error, warn

__all__ = ["SECTIONS", "app"]

SECTIONS: dict[str, dict[str, str]] = {
    "Texts and fingerprints": {
        "fingerprint": "Print the fingerprints of texts.",
        "distance": "Print the distance of two fingerprints or texts.",
        "bench": "Measure how fast the schemes are on your texts.",
    },
    "Queries and mappings to paste": {
        "mapping": "Print the mapping, templates or Dev Tools text.",
        "query": "Print the search for a text or fingerprint.",
    },
    "Your index": {
        "create": "Create an index with the fields, or add them.",
        "ingest": "Write documents with their fingerprints.",
        "find": "Find near-duplicates.",
        "check": "Say whether lookups in an index work.",
        "backfill": "Give documents that are there a fingerprint.",
        "reconcile": "Make groups of near-duplicates right.",
        "groups": "Print groups of near-duplicates.",
        "pairs": "Print pairs of near-duplicates.",
        "dedupe": "Show, tag or delete duplicates.",
        "remove": "Take the fields out of an index again.",
    },
    "Match quality": {
        "evaluate": "Measure recall and precision on known pairs.",
        "explain": "Say why two texts are near-duplicates, or not.",
        "doctor": "Examine an index, and say what to do.",
        "tune": "Recommend a preset for the texts of an index.",
    },
    "Without a server of your own": {
        "serve": "Run a local server that keeps its data.",
        "demo": "Find near-duplicates in a small corpus.",
    },
}
"""
Every command with its one line of help, by section. The module of a command is ``es_simhash.cli.commands.NAME``.
"""

FAILED = 1
USAGE = 2
# As a shell counts a process that a signal ended: 128 and the number of SIGINT, or of SIGPIPE.
INTERRUPTED = 130
BROKEN_PIPE = 141

# Their warnings about a failed request would stand above the one line that we print about it.
_NOISY_LOGGERS = ("elastic_transport", "elasticsearch", "opensearch", "urllib3")


class Application(click.Group):
    """
    The group of all commands: loads them late, and turns every end into an exit code.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- click's signature
        """Return the names of all commands, in the order of the table."""
        return [name for commands in SECTIONS.values() for name in commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of that name, importing its module."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = import_module(f"es_simhash.cli.commands.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the commands by section, without importing any."""
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Run, and exit with 0, 1 (failed), 2 (usage), 130 (interrupted) or 141 (nobody reads the output)."""
        _prepare_process()
        try:
            result = super().main(*args, **{**extra, "standalone_mode": False})
        except click.UsageError as failure:
            failure.show()
            sys.exit(USAGE)
        except click.ClickException as failure:
            error(failure.format_message())
            sys.exit(FAILED)
        except click.Abort:
            sys.exit(INTERRUPTED)
        sys.exit(result if isinstance(result, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command chosen; an error becomes one line on stderr."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _forget_output()
            return BROKEN_PIPE
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as failure:
            if os.environ.get("ES_SIMHASH_DEBUG"):
                raise
            error(describe(failure, url=ctx.meta.get("es_simhash.url")))
            return FAILED
        return result


def _prepare_process() -> None:
    for stream in (sys.stdout, sys.stderr):
        # A lone surrogate in a text must not end the program; in JSON the backslash form is even the right one.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    for name in _NOISY_LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if not sys.warnoptions:
        warnings.showwarning = _show_warning


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    # Deprecations are for the developers of this program; what a server warns of is for its user.
    if not issubclass(category, (DeprecationWarning, PendingDeprecationWarning)):
        warn(str(message))


def _forget_output() -> None:
    # What is still buffered would fail once more when Python closes the stream.
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return


@click.group(
    cls=Application,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Server and login are taken from ES_SIMHASH_URL, ES_SIMHASH_API_KEY or ES_SIMHASH_USER and "
    "ES_SIMHASH_PASSWORD, ES_SIMHASH_CA_FILE and ES_SIMHASH_PRODUCT. 'es-simhash COMMAND --help' tells more.",
)
@click.version_option(__version__, prog_name="es-simhash", message="%(prog)s %(version)s")
def app() -> None:
    """
    Exact near-duplicate search for Elasticsearch and OpenSearch.

    A document's text becomes a 64-bit SimHash fingerprint in four keyword fields; near-duplicates are the documents
    whose fingerprints differ in few bits, and every one of them is found. See it work: es-simhash demo
    """
