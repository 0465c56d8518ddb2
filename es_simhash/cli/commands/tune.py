"""``es-simhash tune`` and ``boilerplate``: what suits the texts of an index."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.options import Target
from es_simhash.cli.output import count, note, print_json, print_line, say_command, warn
from es_simhash.cli.output_files import refuse_output, write_whole
from es_simhash.cli.parameter_types import NEW_FILE
from es_simhash.cli.tables import print_table, share_text
from es_simhash.errors import shorten

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
    note(f"{found.index}: {found.sampled:,} of {count(found.documents, 'text')} drawn")
    if found.recommended is not None:
        find = say_command("find", index, "--preset", found.recommended)
        print_line(f"recommended: {found.recommended} ({find} ...)")
    print_table(
        [
            *("preset", "#max distance", "#similarity", "#recall", "#recall above bound"),
            *("#recall above 0.8", "#wrong letters", "#candidates", "#milliseconds"),
        ],
        [
            (
                *(each.preset, each.max_distance, each.similarity),
                *map(share_text, (each.recall, each.recall_above_bound, each.recall_similar, each.noise_recall)),
                *(each.candidates, each.milliseconds),
            )
            for each in found.presets
        ],
        title="presets, after verification. wrong letters: recall of copies in which 2 % of the letters are wrong",
    )
    if all_:
        _show_schemes(found)
    else:
        note("--all also shows each scheme and distance by bits alone, by kind of edit")
    for line in found.notes:
        note(f"note: {line}")


def _show_schemes(found: Tuning) -> None:
    kinds = list(found.copies)
    print_table(
        ["edit", "#copies", "#similarity"],
        [(kind, number, f"{found.similarity[kind]:.3f}") for kind, number in found.copies.items()],
    )
    print_table(
        ["scheme", "#max distance", "#recall", "#precision", "#pairs", "#unrelated", *(f"#{kind}" for kind in kinds)],
        [
            (
                *(each.scheme, each.max_distance, share_text(each.recall), share_text(each.precision)),
                *(f"{each.pairs:,}", f"{each.unrelated:,.1f}"),
                *(share_text(each.by_edit.get(kind)) for kind in kinds),
            )
            for each in found.schemes
        ],
        title="by bits alone. recall: share of the edited copies; precision: share of the pairs of documents near each "
        "other in the index whose texts are 80 % the same; unrelated: unrelated documents to expect in each lookup",
        keys=2,
    )


_SHOWN_LETTERS = 60


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
        rows = [
            (f"{each.documents:,}", f"{each.share:.3f}", each.source or "", shorten(each.text, limit=_SHOWN_LETTERS))
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
