"""``setup``: an index that has documents, made ready; what was found, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from es_simhash import SimHashClient
from es_simhash.cli.connect import connect
from es_simhash.cli.options import RULE, Described, To, Yes, takes
from es_simhash.cli.show import (
    PARTLY,
    Output,
    count,
    plain_failures,
    print_failures,
    print_json,
    print_line,
    settled,
    warn,
)
from es_simhash.tables.notebook import percent

if TYPE_CHECKING:
    from es_simhash import Setup

# Most failures are of the documents themselves, and stay.
_MEND = "mend these, and run it again"


@takes(SimHashClient.setup, f"text_field time_field {RULE}")
def setup(index: str, /, *, yes: Yes = False, described: Described = Described(), to: To = To(), **how: Any) -> int:
    """
    Make INDEX, which has documents, ready for everything else.

    Adds the fields, records what counts as a near-duplicate, gives each document the fingerprint of its present text,
    and groups the near-duplicates. Without an option that says what counts, your texts choose a preset, as in
    es-simhash tune. What INDEX records already stays as it is. No document is deleted, and your own fields stay. Other
    programs may write at the same time. If it is stopped, run it again to continue.

    For example:

        es-simhash setup news --text-field body
        es-simhash setup news --text-field body --time-field published --yes

    Args:
        index:
            Name, alias, data stream or pattern, or several of them separated by commas.
    """
    with connect(to, index, scheme=described.build(), files=described.files) as connection:
        found = connection.simhash.setup(index, dry_run=not yes, **how)
        example = "ID"
        if not Output.as_json and found.groups and found.groups.duplicates:
            tagged = {"size": 1, "_source": False, "query": {"exists": {"field": f"{to.prefix}.duplicate_of"}}}
            hits = connection.client.search(index=index, body=tagged)["hits"]["hits"]
            example = hits[0]["_id"] if hits else example
    if Output.as_json:
        plain = found.to_dict()
        for part, report in (("filled", found.filled), ("groups", found.groups)):
            plain[part] = report and plain[part] | plain_failures(report.failures)
        print_json(plain | {"dry_run": not yes})
    else:
        for line in _lines(found, is_dry=not yes):
            print_line(line)
        _show_measured(found, to)
        for line in (*_done(found, is_dry=not yes), *_next(found, to, example, is_dry=not yes)):
            print_line(line)
    if found.outside:
        verb = "are" if yes else "would be"
        warn(
            f"duplicates whose canonical {index} does not show (deleted, or in another index): {found.outside:,}, "
            f"which {verb} grouped anew without it; name all indices together that are to be grouped together",
            kind="outside",
            number=found.outside,
        )
    if found.rollover:
        warn(found.rollover)
    filled = (found.filled.failures, found.filled.failed) if found.filled else ((), 0)
    grouped = found.groups.failures if found.groups else ()
    failures, failed = [*filled[0], *grouped], filled[1] + len(grouped)
    print_failures(failures, total=failed, advice=_MEND)
    is_settled = not yes or found.groups is None or found.groups.is_settled or bool(grouped)
    return settled(index, is_settled=is_settled) if not failed else PARTLY


def _lines(found: Setup, *, is_dry: bool) -> Iterator[str]:
    """Yield what was recorded."""
    names = "" if found.indices == (found.index,) else f" ({', '.join(found.indices)})"
    verb = "would be recorded" if is_dry else "recorded"
    new = f"{verb} now: {', '.join(_PARTS[part] for part in found.recorded)}" if found.recorded else "recorded already"
    yield f"{found.index}{names}: {count(found.documents, 'document')}, text in {', '.join(found.text_fields)} ({new})"
    other = " (another: --preset)" if is_dry and "grouping" in found.recorded else ""
    name = f"preset {found.preset}{other}" if found.preset else "no preset"
    misses = f"; {found.misses}" if found.misses and "grouping" in found.recorded else ""
    yield f"rule: {name}, scheme {found.scheme}, {found.rule}{misses}"


def _done(found: Setup, *, is_dry: bool) -> Iterator[str]:
    """Yield what was filled, or would be."""
    filled, groups = found.filled, found.groups
    new_ones, stale = (found.missing, 0) if filled is None else (filled.changed - filled.stale, filled.stale)
    if found.is_already:
        yield "already set up: nothing is to do"
    elif is_dry:
        new = f"{'up to ' if filled is None else ''}{count(new_ones, 'document')}"
        yield f"would give {new} a first fingerprint, replace {stale:,} stale ones, and group all"
        if filled is not None and filled.failed:
            yield f"would fail for {count(filled.failed, 'document')}"
        yield "nothing changed, pass --yes to do it"
    elif filled is not None and groups is not None:
        empty = f", {filled.empty:,} have no text with letters" if filled.empty else ""
        yield (
            f"filled: {filled.seen:,} compared, {new_ones:,} got their first fingerprint, {stale:,} stale ones "
            f"replaced, {filled.failed:,} failed{empty}; grouped: {groups.changed:,} written, "
            f"{len(groups.failures):,} failed"
        )


def _next(found: Setup, to: To, example: str, *, is_dry: bool) -> Iterator[str]:
    """Yield what was found and what to do next; no removal before what speaks against one."""
    groups = found.groups
    if is_dry and not found.is_already:
        return
    number = 0 if groups is None else groups.duplicates
    yield f"found: {count(number, 'duplicate')} of other documents" if number else "found: no duplicates"
    for finding in found.findings:
        yield f"but {finding.message}: {finding.advice}"
    if not number:
        return
    next_ones: dict[tuple[str, ...], str] = {}
    next_ones |= {
        ("find", found.index, "--id", example): "the near-duplicates of a document",
        ("groups", found.index, "--min-size", "2"): "all groups",
        ("report", found.index, "--out", "report.html"): "how many, of whom, and which words differ",
        ("follow", found.index): "keeps all this right while other programs write",
    }
    if not found.findings:
        next_ones["plan", found.index, "--out", "removal.db"] = "which to delete: review it, then apply"
    yield "next:"
    commands = [to.command(*words) for words in next_ones]
    width = max(map(len, commands))
    for command, said in zip(commands, next_ones.values(), strict=True):
        yield f"{command:{width}}  # {said}"


_PARTS = {"fields": "the fields", "grouping": "the rule", "max_distance": "the distance of lookups"}


def _show_measured(found: Setup, to: To) -> None:
    """Print what each preset finds of edited copies, what the texts show beside, and which preset that speaks for."""
    figures = found.measured
    if found.unmeasured:
        print_line(f"measured: nothing: {found.unmeasured}")
    elif found.presets:
        print_line(f"{found.sampled:,} of your texts were edited, to see which preset finds the copies")
        print_line(f"measured: {'; '.join(map(str, sorted(found.presets, key=lambda preset: preset != figures)))}")
        if figures is not None and figures.preset == found.preset:
            place = [preset.preset for preset in found.presets].index(found.preset)
            shares = [f"{preset.preset} {percent(preset.recall_similar)}" for preset in found.presets[: place + 1]]
            print_line(f"of the copies that stay 80 % the same: {', '.join(shares)}; 98 % is enough to choose a preset")
    for message in found.notes:
        print_line(f"note: {message}")
    if figures is not None and found.preset is None and figures.max_distance > found.grouping["max_distance"]:
        again = to.command("reconcile", found.index, "--regroup", "--preset", figures.preset, "--yes")
        print_line(f"to change the rule: {again}")
