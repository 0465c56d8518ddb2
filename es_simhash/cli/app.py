"""The table of commands, each imported when it is used; exit codes, and errors on one line. No command is here."""

from __future__ import annotations

import io
import logging
import os
import shlex
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from cyclopts import App, CycloptsError, Group, Parameter, UnusedCliTokensError

COMMANDS: dict[str, dict[str, tuple[str, str]]] = {
    "Common commands": {
        "setup": ("setup:setup", "Make an index that exists ready, in one step."),
        "ingest": ("ingest:ingest", "Write documents with their fingerprints."),
        "find": ("look:find", "Find near-duplicates."),
        "report": ("report:report", "Count duplicates and groups, or write a page."),
        "plan": ("remove:plan", "Plan which duplicates to delete."),
        "review": ("remove:review", "Show a plan, to judge it."),
        "apply": ("remove:apply", "Archive and delete what a plan names."),
        "restore": ("remove:restore", "Put removed documents back."),
    },
    "More commands": {
        "check": ("index:check", "Report whether lookups in an index work."),
        "create": ("index:create", "Create an index with the fields, or add the fields."),
        "follow": ("index:follow", "Keep fingerprints and groups right while others write."),
        "reconcile": ("index:reconcile", "Rewrite group fields that disagree with the rule."),
        "groups": ("look:groups", "Print groups or pairs of near-duplicates."),
        "explain": ("look:explain", "Explain why two texts are near-duplicates, or not."),
        "passages": ("look:passages", "Find documents that share passages with a text."),
        "history": ("remove:history", "Say where a removed document has gone."),
        "tune": ("report:tune", "Recommend a preset for the texts of an index."),
        "fingerprint": ("fingerprint:fingerprint", "Print the fingerprints of texts."),
        "export": ("export:app", "Print or install mapping, templates, pipeline, charts."),
        "remove-fields": ("index:remove_fields", "Remove the fields from an index."),
        "mcp": ("local:mcp", "Serve agents, which can read and change nothing."),
        "serve": ("local:serve", "Run a local server that keeps its data, or show a demo."),
    },
}
"""Every command, by section: the function, and its one line of help."""

HELP = """\
Exact near-duplicate search for Elasticsearch and OpenSearch.

The text of a document becomes a 64-bit SimHash fingerprint, stored in keyword fields. Near-duplicates are the \
documents whose fingerprints differ in few bits; a lookup finds all of them.

To see it work: pip install 'es-simhash[embedded]' && es-simhash serve --demo
"""
EPILOGUE = """\
A terminal gets tables, a pipe or a file JSON; with --json a terminal gets JSON too. Server and login come from the \
environment: ES_SIMHASH_URL; ES_SIMHASH_USER and ES_SIMHASH_PASSWORD, or ES_SIMHASH_API_KEY; ES_SIMHASH_CA_FILE; \
ES_SIMHASH_PRODUCT. Exit codes: 0 done, 1 failed, 2 wrong use, 3 done in part, 130 stopped by Ctrl-C, 141 the output \
was closed.
"""

PLAIN = Parameter(negative=(), show_default=False)
"""A flag has no opposite, and help shows the defaults that the library has."""

FAILED, USAGE = 1, 2
BROKEN_PIPE = 141
"""What a shell reports for a process that SIGPIPE ended."""

SHOWN_CHARACTERS = 200
"""Of each end of a message that repeats what was given."""

STDIN = "<stdin>"
"""What stands for ``-``, which is no option."""
_STREAM_OPTIONS = ("--input", "--file", "--report")

# These loggers warn about a failed request, which the one line of ours describes already.
_NOISY_LOGGERS = ("elastic_transport", "elasticsearch", "opensearch", "urllib3")


def make_app(chosen: str = "", *, is_documented: bool = False) -> App:
    """
    Return the application.
    Help of the command *chosen*, or of all if it *is_documented*, is the docstring, else the line in the table.
    """
    from es_simhash import __version__  # noqa: PLC0415 -- so that Ctrl-C meanwhile is answered

    app = App(
        name="es-simhash",
        help=HELP,
        help_epilogue=EPILOGUE,
        help_format="markdown",
        help_flags=["--help", "-h"],
        version=f"es-simhash {__version__}",
        default_parameter=PLAIN,
        result_action="return_value",
        suppress_keyboard_interrupt=False,
        exit_on_error=False,
        print_error=False,
    )
    for order, (title, commands) in enumerate(COMMANDS.items()):
        section = Group(title, sort_key=order)
        for name, (function, said) in commands.items():
            line = None if name == chosen or is_documented else said
            app.command(
                f"es_simhash.cli.{function}", name=name, help=line, group=section, sort_key=list(commands).index(name)
            )
    return app


def each_command() -> Iterator[tuple[str, App]]:
    """Yield every command with its words, such as ``export mapping``."""
    app = make_app()
    for name in [name for commands in COMMANDS.values() for name in commands]:
        words = [word for word in app[name] if not word.startswith("-")]
        yield from [(f"{name} {word}", app[name][word]) for word in words] or [(name, app[name])]


def run(arguments: Sequence[str]) -> int:
    """Run a command line, and return its exit code: 0, 1, 2, 3, 130 (Ctrl-C), 143 (SIGTERM) or 141."""
    from es_simhash.cli import failures, show, stopping  # noqa: PLC0415 -- so that Ctrl-C meanwhile is answered

    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    words = [*_with_stdin([word for word in options if word != "--json"]), *arguments[len(options) :]]
    if sys.stdout is None:
        # A file that is opened now would take the place of stdout.
        show.Output.says_json = "--json" in options
        show.error("stdout is closed: send it to a file, to a program or to /dev/null", kind="file")
        return FAILED
    show.choose_output(wants_json="--json" in options)
    try:
        with stopping.interrupts(), show.saying_what_is_logged(says_grouping=words[:1] not in (["setup"], ["serve"])):
            code = make_app(words[0] if words else "")(words)
            sys.stdout.flush()
            return code if isinstance(code, int) else 0
    except UnusedCliTokensError as failure:
        several = _middle_cut(shlex.join(failure.unused_tokens or ()))
        show.error(f"too many arguments: {several} (give an option once for each of its values)", kind="usage")
        return USAGE
    except CycloptsError as failure:
        chain = failure.command_chain or ()
        has_commands = chain in ((), ("export",))
        listed = f"{' '.join(['es-simhash', *chain])} --help lists the {'commands' if has_commands else 'options'}"
        show.error(f"{_middle_cut(str(failure))} ({listed})", kind="usage")
        return USAGE
    except failures.WrongUseError as failure:
        show.error(str(failure), kind="usage")
        return USAGE
    except failures.EndedError as failure:
        show.error(str(failure), kind=failure.kind)
        return FAILED
    except (BrokenPipeError, SystemExit):  # rich exits where a table meets a closed pipe
        _forget_output()
        return BROKEN_PIPE
    except KeyboardInterrupt as stop:
        done = "; ".join(reversed(getattr(stop, "__notes__", ())))
        again = "" if "run it again" in done else "; run it again"
        show.stopped(f"stopped{done and ': '}{done}{again}")
        return stopping.exit_code(stop)
    except Exception as failure:
        if os.environ.get("ES_SIMHASH_DEBUG"):
            raise
        show.error(failures.describe(failure), kind=failures.kind_of(failure))
        return FAILED


def _middle_cut(said: str) -> str:
    """Return a message without most of a very long value in it."""
    return said if len(said) <= 2 * SHOWN_CHARACTERS else f"{said[:SHOWN_CHARACTERS]}…{said[-SHOWN_CHARACTERS:]}"


def _with_stdin(words: Sequence[str]) -> list[str]:
    """Return *words* with a name for ``-`` where that is stdin or stdout, not the value of another option."""
    before = ["", *words]
    return [
        STDIN if word == "-" and (not option.startswith("-") or option in _STREAM_OPTIONS) else word
        for option, word in zip(before, words, strict=False)
    ]


def prepare_process() -> None:
    """Make texts printable, and warnings readable; a closed stdin is empty, and no terminal has no columns."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115, PTH123 -- as long as the process
    if not os.environ.get("COLUMNS", "80").strip("0"):
        del os.environ["COLUMNS"]
    for stream in (sys.stdout, sys.stderr):
        # A lone surrogate in a text must not end the program; in JSON the backslash form is correct.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    for name in _NOISY_LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if not sys.warnoptions:
        warnings.showwarning = _show_warning


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    from es_simhash.cli.show import warn  # noqa: PLC0415 -- as above

    # Deprecations are for the developers of this program; warnings of a server are for its user.
    if not issubclass(category, (DeprecationWarning, PendingDeprecationWarning)):
        warn(str(message))


def _forget_output() -> None:
    # Python writes what is still buffered when it closes the stream, and that would fail again.
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return
