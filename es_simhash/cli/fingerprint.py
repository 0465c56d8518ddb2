"""``fingerprint``: the fingerprints of texts, also of lines that another program writes one by one."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from io import BufferedIOBase
from typing import Any, cast

from es_simhash import DEFAULT_SCHEME, fingerprints, get_scheme, to_hex
from es_simhash.cli.app import STDIN
from es_simhash.cli.failures import WrongUseError
from es_simhash.cli.lines import LONGEST_LINE, decode, read_text
from es_simhash.cli.options import Described
from es_simhash.cli.show import show

_READ_BYTES = 1 << 20
NO_FEATURES = "-"


def fingerprint(text: str | None = None, /, *, file: tuple[str, ...] = (), described: Described = Described()) -> None:
    """
    Print the fingerprints of texts.

    TEXT is one text; - reads all of stdin as one text. Without TEXT and --file, each line of stdin is a text. The
    command prints one line for each text: 16 hex digits, or - if the text has no features (it is blank, or only
    punctuation).

    A line is answered as soon as it is read, so another program may keep the command open, write a line to its stdin
    and read the answer from its stdout.

    For example:

        es-simhash fingerprint "the quick brown fox"
        es-simhash fingerprint --scheme keywords --set top=50 --file a.txt --file b.txt
        jq -r .title news.jsonl | es-simhash fingerprint --json

    Args:
        text:
            One text.
        file:
            Read the whole file as one text. Repeatable.
    """
    if text is not None and file:
        raise WrongUseError("give either TEXT or --file, not both")
    scheme = get_scheme(described.build() or DEFAULT_SCHEME)
    batches: Iterable[Sequence[tuple[dict[str, Any], str]]]
    if file:
        batches = ([({"file": name}, read_text(name))] for name in file)
    elif text is not None:
        batches = [[({}, read_text(STDIN) if text == STDIN else text)]]
    else:
        batches = read_lines()
    for batch in batches:
        for (place, _), found in zip(batch, fingerprints([text for _, text in batch], scheme=scheme), strict=True):
            digits = None if found is None else to_hex(found)
            beside = f"  {place['file']}" if "file" in place else ""
            show({**place, "fingerprint": digits, "scheme": str(scheme)}, f"{digits or NO_FEATURES}{beside}")
        sys.stdout.flush()


def read_lines() -> Iterator[list[tuple[dict[str, Any], str]]]:
    """Yield the lines of stdin, each with its number, as many at once as have come."""
    stream = cast("BufferedIOBase", sys.stdin.buffer)
    number, begun = 0, bytearray()
    while True:
        read = stream.read1(_READ_BYTES)
        first, *more = read.split(b"\n")
        begun += first
        batch = []
        # Each line break ends a line; at the end of the stream so does the end, if anything is left.
        for rest in more if read else [b""] * bool(begun):
            number += 1
            batch.append(({"line": number}, decode(bytes(begun), f"line {number}").removesuffix("\r")))
            begun = bytearray(rest)
        yield batch
        if len(begun) > LONGEST_LINE:
            decode(bytes(begun), f"line {number + 1}")
        if not read:
            return
