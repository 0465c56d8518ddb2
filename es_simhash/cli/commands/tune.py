"""
``es-simhash tune``: which scheme, distance and preset suit the texts of an index.
"""

from __future__ import annotations

from typing import Any

import click

from es_simhash.cli.connect import connect
from es_simhash.cli.manual import Manual
from es_simhash.cli.output import count, note, print_json, print_line, print_table
from es_simhash.cli.shared_options import Server, json_option, prefix_option, server_options, text_field_option

EXAMPLES = [
    "es-simhash tune news",
    "es-simhash tune articles --text-field body --sample 2000 --compare shingles --compare keywords",
]


@click.command(cls=Manual, examples=EXAMPLES)
@click.argument("index")
@click.option(
    "--sample",
    type=click.IntRange(1, 10_000),
    default=500,
    show_default=True,
    metavar="N",
    help="Texts drawn at random.",
)
@click.option("--compare", metavar="SCHEME", multiple=True, help="A scheme to compare. Repeatable.")
@click.option("--seed", type=int, default=0, show_default=True, help="Chooses the sample and the edits.")
@text_field_option
@prefix_option
@server_options
@json_option
def command(
    index: str,
    sample: int,
    compare: tuple[str, ...],
    seed: int,
    text_fields: tuple[str, ...],
    prefix: str,
    server: Server,
    *,
    as_json: bool,
) -> None:
    """
    Recommend a preset for the texts of INDEX.

    Makes edits of known kind to a sample of the texts (typos, boilerplate, dates, cuts, moved sentences, punctuation,
    traditional and simplified) and says which of them each scheme, distance and preset would find, and at what cost.
    Writes nothing. INDEX need not have the fields yet: then give --text-field.
    """
    with connect(server, index, prefix=prefix) as connection:
        found = connection.simhash.tune(index, sample=sample, schemes=compare, text_field=text_fields, seed=seed)
    if as_json:
        print_json(found.to_dict(), indent=2)
        return
    note(f"{found.index}: {found.sampled:,} of {count(found.documents, 'text')} drawn")
    print_table(
        ["edit", "#copies", "#similarity"],
        [(kind, number, f"{found.similarity[kind]:.3f}") for kind, number in found.copies.items()],
    )
    kinds = list(found.copies)
    print_table(
        ["scheme", "#max distance", "#recall", "#precision", "#unrelated", *(f"#{kind}" for kind in kinds)],
        [
            (
                each.scheme,
                each.max_distance,
                _share(each.recall),
                _share(each.precision),
                f"{each.unrelated:,.1f}",
                *(_share(each.by_edit.get(kind)) for kind in kinds),
            )
            for each in found.schemes
        ],
        title="before verification; unrelated documents expected at each lookup",
    )
    print_table(
        ["preset", "#max distance", "#similarity", "#recall", "#recall above bound", "#candidates", "#milliseconds"],
        [
            (
                each.preset,
                each.max_distance,
                each.similarity,
                _share(each.recall),
                _share(each.recall_above_bound),
                each.candidates,
                each.milliseconds,
            )
            for each in found.presets
        ],
        title="presets, verified",
    )
    for line in found.notes:
        note(f"note: {line}")
    if found.recommended is not None:
        print_line(f"recommended: {found.recommended} (es-simhash find {index} --preset {found.recommended} ...)")


def _share(value: Any) -> str:
    return "-" if value is None else f"{value:.3f}"
