"""
The command line ``es-simhash``: the commands are in ``commands/``, and beside it what they share.

    application.py       the table of commands, exit codes, errors as one line
    manual.py            a command with examples
    ending.py            how a command that failed says so, also as JSON
    failures.py          an exception as one line that says what to do
    stopping.py          Ctrl-C and SIGTERM: what was written, and how to go on
    options.py           options that several commands share
    grouping_options.py  options of the commands that group
    removal_options.py   options of the commands that plan a removal
    connect.py           URL, login and product to a client
    texts.py             texts from arguments, files and stdin
    records.py           documents from JSON Lines, CSV and stdin
    bulk_actions.py      lines of files to bulk actions
    ingest_run.py        lines of files on their way into an index
    ingest_checkpoint.py how far an ingest of files has got, in a file
    tally.py             outcomes of an ingest: counts, failures, report
    near_dups.py         results of a lookup as a table or JSON
    output.py            JSON, tables and messages, without control characters
    progress.py          a progress bar on stderr

The library does the work; nothing is here that a user of the library would miss.
"""

from es_simhash.cli.application import app

__all__ = ["app", "main"]


def main() -> None:
    """
    Run ``es-simhash`` with the arguments of this process, then end the process.
    """
    app()
