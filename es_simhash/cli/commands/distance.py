"""
``es-simhash distance``: how far apart two fingerprints, or the texts behind them, are.
"""

from __future__ import annotations

from pathlib import Path

import click

from es_simhash.cli.manual import Manual
from es_simhash.cli.output import print_json, print_line
from es_simhash.cli.shared_options import json_option, scheme_options
from es_simhash.cli.texts import STDIN, read_text
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.hashing import (
    DEFAULT_SCHEME,
    Scheme,
    estimated_cosine,
    fingerprint,
    from_hex,
    get_scheme,
    hamming_distance,
    to_hex,
)

EXAMPLES = [
    "es-simhash distance 0123456789abcdef 0123456789abcdee",
    'es-simhash distance --text "the quick brown fox" "the quick brown dog"',
    "es-simhash distance --file old.txt new.txt --json",
]


@click.command(cls=Manual, examples=EXAMPLES)
@click.argument("a")
@click.argument("b")
@click.option("--text", "kind", flag_value="text", help="A and B are texts.")
@click.option("--file", "kind", flag_value="file", help="A and B are files, each one text; - is stdin.")
@scheme_options
@json_option
def command(a: str, b: str, kind: str | None, scheme: Scheme | str | None, *, as_json: bool) -> None:
    """
    Print the distance of two fingerprints or texts, in bits.

    A and B are fingerprints of 16 hex digits, unless --text or --file says otherwise. 0 bits: the same features.
    About 32 of 64 bits: nothing in common.
    """
    if kind is None and scheme is not None:
        raise click.UsageError("a scheme needs texts: give --text or --file")
    if kind == "file" and a == b == STDIN:
        raise click.UsageError("stdin can be read once: give a file beside it")
    chosen = get_scheme(scheme or DEFAULT_SCHEME)
    first, second = (_fingerprint(given, kind, chosen) for given in (a, b))
    distance = hamming_distance(first, second)
    if not as_json:
        print_line(str(distance))
        return
    print_json(
        {
            "distance": distance,
            "estimated_cosine": round(estimated_cosine(distance), 4),
            "fingerprints": [to_hex(first), to_hex(second)],
            "scheme": None if kind is None else str(chosen),
        }
    )


def _fingerprint(given: str, kind: str | None, scheme: Scheme) -> int:
    if kind is None:
        return from_hex(given)
    if kind == "file" and given != STDIN and not Path(given).is_file():
        raise InvalidInputError(f"{shorten(given)} is no file: give the path of a text")
    found = fingerprint(read_text(given) if kind == "file" else given, scheme=scheme)
    if found is None:
        raise InvalidInputError(
            f"{'file' if kind == 'file' else 'text'} {shorten(given)} has no features, so it has no fingerprint and no "
            "distance: give a text with letters or digits"
        )
    return found
