"""``es-simhash ingest``: documents from files into an index, with their fingerprints."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from itertools import islice
from typing import Any, Literal

import click

from es_simhash import InvalidInputError
from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.grouping_options import grouping as grouping_option, lookup_options
from es_simhash.cli.ingest_run import IngestActions, IngestRun, Tally
from es_simhash.cli.input_records import Format, Reader, document_of
from es_simhash.cli.options import Target
from es_simhash.cli.output import Tracker, count, note
from es_simhash.cli.output_files import end_report, open_report
from es_simhash.cli.parameter_types import INPUT_FILE, REPORT_FILE
from es_simhash.errors import shorten

FIRST = 500
"""Documents whose fields are named in the message about a text field that no document has."""


@options.manual(
    "es-simhash ingest news news.jsonl.gz --create --text-field body --id-field url",
    "es-simhash ingest news part-*.csv --report report.jsonl",
    "es-simhash ingest news crawl.jsonl --on-duplicate skip --preset near --report report.jsonl",
    "zcat dump.gz | es-simhash ingest news - --limit 1000",
    common="--id-field --text-field --create --on-duplicate --preset --max-distance --report --dry-run --url --json",
)
@click.argument("index")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=INPUT_FILE)
@click.option("--id-field", metavar="FIELD", help="Field that holds the id. Default: _id, else the server makes an id.")
@options.text_field
@options.format_
@options.delimiter
@click.option("--create", is_flag=True, help="Create the index if it does not exist; needs --text-field.")
@options.passages
@click.option(
    "--on-duplicate",
    type=click.Choice(["tag", "skip", "none"]),
    default="tag",
    help="tag: record the canonical in a near-duplicate; skip: do not write it, but tag it if its id is in INDEX; "
    "none: do not search for near-duplicates.",
)
@grouping_option
@click.option("--content-ids", is_flag=True, help="Make missing ids from the content, so that a rerun adds nothing.")
@click.option(
    "--op-type",
    type=click.Choice(["index", "create"]),
    default="index",
    help="index: a document replaces the one with its id; create: documents are only created, as data streams demand.",
)
@options.number(
    "--batch",
    most=10_000,
    help="Most documents in one request. Default: 2000, and 500 where the server is asked about each of them.",
)
@lookup_options
@options.number("--skip", least=0, default=0, show_default=False, help="Leave out the first N lines.")
@options.number("--limit", help="Stop after N lines.")
@click.option(
    "--report",
    type=REPORT_FILE,
    metavar="FILE",
    help="Write the outcome of each document here, as JSON Lines: file, line, id, action, reason, and its canonical.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Read the lines, make their fingerprints and count them; write nothing, and search for no near-duplicates.",
)
@options.workers
@options.scheme
@options.target
def command(
    index: str,
    files: tuple[str, ...],
    id_field: str | None,
    text_field: tuple[str, ...],
    format_: Format,
    delimiter: str | None,
    on_duplicate: Literal["tag", "skip", "none"],
    grouping: dict[str, Any],
    op_type: Literal["index", "create"],
    skip: int,
    limit: int | None,
    report: str | None,
    workers: int | None,
    target: Target,
    *,
    create: bool,
    passages: bool | None,
    dry_run: bool,
    content_ids: bool,
    as_json: bool,
    **how: Any,
) -> int:
    """
    Write the documents of FILE... to INDEX with their fingerprints.

    A file holds JSON Lines, or CSV with a header, in UTF-8, plain or as gzip; - is stdin. A line may also be an export
    with _id and _source. A JSON line is sent as it is, with the fingerprint put in, so that no number is rewritten.
    Lines that cannot be read, and documents that the server refuses, do not stop the others: the command prints the
    first of them on stderr, writes all of them to the report, and exits with 1. A document that has an id replaces the
    document with that id. A near-duplicate of a document in INDEX, or of an earlier document of the files, is tagged
    with the canonical of its group, unless --on-duplicate says otherwise.

    Ctrl-C finishes the lines that were read, and a second one stops at once; the command says how to go on. After a
    kill run it again: a document that has an id (also by --id-field or --content-ids), and is in INDEX as its line has
    it, is not written again and keeps its group.
    """
    max_distance = grouping["max_distance"]
    _check_create(text_field, create=create, passages=passages)
    if on_duplicate == "none":
        if max_distance is not None and not create:
            raise click.UsageError("--max-distance needs --create or another --on-duplicate: leave it out")
        grouping["max_distance"] = None
    arguments = (
        how
        | grouping
        | {"text_field": text_field or None, "op_type": op_type, "workers": workers}
        | {"on_duplicate": None if on_duplicate == "none" else on_duplicate}
        | {"id_from": "content" if content_ids else None}
    )
    with ExitStack() as stack:
        reader = Reader(files, format=format_, delimiter=delimiter)
        connection = stack.enter_context(connect(target, index))
        tally = Tally(open_report(stack, report, files, dry_run=dry_run), is_dry=dry_run)
        is_new = create and not connection.client.indices.exists(index=index)
        end = None if limit is None else skip + limit
        actions = IngestActions(islice(reader, skip, end), id_field)
        if not actions.pass_unreadable(tally):
            end_report(tally.report)
            return _say_unreadable(index, tally, is_new=is_new, as_json=as_json)
        if is_new:
            _check_grouping(index, text_field, grouping)
            _check_text_field(Reader(files, format=format_, delimiter=delimiter), text_field, skip, end)
            made = connection.simhash.create_index(
                index, text_field=text_field, max_distance=max_distance, passages=bool(passages), dry_run=dry_run
            )
            note(f"{'would create' if dry_run else 'created'} {index}, scheme {made.scheme}")
        if actions.other_id is not None and not content_ids:
            note(f"the lines have no _id, so the documents get new ids: --id-field {actions.other_id} takes theirs")
        run = IngestRun(actions, tally, reader, skip=skip)
        with Tracker("ingesting", total=reader.total) as tracker:
            if dry_run:
                run.try_out(connection, index, target, arguments, tracker, is_new=is_new)
            else:
                run.write(connection, index, arguments, tracker)
            seconds = tracker.seconds
    is_useless = is_new and not dry_run and tally.lacks_fingerprints
    tally.show(index, seconds, as_json=as_json, repair=_repair(index, text_field) if is_useless else None)
    return 1 if is_useless or tally.failed else 0


def _repair(index: str, text_field: Sequence[str]) -> str:
    """Return how to repair a new index, none of whose documents has a fingerprint."""
    add = shlex.join(["es-simhash", "create", index, "--existing", "--text-field", "FIELD", "--yes"])
    fill = shlex.join(["es-simhash", "setup", index, "--yes"])
    return f"if the texts are not in {', '.join(text_field)} but in another FIELD, run {add} && {fill}"


def _say_unreadable(index: str, tally: Tally, *, is_new: bool, as_json: bool) -> int:
    """Say that no line can be read; leave nothing, such as a rule, that would refuse the next try."""
    if is_new:
        note(f"no line can be read, so {index} was not created")
    tally.show(index, 0.0, as_json=as_json)
    return 1 if tally.failed else 0


def _check_text_field(reader: Reader, text_field: Sequence[str], skip: int, end: int | None) -> None:
    """
    Refuse to create an index for text fields that no document has. Cost: the lines before the first that has one.
    Lines that cannot be read are for the ingest to report.
    """
    if reader.total is None:
        return  # a stream can be read only once
    wanted = {*text_field, *(field_name.partition(".")[0] for field_name in text_field)}
    names: dict[str, None] = {}
    lines = 0
    for record in islice(reader, skip, end):
        lines += 1
        with suppress(InvalidInputError):
            found = document_of(record)
            if not wanted.isdisjoint(found):
                return
            names |= dict.fromkeys(found) if lines <= FIRST else {}
            names.pop("_id", None)
    if names:
        raise InvalidInputError(
            f"none of {count(lines, 'line')} has a field {shorten(', '.join(text_field))}, so nothing was created or "
            f"written: pass --text-field with one of {shorten(', '.join(names))}"
        )


def _check_grouping(index: str, text_field: Sequence[str], grouping: Mapping[str, Any]) -> None:
    """Refuse to create an index for a grouping by fields of the user's, which it would not map."""
    orders = [order for order in grouping["canonical"] or () if order not in ("id", "longest")]
    wanted = {"--per": grouping["per"], "--within": grouping["within"], "--canonical": orders}
    if given := [name for name, value in wanted.items() if value]:
        texts = [word for name in text_field for word in ("--text-field", name)]
        create = shlex.join(["es-simhash", "create", index, *texts, "--mappings", "FILE"])
        raise InvalidInputError(
            f"--create maps no field for {', '.join(given)}, so nothing was created or written: put it into a FILE "
            f"with your mapping, run {create}, then ingest "
            "without --create"
        )


def _check_create(text_field: Sequence[str], *, create: bool, passages: bool | None) -> None:
    if create and not text_field:
        raise click.UsageError("--create needs --text-field: the new index records which fields hold the text")
    if passages is not None and not create:
        raise click.UsageError("--passages needs --create; an index that exists gets them from es-simhash create")
