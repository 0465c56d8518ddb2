"""``es-simhash explain``: why two texts, documents or fingerprints are near-duplicates, or not."""

from __future__ import annotations

from typing import Any

import click

from es_simhash import (
    DEFAULT_SCHEME,
    estimated_cosine,
    hamming_distance,
    to_hex,
)
from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.input_files import STDIN, read_text
from es_simhash.cli.options import Target
from es_simhash.cli.output import count, print_json, print_line
from es_simhash.cli.parameter_types import FINGERPRINT
from es_simhash.cli.tables import print_result


@options.manual(
    'es-simhash explain "the boat leaves at nine" "the boat leaves at ten"',
    "es-simhash explain --file old.txt new.txt",
    "es-simhash explain news 4711 4712",
    "es-simhash explain --fingerprints 0123456789abcdef 0123456789abcdee",
)
@click.argument("words", metavar="[INDEX] A B", nargs=-1, required=True)
@click.option("--file", "is_file", is_flag=True, help="A and B are files; each file is one text; - is stdin.")
@click.option("--fingerprints", is_flag=True, help="A and B are fingerprints of 16 hex digits.")
@click.option("--index", metavar="INDEX", help="A and B are ids of documents of this index.")
@options.text_field
@options.number("--changes", "max_changes", default=4, help="Show at most N places where the texts differ.")
@options.scheme
@options.target
def command(
    words: tuple[str, ...],
    index: str | None,
    target: Target,
    *,
    is_file: bool,
    fingerprints: bool,
    as_json: bool,
    **how: Any,
) -> None:
    """
    Explain why texts A and B are near-duplicates, or why not.

    Shows the distance, the exact similarity, and the words that differ; of documents also what the rule of INDEX says.
    A and B are texts, files, or ids of documents. Three arguments are INDEX,
    as for other commands, and two ids. Of two fingerprints it shows the distance: 0 bits for texts with the same
    features, about 32 of 64 for texts with nothing in common.
    """
    most = 2 if is_file or fingerprints or index is not None else 3
    if not 2 <= len(words) <= most:
        raise click.UsageError("pass two texts, files or ids, or INDEX and two ids")
    *before, a, b = words
    index = before[0] if before else index
    if is_file + fingerprints + (index is not None) > 1:
        raise click.UsageError("pass one of --file, --fingerprints and --index, not several")
    if how["text_field"] and index is None:
        raise click.UsageError("--text-field is for documents: pass --index")
    if is_file and a == b == STDIN:
        raise click.UsageError("stdin can be read only once: give a file for A or for B")
    if fingerprints:
        if target.scheme is not None:
            raise click.UsageError("a scheme applies to texts: leave --scheme out, or --fingerprints")
        _explain_fingerprints(*(FINGERPRINT.convert(each, None, None) for each in (a, b)), as_json=as_json)
        return
    if index is not None:
        with connect(target, index) as connection:
            found = connection.simhash.explain(index, a, b, **how)
    else:
        from es_simhash.quality import explain  # noqa: PLC0415 - loads numpy

        first, second = (read_text(each) if is_file else each for each in (a, b))
        found = explain(first, second, scheme=target.scheme or DEFAULT_SCHEME, max_changes=how["max_changes"])
    if as_json:
        print_json(found.to_dict(), indent=2)
    else:
        print_result(found)


def _explain_fingerprints(first: int, second: int, *, as_json: bool) -> None:
    bits = hamming_distance(first, second)
    cosine = round(estimated_cosine(bits), 4)
    if as_json:
        print_json({"fingerprints": [to_hex(first), to_hex(second)], "distance": bits, "estimated_cosine": cosine})
    else:
        print_line(f"{count(bits, 'bit')} of 64; by that, about {cosine:.4f} of the weighted features are the same")
