"""``es-simhash doctor``: what is wrong with the fingerprints of an index, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.options import Target
from es_simhash.cli.output import count, for_shell, print_json, print_line, warn
from es_simhash.cli.tables import print_table

if TYPE_CHECKING:
    from es_simhash.quality.health import Diagnosis


@options.manual("es-simhash doctor news", "es-simhash doctor 'news-*' --sample 5000 --json | jq .findings")
@click.argument("index")
@options.sample(1_000)
@options.text_field
@options.scheme
@options.target
def command(index: str, target: Target, *, as_json: bool, **how: Any) -> int:
    """
    Examine the fingerprints of INDEX, and say what to do.

    Reports faults of the mapping, documents without a fingerprint, stale and broken fingerprints, short texts, block
    terms that many documents share, the template text behind these and behind the largest group, numbers that
    JavaScript rounded, and how many candidates to expect for each max_distance. Writes nothing. Exits with 1 if
    something is wrong.
    """
    with connect(target, index) as connection:
        found = connection.simhash.doctor(index, **how)
    if as_json:
        print_json(_to_dict(found), indent=2)
    else:
        _show(found)
    return 0 if found.is_healthy else 1


def _to_dict(found: Diagnosis) -> dict[str, Any]:
    """Return the diagnosis with sentences in words of the command line."""
    shown = found.to_dict()
    findings = [each | {name: for_shell(each[name]) for name in ("message", "advice")} for each in shown["findings"]]
    return shown | {"findings": findings, "reasons": list(map(for_shell, found.reasons))}


def _show(found: Diagnosis) -> None:
    print_line(
        f"{found.index}: {count(found.documents, 'document')}, {found.fingerprinted:,} with a fingerprint, "
        f"{found.sampled:,} examined"
    )
    if found.findings:
        print_table(
            ["", "topic", "~found", "~what to do"],
            [(each.severity, each.topic, for_shell(each.message), for_shell(each.advice)) for each in found.findings],
        )
    else:
        print_line("nothing is wrong")
    if found.forecast:
        print_table(
            ["#max distance", "plan", "#candidates", "#milliseconds"],
            [(row["max_distance"], row["plan"], row["candidates"], row["milliseconds"]) for row in found.forecast],
            title="forecast of a lookup: candidates, and milliseconds more than an empty search",
        )
    for reason in found.reasons:
        warn(str(reason))
