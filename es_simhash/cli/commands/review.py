"""``es-simhash review``: a plan of removal for people to judge."""

from __future__ import annotations

from pathlib import Path

import click

from es_simhash.cli import options
from es_simhash.cli.manual import Manual
from es_simhash.cli.output import count, note, print_json, print_line
from es_simhash.cli.tables import Lines
from es_simhash.removal.files import refuse_output, write_whole
from es_simhash.removal.review import Review

SHOWN = 20

EXAMPLES = [
    "es-simhash review removal.jsonl",
    "es-simhash review removal.jsonl --limit 200 | less",
    "es-simhash review removal.jsonl --html removal.html",
]


@click.command(cls=Manual, examples=EXAMPLES)
@click.argument("plan", type=click.Path(exists=True, dir_okay=False))
@click.option("--html", type=click.Path(dir_okay=False, writable=True), help="Write a page for a browser to this file.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=SHOWN,
    show_default=True,
    help="Number of removals printed, least similar first. The page has all of them.",
)
@options.as_json
def command(plan: str, html: str | None, limit: int, *, as_json: bool) -> int:
    """
    Show the plan of removal in the file PLAN: how many documents would go, and what stays beside each of them.

    The least similar ones come first, with the words that differ: [-those of the document that goes-] and {+those of
    the one that stays+}. No server is asked, and nothing is removed. With --json the numbers alone are printed.
    """
    review = Review(plan)
    if html is not None:
        refuse_output(html, inputs=[plan], kind="page")
        write_whole(Path(html), review.html())
        if not as_json:
            number = review.summary.total.removals
            said = f"{count(number, 'removal')} {'is' if number == 1 else 'are'} shown in {html}"
            print_line(f"{said}: open it in a browser")
    if as_json:
        print_json(review.to_dict())
    elif html is None:
        with Lines() as lines:
            for line in review.text(limit=limit):
                lines.print(line)
        if (rest := review.summary.total.removals - limit) > 0:
            note(f"{count(rest, 'more removal')}: raise --limit, or write a page with --html FILE")
    return 0
