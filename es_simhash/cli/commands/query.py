"""
``es-simhash query``: the search that finds the candidates, to read or to paste.
"""

from __future__ import annotations

from typing import Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.manual import Manual
from es_simhash.cli.options import FINGERPRINT, Target
from es_simhash.cli.output import note, print_json, print_text, to_json, visible
from es_simhash.cli.texts import read_text_argument
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
@click.option("--fingerprint", type=FINGERPRINT, metavar="HEX", help="Search for this fingerprint.")
@options.text_file
@click.option("--id", "document_id", metavar="ID", help="Search for this document of --index.")
@options.max_distance
@click.option(
    "--size",
    type=click.IntRange(1, 10_000),
    default=1_000,
    show_default=True,
    metavar="N",
    help="Largest number of candidates in the answer.",
)
@options.filter_query
@click.option("--exclude-id", "exclude_ids", metavar="ID", multiple=True, help="Leave this document out. Repeatable.")
@click.option(
    "--documents",
    type=click.IntRange(min=1),
    default=_SOME_DOCUMENTS,
    show_default=True,
    metavar="N",
    help="Number of documents in the index. The cheapest plan depends on it.",
)
@click.option("--scripts/--no-scripts", default=True, show_default=True, help="Whether the query may use a script.")
@click.option(
    "--plans",
    type=click.IntRange(min=1),
    metavar="N",
    default=1,
    show_default=True,
    help="Print the N cheapest lookup plans, the cheapest first.",
)
@click.option("--console", is_flag=True, help="Print text to paste into Dev Tools of Kibana or Dashboards.")
@click.option(
    "--index",
    metavar="NAME",
    default="my-index",
    show_default=True,
    help="Name of the index in the Dev Tools text, and of the index that --id is about.",
)
@options.scheme
@options.target
@options.as_json
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
    target: Target,
    *,
    scripts: bool,
    console: bool,
    as_json: bool,
) -> None:
    """
    Print the search for a text, a fingerprint or a document, for either product.

    If the lookup plan ends in "+ script", the hits are the near-duplicates. Otherwise the hits are candidates: a
    candidate is a near-duplicate if its fingerprint (in fields) is within --max-distance bits, which es-simhash
    distance computes. The scheme must be the one of the index; es-simhash check prints it. The command needs a server
    only for --id with a --max-distance above 3; up to 3 the search reads the block terms of the stored document.
    """
    if sum(given is not None for given in (text, fingerprint, file, document_id)) != 1:
        raise click.UsageError("pass exactly one of TEXT, --file, --fingerprint and --id")
    if console and as_json:
        raise click.UsageError("pass --console or --json, not both")
    if plans > 1 and not console:
        raise click.UsageError("--plans needs --console: without it the output is one search")
    distance = DEFAULT_MAX_DISTANCE if max_distance is None else max_distance
    arguments: dict[str, Any] = {
        "max_distance": distance,
        "filter": filter_query,
        "exclude_ids": exclude_ids,
        "prefix": target.prefix,
        "size": size,
    }
    if document_id is not None and distance <= LOOKUP_BY_ID_DISTANCE and plans == 1:
        what = f"document {to_json(document_id)}, max_distance {distance}, terms lookup"
        searches = [(what, build_query_of(document_id, index=index, **arguments))]
    else:
        if document_id is not None:
            with connect(target, index) as connection:
                fingerprint = connection.simhash.get_fingerprint(index, document_id)
        elif fingerprint is None:
            fingerprint = _fingerprint(read_text_argument(text, file), target.scheme)
        estimates = explain_plan(distance, stats=IndexStats(documents=documents), limits=Limits(scripts=scripts))
        searches = [
            (
                f"fingerprint {to_hex(fingerprint)}, max_distance {distance}, {_describe(each)}",
                build_query(fingerprint, plan=each.plan, **arguments),
            )
            for each in estimates[:plans]
        ]
    for what, body in searches:
        if console:
            print_text(f"# {what}\nGET {visible(index)}/_search\n{to_json(body, indent=2)}")
        else:
            note(what)
            print_json(body, indent=None if as_json else 2)


def _fingerprint(text: str, scheme: Scheme | str | None) -> int:
    found = compute_fingerprint(text, scheme=scheme or DEFAULT_SCHEME)
    if found is None:
        raise InvalidInputError(
            f"text {shorten(text)} has no features, so it has no near-duplicates: give a text with letters or digits"
        )
    return found


def _describe(estimate: PlanEstimate) -> str:
    plan = estimate.plan
    return f"lookup plan {plan.name} ({plan.terms:,} terms, about {estimate.hits:,.0f} candidates)"
