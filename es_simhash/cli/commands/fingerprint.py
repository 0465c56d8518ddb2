"""``es-simhash fingerprint``: the fingerprints of texts, without a server."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import click

from es_simhash import DEFAULT_SCHEME, Scheme, get_scheme, to_hex
from es_simhash.cli import options
from es_simhash.cli.input_files import STDIN, read_lines, read_text
from es_simhash.cli.output import print_json, print_line
from es_simhash.cli.parameter_types import INPUT_FILE
from es_simhash.hashing.pool import FingerprintPool, Pending

_BATCH_TEXTS = 1_000
_BATCH_CHARACTERS = 4_000_000

NO_FEATURES = "-"

_Named: TypeAlias = tuple[str | int | None, str]


@options.manual(
    'es-simhash fingerprint "the quick brown fox"',
    "es-simhash fingerprint --scheme keywords --set top=50 --file a.txt --file b.txt",
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
                yield zip(names, (hashes.fingerprint for hashes in pending()), strict=True)


def _batches(named: Iterable[_Named | None]) -> Iterator[tuple[list[_Named], bool]]:
    """Yield batches, and whether the source pauses or ends after each; ``None`` says that it pauses."""
    batch: list[_Named] = []
    characters = 0
    for item in named:
        if item is not None:
            batch.append(item)
            characters += len(item[1])
        if item is None or len(batch) == _BATCH_TEXTS or characters >= _BATCH_CHARACTERS:
            yield batch, item is None
            batch, characters = [], 0
    yield batch, True
