"""``es-simhash report``: a page about the near-duplicates of an index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.options import Target
from es_simhash.cli.output import print_json, print_line
from es_simhash.cli.parameter_types import NEW_FILE
from es_simhash.quality.report.figures import require_drawing
from es_simhash.quality.report.words import LANGUAGES
from es_simhash.removal.files import refuse_output, write_whole


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
def command(index: str, out: str, language: str, target: Target, *, as_json: bool, **how: Any) -> None:
    """
    Write a page about the near-duplicates in INDEX: one HTML file that opens anywhere and loads nothing.

    It shows how many documents are duplicates, over time and by source; sizes of groups and distances; the largest and
    the strangest groups with the words that differ; what the presets would remove, estimated from a sample; the health
    of the fingerprints; and how all that was measured. Charts need: pip install 'es-simhash[report]'. Writes nothing to
    the index. With --json its numbers are printed too.
    """
    refuse_output(out, inputs=[], kind="page")
    require_drawing()
    with connect(target, index) as connection:
        report = connection.simhash.report(index, **how)
    write_whole(Path(out), [report.html(language=language)])
    if as_json:
        print_json(report.to_dict(), indent=2)
    else:
        print_line(f"the report is in {out}: open it in a browser")
