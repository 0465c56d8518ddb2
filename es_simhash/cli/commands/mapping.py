"""``es-simhash mapping``: mapping and templates, as JSON or Dev Tools text; ``make mappings`` writes them, too."""

from __future__ import annotations

from typing import Any

import click

from es_simhash.cli import options
from es_simhash.cli.options import PRODUCTS
from es_simhash.cli.output import print_json, print_text, to_json
from es_simhash.hashing import DEFAULT_SCHEME, Scheme
from es_simhash.mapping.mapping import build_component_template, build_index_template, build_mapping

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
