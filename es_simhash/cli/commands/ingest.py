"""
``es-simhash ingest``: documents from files into an index, with their fingerprints.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from typing import IO, Any, Literal

import click

from es_simhash.cli import options
from es_simhash.cli.bulk_actions import to_action
from es_simhash.cli.connect import Connection, connect
from es_simhash.cli.grouping_options import grouping as grouping_option
from es_simhash.cli.manual import Manual
from es_simhash.cli.options import INPUT_FILE, Target
from es_simhash.cli.output import note
from es_simhash.cli.progress import Tracker
from es_simhash.cli.records import Format, Reader, Record
from es_simhash.cli.tally import Tally
from es_simhash.errors import InvalidInputError
from es_simhash.removal.own_records import refuse_own_record

EXAMPLES = [
    "es-simhash ingest news news.jsonl.gz --create --text-field body --id-field url",
    "es-simhash ingest news part-*.csv --report report.jsonl",
    "es-simhash ingest news crawl.jsonl --on-duplicate skip --max-distance 8 --report report.jsonl",
    "zcat dump.gz | es-simhash ingest news - --limit 1000",
]


@click.command(cls=Manual, examples=EXAMPLES)
@click.argument("index")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=INPUT_FILE)
@click.option("--id-field", metavar="FIELD", help="Field that holds the id. Default: _id, else the server makes an id.")
@options.text_fields
@options.format_
@click.option("--create", is_flag=True, help="Create the index if it does not exist; needs --text-field.")
@click.option(
    "--on-duplicate",
    type=click.Choice(["tag", "skip", "replace", "none"]),
    default="tag",
    show_default=True,
    help="tag: record the canonical in a near-duplicate; skip: do not write it; replace: make it the canonical; "
    "none: do not search for near-duplicates.",
)
@grouping_option
@click.option("--content-ids", is_flag=True, help="Make missing ids from the content, so that a rerun adds nothing.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after N lines.")
@options.report_file("--report", help="Write the outcome of each document here, as JSON Lines.")
@options.workers
@options.scheme
@options.target
@options.as_json
def command(
    index: str,
    files: tuple[str, ...],
    id_field: str | None,
    text_fields: tuple[str, ...],
    format_: Format,
    on_duplicate: Literal["tag", "skip", "replace", "none"],
    grouping: dict[str, Any],
    limit: int | None,
    report: IO[str] | None,
    workers: int | None,
    target: Target,
    *,
    create: bool,
    content_ids: bool,
    as_json: bool,
) -> int:
    """
    Write the documents of FILE... to INDEX with their fingerprints.

    A file holds JSON Lines, or CSV or TSV with a header, plain or gzip; - is stdin. A line may also be an export with
    _id and _source. Lines that cannot be read, and documents that the server refuses, do not stop the others: the
    command prints the first of them on stderr, writes all of them to the report, and exits with 1. A document that
    has an id replaces the document with that id. A near-duplicate of a document in INDEX, or of an earlier document
    of the files, is tagged with the canonical of its group, unless --on-duplicate says otherwise.
    """
    if create and not text_fields:
        raise click.UsageError("--create needs --text-field: the new index records which fields hold the text")
    max_distance = grouping["max_distance"]
    if on_duplicate == "none":
        if max_distance is not None and not create:
            raise click.UsageError("--max-distance needs --create or another --on-duplicate: leave it out")
        grouping["max_distance"] = None
    arguments: dict[str, Any] = {
        "text_field": text_fields or None,
        "on_duplicate": None if on_duplicate == "none" else on_duplicate,
        "id_from": "content" if content_ids else None,
        "workers": workers,
        **grouping,
    }
    reader = Reader(files, format=format_)
    tally = Tally(report)
    with connect(target, index) as connection:
        if create and not connection.client.indices.exists(index=index):
            made = connection.simhash.create_index(index, text_field=text_fields, max_distance=max_distance)
            note(f"created {index}, scheme {made.scheme}")
        with closing(iter(reader)) as records, Tracker("ingesting", total=reader.total) as tracker:
            actions = _Actions(islice(records, limit), id_field, tally)
            _ingest(connection, index, actions, arguments, reader, tracker)
            seconds = tracker.seconds
    tally.show(index, seconds, as_json=as_json)
    return 1 if tally.failed else 0


class _Actions:
    """The lines of the files as bulk actions. A line that is not a document is counted and left out."""

    def __init__(self, records: Iterator[Record], id_field: str | None, tally: Tally) -> None:
        self.tally = tally
        # Lines that were handed on and have no answer yet: as many as the library reads ahead.
        self.waiting: deque[Record] = deque()
        self._records = records
        self._id_field = id_field

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for record in self._records:
            refuse_own_record(record.value, record.place)
            try:
                action = to_action(record, self._id_field)
            except InvalidInputError as failure:
                self.tally.add_unreadable(record, str(failure))
            else:
                self.waiting.append(record)
                yield action


def _ingest(
    connection: Connection,
    index: str,
    actions: _Actions,
    arguments: dict[str, Any],
    reader: Reader,
    tracker: Tracker,
) -> None:
    """Write the documents and count the outcomes; if that is cut short, say where to continue."""
    tally = actions.tally
    try:
        with closing(connection.simhash.ingest(index, actions, **arguments)) as outcomes:
            for each in outcomes:
                tally.add(actions.waiting.popleft(), each)
                tracker.advance(1, completed=reader.position)
    except BaseException:
        if tally.lines:
            note(f"stopped after {tally.sentence()}; the last answer was for {tally.last_place or 'no line'}")
        raise
