"""
``es-simhash bench``: how fast the schemes are on the user's own texts, and what that means for all of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import click

from es_simhash.cli.manual import Manual
from es_simhash.cli.output import note, print_json, print_table
from es_simhash.cli.records import Format, Reader, Record
from es_simhash.cli.shared_options import json_option, scheme_options, text_field_option
from es_simhash.errors import InvalidInputError
from es_simhash.hashing import Scheme, fingerprints, get_scheme
from es_simhash.index.documents import read_text

NAMES = ("shingles", "words", "keywords")

# What is held of the file at once, and what is worked on between two looks at the clock.
_MOST_CHARACTERS = 50_000_000
_BATCH = 100

EXAMPLES = [
    "es-simhash bench news.jsonl.gz --text-field body --documents 100000000",
    "es-simhash bench news.csv --text-field title --text-field body --scheme words --set size=3 --json",
]


@click.command(cls=Manual, examples=EXAMPLES)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@text_field_option
@click.option(
    "--format",
    "format_",
    type=click.Choice(["auto", "jsonl", "csv", "tsv"]),
    default="auto",
    show_default=True,
    help="How the file is written; auto goes by the name, else jsonl.",
)
@click.option(
    "--documents",
    type=click.IntRange(min=1),
    default=1_000_000,
    show_default=True,
    help="Number of documents to project the time for.",
)
@click.option("--limit", type=click.IntRange(min=1), default=20_000, show_default=True, help="Read so many lines.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=3,
    show_default=True,
    help="Measure each scheme for so long at most.",
)
@scheme_options
@json_option
def command(
    file: str,
    text_fields: tuple[str, ...],
    format_: Format,
    documents: int,
    limit: int,
    seconds: float,
    scheme: Scheme | str | None,
    *,
    as_json: bool,
) -> int:
    """
    Measure how fast fingerprints of the texts in FILE are made, with one process.

    Without --scheme all schemes that take text are measured. The time for --documents is that of the fingerprints
    alone, for texts as long as these; what the server needs to write them comes beside it.
    """
    if not text_fields:
        raise click.UsageError("give --text-field: which field of a line holds the text")
    texts = _texts(Reader([file], format=format_), text_fields, limit)
    if not texts:
        raise InvalidInputError(f"no line of {file} has text in {', '.join(text_fields)}: check --text-field")
    chosen = [get_scheme(name) for name in NAMES] if scheme is None else [get_scheme(scheme)]
    results = [_measure(each, texts, seconds, documents) for each in chosen]
    if as_json:
        for result in results:
            print_json(result)
        return 0
    print_table(
        ["scheme", "#documents/s", "#characters/s", f"#{documents:,} documents"],
        [
            (
                result["scheme"],
                f"{result['documents_per_second']:,}",
                f"{result['characters_per_second']:,}",
                _duration(result["projected_seconds"]),
            )
            for result in results
        ],
    )
    note(f"{len(texts):,} texts of {sum(map(len, texts)) // len(texts):,} characters on average")
    return 0


def _texts(reader: Reader, names: Sequence[str], limit: int) -> list[str]:
    texts: list[str] = []
    characters = 0
    for record in islice(reader, limit):
        text = _text(record, names)
        if text is not None:
            texts.append(text)
            characters += len(text)
            if characters >= _MOST_CHARACTERS:
                break
    return texts


def _text(record: Record, names: Sequence[str]) -> str | None:
    document: Any = record.value
    if isinstance(document, Mapping) and isinstance(document.get("_source"), Mapping):
        document = document["_source"]
    if not isinstance(document, Mapping):
        return None
    try:
        return read_text(document, names)
    except InvalidInputError:
        return None


def _measure(scheme: Scheme, texts: Sequence[str], seconds: float, documents: int) -> dict[str, Any]:
    # A dictionary is loaded once a process: no part of a rate.
    fingerprints(texts[:1], scheme=scheme)
    done = characters = 0
    started = time.perf_counter()
    elapsed = 0.0
    for batch in _batches(texts):
        fingerprints(batch, scheme=scheme)
        elapsed = time.perf_counter() - started
        done += len(batch)
        characters += sum(map(len, batch))
        if elapsed >= seconds:
            break
    return {
        "scheme": str(scheme),
        "documents": done,
        "characters": characters,
        "documents_per_second": round(done / elapsed),
        "characters_per_second": round(characters / elapsed),
        "projected_documents": documents,
        "projected_seconds": round(documents * elapsed / done, 3),
    }


def _batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(texts), _BATCH):
        yield texts[start : start + _BATCH]


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, hours = seconds / 60, seconds / 3600
    return f"{minutes:.0f} min" if minutes < 100 else f"{hours:.1f} h"
