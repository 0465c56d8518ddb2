"""``es-simhash explain``: why two texts, files or documents are near-duplicates, or why not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.options import Target
from es_simhash.cli.output import count, print_json, show
from es_simhash.cli.records import STDIN, read_text
from es_simhash.cli.tables import Lines, print_table
from es_simhash.hashing import DEFAULT_SCHEME, to_hex

if TYPE_CHECKING:
    from es_simhash.quality.explain_flow import Explanation, Feature

_FEATURES = 12


@options.manual(
    'es-simhash explain "the boat leaves at nine" "the boat leaves at ten"',
    "es-simhash explain --file old.txt new.txt",
    "es-simhash explain --index news 4711 4712 --json",
)
@click.argument("a")
@click.argument("b")
@click.option("--file", "is_file", is_flag=True, help="A and B are files; each file is one text; - is stdin.")
@click.option("--index", metavar="INDEX", help="A and B are ids of documents of this index.")
@options.text_field
@options.number("--changes", "max_changes", default=4, help="Show at most N places where the texts differ.")
@options.scheme
@options.target
def command(a: str, b: str, index: str | None, target: Target, *, is_file: bool, as_json: bool, **how: Any) -> None:
    """
    Explain why texts A and B are near-duplicates, or why not.

    Shows the bits and blocks that differ, the features with their weights, the exact similarity, the presets that
    report the two, and the words that differ. A and B are texts, files, or ids of documents.
    """
    if is_file and index is not None:
        raise click.UsageError("pass --file or --index, not both")
    if how["text_field"] and index is None:
        raise click.UsageError("--text-field is for documents: pass --index")
    if is_file and a == b == STDIN:
        raise click.UsageError("stdin can be read only once: give a file for A or for B")
    if index is not None:
        with connect(target, index) as connection:
            found = connection.simhash.explain(index, a, b, **how)
    else:
        from es_simhash.quality.explain_flow import explain  # noqa: PLC0415 - loads numpy

        first, second = (read_text(each) if is_file else each for each in (a, b))
        found = explain(first, second, scheme=target.scheme or DEFAULT_SCHEME, max_changes=how["max_changes"])
    if as_json:
        print_json(found.to_dict(), indent=2)
    else:
        _show(found)


def _show(found: Explanation) -> None:
    with Lines() as lines:
        for line in _figures(found):
            lines.print(line)
    if not found.is_cut:
        _show_features("features that differ", found.differing)
        _show_features("features that are shared", found.shared)
    _show_diff(found)


def _figures(found: Explanation) -> Iterator[str]:
    for name, value in (("A", found.first), ("B", found.second)):
        yield f"{name}  {'no features, no fingerprint' if value is None else to_hex(value)}"
    if found.distance is not None:
        blocks = ", ".join(str(block) for block in found.equal_blocks) or "none"
        yield f"distance    {count(found.distance, 'bit')} of 64 ({found.scheme})"
        yield f"equal       block {blocks}"
        if found.differing_bits:
            yield f"differing   bit {', '.join(map(str, found.differing_bits))}"
    if found.cosine is not None:
        yield f"cosine      {found.cosine:.4f} of the weighted features"
    yield f"similarity  {found.similarity.jaccard:.4f} of the shingles (Jaccard)"
    yield f"containment {found.similarity.containment:.4f} of the smaller text"
    yield f"letters     {found.letters:.4f} stay (edit similarity)"
    if found.is_noise:
        yield "noise       the words differ, the letters hardly do: wrong letters or other numbers, not another text"
    yield f"presets     {', '.join(found.presets) or 'none reports the two'}"
    if found.is_cut:
        yield "features    not listed: the texts are too long"


def _show_features(title: str, features: tuple[Feature, ...]) -> None:
    if features:
        print_table(
            ["feature", "#weight in A", "#weight in B"],
            [(each.name, f"{each.first:.3g}", f"{each.second:.3g}") for each in features[:_FEATURES]],
            title=f"{title}: {min(len(features), _FEATURES):,} of {len(features):,}",
        )


def _show_diff(found: Explanation) -> None:
    from es_simhash.demo.render import diff_text  # noqa: PLC0415 - loads rich

    show(diff_text(found.diff))
