"""``es-simhash create`` and ``remove-fields``: the fields of an index, put in and taken out."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click

from es_simhash import InvalidInputError, PairRule
from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.input_files import read_text
from es_simhash.cli.options import Target
from es_simhash.cli.output import count, dry_run_ending, failures_as_json, note, print_failures, print_json, print_line
from es_simhash.cli.parameter_types import INPUT_FILE, JSON
from es_simhash.cli.stopping import say_if_stopped
from es_simhash.errors import shorten


@options.manual(
    "es-simhash create news --text-field title --text-field body --max-distance 8",
    "es-simhash create news --text-field body --mappings own.json --settings '{\"number_of_shards\": 3}'",
    "es-simhash create news --existing --text-field body --yes",
    "es-simhash create news --existing --passages --yes && es-simhash backfill news",
)
@click.argument("index")
@options.text_field
@options.max_distance
@click.option("--existing", is_flag=True, help="Add the fields to an index that exists; needs --yes.")
@click.option("--mappings", metavar="FILE", type=INPUT_FILE, help="JSON file with the mapping of your own fields.")
@click.option("--settings", type=JSON, metavar="JSON", help="Settings of the index, as in '{\"number_of_shards\": 1}'.")
@options.value_option(default=None)
@options.passages
@click.option("--dry-run", is_flag=True, help="Without --existing: say what would be created, and create nothing.")
@options.yes_for("--existing")
@options.scheme
@options.target
def command(
    index: str,
    mappings: str | None,
    settings: Any,
    target: Target,
    *,
    existing: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **how: Any,
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
            changed = connection.simhash.put_mapping(index, dry_run=not yes, **how)
            report: dict[str, Any] = {"changed": changed} if yes else {"would_change": changed}
            line = f"{'added the fields' if yes else 'would add the fields'} to {', '.join(changed)}"
            line += "" if yes else f"{_recorded(**how)}; nothing changed, pass --yes to do it"
        else:
            how |= {"value": how["value"] is not False, "passages": bool(how["passages"])}
            made = connection.simhash.create_index(index, mappings=own, settings=settings, dry_run=dry_run, **how)
            if dry_run and connection.client.indices.exists(index=index):
                raise InvalidInputError(f"index {shorten(index)} exists: add the fields to it with --existing")
            report = {"would_create" if dry_run else "created": index, "dry_run": dry_run, **made.to_dict()}
            line = f"{'would create' if dry_run else 'created'} {index}, scheme {made.scheme}"
            line += dry_run_ending(is_dry=dry_run)
    if as_json:
        print_json(report)
    else:
        print_line(line)
    if how["max_distance"] is not None and (missed := PairRule(how["max_distance"]).misses):
        note(f"the index records {count(how['max_distance'], 'bit')}: {missed}")


def _recorded(*, text_field: tuple[str, ...], max_distance: int | None, **_: Any) -> str:
    parts = [f"the text fields {', '.join(text_field)}"] if text_field else []
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


@options.manual(
    "es-simhash remove-fields news",
    "es-simhash remove-fields news --groups-only --yes",
    "es-simhash remove-fields news --prefix body_hash --yes",
)
@click.argument("index")
@click.option("--groups-only", is_flag=True, help="Remove only the group fields and the recorded grouping.")
@options.yes
@options.target
def remove_fields(index: str, target: Target, *, groups_only: bool, yes: bool, as_json: bool) -> int:
    """
    Remove the fields from each document of INDEX, and from the _meta of its mapping.

    Your own fields stay. The mapping keeps our fields, without values, because no server can remove a field from a
    mapping. With --groups-only the fingerprints stay: that undoes what reconcile has written.
    """
    with connect(target, index) as connection, say_if_stopped():
        removed = connection.simhash.remove_fields(index, groups_only=groups_only, dry_run=not yes)
    if as_json:
        print_json(asdict(removed) | {"failures": failures_as_json(removed.failures)})
    else:
        what = "the groups" if groups_only else repr(target.prefix)
        where = f", and from _meta in the mapping of {', '.join(removed.indices)}" if removed.indices else ""
        done, hint = ("removed", "") if yes else ("would remove", "; nothing changed, pass --yes to do it")
        print_line(f"{done} {what} from {count(removed.documents, 'document')}{where}{hint}")
    print_failures(removed.failures)
    return 1 if removed.failures else 0
