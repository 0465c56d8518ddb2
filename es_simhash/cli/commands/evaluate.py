"""
``es-simhash evaluate``: recall and precision on documents whose similar pairs are known.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click

from es_simhash.cli.connect import connect
from es_simhash.cli.manual import Manual
from es_simhash.cli.output import count, print_json, print_line, print_table
from es_simhash.cli.records import Reader
from es_simhash.cli.shared_options import (
    Server,
    json_option,
    prefix_option,
    scheme_options,
    server_options,
)
from es_simhash.errors import InvalidInputError
from es_simhash.hashing import Scheme
from es_simhash.index.presets import PRESETS, get_preset

EXAMPLES = [
    "es-simhash evaluate docs.jsonl.gz pairs.tsv.gz --preset similar",
    "es-simhash evaluate docs.jsonl pairs.tsv --scheme keywords --max-distance 12 --plot keywords.svg",
    "es-simhash evaluate docs.jsonl pairs.tsv --pairs-out reported.jsonl --json | jq .verified",
    "es-simhash evaluate docs.jsonl pairs.tsv --index news --preset near",
]

_FILE = click.Path(exists=True, dir_okay=False)
_OUT = click.Path(dir_okay=False, writable=True)


@click.command(cls=Manual, examples=EXAMPLES)
@click.argument("docs", type=_FILE)
@click.argument("pairs", type=_FILE)
@click.option("--preset", type=click.Choice(list(PRESETS)), help="Scheme, distance and verification of a preset.")
@scheme_options
@click.option(
    "-d",
    "--max-distance",
    type=click.IntRange(0, 64),
    metavar="BITS",
    help="Largest distance of a pair reported, 0 to 64 bits, inclusive. Default: that of the preset, else 12.",
)
@click.option(
    "--similarity",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="Verification keeps pairs that share at least this of their shingles. Default: that of the preset, else .8.",
)
@click.option(
    "--positive",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    default=0.8,
    show_default=True,
    help="Known similarity from which a pair counts.",
)
@click.option("--text-field", metavar="NAME", default="text", show_default=True, help="Field of the text in DOCS.")
@click.option("--pairs-out", type=_OUT, metavar="FILE", help="Write the pairs reported here, as JSON Lines.")
@click.option("--plot", type=_OUT, metavar="FILE", help="Draw recall and precision by distance: .png, .svg or .pdf.")
@click.option("--index", metavar="INDEX", help="Ask this index, which holds DOCS under their ids, and not the program.")
@prefix_option
@server_options
@json_option
def command(
    docs: str,
    pairs: str,
    preset: str | None,
    scheme: Scheme | str | None,
    max_distance: int | None,
    similarity: float | None,
    positive: float,
    text_field: str,
    pairs_out: str | None,
    plot: str | None,
    index: str | None,
    prefix: str,
    server: Server,
    *,
    as_json: bool,
) -> None:
    """
    Measure recall and precision on DOCS, whose similar PAIRS are known.

    DOCS: JSON Lines or CSV with id and text. PAIRS: a table (CSV, or TSV) with the columns id1, id2 and jaccard; a pair
    that is not listed counts as dissimilar. Both plain or .gz. Every pair of documents is compared, without a server
    unless --index names one. Precision is the share of the reported pairs that count; the forgiving one also takes
    pairs up to 0.1 below.
    """
    from es_simhash.quality.evaluate import evaluate  # noqa: PLC0415 - loads numpy
    from es_simhash.quality.plot import check_picture, plot_report  # noqa: PLC0415
    from es_simhash.quality.truth import read_truth  # noqa: PLC0415

    if plot is not None:
        check_picture(plot)
    truth = read_truth(_rows(docs), _rows(pairs), text_field=text_field)
    distance = get_preset(preset or "similar").max_distance if max_distance is None else max_distance
    options: dict[str, Any] = {
        "preset": preset,
        "scheme": scheme,
        "max_distance": distance,
        "similarity": similarity,
        "positive": positive,
    }
    if index is None:
        report = evaluate(truth, **options)
    else:
        with connect(server, index, prefix=prefix, scheme=scheme) as connection:
            find_many = partial(connection.simhash.find_near_dups_many, index, max_distance=distance)
            report = evaluate(truth, **options, search=find_many)
    if pairs_out is not None:
        with Path(pairs_out).open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(each, ensure_ascii=False) + "\n" for each in report.pairs())
    if plot is not None:
        plot_report(report, plot)
    if as_json:
        print_json({"preset": preset, **report.to_dict()}, indent=2)
    else:
        _show(report.to_dict())


def _rows(path: str) -> Iterator[Any]:
    for record in Reader([path]):
        if record.reason is not None:
            raise InvalidInputError(f"{record.place}: {record.reason}")
        if not isinstance(record.value, dict):
            raise InvalidInputError(f"{record.place}: neither a JSON object nor a row of a table with a header")
        yield record.value


def _show(figures: dict[str, Any]) -> None:
    columns = ["#recall", "#precision", "#forgiving", "#reported"]
    columns += [f"{column} verified" for column in columns]
    rows = figures["by_distance"]
    print_table(
        ["#max distance", *columns],
        [(row["max_distance"], *_cells(row)) for row in rows],
        title=f"{figures['scheme']}, verified at {figures['similarity']:g}; "
        f"{count(figures['positives'], 'pair')} of {figures['positive']:g} and more",
    )
    print_table(
        ["characters", "#pairs", *columns],
        [(_length(row), f"{row['positives']:,}", *_cells(row)) for row in figures["by_length"]],
        title=f"by length of the shorter text, max_distance {figures['max_distance']}",
    )
    if figures["without_fingerprint"]:
        print_line(f"{count(figures['without_fingerprint'], 'document')} without features, never reported")


def _cells(row: dict[str, Any]) -> list[str]:
    return [
        cell
        for each in (row, row["verified"])
        for cell in (
            *(_share(each[name]) for name in ("recall", "precision", "precision_forgiving")),
            f"{each['reported']:,}",
        )
    ]


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _length(row: dict[str, Any]) -> str:
    return f"from {row['from']:,}" if row["below"] is None else f"{row['from']:,} to {row['below'] - 1:,}"
