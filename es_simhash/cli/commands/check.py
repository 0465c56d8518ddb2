"""``es-simhash check``: whether lookups in an index work, and whether its fingerprints are right."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.options import Target
from es_simhash.cli.output import count, for_shell, print_json, print_line, say_command, warn
from es_simhash.cli.tables import print_sheets
from es_simhash.tables.notebook import Sheet
from es_simhash.tables.tabular import sheets_of

if TYPE_CHECKING:
    from es_simhash.quality import Diagnosis


@options.manual(
    "es-simhash check news",
    "es-simhash check news --sample 1000",
    "es-simhash check 'news-*' --json | jq -r '.indices[] | select(.ready | not) | .index'",
)
@click.argument("index")
@options.sample(None, help="Read N documents at random too, and examine their fingerprints.")
@options.text_field
@options.scheme
@options.target
def command(
    index: str, sample: int | None, seed: int, text_field: tuple[str, ...], target: Target, *, as_json: bool
) -> int:
    """
    Report whether lookups in INDEX work, what is wrong, and how many candidates a lookup has.

    INDEX may be a name, an alias, a pattern, or several of them separated by commas. It reads mappings, counts,
    and a few documents. With --sample it reads many, each time others, and compares: it reports stale and broken
    fingerprints, short texts, block terms that many documents share, a group of very many documents, and numbers that
    JavaScript rounded. Writes nothing. Exits with 1 if an index is not ready or
    something is wrong in the sample; with --scheme also if an index has another scheme.
    """
    if sample is None:
        options.refuse_given("needs --sample", "seed", "text_field")
    found: Diagnosis | None = None
    with connect(target, index) as connection:
        checks = connection.simhash.check(index)
        if sample is not None:
            found = connection.simhash.check_sample(index, sample=sample, seed=seed, text_field=text_field)
    if as_json:
        shown = [asdict(each) | {"problems": [for_shell(one) for one in each.problems]} for each in checks]
        print_json({"indices": shown} | ({} if found is None else {"sample": _to_dict(found) | {"seed": seed}}))
    else:
        rows = [
            {
                "index": each.index,
                "ready": each.ready,
                "scheme": each.scheme,
                "text fields": ", ".join(each.text_fields) or None,
                "documents": each.documents,
                "fingerprinted": each.fingerprinted,
            }
            for each in checks
        ]
        rules = [{"index": each.index, "rule": each.rule} for each in checks if each.rule is not None]
        print_sheets(Sheet("", rows), Sheet("", rules, folded=("rule",)))
        known = [each.candidates for each in checks if each.candidates is not None]
        if known:
            print_line(f"a lookup has about {count(round(sum(known)), 'candidate')}, whose distance is computed")
        for each in checks:
            for fault in each.faults:
                said = f"{each.index}: {fault}: {for_shell(fault.advice)}"
                warn(said, index=each.index, **asdict(fault))
        if found is not None:
            _show(found, seed)
    return 0 if all(each.ready for each in checks) and (found is None or found.is_healthy) else 1


def _to_dict(found: Diagnosis) -> dict[str, Any]:
    shown = found.to_dict()
    findings = [each | {name: for_shell(each[name]) for name in ("message", "advice")} for each in shown["findings"]]
    return shown | {"findings": findings, "reasons": list(map(for_shell, found.reasons))}


def _show(found: Diagnosis, seed: int) -> None:
    examined = f"{found.sampled:,} examined"
    if found.sampled < found.fingerprinted:
        compare = say_command("setup", found.index)
        examined = f"{found.sampled:,} of these examined (seed {seed}); {compare} compares all"
    print_line(f"{found.fingerprinted:,} with a fingerprint, {examined}")
    if not found.findings:
        print_line("nothing is wrong")
    # What is wrong with the mapping the check has said.
    _, parts = sheets_of(replace(found, findings=tuple(each for each in found.findings if each.topic != "mapping")))
    print_sheets(*parts)
    for reason in found.reasons:
        warn(str(reason))
