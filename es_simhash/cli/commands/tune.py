"""``es-simhash tune``: which scheme, distance and preset suit the texts of an index."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.options import Target
from es_simhash.cli.output import count, note, print_json, print_line, warn
from es_simhash.cli.tables import print_table

if TYPE_CHECKING:
    from es_simhash.quality.tuning import Tuning


@options.manual(
    "es-simhash tune news",
    "es-simhash tune articles --text-field body --sample 2000 --compare shingles --compare keywords",
)
@click.argument("index")
@options.sample(500)
@click.option("--compare", "schemes", metavar="SCHEME", multiple=True, help="Compare this scheme. Repeatable.")
@options.text_field
@options.target
def command(index: str, target: Target, *, as_json: bool, **how: Any) -> int:
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
        _show(found, index)
    for reason in found.reasons:
        warn(reason)
    return 1 if found.reasons else 0


def _show(found: Tuning, index: str) -> None:
    note(f"{found.index}: {found.sampled:,} of {count(found.documents, 'text')} drawn")
    kinds = list(found.copies)
    print_table(
        ["edit", "#copies", "#similarity"],
        [(kind, number, f"{found.similarity[kind]:.3f}") for kind, number in found.copies.items()],
    )
    print_table(
        ["scheme", "#max distance", "#recall", "#precision", "#pairs", "#unrelated", *(f"#{kind}" for kind in kinds)],
        [
            (
                *(each.scheme, each.max_distance, _share(each.recall), _share(each.precision)),
                *(f"{each.pairs:,}", f"{each.unrelated:,.1f}"),
                *(_share(each.by_edit.get(kind)) for kind in kinds),
            )
            for each in found.schemes
        ],
        title="by bits alone. recall: share of the edited copies; precision: share of the pairs of documents near each "
        "other in the index whose texts are 80 % the same; unrelated: unrelated documents to expect in each lookup",
        keys=2,
    )
    print_table(
        [
            *("preset", "#max distance", "#similarity", "#recall", "#recall above bound"),
            *("#wrong letters", "#candidates", "#milliseconds"),
        ],
        [
            (
                *(each.preset, each.max_distance, each.similarity),
                *map(_share, (each.recall, each.recall_above_bound, each.noise_recall)),
                *(each.candidates, each.milliseconds),
            )
            for each in found.presets
        ],
        title="presets, after verification. wrong letters: recall of copies in which 2 % of the letters are wrong",
    )
    for line in found.notes:
        note(f"note: {line}")
    if found.recommended is not None:
        print_line(
            f"recommended: {found.recommended} (es-simhash find {shlex.quote(index)} --preset {found.recommended} ...)"
        )


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
