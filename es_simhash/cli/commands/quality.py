"""``report``, ``check``, ``explain``, ``tune``: how good the near-duplicates of an index are, and why."""

from __future__ import annotations

import shlex
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from es_simhash import DEFAULT_SCHEME
from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.duplicates import warn_of_lacking
from es_simhash.cli.input_files import STDIN, read_text
from es_simhash.cli.options import Target
from es_simhash.cli.output import (
    count,
    note,
    print_json,
    print_line,
    print_result,
    print_sheets,
    warn,
)
from es_simhash.cli.output_files import refuse_output, write_whole
from es_simhash.cli.parameter_types import NEW_FILE
from es_simhash.tables.notebook import Sheet
from es_simhash.tables.tabular import sheets_of
from es_simhash.tables.words import LANGUAGES

if TYPE_CHECKING:
    from es_simhash import Stats
    from es_simhash.quality import Diagnosis

_TABLES = {"time": "over time", "source": "by source"}


@options.manual(
    "es-simhash report news",
    "es-simhash report 'news-*' --time-field published_at --source-field agency --text-field body --out report.html",
    "es-simhash report news --language zh --out report.html",
    "es-simhash report news --queries searches.txt",
    'es-simhash report news --filter \'{"term": {"lang": "en"}}\' --json | jq .duplicates',
)
@click.argument("index")
@click.option("--out", type=NEW_FILE, help="Write a page to this file: HTML that opens anywhere and loads nothing.")
@options.time_field
@options.source_field
@click.option(
    "-t",
    "--text-field",
    metavar="FIELD",
    help="Field whose text is shown. Default with --out: the fields that the index records.",
)
@options.counted_filter
@click.option("--language", type=click.Choice(LANGUAGES), default="en", help="Language of the page.")
@options.sample(1_000)
@click.option(
    "--queries",
    metavar="FILE",
    help="Say how many hits of these searches repeat another: one a line, words or the JSON of a search body.",
)
@options.target
def report(
    index: str,
    out: str | None,
    language: str,
    sample: int,
    seed: int,
    queries: str | None,
    target: Target,
    *,
    as_json: bool,
    **how: Any,
) -> None:
    """
    Print how many documents, duplicates and groups INDEX has: by size, by distance, over time and by source.

    Every number is exact, because the server counts all documents: about two searches for every 10,000 groups. With
    --out a page shows them, with the largest groups, and those with a distant member, with the words that differ; the
    health of the fingerprints; and how all that was measured. Its time is --time-field, or the date that INDEX records
    for its canonicals. With --json the numbers are printed too. With --queries it says how many of the first ten hits
    of these searches repeat an earlier one, and how many new hits they would show without copies. Writes nothing to the
    index.
    """
    if out is None:
        options.refuse_given("needs --out", "language")
    if out is None and queries is None:
        options.refuse_given("needs --out", "sample", "seed")
        with connect(target, index) as connection:
            stats = connection.simhash.stats(index, **how)
        if as_json:
            print_json(stats.to_dict(), indent=2)
        else:
            _show_stats(stats)
        return
    if out is not None:
        refuse_output(out)
    with connect(target, index) as connection:
        found = connection.simhash.report(index, sample=sample, seed=seed, queries=queries, **how)
        warn_of_lacking(connection, index)
    if out is not None:
        write_whole(Path(out), [found.html(language=language)])
    if as_json:
        print_json(found.to_dict(), indent=2)
        return
    if found.searches is not None:
        print_result(found.searches)
    if out is not None:
        print_line(f"the report is in {out}: open it in a browser")
        for name in found.uncharted:
            note(f"--{name}-field FIELD adds a table {_TABLES[name]}")


def _show_stats(stats: Stats) -> None:
    print_result(stats)
    if several := stats.groups.several_canonicals:
        note(
            f"{count(several, 'name')} of several groups, because indices that were not grouped together repeat an id; "
            "each name counts as one group: run es-simhash reconcile over all of them, or count each by itself"
        )


@options.manual(
    'es-simhash explain "the boat leaves at nine" "the boat leaves at ten"',
    "es-simhash explain --file old.txt new.txt",
    "es-simhash explain news 4711 4712",
)
@click.argument("words", metavar="[INDEX] A B", nargs=-1, required=True)
@click.option("--file", "is_file", is_flag=True, help="A and B are files; each file is one text; - is stdin.")
@options.text_field
@options.number("--changes", "max_changes", default=4, help="Show at most N places where the texts differ.")
@options.scheme
@options.target
def explain(
    words: tuple[str, ...],
    target: Target,
    *,
    is_file: bool,
    as_json: bool,
    **how: Any,
) -> None:
    """
    Explain why texts A and B are near-duplicates, or why not.

    Shows the distance, the exact similarity, and the words that differ; of documents also what the rule of INDEX says.
    A and B are texts, files, or ids of documents. Three arguments are INDEX, as for other commands, and two ids. The
    distance is 0 bits for texts with the same features, about 32 of 64 for texts with nothing in common.
    """
    if not 2 <= len(words) <= (2 if is_file else 3):
        raise click.UsageError("pass two texts or files, or INDEX and two ids")
    *before, a, b = words
    if how["text_field"] and not before:
        raise click.UsageError("--text-field is for documents: pass INDEX and two ids")
    if is_file and a == b == STDIN:
        raise click.UsageError("stdin can be read only once: give a file for A or for B")
    if before:
        with connect(target, before[0]) as connection:
            found = connection.simhash.explain(before[0], a, b, **how)
    else:
        from es_simhash.quality import explain as explain_texts  # noqa: PLC0415 - loads numpy

        first, second = (read_text(path) if is_file else path for path in (a, b))
        found = explain_texts(first, second, scheme=target.scheme or DEFAULT_SCHEME, max_changes=how["max_changes"])
    if as_json:
        print_json(found.to_dict(), indent=2)
    else:
        print_result(found)


@options.manual(
    "es-simhash tune news",
    "es-simhash tune articles --text-field body --sample 2000",
)
@click.argument("index")
@options.sample(500)
@options.text_field
@options.target
def tune(index: str, target: Target, *, as_json: bool, **how: Any) -> int:
    """
    Recommend a preset for the texts of INDEX.

    Makes edits of known kinds in a sample of the texts (typos, boilerplate, dates, cuts, moved sentences, punctuation,
    traditional and simplified), and reports which of them each preset would find (recall). Recommends the strictest
    that finds 98 % of the copies that share 80 % of their words. Writes nothing. If INDEX does not have the fields yet,
    pass --text-field. Exits with 1 if not every document could be looked at. How many documents a preset would
    remove says es-simhash plan INDEX --preset PRESET.
    """
    with connect(target, index) as connection:
        found = connection.simhash.tune(index, **how)
    if as_json:
        print_json(found.to_dict(), indent=2)
    else:
        print_result(found)
        if found.recommended is not None:
            print_line(f"to try it: es-simhash find {shlex.quote(index)} --preset {found.recommended} ...")
    for reason in found.reasons:
        warn(reason)
    return 1 if found.reasons else 0


@options.manual(
    "es-simhash check news",
    "es-simhash check news --sample 1000",
    "es-simhash check 'news-*' --json | jq -r '.indices[] | select(.ready | not) | .index'",
)
@click.argument("index")
@options.sample(None, help="Read N documents at random too, and examine their fingerprints.")
@options.text_field
@options.scheme_files
@options.target
def check(
    index: str, sample: int | None, seed: int, text_field: tuple[str, ...], target: Target, *, as_json: bool
) -> int:
    """
    Report whether lookups in INDEX work, what is wrong, and how many candidates a lookup has.

    INDEX may be a name, an alias, a pattern, or several of them separated by commas. It reads mappings, counts,
    and a few documents. With --sample it reads many, each time others, and compares: it reports stale and broken
    fingerprints, short texts, block terms that many documents share, a group of very many documents, and numbers that
    JavaScript rounded. Writes nothing. Exits with 1 if an index is not ready or something is wrong in the sample.
    """
    if sample is None:
        options.refuse_given("needs --sample", "seed", "text_field")
    found: Diagnosis | None = None
    with connect(target, index) as connection:
        checks = connection.simhash.check(index)
        if sample is not None:
            found = connection.simhash.check_sample(index, sample=sample, seed=seed, text_field=text_field)
    if as_json:
        print_json(
            {"indices": list(map(asdict, checks))}
            | ({} if found is None else {"sample": found.to_dict() | {"seed": seed}})
        )
    else:
        rows = [
            {
                "index": index_check.index,
                "ready": index_check.ready,
                "scheme": index_check.scheme,
                "text fields": ", ".join(index_check.text_fields) or None,
                "documents": index_check.documents,
                "fingerprinted": index_check.fingerprinted,
            }
            for index_check in checks
        ]
        rules = [
            {"index": index_check.index, "rule": index_check.rule}
            for index_check in checks
            if index_check.rule is not None
        ]
        print_sheets(Sheet("", rows), Sheet("", rules, folded=("rule",)))
        known = [index_check.candidates for index_check in checks if index_check.candidates is not None]
        if known:
            print_line(f"a lookup has about {count(round(sum(known)), 'candidate')}, whose distance is computed")
        for index_check in checks:
            for fault in index_check.faults:
                said = f"{index_check.index}: {fault}: {fault.advice}"
                warn(said, index=index_check.index, **asdict(fault))
        if found is not None:
            _show_sample(found, seed)
    return 0 if all(index_check.ready for index_check in checks) and (found is None or found.is_healthy) else 1


def _show_sample(found: Diagnosis, seed: int) -> None:
    examined = f"{found.sampled:,} examined"
    if found.sampled < found.fingerprinted:
        compare = shlex.join(["es-simhash", "setup", found.index])
        examined = f"{found.sampled:,} of these examined (seed {seed}); {compare} compares all"
    print_line(f"{found.fingerprinted:,} with a fingerprint, {examined}")
    if not found.findings:
        print_line("nothing is wrong")
    # What is wrong with the mapping the check has said.
    _, parts = sheets_of(
        replace(found, findings=tuple(finding for finding in found.findings if finding.kind != "mapping"))
    )
    print_sheets(*parts)
    for reason in found.reasons:
        warn(str(reason))
