"""``es-simhash stats`` and ``report``: how many documents, duplicates and groups an index has; tables, or a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.duplicates import warn_of_lacking
from es_simhash.cli.options import Target
from es_simhash.cli.output import count, note, print_json, print_line
from es_simhash.cli.output_files import refuse_output, write_whole
from es_simhash.cli.parameter_types import NEW_FILE
from es_simhash.cli.tables import print_result
from es_simhash.quality import LANGUAGES

if TYPE_CHECKING:
    from es_simhash import Stats

_TABLES = {"time": "over time", "source": "by source"}


@options.manual(
    "es-simhash stats news",
    "es-simhash stats 'news-*' --time-field published_at --source-field agency --text-field title",
    'es-simhash stats news --filter \'{"term": {"lang": "en"}}\' --json | jq .duplicates',
)
@click.argument("index")
@options.time_field
@options.source_field
@click.option("-t", "--text-field", metavar="FIELD", help="Show the beginning of this field of the largest groups.")
@options.counted_filter
@options.target
def command(index: str, target: Target, *, as_json: bool, **how: Any) -> None:
    """
    Print how many documents, duplicates and groups INDEX has: by size, by distance, over time and by source.

    Every number is exact, because the server counts all documents. The time grows with the number of documents: about
    two searches for every 10,000 groups. Writes nothing. es-simhash report makes a page to show others, with texts.
    """
    with connect(target, index) as connection:
        stats = connection.simhash.stats(index, **how)
    if as_json:
        print_json(stats.to_dict(), indent=2)
    else:
        _show(stats)


def _show(stats: Stats) -> None:
    print_result(stats)
    if several := stats.groups.several_canonicals:
        note(
            f"{count(several, 'name')} of several groups, because indices that were not grouped together repeat an id; "
            "each name counts as one group: run es-simhash reconcile over all of them, or count each by itself"
        )


@options.manual(
    "es-simhash report news --out report.html",
    "es-simhash report 'news-*' --time-field published_at --source-field agency --text-field body --out report.html",
    "es-simhash report news --language zh --out report.html",
    'es-simhash report news --filter \'{"term": {"lang": "en"}}\' --out report.html',
)
@click.argument("index")
@click.option("--out", type=NEW_FILE, required=True, help="File to write the page to.")
@options.time_field
@options.source_field
@click.option(
    "-t", "--text-field", metavar="FIELD", help="Field whose text is shown. Default: the fields that the index records."
)
@options.counted_filter
@click.option("--language", type=click.Choice(LANGUAGES), default="en", help="Language of the page.")
@options.sample(1_000)
@options.target
def report(index: str, out: str, language: str, target: Target, *, as_json: bool, **how: Any) -> None:
    """
    Write a page about the near-duplicates in INDEX: one HTML file that opens anywhere and loads nothing.

    It shows how many documents are duplicates, over time and by source; sizes of groups and distances; the largest
    groups, and those with a distant member, with the words that differ; the health of the fingerprints; and how all
    that was measured. Writes nothing to the index. Over time is by --time-field, or by the date that INDEX records for
    its canonicals. With --json its numbers are printed too. es-simhash stats prints numbers alone, on the terminal.
    """
    refuse_output(out)
    with connect(target, index) as connection:
        found = connection.simhash.report(index, **how)
        warn_of_lacking(connection, index)
    write_whole(Path(out), [found.html(language=language)])
    if as_json:
        print_json(found.to_dict(), indent=2)
    else:
        print_line(f"the report is in {out}: open it in a browser")
        for name in found.uncharted:
            note(f"--{name}-field FIELD adds a table {_TABLES[name]}")
