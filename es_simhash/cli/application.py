"""The table of commands, each imported when it is used; exit codes, and errors on one line. No command is here."""

from __future__ import annotations

import difflib
import io
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Any, NoReturn

import click

from es_simhash import __version__
from es_simhash.cli.failures import asks_for_json, describe, kind_of, say_failure
from es_simhash.cli.output import error, messages_as_json, saying_warnings, warn
from es_simhash.cli.stopping import exit_code, interrupts, remember_arguments, say_stopped

SECTIONS: dict[str, dict[str, str]] = {
    "Commands": {
        "setup": "Make an index that exists ready, in one step.",
        "ingest": "Write documents with their fingerprints.",
        "find": "Find near-duplicates.",
        "report": "Count duplicates and groups, or write a page.",
        "plan": "Plan which duplicates to delete.",
        "review": "Show a plan, to judge it.",
        "apply": "Archive and delete what a plan names.",
        "restore": "Put removed documents back.",
    },
    "More commands": {
        "check": "Report whether lookups in an index work.",
        "create": "Create an index with the fields, or add the fields.",
        "backfill": "Add fingerprints to documents already in an index.",
        "follow": "Keep fingerprints and groups right while others write.",
        "reconcile": "Rewrite group fields that disagree with the rule.",
        "groups": "Print groups or pairs of near-duplicates.",
        "explain": "Explain why two texts are near-duplicates, or not.",
        "passages": "Find documents that share passages with a text.",
        "history": "Say where a removed document has gone.",
        "tune": "Recommend a preset for the texts of an index.",
        "fingerprint": "Print the fingerprints of texts.",
        "export": "Print or install mapping, templates, pipeline, charts.",
        "remove-fields": "Remove the fields from an index.",
        "mcp": "Serve agents, which can read and change nothing.",
        "serve": "Run a local server that keeps its data.",
        "demo": "Find near-duplicates in a small corpus.",
    },
}
"""Every command with its one line of help, by section."""

# A command is ``command`` of the module ``commands.NAME``, with ``_`` for ``-``; these are beside another one.
_BESIDE = {
    "check": "quality",
    "explain": "quality",
    "history": "plan",
    "passages": "find",
    "reconcile": "groups",
    "remove-fields": "create",
    "report": "quality",
    "review": "plan",
    "serve": "demo",
    "setup": "backfill",
    "tune": "quality",
}

FAILED = 1
USAGE = 2
# What a shell reports for a process that a signal ended: 128 plus the number of SIGINT, or of SIGPIPE.
INTERRUPTED = 130
BROKEN_PIPE = 141

# These loggers warn about a failed request, which the one line of ours describes already.
_NOISY_LOGGERS = ("elastic_transport", "elasticsearch", "opensearch", "urllib3")


def module_of(command: str) -> str:
    return _BESIDE.get(command, command).replace("-", "_")


class Application(click.Group):
    """The group of all commands. It imports a command when it is used, and turns each way to end into an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- click's signature
        return [name for commands in SECTIONS.values() for name in commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = import_module(f"es_simhash.cli.commands.{module_of(cmd_name)}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_") if cmd_name in _BESIDE else "command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that *args* begin with; for one that does not exist, say which are like it."""
        if args and args[0][:1].isalnum() and args[0] not in (known := self.list_commands(ctx)):
            close = " or ".join(difflib.get_close_matches(args[0], known))
            hint = f"Did you mean {close}?" if close else "es-simhash --help lists the commands."
            raise click.UsageError(f"No such command {args[0]!r}. {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Run, and exit with 0, 1 (failed), 2 (usage), 130 (Ctrl-C), 143 (SIGTERM) or 141 (the output was closed)."""
        _prepare_process()
        given = args[0] if args else extra.get("args")
        given = sys.argv[1:] if given is None else [*given]
        as_json = asks_for_json(given)
        if sys.stdout is None:
            # A file that is opened now would take the place of stdout.
            say_failure("file", "stdout is closed: send it to a file, to a program or to /dev/null", as_json=as_json)
            sys.exit(FAILED)
        try:
            with interrupts():
                result = super().main(*args, **{**extra, "standalone_mode": False})
        except click.UsageError as failure:
            if as_json:
                say_failure("usage", failure.format_message(), as_json=True)
            else:
                failure.show()
            sys.exit(USAGE)
        except click.ClickException as failure:
            say_failure("input", failure.format_message(), as_json=as_json)
            sys.exit(FAILED)
        except click.Abort:
            sys.exit(INTERRUPTED)
        sys.exit(result if isinstance(result, int) else 0)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, and keep them for the message that says how to go on."""
        remember_arguments(ctx, args)
        messages_as_json(ctx, wanted=asks_for_json(args))
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the chosen command; an error becomes one line on stderr."""
        try:
            with saying_warnings():
                result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _forget_output()
            return BROKEN_PIPE
        except KeyboardInterrupt as stop:
            say_stopped(ctx)
            return exit_code(stop)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as failure:
            if os.environ.get("ES_SIMHASH_DEBUG"):
                raise
            url, like = ctx.meta.get("es_simhash.url"), ctx.meta.get("es_simhash.like", ())
            error(describe(failure, url=url, like=like), kind=kind_of(failure))
            return FAILED
        return result


def each_command() -> Iterator[tuple[str, click.Command]]:
    """Yield every command with its words, such as ``export mapping``."""
    context = click.Context(app)
    for name in app.list_commands(context):
        command = app.get_command(context, name)
        if isinstance(command, click.Group):
            yield from ((f"{name} {word}", entry) for word, entry in command.commands.items())
        elif command is not None:
            yield name, command


def _prepare_process() -> None:
    for stream in (sys.stdout, sys.stderr):
        # A lone surrogate in a text must not end the program; in JSON the backslash form is correct.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    for name in _NOISY_LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if not sys.warnoptions:
        warnings.showwarning = _show_warning


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    # Deprecations are for the developers of this program; warnings of a server are for its user.
    if not issubclass(category, (DeprecationWarning, PendingDeprecationWarning)):
        warn(str(message))


def _forget_output() -> None:
    # Python writes what is still buffered when it closes the stream, and that would fail again.
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return


@click.group(
    cls=Application,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Server and login come from the environment: ES_SIMHASH_URL; ES_SIMHASH_USER and ES_SIMHASH_PASSWORD, or "
    "ES_SIMHASH_API_KEY; ES_SIMHASH_CA_FILE; ES_SIMHASH_PRODUCT. Options of a command: es-simhash COMMAND --help; "
    "where that shows the common ones, --help-all shows all.",
)
@click.version_option(__version__, prog_name="es-simhash", message="%(prog)s %(version)s")
def app() -> None:
    """
    Exact near-duplicate search for Elasticsearch and OpenSearch.

    The text of a document becomes a 64-bit SimHash fingerprint, stored in keyword fields. Near-duplicates are the
    documents whose fingerprints differ in few bits; a lookup finds all of them.

    To see it work: pip install 'es-simhash[embedded]' && es-simhash demo
    """
