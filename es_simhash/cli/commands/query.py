"""
``es-simhash query``: the searches that find the candidates, to read or to paste.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from es_simhash.cli.connect import connect
from es_simhash.cli.manual import Manual
from es_simhash.cli.output import note, print_json, print_line
from es_simhash.cli.shared_options import (
    FINGERPRINT,
    Server,
    filter_option,
    json_option,
    max_distance_option,
    prefix_option,
    scheme_options,
    server_options,
)
from es_simhash.cli.texts import STDIN, read_text
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.hashing import DEFAULT_SCHEME, Scheme, fingerprint as compute_fingerprint, to_hex
from es_simhash.index.explain_plan import explain_plan
from es_simhash.index.plan import DEFAULT_MAX_DISTANCE, LOOKUP_BY_ID_DISTANCE, Limits
from es_simhash.index.plan_cost import IndexStats, PlanEstimate
from es_simhash.index.query import build_query, build_query_of

_SOME_DOCUMENTS = 1_000_000

EXAMPLES = [
    'es-simhash query "the quick brown fox" --max-distance 8',
    "es-simhash query --fingerprint 0123456789abcdef --console --index news",
    "es-simhash query --id 4711 --console --index news",
    "es-simhash query --fingerprint 0123456789abcdef --max-distance 10 --plans 3 --no-scripts --console",
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
@click.option("--id", "document_id", metavar="ID", help="Look for this document of --index.")
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
@click.option(
    "--plans",
    type=click.IntRange(min=1),
    metavar="NUMBER",
    default=1,
    show_default=True,
    help="Print this many lookup plans, the cheapest first.",
)
@click.option("--console", is_flag=True, help="Print text to paste into Dev Tools of Kibana or Dashboards.")
@click.option("--index", metavar="NAME", default="my-index", show_default=True, help="Index in the Dev Tools text.")
@scheme_options
@prefix_option
@server_options
@json_option
def command(
    text: str | None,
    fingerprint: int | None,
    file: str | None,
    document_id: str | None,
    max_distance: int | None,
    size: int,
    filter_query: Any,
    exclude_ids: tuple[str, ...],
    documents: int,
    plans: int,
    index: str,
    scheme: Scheme | str | None,
    prefix: str,
    server: Server,
    *,
    scripts: bool,
    console: bool,
    as_json: bool,
) -> None:
    """
    Print the search for a text, a fingerprint or a document, for either product.

    Where the lookup plan ends in "+ script", the hits are the near-duplicates. Otherwise they are candidates: a
    near-duplicate is one whose fingerprint (in fields) is within --max-distance bits, as es-simhash distance tells.
    The scheme must be the index's own: es-simhash check names it. No server is asked, but for --id with a
    --max-distance above 3: up to there the search takes the block terms from the stored document itself.
    """
    if sum(given is not None for given in (text, fingerprint, file, document_id)) != 1:
        raise click.UsageError("give one of TEXT, --file, --fingerprint and --id")
    if console and as_json:
        raise click.UsageError("give --console or --json, not both")
    if plans > 1 and not console:
        raise click.UsageError("--plans is for --console: the output is one search otherwise")
    distance = DEFAULT_MAX_DISTANCE if max_distance is None else max_distance
    rest: dict[str, Any] = {
        "max_distance": distance,
        "filter": filter_query,
        "exclude_ids": exclude_ids,
        "prefix": prefix,
        "size": size,
    }
    if document_id is not None and distance <= LOOKUP_BY_ID_DISTANCE and plans == 1:
        what = f"document {json.dumps(document_id, ensure_ascii=False)}, max_distance {distance}, terms lookup"
        _print([(what, build_query_of(document_id, index=index, **rest))], index, console=console, as_json=as_json)
        return
    if document_id is not None:
        with connect(server, index, prefix=prefix, scheme=scheme) as connection:
            fingerprint = connection.simhash.get_fingerprint(index, document_id)
    if fingerprint is None:
        fingerprint = _fingerprint(text, file, scheme)
    estimates = explain_plan(distance, stats=IndexStats(documents=documents), limits=Limits(scripts=scripts))
    searches = [
        (
            f"fingerprint {to_hex(fingerprint)}, max_distance {distance}, {_describe(each)}",
            build_query(fingerprint, plan=each.plan, **rest),
        )
        for each in estimates[:plans]
    ]
    _print(searches, index, console=console, as_json=as_json)


def _fingerprint(text: str | None, file: str | None, scheme: Scheme | str | None) -> int:
    name = file or text or ""
    content = read_text(name) if file is not None or text == STDIN else name
    found = compute_fingerprint(content, scheme=scheme or DEFAULT_SCHEME)
    if found is None:
        raise InvalidInputError(f"text {shorten(content)} has no features, so nothing can be near it: give another")
    return found


def _describe(estimate: PlanEstimate) -> str:
    plan = estimate.plan
    return f"lookup plan {plan.name} ({plan.terms:,} terms, about {estimate.hits:,.0f} candidates)"


def _print(searches: Sequence[tuple[str, dict[str, Any]]], index: str, *, console: bool, as_json: bool) -> None:
    for what, body in searches:
        if console:
            print_line(f"# {what}")
            print_line(f"GET {index}/_search\n{json.dumps(body, ensure_ascii=False, indent=2)}")
        else:
            note(what)
            print_json(body, indent=None if as_json else 2)
