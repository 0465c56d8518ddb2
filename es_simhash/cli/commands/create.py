"""
``es-simhash create``: an index with the fields, or the fields in an index that exists.
"""

from __future__ import annotations

import json
from typing import Any

import click

from es_simhash.cli.connect import connect
from es_simhash.cli.manual import Manual
from es_simhash.cli.output import print_json, print_line
from es_simhash.cli.shared_options import (
    JSON,
    Server,
    json_option,
    max_distance_option,
    prefix_option,
    scheme_options,
    server_options,
    text_field_option,
)
from es_simhash.cli.texts import read_text
from es_simhash.errors import InvalidInputError
from es_simhash.hashing import Scheme

EXAMPLES = [
    "es-simhash create news --text-field title --text-field body --max-distance 8",
    "es-simhash create news --text-field body --mappings own.json --settings '{\"number_of_shards\": 3}'",
    "es-simhash create news --existing --text-field body",
]


@click.command(cls=Manual, examples=EXAMPLES)
@click.argument("index")
@text_field_option
@max_distance_option
@click.option("--existing", is_flag=True, help="Add the fields to an index that exists, instead.")
@click.option(
    "--mappings",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    help="JSON file with the mapping of your own fields.",
)
@click.option("--settings", type=JSON, metavar="JSON", help="Index settings, as in '{\"number_of_shards\": 1}'.")
@click.option("--value/--no-value", default=None, help="Whether documents carry the signed copy that scripts read.")
@scheme_options
@prefix_option
@server_options
@json_option
def command(
    index: str,
    text_fields: tuple[str, ...],
    max_distance: int | None,
    mappings: str | None,
    settings: Any,
    scheme: Scheme | str | None,
    prefix: str,
    server: Server,
    *,
    existing: bool,
    value: bool | None,
    as_json: bool,
) -> None:
    """
    Create INDEX with the fields, or add them to it.

    The mapping records the scheme, the text fields and the distance, so that no later command needs them. Documents
    that are in an index already have no fingerprint until they are written again.
    """
    if existing and (mappings or settings is not None):
        raise click.UsageError("--mappings and --settings are for a new index: leave them out with --existing")
    with connect(server, index, prefix=prefix) as connection:
        if existing:
            changed = connection.simhash.put_mapping(
                index, scheme=scheme, text_field=text_fields, max_distance=max_distance, value=value
            )
            report: dict[str, Any] = {"changed": changed}
            line = f"added the fields to {', '.join(changed)}"
        else:
            made = connection.simhash.create_index(
                index,
                scheme=scheme,
                text_field=text_fields,
                max_distance=max_distance,
                value=value is not False,
                mappings=_read_mappings(mappings),
                settings=settings,
            )
            report = {"created": index, **made.to_dict()}
            line = f"created {index}, scheme {made.scheme}"
    if as_json:
        print_json(report)
    else:
        print_line(line)


def _read_mappings(path: str | None) -> dict[str, Any] | None:
    if path is None:
        return None
    try:
        mapping = json.loads(read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidInputError(
            f"{path} is not JSON ({error}): give a mapping, as GET INDEX/_mapping shows it"
        ) from error
    # Both forms are at hand: what goes below "mappings", and a body with that key.
    if isinstance(mapping, dict) and isinstance(mapping.get("mappings"), dict):
        mapping = mapping["mappings"]
    if not isinstance(mapping, dict):
        raise InvalidInputError(f'{path} is no mapping: give {{"properties": ...}}')
    return mapping
