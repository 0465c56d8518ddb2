"""
``es-simhash mapping``: mapping, templates and Dev Tools text, to read, to store or to paste.

The files in ``mappings/`` are what this prints (``make mappings``).
"""

from __future__ import annotations

import json
from typing import Any

import click

from es_simhash.cli.manual import Manual
from es_simhash.cli.output import print_json, print_line
from es_simhash.cli.shared_options import (
    PRODUCTS,
    json_option,
    max_distance_option,
    prefix_option,
    scheme_options,
    text_field_option,
)
from es_simhash.hashing import DEFAULT_SCHEME, Scheme
from es_simhash.index.mapping import build_component_template, build_index_template, build_mapping

__all__ = ["COMPONENT", "build_console_text", "command"]

COMPONENT = "es-simhash"

_TOOLS = {"elasticsearch": "Kibana: Management, Dev Tools", "opensearch": "OpenSearch Dashboards: Dev Tools"}

_NEW = "# A new index with the fields; put your own fields beside them."
_TEMPLATES = "# Or every new index of a pattern, through templates."
_EXISTING = """\
# Or add the fields to an index that exists. This replaces its _meta: if it has one, merge the two first,
# as 'es-simhash create --existing' does."""


EXAMPLES = [
    "es-simhash mapping --text-field body",
    "es-simhash mapping --component-template",
    "es-simhash mapping --index-template 'news-*'",
    "es-simhash mapping --console --product opensearch",
]


@click.command(cls=Manual, examples=EXAMPLES)
@click.option("--component-template", is_flag=True, help="Print a component template with the mapping.")
@click.option(
    "--index-template",
    "patterns",
    metavar="PATTERN",
    multiple=True,
    help="Print an index template for names like PATTERN, with the component template. Repeatable.",
)
@click.option("--console", is_flag=True, help="Print all of it as text to paste into Dev Tools.")
@click.option(
    "--product",
    type=click.Choice(PRODUCTS),
    envvar="ES_SIMHASH_PRODUCT",
    default="elasticsearch",
    show_default=True,
    help="Whose Dev Tools; the JSON is the same for both.",
)
@click.option("--index", metavar="NAME", default="my-index", show_default=True, help="Index in the Dev Tools text.")
@click.option("--name", metavar="NAME", default=COMPONENT, show_default=True, help="Name of the component template.")
@text_field_option
@max_distance_option
@click.option("--value/--no-value", default=True, show_default=True, help="Map the signed copy that scripts read.")
@scheme_options
@prefix_option
@json_option
def command(
    patterns: tuple[str, ...],
    product: str,
    index: str,
    name: str,
    text_fields: tuple[str, ...],
    max_distance: int | None,
    scheme: Scheme | str | None,
    prefix: str,
    *,
    component_template: bool,
    console: bool,
    value: bool,
    as_json: bool,
) -> None:
    """
    Print the mapping, templates or Dev Tools text, without asking a server.

    The mapping holds our fields, and in _meta the scheme that fills them; your own fields go beside them. es-simhash
    create sends it for you.
    """
    if component_template + bool(patterns) + console > 1 and not (console and patterns):
        raise click.UsageError("give one of --component-template, --index-template and --console")
    options: dict[str, Any] = {
        "scheme": scheme or DEFAULT_SCHEME,
        "prefix": prefix,
        "text_field": text_fields,
        "max_distance": max_distance,
        "value": value,
    }
    if console:
        print_line(build_console_text(product, index=index, patterns=patterns, name=name, **options))
        return
    if component_template:
        shown = build_component_template(**options)
    elif patterns:
        shown = build_index_template(patterns, component=name)
    else:
        shown = build_mapping(**options)
    print_json(shown, indent=None if as_json else 2)


def build_console_text(
    product: str, *, index: str = "my-index", patterns: tuple[str, ...] = (), name: str = COMPONENT, **options: Any
) -> str:
    """
    Return Dev Tools text that makes an index, adds the fields to one that exists, and stores the templates.

    Args:
        product:
            ``"elasticsearch"`` or ``"opensearch"``.
        index:
            Name of the index.
        patterns:
            Patterns of the index template; by default the index's name and whatever follows it.
        name:
            Name of the component template.
        options:
            As for ``build_mapping``.
    """
    mapping = build_mapping(**options)
    template = build_index_template(list(patterns) or [f"{index}-*"], component=name)
    parts: list[tuple[str, str, Any]] = [
        (_NEW, f"PUT {index}", {"mappings": mapping}),
        (_TEMPLATES, f"PUT _component_template/{name}", build_component_template(**options)),
        ("", f"PUT _index_template/{name}", template),
        (_EXISTING, f"PUT {index}/_mapping", mapping),
        ("# What an index says of its fingerprints.", f"GET {index}/_mapping", None),
    ]
    texts = [f"# {_TOOLS[product]}"]
    for comment, request, body in parts:
        lines = [comment] if comment else []
        lines.append(request)
        if body is not None:
            lines.append(json.dumps(body, ensure_ascii=False, indent=2))
        texts.append("\n".join(lines))
    return "\n\n".join(texts)
