"""``es-simhash groups``: which documents belong together."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.grouping_options import verification
from es_simhash.cli.manual import Manual
from es_simhash.cli.options import Target
from es_simhash.cli.output import count, note, print_json, warn
from es_simhash.cli.tables import Lines, Value
from es_simhash.groups.groups_flow import Group
from es_simhash.lookup.near_dups import NearDup

EXAMPLES = [
    "es-simhash groups news --sort size --min-size 10 --source title",
    'es-simhash groups news --filter \'{"term": {"source": "xinhua"}}\'',
    "es-simhash groups news --json > groups.jsonl",
]


@click.command(cls=Manual, examples=EXAMPLES)
@click.argument("index")
@click.option(
    "--sort",
    type=click.Choice(["id", "size"]),
    default="id",
    show_default=True,
    help="id: by the id of the canonical; size: the groups with the most duplicates first.",
)
@click.option("--min-size", type=click.IntRange(2), metavar="N", default=2, help="Only groups of N documents or more.")
@options.filter_option('Only groups with a document that matches this query, as in \'{"term": {"lang": "en"}}\'.')
@click.option("--contained", is_flag=True, help="Show the documents too that are tagged as contained in a canonical.")
@options.source
@verification
@options.target
@options.as_json
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
