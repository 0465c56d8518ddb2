"""
``es-simhash find``: the near-duplicates of a text, a fingerprint, a document, or many texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import click

from es_simhash.cli.connect import Connection, connect
from es_simhash.cli.failures import describe
from es_simhash.cli.manual import Manual
from es_simhash.cli.output import count, error, print_json, print_line, print_table, warn
from es_simhash.cli.progress import Tracker
from es_simhash.cli.records import Reader, Record
from es_simhash.cli.shared_options import (
    FINGERPRINT,
    Server,
    filter_option,
    json_option,
    max_distance_option,
    prefix_option,
    scheme_options,
    server_options,
    text_field_option,
)
from es_simhash.cli.texts import STDIN, read_text
from es_simhash.errors import IncompleteSearchError, InvalidInputError
from es_simhash.hashing import Scheme, to_hex
from es_simhash.index.documents import read_text as read_document
from es_simhash.index.presets import PRESETS
from es_simhash.index.rescore import NearDup, NearDups

_BATCH = 100


EXAMPLES = [
    'es-simhash find news "the quick brown fox" --max-distance 8',
    "es-simhash find news --id 4711 --source title,date",
    'es-simhash find \'news-*\' - --filter \'{"range": {"date": {"gte": "now-7d"}}}\' <article.txt',
    "es-simhash find news --input new.jsonl.gz --text-field body >found.jsonl",
]


@click.command(cls=Manual, examples=EXAMPLES)
@click.argument("index")
@click.argument("text", required=False)
@click.option(
    "--file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    help="Look for the text of this file.",
)
@click.option("--id", "document_id", metavar="ID", help="Look for this document of the index; itself is left out.")
@click.option("--fingerprint", type=FINGERPRINT, metavar="HEX", help="Look for this fingerprint.")
@click.option(
    "--input",
    "many",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    help="Look for many: JSON Lines of texts or documents, or CSV, also .gz; prints JSON Lines.",
)
@text_field_option
@max_distance_option
@click.option("--size", type=click.IntRange(min=1), help="Most near-duplicates of each, the nearest. Default: all.")
@click.option("--preset", type=click.Choice(list(PRESETS)), help="Distance and verification of a preset.")
@click.option(
    "--verify",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="Compare the texts of what was found, and drop what shares less than this of its shingles.",
)
@filter_option
@click.option("--source", metavar="FIELDS", help="Fields of the documents to show, with commas; * for all.")
@scheme_options
@prefix_option
@server_options
@json_option
def command(
    index: str,
    text: str | None,
    file: str | None,
    document_id: str | None,
    fingerprint: int | None,
    many: str | None,
    text_fields: tuple[str, ...],
    max_distance: int | None,
    size: int | None,
    preset: str | None,
    verify: float | None,
    filter_query: Any,
    source: str | None,
    scheme: Scheme | str | None,
    prefix: str,
    server: Server,
    *,
    as_json: bool,
) -> int:
    """
    Find near-duplicates in INDEX: all within --max-distance, nearest first.

    INDEX may be a name, an alias, a pattern or several with commas. TEXT - takes the text from stdin. With --input,
    each line is a text (a JSON string) or a document whose --text-field holds it, by default the fields that the
    index records; one JSON line is printed for each, and it exits with 1 if one of them failed.
    """
    if sum(given is not None for given in (text, file, document_id, fingerprint, many)) != 1:
        raise click.UsageError("give one of TEXT, --file, --id, --fingerprint and --input")
    if text_fields and many is None:
        raise click.UsageError("--text-field is for the documents of --input")
    options = {
        "max_distance": max_distance,
        "size": size,
        "preset": preset,
        "verify": verify,
        "filter": filter_query,
        "source": False if source is None else True if source.strip() == "*" else _names(source),
    }
    with connect(server, index, prefix=prefix, scheme=scheme) as connection:
        if many is not None:
            return _find_many(connection, index, many, text_fields, options)
        simhash = connection.simhash
        try:
            if document_id is not None:
                found = simhash.find_near_dups_of(index, document_id, **options)
            elif fingerprint is not None:
                found = simhash.find_near_dups(index, fingerprint=fingerprint, **options)
            else:
                content = read_text(file or STDIN) if file or text == STDIN else text
                found = simhash.find_near_dups(index, content, **options)
        except IncompleteSearchError as failure:
            if failure.results is not None:
                _show(failure.results, as_json=as_json)
            raise
    _show(found, as_json=as_json)
    return 0


def _names(source: str) -> list[str]:
    names = [name.strip() for name in source.split(",") if name.strip()]
    if not names:
        raise click.UsageError("--source names no field: give names with commas, or *")
    return names


def _to_dict(found: NearDups) -> dict[str, Any]:
    return {
        "near_dups": [each.to_dict() for each in found],
        "complete": found.complete,
        "max_distance": found.max_distance,
        "scheme": None if found.scheme is None else str(found.scheme),
        "plan": None if found.plan is None else found.plan.name,
        "candidates": found.candidates,
        "unverified": list(found.unverified),
    }


def _show(found: NearDups, *, as_json: bool) -> None:
    if as_json:
        print_json(_to_dict(found))
        return
    how = f"within {count(found.max_distance, 'bit')}"
    if not found:
        print_line(f"no near-duplicates {how}")
        return
    fields = list(dict.fromkeys(name for each in found for name in each.source or ()))
    compared = ["#similarity"] if any(each.similarity is not None for each in found) else []
    print_table(
        ["#bits", *compared, "id", "index", "fingerprint", *fields],
        [
            (
                each.distance,
                *_similarity(each, compared),
                each.id,
                each.index,
                to_hex(each.fingerprint),
                *_cells(each.source or {}, fields),
            )
            for each in found
        ],
        title=f"{count(len(found), 'near-duplicate')} {how}",
    )
    for reason in found.unverified:
        warn(reason)


def _similarity(near_dup: NearDup, columns: list[str]) -> list[str]:
    return ["-" if near_dup.similarity is None else f"{near_dup.similarity:.3f}" for _ in columns]


def _cells(source: Mapping[str, Any], fields: list[str]) -> Iterator[str]:
    for name in fields:
        value = source.get(name, "")
        yield " ".join(str(value).split())[:200]


def _find_many(
    connection: Connection, index: str, path: str, text_fields: tuple[str, ...], options: dict[str, Any]
) -> int:
    reader = Reader([path])
    failed = 0
    with Tracker("finding", total=reader.total) as tracker:
        records = iter(reader)
        while batch := list(islice(records, _BATCH)):
            questions: list[str | Exception] = []
            for record in batch:
                if not text_fields and isinstance(record.value, Mapping):
                    text_fields = _recorded_text_fields(connection, index)
                questions.append(_question(record, text_fields))
            texts = [each for each in questions if isinstance(each, str)]
            found = iter(connection.simhash.find_near_dups_many(index, texts, **options))
            for record, question in zip(batch, questions, strict=True):
                outcome = next(found) if isinstance(question, str) else question
                failed += _show_outcome(record, outcome)
            tracker.advance(len(batch), completed=reader.position)
    if failed:
        error(f"{count(failed, 'line')} of {tracker.documents:,} failed: see their error in the output")
    return 1 if failed else 0


def _recorded_text_fields(connection: Connection, index: str) -> tuple[str, ...]:
    for each in connection.simhash.check(index):
        if each.text_fields:
            return each.text_fields
    raise InvalidInputError(f"index {index} does not record which field holds the text: give --text-field")


def _question(record: Record, text_fields: tuple[str, ...]) -> str | Exception:
    """Return the text of a line, or why it has none; a document without text is an empty one."""
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


def _show_outcome(record: Record, outcome: NearDups | Exception) -> bool:
    """Print the line of one outcome; return whether it failed."""
    found = outcome.results if isinstance(outcome, IncompleteSearchError) else outcome
    shown: dict[str, Any] = {"line": record.line}
    if isinstance(found, NearDups):
        shown |= _to_dict(found)
    if isinstance(outcome, Exception):
        shown["error"] = describe(outcome)
    print_json(shown)
    return isinstance(outcome, Exception)
