"""``es-simhash tune`` and ``boilerplate``: what suits the texts of an index."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.options import Target
from es_simhash.cli.output import note, print_json, print_line, say_command, warn
from es_simhash.cli.output_files import refuse_output, write_whole
from es_simhash.cli.parameter_types import NEW_FILE
from es_simhash.cli.tables import print_result, print_sheets
from es_simhash.tables.tabular import sheets_of

if TYPE_CHECKING:
    from es_simhash.quality import Tuning


@options.manual(
    "es-simhash tune news",
    "es-simhash tune articles --text-field body --sample 2000 --compare shingles --compare keywords",
)
@click.argument("index")
@options.sample(500)
@click.option("--compare", "schemes", metavar="SCHEME", multiple=True, help="Compare this scheme. Repeatable.")
@options.text_field
@click.option("--all", "all_", is_flag=True, help="Also print each scheme and distance by bits alone, by kind of edit.")
@options.target
def command(index: str, target: Target, *, all_: bool, as_json: bool, **how: Any) -> int:
    """
    Recommend a preset for the texts of INDEX.

    Makes edits of known kinds in a sample of the texts (typos, boilerplate, dates, cuts, moved sentences, punctuation,
    traditional and simplified), and reports which of them each scheme, distance and preset would find (recall), and at
    what cost. Also compares the texts of documents near each other that INDEX really has, and reports how many of them
    are 80 % the same (precision): the others are what a removal by bits alone would delete wrongly. Writes nothing. If
    INDEX does not have the fields yet, pass --text-field; precision is then that of pairs within the sample. Exits with
    1 if not every document could be looked at.
    """
    with connect(target, index) as connection:
        found = connection.simhash.tune(index, **how)
    if as_json:
        print_json(found.to_dict(), indent=2)
    else:
        _show(found, index, all_=all_)
    for reason in found.reasons:
        warn(reason)
    return 1 if found.reasons else 0


def _show(found: Tuning, index: str, *, all_: bool) -> None:
    title, parts = sheets_of(found)
    print_sheets(*parts[: None if all_ else 1], title=title)
    if found.recommended is not None:
        print_line(f"to try it: {say_command('find', index, '--preset', found.recommended)} ...")
    if not all_:
        note("--all also shows each scheme and distance by bits alone, by kind of edit")
    for line in found.notes:
        note(f"note: {line}")


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
def boilerplate(index: str, out: str, target: Target, *, as_json: bool, **how: Any) -> int:
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
        print_result(found)
        where = f"the mask is in {out}" if found.passages else "no mask was written"
        print_line(f"{100 * found.masked:.1f} % of the letters of the sampled texts: {where}")
    for reason in found.reasons:
        warn(reason)
    return 1 if found.reasons else 0
