"""``es-simhash tune``: the preset that suits the texts of an index."""

from __future__ import annotations

from typing import Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.options import Target
from es_simhash.cli.output import print_json, print_line, say_command, warn
from es_simhash.cli.tables import print_result


@options.manual(
    "es-simhash tune news",
    "es-simhash tune articles --text-field body --sample 2000",
)
@click.argument("index")
@options.sample(500)
@options.text_field
@options.target
def command(index: str, target: Target, *, as_json: bool, **how: Any) -> int:
    """
    Recommend a preset for the texts of INDEX.

    Makes edits of known kinds in a sample of the texts (typos, boilerplate, dates, cuts, moved sentences, punctuation,
    traditional and simplified), and reports which of them each preset would find (recall). Recommends the strictest
    that finds 98 % of the copies that share 80 % of their words. Writes nothing. If INDEX does not have the fields yet,
    pass --text-field. Exits with 1 if not every document could be looked at. How many documents a preset would
    remove says es-simhash plan INDEX --preset PRESET.
    """
    with connect(target, index) as connection:
        found = connection.simhash.tune(index, **how)
    if as_json:
        print_json(found.to_dict(), indent=2)
    else:
        print_result(found)
        if found.recommended is not None:
            print_line(f"to try it: {say_command('find', index, '--preset', found.recommended)} ...")
    for reason in found.reasons:
        warn(reason)
    return 1 if found.reasons else 0
