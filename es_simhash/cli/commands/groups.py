"""``es-simhash groups`` and ``pairs``: which documents belong together, in an index or between two."""

from __future__ import annotations

import csv
import json
import sys
from contextlib import closing
from typing import Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.grouping_options import resources, verification
from es_simhash.cli.options import Target
from es_simhash.cli.output import count, note, print_json, visible, warn
from es_simhash.cli.tables import Lines, Value
from es_simhash.groups.pairs_and_groups_flow import Group
from es_simhash.lookup.near_dups import NearDup


@options.manual(
    "es-simhash groups news --sort size --min-size 10 --source title",
    'es-simhash groups news --filter \'{"term": {"source": "xinhua"}}\'',
    "es-simhash groups news --json > groups.jsonl",
)
@click.argument("index")
@click.option(
    "--sort",
    type=click.Choice(["id", "size"]),
    default="id",
    help="id: by the id of the canonical; size: the groups with the most duplicates first.",
)
@options.number("--min-size", least=2, default=2, show_default=False, help="Only groups of N documents or more.")
@options.filter_option('Only groups with a document that matches this query, as in \'{"term": {"lang": "en"}}\'.')
@click.option("--contained", is_flag=True, help="Show the documents too that are tagged as contained in a canonical.")
@options.source
@verification
@options.target
def command(index: str, target: Target, *, min_size: int, as_json: bool, **how: Any) -> None:
    """
    Print each group of two or more near-duplicates in INDEX, as the documents record it.

    The first document of a group is its canonical. The number before each other document is its distance from the
    canonical. With --preset or --verify the present texts are compared, and documents whose text is not similar to that
    of their canonical are left out. With --contained documents follow of which es-simhash tag --contained found that
    they stand in the canonical. With --json each group is one line.
    """
    found = False
    merged = 0
    with (
        connect(target, index) as connection,
        closing(connection.simhash.groups(index, min_size=min_size, **how)) as groups,
        Lines() as lines,
    ):
        for group in groups:
            found = True
            merged += group.canonicals > 1
            if as_json:
                print_json(group.to_dict())
            else:
                _show(group, lines)
    if merged:
        said = f"{count(merged, 'group')} shown as one because documents of several indices have one id"
        warn(f"{said}: give each another id, or look at each index by itself", kind="shared_ids", number=merged)
    if not found:
        note(f"no group of {min_size} or more documents")


def _show(group: Group, lines: Lines) -> None:
    lines.print(Value("id", group.id), f"  {count(len(group.members), 'document')}", *_source(group.members[0]))
    for each in group.members[1:]:
        similarity = "" if each.similarity is None else f"  {each.similarity:.3f}"
        lines.print(f"  {each.distance:>2}{similarity}  ", Value("id", each.id), *_source(each))
    for key in group.contained or ():
        lines.print("  contained  ", Value("id", key.id))


def _source(document: NearDup) -> list[str | Value]:
    """Return the fields of a document that were asked for, for the end of its line."""
    if document.source is None:
        return []
    return ["  ", Value("fields", json.dumps(document.source, ensure_ascii=False))]


COLUMNS = ("id", "index", "other_id", "other_index", "distance")


@options.manual(
    "es-simhash pairs news --max-distance 8 > pairs.jsonl",
    "es-simhash pairs news --preset near > pairs.jsonl",
    "es-simhash pairs new-crawl --against archive --format csv > pairs.csv",
)
@click.argument("index")
@click.option("--against", metavar="INDEX", help="Pair each document with those of this other index.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["jsonl", "csv"]),
    help="Format of the output. Default: jsonl, which --json also means.",
)
@verification
@options.max_distance
@resources
@options.target
def pairs(index: str, against: str | None, format_: str | None, target: Target, *, as_json: bool, **how: Any) -> None:
    """
    Print every pair of near-duplicates in INDEX once, or every pair between INDEX and another.

    The command first reads all fingerprints. N copies of one text make N * (N - 1) / 2 pairs. Texts are only compared
    with --preset or --verify; then each pair has its similarity.
    """
    if as_json and format_ == "csv":
        raise click.UsageError("--json means --format jsonl: leave one of the two out")
    with connect(target, index) as connection, closing(connection.simhash.pairs(index, against, **how)) as found:
        columns = COLUMNS if how["preset"] is None and not how["verify"] else (*COLUMNS, "similarity")
        rows = csv.DictWriter(sys.stdout, columns, extrasaction="ignore", lineterminator="\n")
        if format_ == "csv":
            rows.writeheader()
        for pair in found:
            if format_ == "csv":
                rows.writerow(_cells(pair.to_dict()))
            else:
                print_json(pair.to_dict())


def _cells(pair: dict[str, Any]) -> dict[str, Any]:
    """Return the cells of a row: as they are for a program, and safe to look at on a terminal."""
    return {name: visible(str(value)) for name, value in pair.items()} if sys.stdout.isatty() else pair
