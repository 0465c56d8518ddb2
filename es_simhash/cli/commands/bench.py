"""``es-simhash bench``: how fast the schemes are on the user's texts."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import click

from es_simhash.cli import options
from es_simhash.cli.output import note, print_json
from es_simhash.cli.parameter_types import INPUT_FILE
from es_simhash.cli.records import Format, Reader, Record
from es_simhash.cli.tables import print_table
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.hashing import Scheme, fingerprints, get_scheme
from es_simhash.mapping.documents import read_text

NAMES = ("shingles", "words", "keywords")

# The most that is read of the file, and the number of texts between two looks at the clock.
_MOST_CHARACTERS = 50_000_000
_BATCH = 100


@options.manual(
    "es-simhash bench news.jsonl.gz --text-field body --documents 100000000",
    "es-simhash bench news.csv --text-field title --text-field body --scheme words --set size=3 --json",
)
@click.argument("file", type=INPUT_FILE)
@options.text_field
@options.format_
@options.number("--documents", default=1_000_000, help="Estimate the time for this number of documents.")
@options.number("--limit", default=20_000, help="Read at most N lines.")
@options.seconds("--seconds", default=3, help="Longest time to measure each scheme.")
@options.scheme
def command(
    file: str,
    text_field: tuple[str, ...],
    format_: Format,
    documents: int,
    limit: int,
    seconds: float,
    scheme: Scheme | str | None,
    *,
    as_json: bool,
) -> None:
    """
    Measure how fast one process computes fingerprints of the texts in FILE.

    Without --scheme the command measures all schemes that take text. The time for --documents is the time to compute
    fingerprints of texts of this length; the time that the server needs to write them is not part of it.
    """
    if not text_field:
        raise click.UsageError("pass --text-field: the field of a line that holds the text")
    texts = _texts(Reader([file], format=format_), text_field, limit)
    if not texts:
        raise InvalidInputError(f"no line of {shorten(file)} has a text in {', '.join(text_field)}: check --text-field")
    chosen = [get_scheme(name) for name in NAMES] if scheme is None else [get_scheme(scheme)]
    results = [_measure(each, texts, seconds, documents) for each in chosen]
    if as_json:
        for result in results:
            print_json(result)
        return
    rates = ("documents_per_second", "characters_per_second")
    print_table(
        ["scheme", "#documents/s", "#characters/s", f"#{documents:,} documents"],
        [
            (each["scheme"], *(f"{each[name]:,}" for name in rates), _duration(each["projected_seconds"]))
            for each in results
        ],
    )
    note(f"{len(texts):,} texts of {sum(map(len, texts)) // len(texts):,} characters on average")


def _texts(reader: Reader, names: Sequence[str], limit: int) -> list[str]:
    texts: list[str] = []
    left = _MOST_CHARACTERS
    for record in islice(reader, limit):
        if (text := _text(record, names)) is not None:
            texts.append(text)
            left -= len(text)
        if left <= 0:
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
    # A process loads a dictionary once, so that is no part of the rate.
    fingerprints(texts[:1], scheme=scheme)
    done = characters = 0
    started = time.perf_counter()
    elapsed = 0.0
    for start in range(0, len(texts), _BATCH):
        batch = texts[start : start + _BATCH]
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


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, hours = seconds / 60, seconds / 3600
    return f"{minutes:.0f} min" if minutes < 100 else f"{hours:.1f} h"
