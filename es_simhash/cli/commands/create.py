"""
``es-simhash create``: a new index with the fields, or the fields in an index that exists.
"""

from __future__ import annotations

import json
from typing import Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.manual import Manual
from es_simhash.cli.options import INPUT_FILE, JSON, Target
from es_simhash.cli.output import print_json, print_line
from es_simhash.cli.texts import read_text
from es_simhash.errors import InvalidInputError, shorten

EXAMPLES = [
    "es-simhash create news --text-field title --text-field body --max-distance 8",
    "es-simhash create news --text-field body --mappings own.json --settings '{\"number_of_shards\": 3}'",
    "es-simhash create news --existing --text-field body",
    "es-simhash create news --existing --passages && es-simhash backfill news",
]


@click.command(cls=Manual, examples=EXAMPLES)
@click.argument("index")
@options.text_fields
@options.max_distance
@click.option("--existing", is_flag=True, help="Add the fields to an index that exists.")
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
    value: bool | None,
    passages: bool | None,
    as_json: bool,
) -> None:
    """
    Create INDEX with the fields, or add the fields to it.

    The mapping records the scheme, the text fields and the distance, so that other commands know them. Documents
    that are already in the index have no fingerprint until you run es-simhash backfill.
    """
    if existing and (mappings or settings is not None):
        raise click.UsageError("--mappings and --settings are for a new index: leave them out with --existing")
    own = None if mappings is None else _read_mappings(mappings)
    with connect(target, index) as connection:
        if existing:
            changed = connection.simhash.put_mapping(
                index, text_field=text_fields, max_distance=max_distance, value=value, passages=passages
            )
            report: dict[str, Any] = {"changed": changed}
            line = f"added the fields to {', '.join(changed)}"
        else:
            made = connection.simhash.create_index(
                index,
                text_field=text_fields,
                max_distance=max_distance,
                value=value is not False,
                passages=bool(passages),
                mappings=own,
                settings=settings,
            )
            report = {"created": index, **made.to_dict()}
            line = f"created {index}, scheme {made.scheme}"
    if as_json:
        print_json(report)
    else:
        print_line(line)


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
