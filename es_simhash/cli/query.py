"""
``es-simhash query``: the search that finds the candidates, to read or to paste.
"""

from __future__ import annotations

import json
from typing import Any

import click

from es_simhash.cli.manual import Manual
from es_simhash.cli.options import (
    FINGERPRINT,
    filter_option,
    json_option,
    max_distance_option,
    prefix_option,
    scheme_options,
)
from es_simhash.cli.output import note, print_json, print_line
from es_simhash.cli.texts import STDIN, read_text
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.hashing import DEFAULT_SCHEME, Scheme, fingerprint as compute_fingerprint, to_hex
from es_simhash.index.plan import DEFAULT_MAX_DISTANCE, Landscape, Limits, plan_lookup
from es_simhash.index.query import build_query

_SOME_DOCUMENTS = 1_000_000


EXAMPLES = [
    'es-simhash query "the quick brown fox" --max-distance 8',
    "es-simhash query --fingerprint 0123456789abcdef --console --index news",
    "es-simhash query - <a.txt | curl -sXPOST localhost:9200/news/_search -Hcontent-type:application/json -d@-",
]


@click.command(cls=Manual, examples=EXAMPLES)
@click.argument("text", required=False)
@click.option("--fingerprint", type=FINGERPRINT, metavar="HEX", help="Look for this fingerprint, instead of a text.")
@click.option(
    "--file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    help="Look for the text of this file.",
)
@max_distance_option
@click.option(
    "--size", type=click.IntRange(1, 10_000), default=1_000, show_default=True, help="Most candidates on the page."
)
@filter_option
@click.option("--exclude-id", "exclude_ids", metavar="ID", multiple=True, help="Leave this document out. Repeatable.")
@click.option(
    "--documents",
    type=click.IntRange(min=1),
    default=_SOME_DOCUMENTS,
    show_default=True,
    help="Number of documents in the index, which decides what is cheapest.",
)
@click.option(
    "--scripts/--no-scripts", default=True, show_default=True, help="Whether the server may run a script on candidates."
)
@click.option("--console", is_flag=True, help="Print text to paste into Dev Tools of Kibana or Dashboards.")
@click.option("--index", metavar="NAME", default="my-index", show_default=True, help="Index in the Dev Tools text.")
@scheme_options
@prefix_option
@json_option
def command(
    text: str | None,
    fingerprint: int | None,
    file: str | None,
    max_distance: int | None,
    size: int,
    filter_query: Any,
    exclude_ids: tuple[str, ...],
    documents: int,
    index: str,
    scheme: Scheme | str | None,
    prefix: str,
    *,
    scripts: bool,
    console: bool,
    as_json: bool,
) -> None:
    """
    Print the search for a text or fingerprint, without asking a server.

    Where the lookup plan ends in "+ script", the hits are the near-duplicates. Otherwise they are candidates: a
    near-duplicate is one whose fingerprint (in fields) is within --max-distance bits, as es-simhash distance tells.
    The scheme must be the index's own: es-simhash check names it.
    """
    if sum(given is not None for given in (text, fingerprint, file)) != 1:
        raise click.UsageError("give one of TEXT, --file and --fingerprint")
    if console and as_json:
        raise click.UsageError("give --console or --json, not both")
    if fingerprint is None:
        name = file or text or ""
        content = read_text(name) if file is not None or text == STDIN else name
        fingerprint = compute_fingerprint(content, scheme=scheme or DEFAULT_SCHEME)
        if fingerprint is None:
            raise InvalidInputError(f"text {shorten(content)} has no features, so nothing can be near it: give another")
    distance = DEFAULT_MAX_DISTANCE if max_distance is None else max_distance
    plan = plan_lookup(distance, landscape=Landscape(documents=documents), limits=Limits(scripts=scripts))
    body = build_query(
        fingerprint,
        max_distance=distance,
        filter=filter_query,
        exclude_ids=exclude_ids,
        prefix=prefix,
        plan=plan,
        size=size,
    )
    if console:
        print_line(f"# fingerprint {to_hex(fingerprint)}, max_distance {distance}, lookup plan {plan.name}")
        print_line(f"GET {index}/_search\n{json.dumps(body, ensure_ascii=False, indent=2)}")
    else:
        note(f"fingerprint {to_hex(fingerprint)}, max_distance {distance}, lookup plan {plan.name}")
        print_json(body, indent=None if as_json else 2)
