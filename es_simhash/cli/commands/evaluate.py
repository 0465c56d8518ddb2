"""``es-simhash evaluate``: recall and precision on known pairs; and ``explain``: why two texts are a pair, or not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import click

from es_simhash import (
    DEFAULT_SCHEME,
    PRESETS,
    InvalidInputError,
    estimated_cosine,
    get_preset,
    hamming_distance,
    to_hex,
)
from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.input_files import STDIN, read_text
from es_simhash.cli.input_records import Reader, document_of, to_action
from es_simhash.cli.options import Target
from es_simhash.cli.output import count, note, print_json, print_line
from es_simhash.cli.output_files import open_text, refuse_output
from es_simhash.cli.parameter_types import FILE, FINGERPRINT, NEW_FILE
from es_simhash.cli.tables import print_result
from es_simhash.texts.measures import MEASURES, UNITS


@options.manual(
    "es-simhash evaluate docs.jsonl.gz pairs.tsv.gz --preset similar",
    "es-simhash evaluate docs.jsonl pairs.tsv --scheme keywords --max-distance 12 --plot keywords.svg",
    "es-simhash evaluate docs.jsonl pairs.tsv --pairs-out reported.jsonl --json | jq .verified",
    "es-simhash evaluate docs.jsonl pairs.tsv --index news --preset near",
)
@click.argument("docs", type=FILE)
@click.argument("pairs", type=FILE)
@click.option(
    "--preset", type=click.Choice(list(PRESETS)), help="Use the scheme, distance and verification of a preset."
)
@options.scheme
@options.distance(
    help="Largest distance of a reported pair in bits, inclusive, 0 to 64. Default: that of the preset, else 12."
)
@options.share(
    "--similarity", help="Verification keeps pairs that are at least so similar. Default: that of the preset, else 0.8."
)
@click.option(
    "--measure", type=click.Choice(MEASURES), help="What similar means, as for find. Default: that of the preset."
)
@click.option("--unit", type=click.Choice(UNITS), help="What is compared, as for find. Default: that of the preset.")
@options.share("--positive", default=0.8, help="Smallest known similarity of a pair that counts as similar.")
@click.option("--text-field", metavar="NAME", default="text", help="Field of DOCS that holds the text.")
@click.option("--pairs-out", type=NEW_FILE, metavar="FILE", help="Write the reported pairs here, as JSON Lines.")
@click.option(
    "--plot", type=NEW_FILE, metavar="FILE", help="Draw recall and precision by distance: .png, .svg or .pdf."
)
@click.option("--index", metavar="INDEX", help="Look the texts up in this index, which has DOCS under the same ids.")
@options.target
def command(
    docs: str,
    pairs: str,
    preset: str | None,
    max_distance: int | None,
    text_field: str,
    pairs_out: str | None,
    plot: str | None,
    index: str | None,
    target: Target,
    *,
    as_json: bool,
    **how: Any,
) -> None:
    """
    Measure recall and precision on DOCS, whose similar PAIRS are known.

    DOCS is JSON Lines or CSV with id and text. PAIRS is CSV or TSV with the columns id1, id2 and jaccard; a pair that
    is not in it counts as dissimilar. Both may be plain or .gz. The command compares every pair of documents, and
    needs a server only for --index. Precision is the part of the reported pairs that are similar; the forgiving
    precision also accepts pairs whose similarity is up to 0.1 less.
    """
    from es_simhash.quality import (  # noqa: PLC0415 -- loads numpy
        check_picture,
        evaluate,
        plot_report,
        read_truth,
    )

    for out in filter(None, (pairs_out, plot)):
        refuse_output(out, inputs=[docs, pairs], kind="result")
    if plot is not None:
        check_picture(plot)
    truth = read_truth(_rows(docs), _rows(pairs), text_field=text_field)
    distance = get_preset(preset or "similar").max_distance if max_distance is None else max_distance
    how |= {"preset": preset, "scheme": target.scheme, "max_distance": distance}
    if index is None:
        report = evaluate(truth, **how)
    else:
        with connect(target, index) as connection:
            find_many = partial(connection.simhash.find_near_dups_many, index, max_distance=distance)
            report = evaluate(truth, **how, search=find_many)
    if pairs_out is not None:
        with open_text(pairs_out) as file:
            file.writelines(json.dumps(each, ensure_ascii=False) + "\n" for each in report.pairs())
    if plot is not None:
        plot_report(report, plot)
    if as_json:
        print_json({"preset": preset, **report.to_dict()}, indent=2)
    else:
        print_result(report)
        if lacking := report.to_dict()["without_fingerprint"]:
            note(f"{count(lacking, 'document')} without features, which no lookup reports")


def _rows(path: str) -> Iterator[Any]:
    for record in Reader([path], format="csv" if ".tsv" in path else "auto"):
        try:
            document = document_of(record)
            id_ = to_action(record, None).get("_id")  # of an export, or of a _bulk file
        except InvalidInputError as failure:
            raise InvalidInputError(f"{record.place}: {failure}") from failure
        yield document if id_ is None else {"id": id_, **document}


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
def explain(
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

    Shows the bits and blocks that differ, the features with their weights, the exact similarity, the presets that
    report the two, and the words that differ. A and B are texts, files, or ids of documents. Three arguments are INDEX,
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
