"""``es-simhash dashboards``: saved objects, to import."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.options import Target
from es_simhash.cli.output import error, note, print_json, warn
from es_simhash.dashboards import build_dashboards
from es_simhash.dashboards.subject import Subject, find_pack_faults
from es_simhash.mapping.meta import read_settings
from es_simhash.mapping.user_fields import FieldFault

_ADVICE = {
    "no_index": "check the name",
    "not_mapped": "give another field",
    "no_date": "give a field of type date",
    "no_keyword": "give a field of type keyword",
    "no_doc_values": "give a field with doc values",
}


@options.manual(
    "es-simhash dashboards news --time-field published --source-field agency --text-field body --check > pack.ndjson",
    "es-simhash dashboards 'news-*' --time-field @timestamp --check > pack.ndjson",
    "es-simhash dashboards news --time-field published --product kibana --check > pack.ndjson",
)
@click.argument("index")
@options.time_field
@options.source_field
@click.option("-t", "--text-field", metavar="FIELD", help="Field whose text is shown.")
@click.option(
    "--product",
    type=click.Choice(["any", "kibana"]),
    default="any",
    help="Product that the pack is for: any makes one for all; kibana adds Lens panels, which Dashboards refuses.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Ask the server whether these fields are mapped as the panels need them. Without --text-field the pack then "
    "shows the text field that the index records.",
)
@options.target_of_any_product
def command(index: str, product: str, target: Target, *, check: bool, as_json: bool, **fields: Any) -> int:
    """
    Print saved objects for Kibana 8 and 9 and OpenSearch Dashboards 2 and 3, as NDJSON. Asks no server without --check.

    The pack has a data view of INDEX, saved searches, charts, and two dashboards: all near-duplicates, and one group.
    Import the file under Saved objects, or with POST /api/saved_objects/_import, whose successCount must be the number
    of lines: the status 200 does not tell. INDEX may be a name, an alias, a data stream, a pattern, or several of them
    separated by commas.
    """
    del as_json  # the pack is JSON anyway, and messages look at the command line
    subject = Subject(index, **fields, prefix=target.prefix)
    if check:
        subject, faults = _ask(subject, target)
        for fault in faults:
            (error if fault.is_fatal else warn)(f"{fault}: {_advice(fault, subject)}", **asdict(fault))
        if any(fault.is_fatal for fault in faults):
            return 1
    for each in build_dashboards(**asdict(subject), product=None if product == "any" else product):
        print_json(each)
    return 0


def _ask(subject: Subject, target: Target) -> tuple[Subject, list[FieldFault]]:
    """Return the subject, with the recorded text field where none is given, and what is wrong with its fields."""
    with connect(target, subject.index) as connection:
        answer: Any = connection.client.indices.get_mapping(index=subject.index)
    mappings = {name: dict(each.get("mappings") or {}) for name, each in dict(answer).items()}
    if subject.text_field is None:
        recorded = (read_settings(mapping, prefix=subject.prefix) for mapping in mappings.values())
        names = [each.text_fields[0] for each in recorded if each and each.text_fields]
        if names:
            note(f"the pack shows the text field {names[0]}, which the index records")
            subject = replace(subject, text_field=names[0])
    return subject, find_pack_faults(subject, mappings)


def _advice(fault: FieldFault, subject: Subject) -> str:
    if fault.kind == "not_mapped" and fault.field.startswith(f"{subject.prefix}."):
        return "add the fields of es_simhash with es-simhash create INDEX --existing --yes"
    return _ADVICE[fault.kind]
