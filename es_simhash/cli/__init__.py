"""
The command line ``es-simhash``: the commands are in ``commands/``; this is what they share.

    application.py   the table of commands, exit codes, errors as one line
    manual.py        a command that brings examples
    failures.py      an exception as one line that says what to do
    shared_options.py    options that several commands share
    grouping_options.py  options of the commands that group
    connect.py       URL, login and product to a client
    texts.py         texts from arguments, files and stdin
    records.py       documents from JSON Lines, CSV and stdin
    output.py        JSON, tables and messages
    progress.py      how far a long command is, on stderr

Nothing is computed here that the library does not do.
"""

from es_simhash.cli.application import app

__all__ = ["app", "main"]


def main() -> None:
    """
    Run ``es-simhash`` with the arguments of this process, and end the process.
    """
    app()
