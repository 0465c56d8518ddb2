"""``es-simhash tune``, ``size`` and ``boilerplate``: what suits the texts of an index, and what it costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.options import Target
from es_simhash.cli.output import count, note, print_json, print_line, say_command, warn
from es_simhash.cli.output_files import refuse_output, write_whole
from es_simhash.cli.parameter_types import BYTES, COUNT, NEW_FILE
from es_simhash.cli.tables import print_table, share_text
from es_simhash.errors import shorten

if TYPE_CHECKING:
    from es_simhash.quality.size import Figure, IndexSize, Size
    from es_simhash.quality.tune import Tuning


@options.manual(
    "es-simhash tune news",
    "es-simhash tune articles --text-field body --sample 2000 --compare shingles --compare keywords",
)
@click.argument("index")
@options.sample(500)
@click.option("--compare", "schemes", metavar="SCHEME", multiple=True, help="Compare this scheme. Repeatable.")
@options.text_field
@click.option("--all", "all_", is_flag=True, help="Also print each scheme and distance by bits alone, by kind of edit.")
@options.target
def command(index: str, target: Target, *, all_: bool, as_json: bool, **how: Any) -> int:
    """
    Recommend a preset for the texts of INDEX.

    Makes edits of known kinds in a sample of the texts (typos, boilerplate, dates, cuts, moved sentences, punctuation,
    traditional and simplified), and reports which of them each scheme, distance and preset would find (recall), and at
    what cost. Also compares the texts of documents near each other that INDEX really has, and reports how many of them
    are 80 % the same (precision): the others are what a removal by bits alone would delete wrongly. Writes nothing. If
    INDEX does not have the fields yet, pass --text-field; precision is then that of pairs within the sample. Exits with
    1 if not every document could be looked at.
    """
    with connect(target, index) as connection:
        found = connection.simhash.tune(index, **how)
    if as_json:
        print_json(found.to_dict(), indent=2)
    else:
        _show(found, index, all_=all_)
    for reason in found.reasons:
        warn(reason)
    return 1 if found.reasons else 0


def _show(found: Tuning, index: str, *, all_: bool) -> None:
    note(f"{found.index}: {found.sampled:,} of {count(found.documents, 'text')} drawn")
    if found.recommended is not None:
        find = say_command("find", index, "--preset", found.recommended)
        print_line(f"recommended: {found.recommended} ({find} ...)")
    print_table(
        [
            *("preset", "#max distance", "#similarity", "#recall", "#recall above bound"),
            *("#recall above 0.8", "#wrong letters", "#candidates", "#milliseconds"),
        ],
        [
            (
                *(each.preset, each.max_distance, each.similarity),
                *map(share_text, (each.recall, each.recall_above_bound, each.recall_similar, each.noise_recall)),
                *(each.candidates, each.milliseconds),
            )
            for each in found.presets
        ],
        title="presets, after verification. wrong letters: recall of copies in which 2 % of the letters are wrong",
    )
    if all_:
        _show_schemes(found)
    else:
        note("--all also shows each scheme and distance by bits alone, by kind of edit")
    for line in found.notes:
        note(f"note: {line}")


def _show_schemes(found: Tuning) -> None:
    kinds = list(found.copies)
    print_table(
        ["edit", "#copies", "#similarity"],
        [(kind, number, f"{found.similarity[kind]:.3f}") for kind, number in found.copies.items()],
    )
    print_table(
        ["scheme", "#max distance", "#recall", "#precision", "#pairs", "#unrelated", *(f"#{kind}" for kind in kinds)],
        [
            (
                *(each.scheme, each.max_distance, share_text(each.recall), share_text(each.precision)),
                *(f"{each.pairs:,}", f"{each.unrelated:,.1f}"),
                *(share_text(each.by_edit.get(kind)) for kind in kinds),
            )
            for each in found.schemes
        ],
        title="by bits alone. recall: share of the edited copies; precision: share of the pairs of documents near each "
        "other in the index whose texts are 80 % the same; unrelated: unrelated documents to expect in each lookup",
        keys=2,
    )


_SHOWN_LETTERS = 60


@options.manual(
    "es-simhash boilerplate mails --out mask.json",
    "es-simhash boilerplate news --source-field agency --min-share 0.05 --out mask.json",
    "es-simhash boilerplate mails --sample 10000 --min-documents 50 --out mask.json --json | jq .passages[].text",
)
@click.argument("index")
@click.option("--out", type=NEW_FILE, required=True, help="File to write the mask to.")
@options.source_field
@click.option(
    "--min-documents", type=click.IntRange(2), default=20, help="Fewest sampled documents that have a passage."
)
@click.option(
    "--min-share",
    type=click.FloatRange(0, 1),
    default=0.01,
    help="Their smallest share of the sampled documents, or of those of one source.",
)
@options.sample(5_000)
@options.text_field
@options.target
def boilerplate(index: str, out: str, target: Target, *, as_json: bool, **how: Any) -> int:
    """
    Learn which passages of INDEX are template text, such as footers and disclaimers, and write them to a mask.

    A passage is template text if many sampled documents have it whose other text differs; copies of one article make
    none. It is worth at least 50 letters, or 40 characters of Chinese. With --source-field passages are also counted
    within each source. The mask is JSON: read it, and remove what is content. Pass it as --boilerplate to create or
    backfill fingerprints that leave these passages out, under a prefix of their own. Writes nothing to INDEX, and no
    mask if there is no such passage. Exits with 1 if not every document could be looked at.
    """
    refuse_output(out, inputs=[], kind="mask")
    with connect(target, index) as connection:
        found = connection.simhash.boilerplate(index, **how)
    if found.passages:
        write_whole(Path(out), [found.to_json()])
    if as_json:
        print_json(found.to_dict(), indent=2)
    else:
        rows = [
            (f"{each.documents:,}", f"{each.share:.3f}", each.source or "", shorten(each.text, limit=_SHOWN_LETTERS))
            for each in found.passages
        ]
        if rows:
            print_table(["#documents", "#share", "source", "~text"], rows)
        print_line(
            f"{count(len(found.passages), 'passage')} in {count(found.sampled, 'sampled text')}, "
            f"{100 * found.masked:.1f} % of their letters: {'the mask is in ' + out if rows else 'no mask was written'}"
        )
    for reason in found.reasons:
        warn(reason)
    return 1 if found.reasons else 0


_NAMES = {
    "disk_fingerprints": "disk: fingerprints",
    "disk_groups": "disk: groups",
    "disk_other_fields": "disk: other fields",
    "block_terms": "a lookup: block terms",
    "postings": "a lookup: postings read",
    "candidates": "a lookup: candidates",
    "lookup_as_written": "a lookup, times an empty search",
    "lookup_one_segment": "  with one segment a shard",
    "lookup_without_scripts": "  without scripts",
    "memory_pairs": "client memory: pairs",
    "memory_reconcile": "client memory: reconcile",
    "memory_reconcile_texts": "  where texts are compared",
    "memory_fingerprints": "  fingerprints alone, as arrays",
}
_REASONS = {
    "shard size": "at most 200M documents and 50 GiB a shard",
    "idle index": "force-merge once nothing is written any more",
    "loading": "while much is written",
    "idle cores": "where cores are idle",
    "fewer terms": "lookups then need fewer terms",
}


@options.manual(
    "es-simhash size --documents 500M --distance 8",
    "es-simhash size --documents 1.5B --distance 3 --shards 12 --replicas 1 --json",
    "es-simhash size news --documents 100M",
)
@click.argument("index", required=False)
@click.option("--documents", type=COUNT, metavar="N", help="Number of documents, such as 250000, 500M or 1.5B.")
@options.distance(
    "--distance", help="Largest distance of a lookup in bits, inclusive, 0 to 64. Default: that of INDEX, else 3."
)
@options.number("--shards", help="Primary shards. Default: as many as INDEX has, else as many as its size demands.")
@options.number("--replicas", least=0, most=1024, help="Copies of each shard. Default: as many as INDEX has, else 1.")
@click.option(
    "--document-bytes",
    type=BYTES,
    metavar="SIZE",
    help="Size on disk of a document without our fields, such as 2kB; decides about shards. INDEX knows its own.",
)
@click.option("--no-scripts", is_flag=True, help="The server does not allow scripts.")
@options.target
def size(
    index: str | None, document_bytes: int | None, target: Target, *, no_scripts: bool, as_json: bool, **how: Any
) -> None:
    """
    Estimate the disk of an index, the memory of the client, the cost of a lookup, and the settings to use.

    With INDEX its real size is read, and the numbers are for that index, or for it with more --documents. Each number
    says whether it was measured or modelled, and up to how many documents. Writes nothing.
    """
    from es_simhash.quality.size import PRODUCTS, estimate_size  # noqa: PLC0415 -- loads numpy

    product = next((each for each in PRODUCTS if each == target.server.product), None)
    how["scripts"] = not no_scripts
    if index is None:
        if how["documents"] is None:
            raise click.UsageError("give --documents, the name of an index, or both")
        how = {name: value for name, value in how.items() if value is not None}
        size = estimate_size(product=product, document_bytes=document_bytes or 0, **how)
    else:
        if document_bytes is not None:
            raise click.UsageError("--document-bytes is for a size without INDEX: leave one of the two out")
        with connect(target, index) as connection:
            product = next(each for each in PRODUCTS if each == connection.product)
            size = connection.simhash.size(index, product=product, **how)
    if as_json:
        print_json(size.to_dict(), indent=2)
    else:
        _show_size(size)


def show_count(number: float) -> str:
    """Return *number* in three digits or so: ``950``, ``3.29M``."""
    return _in_units(number, ["", "k", "M", "B", "T"])


def show_bytes(number: float) -> str:
    """Return a number of bytes in three digits or so: ``950 B``, ``3.29 GB``."""
    return _in_units(number, [" B", " kB", " MB", " GB", " TB", " PB"])


def _in_units(number: float, units: list[str]) -> str:
    power = 0
    while number >= 999.5 and power < len(units) - 1:
        number, power = number / 1000, power + 1
    digits = 0 if number >= 99.95 or number == int(number) else 1 if number >= 9.995 else 2
    return f"{number:,.{digits}f}{units[power]}"


def _show_size(size: Size) -> None:
    if size.measured is not None:
        _show_measured(size.measured)
    print_line(
        f"{count(size.documents, 'document')}, lookups within {size.max_distance} bits, "
        f"{count(size.shards, 'shard')}, {_replicas(size.replicas)}"
    )
    rows = [(_NAMES[each.name], *_range(each), _known(each)) for each in size.figures]
    print_table(["", "#least", "#most", "known"], rows)
    for advice in size.advice:
        print_line(f"set {advice.setting.removeprefix('index.')} to {advice.value}: {_REASONS[advice.reason]}")
    if any(each.is_beyond(size.documents) for each in size.figures):
        note("some numbers are extrapolated: no index with so many documents was measured")


def _show_measured(found: IndexSize) -> None:
    print_line(
        f"{found.index}: {count(found.documents, 'document')}, {found.fingerprinted:,} with a fingerprint, "
        f"{show_bytes(found.bytes)}"
    )
    print_line(
        f"{count(found.shards, 'shard')}, {_replicas(found.replicas)}, {count(found.segments, 'segment')}; "
        f"posting lists {found.density:.3g} times as long as of random fingerprints"
    )


def _replicas(number: int) -> str:
    return f"{count(number, 'replica')} of each"


def _range(figure: Figure) -> tuple[str, str]:
    if figure.unit == "bytes":
        show = show_bytes
    elif figure.unit == "times an empty search":
        show = "{:,.3g}".format if figure.high < 100 else "{:,.0f}".format
    else:
        show = show_count
    return "" if figure.low == figure.high else show(figure.low), show(figure.high)


def _known(figure: Figure) -> str:
    return figure.basis if figure.up_to is None else f"{figure.basis} to {show_count(figure.up_to)}"
