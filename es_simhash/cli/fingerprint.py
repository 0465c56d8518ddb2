"""``fingerprint``: the fingerprints of texts, also of lines that another program writes one by one."""

from __future__ import annotations

import select
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from io import BufferedIOBase
from typing import Any, TypeAlias, cast

from es_simhash import DEFAULT_SCHEME, get_scheme, to_hex
from es_simhash.cli.app import STDIN
from es_simhash.cli.failures import WrongUseError
from es_simhash.cli.lines import LONGEST_LINE, decode, read_text
from es_simhash.cli.options import Described
from es_simhash.cli.show import show
from es_simhash.hashing.pool import FingerprintPool, Pending

_READ_BYTES = 1 << 20
_BATCH_TEXTS = 1_000
_BATCH_CHARACTERS = 4_000_000
NO_FEATURES = "-"

_Named: TypeAlias = tuple[str | int | None, str]


def fingerprint(
    text: str | None = None,
    /,
    *,
    file: tuple[str, ...] = (),
    workers: int | None = None,
    described: Described = Described(),
) -> None:
    """
    Print the fingerprints of texts.

    TEXT is one text; - reads all of stdin as one text. Without TEXT and --file, each line of stdin is a text. The
    command prints one line for each text: 16 hex digits, or - if the text has no features (it is blank, or only
    punctuation).

    A line is answered as soon as no further line waits, so another program may keep the command open, write a line to
    its stdin and read the answer from its stdout. Windows does not tell whether a line waits.

    For example:

        es-simhash fingerprint "the quick brown fox"
        es-simhash fingerprint --scheme keywords --set top=50 --file a.txt --file b.txt
        jq -r .title news.jsonl | es-simhash fingerprint --json

    Args:
        text:
            One text.
        file:
            Read the whole file as one text. Repeatable.
        workers:
            Compute fingerprints in so many additional processes.
    """
    if text is not None and file:
        raise WrongUseError("give either TEXT or --file, not both")
    scheme = get_scheme(described.build() or DEFAULT_SCHEME)
    if file:
        named: Iterable[_Named | None] = ((name, read_text(name)) for name in file)
    elif text is not None:
        named = [(None, read_text(STDIN) if text == STDIN else text)]
    else:
        named = read_lines()
    begun: deque[tuple[list[str | int | None], Pending]] = deque()
    with FingerprintPool(scheme, workers=workers) as pool:
        for batch, is_pause in _batches(named):
            if batch:
                begun.append(([name for name, _ in batch], pool.submit([text for _, text in batch])))
            while len(begun) > (0 if is_pause else pool.ahead):
                names, pending = begun.popleft()
                for name, hashes in zip(names, pending(), strict=True):
                    _print_fingerprint(name, hashes.fingerprint, str(scheme))
                sys.stdout.flush()


def _print_fingerprint(name: str | int | None, found: int | None, scheme: str) -> None:
    digits = None if found is None else to_hex(found)
    place: dict[str, Any] = {} if name is None else {"file" if isinstance(name, str) else "line": name}
    beside = f"  {name}" if isinstance(name, str) else ""
    show({**place, "fingerprint": digits, "scheme": scheme}, f"{digits or NO_FEATURES}{beside}")


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


def read_lines() -> Iterator[tuple[int, str] | None]:
    """Yield the number and the text of each line of stdin, and ``None`` wherever the next line has not come yet."""
    stream = cast("BufferedIOBase", sys.stdin.buffer)
    number = 0
    begun = bytearray()
    while True:
        if not _is_ready(stream):
            yield None
        read = stream.read1(_READ_BYTES)
        first, *more = read.split(b"\n")
        begun += first
        # Each line break ends a line; at the end of the stream so does the end, if anything is left.
        for rest in more if read else [b""] * bool(begun):
            number += 1
            yield number, decode(bytes(begun), f"line {number}").removesuffix("\r")
            begun = bytearray(rest)
        if len(begun) > LONGEST_LINE:
            decode(bytes(begun), f"line {number + 1}")
        if not read:
            return


def _is_ready(stream: BufferedIOBase) -> bool:
    """Return whether a read returns at once. Windows cannot say that of a pipe, and nothing of bytes in memory."""
    try:
        return bool(select.select([stream], [], [], 0)[0])
    except (OSError, ValueError):  # then batches are larger, and a line waits for its answer
        return True
