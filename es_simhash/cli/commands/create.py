"""``es-simhash create``: a new index with the fields, or the fields in an index that exists."""

from __future__ import annotations

import json
from typing import Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.manual import Manual
from es_simhash.cli.options import INPUT_FILE, JSON, Target
from es_simhash.cli.output import dry_run_ending, print_json, print_line
from es_simhash.cli.texts import read_text
from es_simhash.errors import InvalidInputError, shorten

EXAMPLES = [
    "es-simhash create news --text-field title --text-field body --max-distance 8",
    "es-simhash create news --text-field body --mappings own.json --settings '{\"number_of_shards\": 3}'",
    "es-simhash create news --existing --text-field body --yes",
    "es-simhash create news --existing --passages --yes && es-simhash backfill news",
]


@click.command(cls=Manual, examples=EXAMPLES)
@click.argument("index")
@options.text_fields
@options.max_distance
@click.option("--existing", is_flag=True, help="Add the fields to an index that exists; needs --yes.")
@click.option("--mappings", metavar="FILE", type=INPUT_FILE, help="JSON file with the mapping of your own fields.")
@click.option("--settings", type=JSON, metavar="JSON", help="Settings of the index, as in '{\"number_of_shards\": 1}'.")
@click.option(
    "--value/--no-value",
    default=None,
    help="Whether documents also hold the fingerprint as a number, which scripts need.",
)
@click.option(
    "--passages/--no-passages",
    default=None,
    help="Whether documents also hold hashes of their passages, which es-simhash passages needs.",
)
@click.option("--dry-run", is_flag=True, help="Without --existing: say what would be created, and create nothing.")
@click.option(
    "-y", "--yes", is_flag=True, help="With --existing: do it. Without --yes the command says what it would do."
)
@options.scheme
@options.target
@options.as_json
def command(
    index: str,
    text_fields: tuple[str, ...],
    max_distance: int | None,
    mappings: str | None,
    settings: Any,
    target: Target,
    *,
    existing: bool,
    dry_run: bool,
    yes: bool,
    value: bool | None,
    passages: bool | None,
    as_json: bool,
) -> None:
    """
    Create INDEX with the fields, or add the fields to it.

    The mapping records the scheme, the text fields and the distance, so that other commands know them. Documents
    that are already in the index have no fingerprint until you run es-simhash backfill. With --existing what is not
    given stays as the mapping records it, and what is given takes its place.
    """
    if existing and (mappings or settings is not None):
        raise click.UsageError("--mappings and --settings are for a new index: leave them out with --existing")
    if dry_run if existing else yes:
        raise click.UsageError("--dry-run is for a new index, and --yes goes with --existing")
    own = None if mappings is None else _read_mappings(mappings)
    with connect(target, index) as connection:
        if existing:
            changed = connection.simhash.put_mapping(
                index,
                text_field=text_fields,
                max_distance=max_distance,
                value=value,
                passages=passages,
                dry_run=not yes,
            )
            report: dict[str, Any] = {"changed": changed} if yes else {"would_change": changed}
            line = f"{'added the fields' if yes else 'would add the fields'} to {', '.join(changed)}"
            line += "" if yes else f"{_recorded(text_fields, max_distance)}; nothing changed, pass --yes to do it"
        else:
            made = connection.simhash.create_index(
                index,
                text_field=text_fields,
                max_distance=max_distance,
                value=value is not False,
                passages=bool(passages),
                mappings=own,
                settings=settings,
                dry_run=dry_run,
            )
            if dry_run and connection.client.indices.exists(index=index):
                raise InvalidInputError(f"index {shorten(index)} exists: add the fields to it with --existing")
            report = {"would_create" if dry_run else "created": index, "dry_run": dry_run, **made.to_dict()}
            line = f"{'would create' if dry_run else 'created'} {index}, scheme {made.scheme}"
            line += dry_run_ending(is_dry=dry_run)
    if as_json:
        print_json(report)
    else:
        print_line(line)


def _recorded(text_fields: tuple[str, ...], max_distance: int | None) -> str:
    """Return what would be recorded, of what is given."""
    parts = [f"the text fields {', '.join(text_fields)}"] if text_fields else []
    parts += [] if max_distance is None else [f"the distance {max_distance}"]
    return f", and record {' and '.join(parts)}" if parts else ""


def _read_mappings(path: str) -> dict[str, Any]:
    try:
        mapping = json.loads(read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidInputError(
            f"{shorten(path)} is not JSON ({error}): give a mapping, as GET INDEX/_mapping shows it"
        ) from error
    # People have two forms: what goes below "mappings", and a body with that key.
    if isinstance(mapping, dict) and isinstance(mapping.get("mappings"), dict):
        mapping = mapping["mappings"]
    if not isinstance(mapping, dict):
        raise InvalidInputError(f'{shorten(path)} is not a mapping: give {{"properties": ...}}')
    return mapping
