"""``es-simhash fingerprint``, ``distance`` and ``bench``: the schemes, without a server."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, TypeAlias

import click

from es_simhash.cli import options
from es_simhash.cli.input_files import STDIN, read_lines, read_text
from es_simhash.cli.input_records import Format, Reader, document_of
from es_simhash.cli.output import note, print_json, print_line
from es_simhash.cli.parameter_types import INPUT_FILE
from es_simhash.cli.tables import print_table
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.hashing import (
    DEFAULT_SCHEME,
    Scheme,
    estimated_cosine,
    fingerprint,
    fingerprints,
    from_hex,
    get_scheme,
    hamming_distance,
    to_hex,
)
from es_simhash.hashing.pool import FingerprintPool, Pending
from es_simhash.mapping.fields import read_text as read_document

_BATCH_TEXTS = 1_000
_BATCH_CHARACTERS = 4_000_000

NO_FEATURES = "-"

_Named: TypeAlias = tuple[str | int | None, str]


@options.manual(
    'es-simhash fingerprint "the quick brown fox"',
    "es-simhash fingerprint --scheme words --set size=3 --file a.txt --file b.txt",
    "jq -r .title news.jsonl | es-simhash fingerprint --json",
)
@click.argument("text", required=False)
@click.option(
    "--file",
    "files",
    metavar="FILE",
    type=INPUT_FILE,
    multiple=True,
    help="Read the whole file as one text. Repeatable.",
)
@options.workers
@options.scheme
def command(
    text: str | None, files: tuple[str, ...], workers: int | None, scheme: Scheme | str | None, *, as_json: bool
) -> None:
    """
    Print the fingerprints of texts.

    TEXT is one text; - reads all of stdin as one text. Without TEXT and --file, each line of stdin is a text. The
    command prints one line for each text: 16 hex digits, or - if the text has no features (it is blank, or only
    punctuation).

    A line is answered as soon as no further line waits, so another program may keep the command open, write a line to
    its stdin and read the answer from its stdout. Windows does not tell whether a line waits.
    """
    if text is not None and files:
        raise click.UsageError("give either TEXT or --file, not both")
    chosen = get_scheme(scheme or DEFAULT_SCHEME)
    if files:
        named: Iterable[_Named | None] = ((name, read_text(name)) for name in files)
    elif text is not None:
        named = [(None, read_text(STDIN) if text == STDIN else text)]
    else:
        named = read_lines()
    for batch in _computed(named, chosen, workers):
        for name, found in batch:
            _print(name, found, chosen, as_json=as_json)
        sys.stdout.flush()


def _print(name: str | int | None, found: int | None, scheme: Scheme, *, as_json: bool) -> None:
    digits = None if found is None else to_hex(found)
    if as_json:
        place: dict[str, Any] = {} if name is None else {"file" if isinstance(name, str) else "line": name}
        print_json({**place, "fingerprint": digits, "scheme": str(scheme)})
    else:
        print_line((digits or NO_FEATURES) + (f"  {name}" if isinstance(name, str) else ""))


def _computed(
    named: Iterable[_Named | None], scheme: Scheme, workers: int | None
) -> Iterator[Iterable[tuple[str | int | None, int | None]]]:
    """Yield the names and fingerprints of texts in batches, which is faster; where the source pauses, all so far."""
    begun: deque[tuple[list[str | int | None], Pending]] = deque()
    with FingerprintPool(scheme, workers=workers) as pool:
        for batch, is_pause in _batches(named):
            if batch:
                begun.append(([name for name, _ in batch], pool.submit([text for _, text in batch])))
            while len(begun) > (0 if is_pause else pool.ahead):
                names, pending = begun.popleft()
                yield zip(names, pending.result(), strict=True)


def _batches(named: Iterable[_Named | None]) -> Iterator[tuple[list[_Named], bool]]:
    """Yield batches, and whether the source pauses or ends after each; ``None`` says that it pauses."""
    batch: list[_Named] = []
    characters = 0
    for each in named:
        if each is not None:
            batch.append(each)
            characters += len(each[1])
        if each is None or len(batch) == _BATCH_TEXTS or characters >= _BATCH_CHARACTERS:
            yield batch, each is None
            batch, characters = [], 0
    yield batch, True


@options.manual(
    "es-simhash distance 0123456789abcdef 0123456789abcdee",
    'es-simhash distance --text "the quick brown fox" "the quick brown dog"',
    "es-simhash distance --file old.txt new.txt --json",
)
@click.argument("a")
@click.argument("b")
@click.option("--text", "kind", flag_value="text", help="A and B are texts.")
@click.option("--file", "kind", flag_value="file", help="A and B are files; each file is one text; - is stdin.")
@options.scheme
def distance(a: str, b: str, kind: str | None, scheme: Scheme | str | None, *, as_json: bool) -> None:
    """
    Print the distance of two fingerprints or texts, in bits.

    A and B are fingerprints of 16 hex digits, unless --text or --file says otherwise. Texts with the same features
    have a distance of 0 bits; texts with nothing in common have a distance of about 32 of 64 bits.
    """
    if kind is None and scheme is not None:
        raise click.UsageError("a scheme applies to texts: pass --text or --file")
    if kind == "file" and a == b == STDIN:
        raise click.UsageError("stdin can be read only once: give a file for A or for B")
    chosen = get_scheme(scheme or DEFAULT_SCHEME)
    first, second = (_fingerprint(given, kind, chosen) for given in (a, b))
    bits = hamming_distance(first, second)
    if not as_json:
        print_line(str(bits))
        return
    print_json(
        {
            "distance": bits,
            "estimated_cosine": round(estimated_cosine(bits), 4),
            "fingerprints": [to_hex(first), to_hex(second)],
            "scheme": None if kind is None else str(chosen),
        }
    )


def _fingerprint(given: str, kind: str | None, scheme: Scheme) -> int:
    if kind is None:
        return from_hex(given)
    found = fingerprint(read_text(given) if kind == "file" else given, scheme=scheme)
    if found is None:
        raise InvalidInputError(
            f"{kind} {shorten(given)} has no features, so it has no fingerprint and no distance: give a text with "
            "letters or digits"
        )
    return found


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
def bench(
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
        text = None
        with suppress(InvalidInputError):
            text = read_document(document_of(record), names)
        if text is not None:
            texts.append(text)
            left -= len(text)
        if left <= 0:
            break
    return texts


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
