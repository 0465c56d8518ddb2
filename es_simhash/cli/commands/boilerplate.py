"""``es-simhash boilerplate``: which passages of an index are template text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.options import Target
from es_simhash.cli.output import count, print_json, print_line, warn
from es_simhash.cli.parameter_types import NEW_FILE
from es_simhash.cli.tables import print_table
from es_simhash.errors import shorten
from es_simhash.removal.files import refuse_output, write_whole

_SHOWN = 60


@options.manual(
    "es-simhash boilerplate mails --out mask.json",
    "es-simhash boilerplate news --source-field agency --min-share 0.05 --out mask.json",
    "es-simhash boilerplate mails --sample 10000 --min-documents 50 --out mask.json --json | jq .passages[].text",
)
@click.argument("index")
@click.option("--out", type=NEW_FILE, required=True, help="File to write the mask to.")
@options.source_field
@click.option(
    "--min-documents", type=click.IntRange(2), default=20, help="Fewest sampled documents that have a passage."
)
@click.option(
    "--min-share",
    type=click.FloatRange(0, 1),
    default=0.01,
    help="Their smallest share of the sampled documents, or of those of one source.",
)
@options.sample(5_000)
@options.text_field
@options.target
def command(index: str, out: str, target: Target, *, as_json: bool, **how: Any) -> int:
    """
    Learn which passages of INDEX are template text, such as footers and disclaimers, and write them to a mask.

    A passage is template text if many sampled documents have it whose other text differs; copies of one article make
    none. It is worth at least 50 letters, or 40 characters of Chinese. With --source-field passages are also counted
    within each source. The mask is JSON: read it, and remove what is content. Pass it as --boilerplate to create or
    backfill fingerprints that leave these passages out, under a prefix of their own. Writes nothing to INDEX, and no
    mask if there is no such passage. Exits with 1 if not every document could be looked at.
    """
    refuse_output(out, inputs=[], kind="mask")
    with connect(target, index) as connection:
        found = connection.simhash.boilerplate(index, **how)
    if found.passages:
        write_whole(Path(out), [found.to_json()])
    if as_json:
        print_json(found.to_dict(), indent=2)
    else:
        rows = [
            (f"{each.documents:,}", f"{each.share:.3f}", each.source or "", shorten(each.text, limit=_SHOWN))
            for each in found.passages
        ]
        if rows:
            print_table(["#documents", "#share", "source", "~text"], rows)
        print_line(
            f"{count(len(found.passages), 'passage')} in {count(found.sampled, 'sampled text')}, "
            f"{100 * found.masked:.1f} % of their letters: {'the mask is in ' + out if rows else 'no mask was written'}"
        )
    for reason in found.reasons:
        warn(reason)
    return 1 if found.reasons else 0
