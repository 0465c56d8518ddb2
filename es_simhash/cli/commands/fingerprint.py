"""
``es-simhash fingerprint``: texts to fingerprints.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import click

from es_simhash.cli import options
from es_simhash.cli.manual import Manual
from es_simhash.cli.options import INPUT_FILE
from es_simhash.cli.output import print_json, print_line
from es_simhash.cli.texts import STDIN, read_lines, read_text
from es_simhash.hashing import DEFAULT_SCHEME, Scheme, get_scheme, to_hex
from es_simhash.hashing.pool import FingerprintPool, Pending

_BATCH_TEXTS = 1_000
_BATCH_CHARACTERS = 4_000_000

NO_FEATURES = "-"

EXAMPLES = [
    'es-simhash fingerprint "the quick brown fox"',
    "es-simhash fingerprint --scheme words --set size=3 --file a.txt --file b.txt",
    "jq -r .title news.jsonl | es-simhash fingerprint --json",
]


@click.command(cls=Manual, examples=EXAMPLES)
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
@options.as_json
def command(
    text: str | None, files: tuple[str, ...], workers: int | None, scheme: Scheme | str | None, *, as_json: bool
) -> None:
    """
    Print the fingerprints of texts.

    TEXT is one text; - reads all of stdin as one text. Without TEXT and --file, each line of stdin is a text. The
    command prints one line for each text: 16 hex digits, or - if the text has no features (it is blank, or only
    punctuation).
    """
    if text is not None and files:
        raise click.UsageError("give either TEXT or --file, not both")
    chosen = get_scheme(scheme or DEFAULT_SCHEME)
    if files:
        named: Iterable[tuple[str | int | None, str]] = ((name, read_text(name)) for name in files)
    elif text is not None:
        named = [(None, read_text(STDIN) if text == STDIN else text)]
    else:
        named = enumerate(read_lines(sys.stdin.buffer), start=1)
    for name, found in _each(named, chosen, workers):
        digits = None if found is None else to_hex(found)
        if as_json:
            place: dict[str, Any] = {} if name is None else {"file" if isinstance(name, str) else "line": name}
            print_json({**place, "fingerprint": digits, "scheme": str(chosen)})
        else:
            print_line((digits or NO_FEATURES) + (f"  {name}" if isinstance(name, str) else ""))


def _each(
    named: Iterable[tuple[str | int | None, str]], scheme: Scheme, workers: int | None
) -> Iterator[tuple[str | int | None, int | None]]:
    """Yield the name and fingerprint of each text. Texts are computed in batches, which is faster."""
    waiting = iter(named)
    begun: deque[tuple[list[str | int | None], Pending]] = deque()
    with FingerprintPool(scheme, workers=workers) as pool:
        while batch := list(_batch(waiting)):
            begun.append(([name for name, _ in batch], pool.submit([text for _, text in batch])))
            while len(begun) > pool.ahead:
                yield from _finish(*begun.popleft())
        for each in begun:
            yield from _finish(*each)


def _finish(names: Sequence[str | int | None], pending: Pending) -> Iterator[tuple[str | int | None, int | None]]:
    return zip(names, pending.result(), strict=True)


def _batch(named: Iterator[tuple[str | int | None, str]]) -> Iterator[tuple[str | int | None, str]]:
    characters = 0
    for name, text in islice(named, _BATCH_TEXTS):
        yield name, text
        characters += len(text)
        if characters >= _BATCH_CHARACTERS:
            return
