"""``es-simhash size``: what an index of so many documents takes, and what to set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.options import Target
from es_simhash.cli.output import count, note, print_json, print_line
from es_simhash.cli.parameter_types import BYTES, COUNT
from es_simhash.cli.tables import print_table

if TYPE_CHECKING:
    from es_simhash.quality.size_flow import Figure, IndexSize, Size

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
@options.distance("--distance", default=3, help="Largest distance of a lookup in bits, inclusive, 0 to 64.")
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
def command(
    index: str | None, document_bytes: int | None, target: Target, *, no_scripts: bool, as_json: bool, **how: Any
) -> None:
    """
    Estimate the disk of an index, the memory of the client, the cost of a lookup, and the settings to use.

    With INDEX its real size is read, and the numbers are for that index, or for it with more --documents. Each number
    says whether it was measured or modelled, and up to how many documents. Writes nothing.
    """
    from es_simhash.quality.size_flow import PRODUCTS, estimate_size  # noqa: PLC0415 -- loads numpy

    product = next((each for each in PRODUCTS if each == target.server.product), None)
    how["scripts"] = not no_scripts
    if index is None:
        if how["documents"] is None:
            raise click.UsageError("give --documents, the name of an index, or both")
        how["replicas"] = 1 if how["replicas"] is None else how["replicas"]
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
        _show(size)


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


def _show(size: Size) -> None:
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
