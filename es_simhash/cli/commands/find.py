"""
``es-simhash find``: the near-duplicates of a text, a fingerprint, a document, or many texts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import click

from es_simhash.cli import options
from es_simhash.cli.connect import Connection, connect
from es_simhash.cli.grouping_options import measures
from es_simhash.cli.lookup_options import lookup_options
from es_simhash.cli.manual import Manual
from es_simhash.cli.near_dups import NoFingerprint, print_answer, print_near_dups
from es_simhash.cli.options import FINGERPRINT, INPUT_FILE, Target, parse_fields
from es_simhash.cli.output import count, error, warn
from es_simhash.cli.progress import Tracker
from es_simhash.cli.records import Reader, Record
from es_simhash.cli.texts import read_text_argument
from es_simhash.errors import IncompleteSearchError, InvalidInputError
from es_simhash.lookup.verification import Verified
from es_simhash.mapping.documents import read_text as read_document
from es_simhash.texts.presets import PRESETS

EXAMPLES = [
    'es-simhash find news "the quick brown fox" --max-distance 8',
    "es-simhash find news --id 4711 --source title,date",
    'es-simhash find \'news-*\' - --filter \'{"range": {"date": {"gte": "now-7d"}}}\' <article.txt',
    "es-simhash find news --input new.jsonl.gz --text-field body >found.jsonl",
]


@click.command(cls=Manual, examples=EXAMPLES)
@click.argument("index")
@click.argument("text", required=False)
@options.text_file
@click.option("--id", "document_id", metavar="ID", help="Search for this document of the index; it is left out.")
@options.routing
@click.option("--fingerprint", type=FINGERPRINT, metavar="HEX", help="Search for this fingerprint.")
@click.option(
    "--input",
    "many",
    metavar="FILE",
    type=INPUT_FILE,
    help="Search for each line: JSON Lines of texts or documents, or CSV, plain or .gz. Prints JSON Lines.",
)
@options.text_fields
@options.max_distance
@click.option(
    "--size", type=click.IntRange(min=1), metavar="N", help="Return the N nearest of each search. Default: all."
)
@click.option("--preset", type=click.Choice(list(PRESETS)), help="Use the distance and verification of this preset.")
@click.option(
    "--verify",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="Compare the texts of the documents found, and drop those that share less than this part of their shingles.",
)
@measures
@options.filter_query
@options.source
@lookup_options
@options.scheme
@options.target
@options.as_json
def command(
    index: str,
    text: str | None,
    file: str | None,
    document_id: str | None,
    routing: str | None,
    fingerprint: int | None,
    many: str | None,
    text_fields: tuple[str, ...],
    max_distance: int | None,
    size: int | None,
    preset: str | None,
    verify: Verified | None,
    filter_query: Any,
    source: str | None,
    lookups: Literal["auto", "server", "memory"],
    memory: int,
    target: Target,
    *,
    as_json: bool,
) -> int:
    """
    Find all near-duplicates in INDEX within --max-distance, the nearest first.

    INDEX may be a name, an alias, a pattern, or several of them separated by commas. If TEXT is -, the text comes
    from stdin. With --input each line is a text (a JSON string) or a document; the text of a document is in
    --text-field, by default in the fields that the index records. The command prints one line of JSON for each line
    of the input, and exits with 1 if a line failed. --lookups and --memory are for --input.
    """
    if sum(given is not None for given in (text, file, document_id, fingerprint, many)) != 1:
        raise click.UsageError("pass exactly one of TEXT, --file, --id, --fingerprint and --input")
    if text_fields and many is None:
        raise click.UsageError("--text-field is for the documents of --input")
    lookup: dict[str, Any] = {
        "max_distance": max_distance,
        "size": size,
        "preset": preset,
        "verify": verify,
        "filter": filter_query,
        "routing": routing,
        "source": parse_fields(source),
    }
    content = read_text_argument(text, file) if text is not None or file is not None else None
    with connect(target, index) as connection:
        if many is not None:
            lookup |= {"lookups": lookups, "memory_bytes": memory << 20}
            return _find_many(connection, index, many, text_fields, lookup)
        try:
            if document_id is not None:
                found = connection.simhash.find_near_dups_of(index, document_id, **lookup)
            elif fingerprint is not None:
                found = connection.simhash.find_near_dups(index, fingerprint=fingerprint, **lookup)
            else:
                found = connection.simhash.find_near_dups(index, content, **lookup)
                if found.plan is None and found.scheme is not None:
                    why = NoFingerprint.of(content or "", found.scheme)
                    warn(str(why), kind=why.kind, scheme=why.scheme)
        except IncompleteSearchError as failure:
            if failure.results is not None and (as_json or failure.results):
                print_near_dups(failure.results, as_json=as_json)
            raise
    print_near_dups(found, as_json=as_json)
    return 0


def _find_many(
    connection: Connection, index: str, path: str, text_fields: tuple[str, ...], lookup: dict[str, Any]
) -> int:
    """Answer each line of a file; return the exit code."""
    reader = Reader([path])
    waiting: deque[tuple[Record, str | InvalidInputError]] = deque()  # read, and not answered

    def texts() -> Iterator[Any]:
        fields = text_fields
        for record in reader:
            if not fields and isinstance(record.value, Mapping):
                fields = _recorded_text_fields(connection, index)
            question = _question(record, fields)
            waiting.append((record, question))
            yield question if isinstance(question, str) else None  # which fails in its place

    failed = 0
    with Tracker("finding", total=reader.total) as tracker:
        found = connection.simhash.stream_near_dups_many(index, texts(), **lookup)
        for answer in found:
            record, question = waiting.popleft()
            if isinstance(question, str):
                failed += print_answer(record, question, answer)
            else:
                failed += print_answer(record, None, question)
            tracker.advance(1, completed=reader.position)
    if failed:
        said = f"{count(failed, 'line')} of {tracker.documents:,} failed: see their error in the output"
        error(said, kind="lines_failed", number=failed, lines=tracker.documents)
    return 1 if failed else 0


def _recorded_text_fields(connection: Connection, index: str) -> tuple[str, ...]:
    for each in connection.simhash.check(index):
        if each.text_fields:
            return each.text_fields
    raise InvalidInputError(f"index {index} does not record its text field: pass --text-field")


def _question(record: Record, text_fields: tuple[str, ...]) -> str | InvalidInputError:
    """Return the text of a line, or why it has none. The text of a document without text is empty."""
    if record.reason is not None:
        return InvalidInputError(record.reason)
    if isinstance(record.value, str):
        return record.value
    if not isinstance(record.value, Mapping):
        return InvalidInputError("neither a text nor a document: write a JSON string or object on each line")
    try:
        return read_document(record.value, text_fields) or ""
    except InvalidInputError as failure:
        return failure
