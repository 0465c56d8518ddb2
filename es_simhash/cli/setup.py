"""``setup``: an index that has documents, made ready; what was found, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
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
    with connect(to, index, described=described) as connection:
        found = connection.simhash.setup(index, dry_run=not yes, **how)
    if Output.as_json:
        plain = found.to_dict()
        for part, report in (("filled", found.filled), ("groups", found.groups)):
            plain[part] = report and plain[part] | plain_failures(report.failures)
        print_json(plain | {"dry_run": not yes})
    else:
        is_dry = not yes
        parts = _recorded(found, is_dry=is_dry), _measured(found, to), _done(found, is_dry=is_dry)
        for line in chain(*parts, _next(found, to) if yes or found.is_already else ()):
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
    failures = [failure for report in (found.filled, found.groups) if report for failure in report.failures]
    failed = len(failures) if found.filled is None else found.filled.failed + len(failures) - len(found.filled.failures)
    print_failures(failures, total=failed, advice=_MEND)
    return PARTLY if failed else settled(index, is_settled=not yes or found.is_settled)


def _recorded(found: Setup, *, is_dry: bool) -> Iterator[str]:
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


def _next(found: Setup, to: To) -> Iterator[str]:
    """Yield what was found and what to do next; no removal before what speaks against one."""
    number = 0 if found.groups is None else found.groups.duplicates
    yield f"found: {count(number, 'duplicate')} of other documents" if number else "found: no duplicates"
    for finding in found.findings:
        yield f"but {finding.message}: {finding.advice}"
    if not number:
        return
    yield "next:"
    yield f"{to.command('groups', found.index)}  # all groups"
    yield f"{to.command('report', found.index, '--out', 'report.html')}  # how many, of whom, and which words differ"
    yield f"{to.command('follow', found.index)}  # keeps all this right while other programs write"
    if not found.findings:
        yield f"{to.command('plan', found.index, '--out', 'removal.db')}  # which to delete: review it, then apply"


_PARTS = {"fields": "the fields", "grouping": "the rule", "max_distance": "the distance of lookups"}


def _measured(found: Setup, to: To) -> Iterator[str]:
    """Yield what each preset finds of edited copies, what the texts show beside, and which preset that speaks for."""
    figures = found.measured
    if found.unmeasured:
        yield f"measured: nothing: {found.unmeasured}"
    elif found.presets:
        yield f"{found.sampled:,} of your texts were edited, to see which preset finds the copies"
        yield f"measured: {'; '.join(map(str, sorted(found.presets, key=lambda preset: preset != figures)))}"
        yield "98 % of the copies that stay 80 % the same are enough to choose a preset"
    for message in found.notes:
        yield f"note: {message}"
    if figures is not None and found.preset is None and figures.max_distance > found.grouping["max_distance"]:
        again = to.command("reconcile", found.index, "--regroup", "--preset", figures.preset, "--yes")
        yield f"to change the rule: {again}"
