"""Write ``docs/cli.md`` from the commands themselves. ``make docs`` runs it, and a test compares the result."""

# ruff: noqa: INP001 - a script, not part of a package
from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[1]))  # the package beside this file, not the one that is installed

from es_simhash.cli.app import each_command, make_app

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "cli.md"

_INTRODUCTION = """\
<!-- make docs generates this page: change the help of the commands. -->

# The command line: `es-simhash`

Data go to stdout; messages and progress go to stderr. A terminal gets tables and lists. They fit its width: long values
are cut, and a line on stderr names what was cut. Sentences, errors and text to paste are never cut. A pipe or a file
gets JSON: one object, or one line for each result, with nothing cut. A pager shows what a terminal does with
`TTY_COMPATIBLE=1`, as in `TTY_COMPATIBLE=1 es-simhash groups news | less`. `-` means stdin. Distances are in bits;
fingerprints have 16 hex digits.

[What `--json` prints](json.md) names the fields of each answer. Every command has that option: it gives JSON on a
terminal too, and messages are JSON. What ends a command is then one JSON object on stderr instead of a line, and the
exit code stays the same: `{"error": {"kind": "InvalidInputError", "message": "..."}}`. The kind is `usage` (the command
line itself), `input` (a file or a value), the name of an error of the library, `server` (the server or the way to it),
`file`, or `unexpected`. What is said on the way is an object a line too: `{"warning": {"message": "..."}}`, `{"note":
{"message": "..."}}`, and an `error` for a part that failed while the rest was done. That has a kind and fields of its
own, as in `{"error": {"kind": "refused", "index": "news", "id": "4711", "reason": "...", "status": 400, "message":
"..."}}`: those of the failures that the library returns (`refused`, `changed`, `missing`, `unreadable`, `exists` and so
on). Kinds of the command line are `more` (failures that are not printed), `unsettled` (groups to reconcile),
`lines_failed` and `not_carried_out` (how many lines failed), and `stopped` (Ctrl-C, or SIGTERM).

In tables and messages, control characters and direction marks in ids, names and texts are shown as escapes such as
`\\x1b` or `\\u202e`, so that a document cannot control your terminal. JSON has the usual escapes for them.
"""

_ENVIRONMENT = """\
## Environment

| variable | meaning |
|---|---|
| `ES_SIMHASH_URL` | address of the server, for `--url` |
| `ES_SIMHASH_PRODUCT` | `elasticsearch` or `opensearch`; by default the server is asked |
| `ES_SIMHASH_TIMEOUT` | longest time that one request may take, in seconds; by default 60 |
| `ES_SIMHASH_INSECURE` | 1: do not verify the certificate of the server |
| `ES_SIMHASH_API_KEY` | API key, encoded or as `id:key` |
| `ES_SIMHASH_USER`, `ES_SIMHASH_PASSWORD` | user and password |
| `ES_SIMHASH_CA_FILE` | certificate of the authority that signed the certificate of the server |
| `ES_SIMHASH_FILES` | files that the scheme of an index was made with, as in `dictionary=words.txt,idf=idf.txt` |
| `ES_SIMHASH_DEBUG` | any value: show the traceback of an error |

There is no option for a login, because everybody on a machine can read the arguments of its programs. A login inside
the URL is used if the environment has none, and is never shown; write `#` in it as `%23`, `/` as `%2F` and `@` as
`%40`. The product is known from the headers of the answer to `HEAD INDEX`, even if that answer is a refusal, so no
rights on the cluster are needed.
"""

_EXIT_CODES = """\
## Exit codes

| code | meaning |
|---|---|
| 0 | done |
| 1 | failed: one line with `error:` says what failed and what to do; `check`: something is wrong |
| 2 | wrong use: arguments that do not exist, or do not go together |
| 3 | done in part: some documents were refused, or lines are void; each is named (1: a block let none be written) |
| 130 | stopped by Ctrl-C (`serve` and `follow`, which end that way, exit with 0); 143: by SIGTERM |
| 141 | the output was closed, for example by `\\| head` |
"""

_CHANGES = """\
## What changes something

What deletes, or changes a recorded setting, needs `--yes`; without it the command says what it would do, changes
nothing and exits with 0. Every other command that writes to a server has `--dry-run`, but for `follow`: what that
would do first says `setup`. A command that is not in this table writes nothing to your server.

| command | option | meaning |
|---|---|---|
"""
GUARDS = ("--yes", "--dry-run")


def build_text() -> str:
    """Return the whole of ``docs/cli.md``."""
    with patch("sys.argv", ["es-simhash"]):  # where the name of a program comes from
        entries = make_app(is_documented=True).generate_docs(output_format="markdown", usage_name="es-simhash")
    _, mark, commands = entries.partition("## es-simhash setup")
    guards = _CHANGES + "".join(_guards())
    text = "\n".join([_INTRODUCTION, _ENVIRONMENT, _EXIT_CODES, guards, mark + commands])
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


def _guards() -> Iterator[str]:
    """Yield a row for each option that holds back, or lets through, what a command writes."""
    for name, command in each_command():
        for option in command.assemble_argument_collection(parse_docstring=True):
            if found := [guard for guard in GUARDS if guard in option.names]:
                yield f"| `{name}` | `{found[0]}` | {' '.join((option.parameter.help or '').split())} |\n"


def main() -> None:
    """Write the file."""
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(build_text(), encoding="utf-8")


if __name__ == "__main__":
    main()
