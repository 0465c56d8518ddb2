"""``es-simhash distance``: the distance of two fingerprints or of two texts."""

from __future__ import annotations

import click

from es_simhash.cli import options
from es_simhash.cli.manual import Manual
from es_simhash.cli.output import print_json, print_line
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
@click.option("--file", "kind", flag_value="file", help="A and B are files; each file is one text; - is stdin.")
@options.scheme
@options.as_json
def command(a: str, b: str, kind: str | None, scheme: Scheme | str | None, *, as_json: bool) -> None:
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
    found = fingerprint(read_text(given) if kind == "file" else given, scheme=scheme)
    if found is None:
        raise InvalidInputError(
            f"{kind} {shorten(given)} has no features, so it has no fingerprint and no distance: give a text with "
            "letters or digits"
        )
    return found
