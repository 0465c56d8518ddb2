"""``es-simhash passages``: the documents that share passages with a text or a document."""

from __future__ import annotations

from typing import Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.options import Target
from es_simhash.cli.output import count, print_json, print_line, warn
from es_simhash.cli.records import read_text_argument
from es_simhash.cli.tables import print_table
from es_simhash.errors import IncompleteSearchError
from es_simhash.passages.found import Overlap, Overlaps


@options.manual(
    "es-simhash passages news --file article.txt",
    "es-simhash passages mails --id 4711 --min-contained 0.9",
    "es-simhash passages news - --min-run 120 --json <page.txt",
)
@click.argument("index")
@click.argument("text", required=False)
@options.text_file
@options.document_id
@options.routing
@options.share(
    "--min-contained", default=0.8, help="Report documents that contain this share of the text, or the reverse."
)
@options.number(
    "--min-run",
    least=100,
    metavar="LETTERS",
    default=200,
    help="Report documents that share a run of so many letters; a Chinese character counts 2.5.",
)
@options.number("--size", help="Return N documents at most. Default: all.")
@options.filter_query
@options.scheme
@options.target
def command(
    index: str,
    text: str | None,
    file: str | None,
    document_id: str | None,
    target: Target,
    *,
    as_json: bool,
    **how: Any,
) -> int:
    """
    Find the documents of INDEX that share passages with TEXT: quotes, excerpts, texts inside texts.

    INDEX may be a name, an alias, a pattern, or several of them separated by commas; it needs passages (es-simhash
    create --passages). If TEXT is -, the text comes from stdin. Places are in characters, counted from 0.
    """
    if sum(given is not None for given in (text, file, document_id)) != 1:
        raise click.UsageError("pass exactly one of TEXT, --file and --id")
    content = None if document_id is not None else read_text_argument(text, file)
    with connect(target, index) as connection:
        try:
            if document_id is not None:
                found = connection.simhash.find_passages_of(index, document_id, **how)
            else:
                found = connection.simhash.find_passages(index, content or "", **how)
        except IncompleteSearchError as failure:
            if failure.results is not None and (as_json or failure.results):
                _print(failure.results, as_json=as_json)
            raise
    _print(found, as_json=as_json)
    return 0


def _print(found: Overlaps, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "overlaps": [each.to_dict() for each in found],
                "complete": found.complete,
                "min_contained": found.min_contained,
                "min_run": found.min_run,
                "candidates": found.candidates,
                "stale": list(found.stale),
            }
        )
        return
    if found:
        names = ["#contained", "#contains", "#similarity", "id", "index", "#passages", "#longest"]
        print_table(names, list(map(_row, found)), title=f"{count(len(found), 'document')} with shared passages")
    else:
        print_line("no documents with shared passages")
    for line in found.stale:
        warn(line)


def _row(each: Overlap) -> list[object]:
    longest = max((passage.end - passage.start for passage in each.passages), default=0)
    shares = [f"{share:.3f}" for share in (each.contained, each.contains, each.similarity)]
    return [*shares, each.id, each.index, len(each.passages), longest]
