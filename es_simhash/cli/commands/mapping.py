"""``es-simhash mapping`` and ``dashboards``: what to paste or import; ``make mappings`` writes some of it, too."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.options import PRODUCTS, Target
from es_simhash.cli.output import error, note, print_json, print_text, to_json, warn
from es_simhash.dashboards import build_dashboards
from es_simhash.dashboards.subject import PackFault, Subject, find_pack_faults
from es_simhash.hashing import DEFAULT_SCHEME, Scheme
from es_simhash.mapping.mapping import build_component_template, build_index_template, build_mapping
from es_simhash.mapping.meta import read_settings

COMPONENT = "es-simhash"

_TOOLS = {"elasticsearch": "Kibana: Management, Dev Tools", "opensearch": "OpenSearch Dashboards: Dev Tools"}

_NEW = "# A new index with the fields; put your own fields beside them."
_TEMPLATES = "# Or the fields in every new index whose name fits a pattern, through templates."
_EXISTING = """\
# Or add the fields to an index that exists. This replaces its _meta: if it has one, merge the two first,
# as 'es-simhash create --existing' does."""


@options.manual(
    "es-simhash mapping --text-field body",
    "es-simhash mapping --component-template",
    "es-simhash mapping --index-template 'news-*'",
    "es-simhash mapping --console --product opensearch",
)
@click.option("--component-template", is_flag=True, help="Print a component template with the mapping.")
@click.option(
    "--index-template",
    "patterns",
    metavar="PATTERN",
    multiple=True,
    help="Print an index template for names that match PATTERN; it uses the component template. Repeatable.",
)
@click.option("--console", is_flag=True, help="Print everything as text to paste into Dev Tools.")
@click.option(
    "--product",
    type=click.Choice(PRODUCTS),
    envvar="ES_SIMHASH_PRODUCT",
    default="elasticsearch",
    help="Product whose Dev Tools the text is for. The JSON is the same for both.",
)
@click.option("--index", metavar="NAME", default="my-index", help="Name of the index in the Dev Tools text.")
@click.option("--name", metavar="NAME", default=COMPONENT, help="Name of the component template.")
@options.text_field
@options.max_distance
@options.value_option(default=True)
@click.option("--passages", is_flag=True, help="Map hashes of passages too, which es-simhash passages needs.")
@click.option("--derived-source", is_flag=True, help="For indices of OpenSearch with derived source, without a marker.")
@options.scheme
@options.prefix
def command(
    patterns: tuple[str, ...],
    product: str,
    index: str,
    name: str,
    scheme: Scheme | str | None,
    *,
    component_template: bool,
    console: bool,
    as_json: bool,
    **how: Any,
) -> None:
    """
    Print the mapping, templates or Dev Tools text. Needs no server.

    The mapping has our fields, and in _meta the scheme that fills them. Put your own fields beside ours. es-simhash
    create sends the mapping for you.
    """
    if component_template + bool(patterns) + console > 1 and not (console and patterns):
        raise click.UsageError("pass only one of --component-template, --index-template and --console")
    how["scheme"] = scheme or DEFAULT_SCHEME
    if console:
        print_text(build_console_text(product, index=index, patterns=patterns, name=name, **how))
        return
    if component_template:
        shown = build_component_template(**how)
    elif patterns:
        shown = build_index_template(patterns, component=name)
    else:
        shown = build_mapping(**how)
    print_json(shown, indent=None if as_json else 2)


def build_console_text(
    product: str, *, index: str = "my-index", patterns: tuple[str, ...] = (), name: str = COMPONENT, **options: Any
) -> str:
    """Return Dev Tools text with all requests; the other options are those of ``build_mapping``."""
    mapping = build_mapping(**options)
    template = build_index_template(list(patterns) or [f"{index}-*"], component=name)
    parts: list[tuple[str, str, Any]] = [
        (_NEW, f"PUT {index}", {"mappings": mapping}),
        (_TEMPLATES, f"PUT _component_template/{name}", build_component_template(**options)),
        ("", f"PUT _index_template/{name}", template),
        (_EXISTING, f"PUT {index}/_mapping", mapping),
        ("# What an index records about its fingerprints.", f"GET {index}/_mapping", None),
    ]
    texts = [f"# {_TOOLS[product]}"]
    for comment, request, body in parts:
        lines = [comment, request, "" if body is None else to_json(body, indent=2)]
        texts.append("\n".join(filter(None, lines)))
    return "\n\n".join(texts)


_ADVICE = {
    "no_index": "check the name",
    "not_mapped": "give another field",
    "no_date": "give a field of type date",
    "no_keyword": "give a field of type keyword",
    "no_doc_values": "give a field with doc values",
}


@options.manual(
    "es-simhash dashboards news --time-field published_at --source-field agency --text-field body > pack.ndjson",
    "es-simhash dashboards 'news-*' --time-field @timestamp --check > pack.ndjson",
    "es-simhash dashboards news --time-field published_at --product kibana > pack.ndjson",
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
def dashboards(index: str, product: str, target: Target, *, check: bool, as_json: bool, **fields: Any) -> int:
    """
    Print saved objects for Kibana 8 and 9 and OpenSearch Dashboards 2 and 3, as NDJSON. Asks no server without --check.

    The pack has a data view of INDEX, saved searches, charts, and two dashboards: all near-duplicates, and one group.
    Import the file under Saved objects, or with POST /api/saved_objects/_import. INDEX may be a name, an alias, a data
    stream, a pattern, or several of them separated by commas.
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


def _ask(subject: Subject, target: Target) -> tuple[Subject, list[PackFault]]:
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


def _advice(fault: PackFault, subject: Subject) -> str:
    if fault.kind == "not_mapped" and fault.field.startswith(f"{subject.prefix}."):
        return "add the fields of es_simhash with es-simhash create INDEX --existing --yes"
    return _ADVICE[fault.kind]
