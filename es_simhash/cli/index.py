"""``create``, ``check``, ``follow``, ``reconcile`` and ``remove-fields``: an index, made and kept ready."""

from __future__ import annotations

import json
import shlex
import sys
import time
from contextlib import closing
from dataclasses import asdict, replace
from datetime import UTC, datetime
from random import randrange
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from es_simhash import FollowReport, InvalidInputError, PairRule, SimHashClient
from es_simhash.cli.connect import connect
from es_simhash.cli.failures import WrongUseError
from es_simhash.cli.lines import read_text
from es_simhash.cli.options import (
    RULE,
    Described,
    DryRun,
    MaxDistance,
    TextFields,
    To,
    Yes,
    YesFor,
    read_json,
    reads,
    takes,
)
from es_simhash.cli.show import (
    DRY,
    PARTLY,
    Output,
    count,
    error,
    note,
    plain_failures,
    print_failures,
    print_json,
    print_line,
    print_sheets,
    settled,
    show,
    warn,
)
from es_simhash.cli.stopping import stop_requests
from es_simhash.errors import shorten
from es_simhash.tables.notebook import Sheet
from es_simhash.tables.tabular import sheets_of
from es_simhash.transport.raw_json import why_unreadable

if TYPE_CHECKING:
    from es_simhash.quality import Diagnosis


def create(
    index: str,
    /,
    *,
    text_field: TextFields = (),
    existing: bool = False,
    mappings: str | None = None,
    settings: Annotated[
        Any, reads(read_json, "Settings of the index, as in '{\"number_of_shards\": 1}'.", "JSON")
    ] = None,
    passages: Annotated[bool | None, Parameter(negative="--no-passages")] = None,
    dry_run: bool = False,
    yes: YesFor = False,
    described: Described = Described(),
    to: To = To(),
    max_distance: MaxDistance = None,
) -> None:
    """
    Create INDEX with the fields, or add the fields to it.

    The mapping records the scheme, the text fields and the distance, so that other commands know them. Documents
    that are already in the index have no fingerprint until you run es-simhash setup. With --existing what is not
    given stays as the mapping records it, and what is given takes its place.

    For example:

        es-simhash create news --text-field title --text-field body --max-distance 8
        es-simhash create news --text-field body --mappings own.json --settings '{"number_of_shards": 3}'
        es-simhash create news --existing --passages --yes && es-simhash setup news --yes

    Args:
        index:
            Name of the index.
        existing:
            Add the fields to an index that exists; needs --yes.
        mappings:
            JSON file with the mapping of your own fields.
        passages:
            Whether documents also hold hashes of their passages, which es-simhash passages needs.
        dry_run:
            Without --existing: say what would be created, and create nothing.
        yes:
            With --existing: do it. Without --yes the command says what it would do.
    """
    if existing and (mappings or settings is not None):
        raise WrongUseError("--mappings and --settings are for a new index: leave them out with --existing")
    if dry_run if existing else yes:
        raise WrongUseError("--dry-run is for a new index, and --yes goes with --existing")
    own = None if mappings is None else _read_mappings(mappings)
    how: dict[str, Any] = {"text_field": text_field, "max_distance": max_distance}
    with connect(to, index, described=described) as connection:
        if existing:
            how |= {"passages": passages}
            changed = connection.simhash.put_mapping(index, dry_run=not yes, **how)
            report: dict[str, Any] = {"indices": changed, "dry_run": not yes}
            line = f"{'added the fields' if yes else 'would add the fields'} to {', '.join(changed)}"
            line += "" if yes else "; nothing changed, pass --yes to do it"
        else:
            how |= {"passages": bool(passages)}
            made = connection.simhash.create_index(index, mappings=own, settings=settings, dry_run=dry_run, **how)
            if dry_run and connection.client.indices.exists(index=index):
                raise InvalidInputError(f"index {shorten(index)} exists: add the fields to it with --existing")
            report = {"created": index, "dry_run": dry_run, **made.to_dict()}
            line = f"{'would create' if dry_run else 'created'} {index}, scheme {made.scheme}{DRY * dry_run}"
    show(report, line)
    if max_distance is not None and (missed := PairRule(max_distance).misses):
        note(f"the index records {count(max_distance, 'bit')}: {missed}")


def _read_mappings(path: str) -> Any:
    try:
        mapping = json.loads(read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidInputError(
            f"{shorten(path)} is not JSON ({why_unreadable(error)}): give a mapping, as GET INDEX/_mapping shows it"
        ) from error
    # People have two forms: what goes below "mappings", and a body with that key.
    return mapping.get("mappings", mapping) if isinstance(mapping, dict) else mapping


def remove_fields(index: str, /, *, groups_only: bool = False, yes: Yes = False, to: To = To()) -> int:
    """
    Remove the fields from each document of INDEX, and from the _meta of its mapping.

    Your own fields stay. The mapping keeps our fields, without values, because no server can remove a field from a
    mapping. With --groups-only the fingerprints stay: that undoes what reconcile has written.

    For example:

        es-simhash remove-fields news
        es-simhash remove-fields news --groups-only --yes

    Args:
        index:
            Name, alias, data stream or pattern, or several of them separated by commas.
        groups_only:
            Remove only the group fields and the recorded grouping.
    """
    with connect(to, index) as connection:
        removed = connection.simhash.remove_fields(index, groups_only=groups_only, dry_run=not yes)
    if not removed.documents and not removed.indices:
        note(f"{index} has nothing below {to.prefix!r}: --prefix names other fields")
    what = "the groups" if groups_only else repr(to.prefix)
    where = f", and from _meta in the mapping of {', '.join(removed.indices)}" if removed.indices else ""
    done, hint = ("removed", "") if yes else ("would remove", "; nothing changed, pass --yes to do it")
    show(
        asdict(removed) | plain_failures(removed.failures) | {"dry_run": not yes},
        f"{done} {what} from {count(removed.documents, 'document')}{where}{hint}",
    )
    print_failures(removed.failures)
    return PARTLY if removed.failures else settled(index, is_settled=removed.is_settled)


@takes(SimHashClient.reconcile, f"since {RULE}")
def reconcile(
    index: str, /, *, dry_run: DryRun = False, yes: YesFor = False, regroup: bool = False, to: To = To(), **how: Any
) -> int:
    """
    Rewrite the group fields of INDEX that disagree with its rule.

    The result depends on the documents alone, not on the programs that wrote them or on the order. Run it after
    several programs wrote at once, after deletions, and for an index that was never grouped. A second run rewrites
    nothing.

    For example:

        es-simhash reconcile news --since 2026-11-20T06:00
        es-simhash reconcile news --canonical published --preset near --dry-run
        es-simhash reconcile news --regroup --preset near --canonical 'source:xinhua>reuters>*' --yes

    Args:
        index:
            Name, alias or data stream, or several that are grouped together, separated by commas.
        regroup:
            Change the recorded grouping to the one that the other options ask for; needs --yes. Run it again if it was
            stopped.
        yes:
            With --regroup: do it. Without --yes the command says what it would do.
    """
    if yes and (dry_run or not regroup):
        raise WrongUseError("--yes goes with --regroup; leave it out, or --dry-run")
    is_dry = dry_run or (regroup and not yes)
    with connect(to, index) as connection:
        report = connection.simhash.reconcile(index, dry_run=is_dry, regroup=regroup, **how)
    verb = "would be rewritten" if is_dry else "rewritten"
    hint = ", pass --yes to do it" if regroup and not yes else ""
    counts = [count(report.documents, "document"), count(report.groups, "group"), count(report.duplicates, "duplicate")]
    show(
        asdict(report) | {"dry_run": is_dry} | plain_failures(report.failures),
        f"rule: {report.rule}",
        f"{index}: {', '.join(counts)}; {report.changed:,} {verb}{hint}{DRY * is_dry}",
    )
    if report.unread:
        said = f"the text of {count(report.unread, 'document')} could not be read: they have no near-duplicates"
        warn(said, kind="unread", number=report.unread)
    if report.first_unreadable is not None:
        said = f"{count(report.unreadable, 'document')} left out: no readable fingerprint, as {report.first_unreadable}"
        warn(f"{said}: run es-simhash setup {shlex.quote(index)}", kind="unreadable", number=report.unreadable)
    print_failures(report.failures)
    if report.failures and not is_dry:
        return PARTLY
    return settled(index, is_settled=is_dry or report.is_settled)


def check(index: str, /, *, sample: int | None = None, to: To = To()) -> int:
    """
    Report whether lookups in INDEX work, and what is wrong.

    It reads mappings, counts, and a few documents. With --sample it reads many, each time others, and compares: it
    reports stale and broken fingerprints, short texts, a group of very many documents, and numbers that JavaScript
    rounded. Writes nothing. Exits with 1 if an index is not ready or something
    is wrong in the sample.

    For example:

        es-simhash check news --sample 1000
        es-simhash check 'news-*' --json | jq -r '.indices[] | select(.ready | not) | .index'

    Args:
        index:
            A name, an alias, a pattern, or several of them separated by commas.
        sample:
            Read so many documents at random too, and examine their fingerprints.
    """
    found: Diagnosis | None = None
    with connect(to, index) as connection:
        checks = connection.simhash.check(index)
        if sample is not None:
            found = connection.simhash.check_sample(index, sample=sample, seed=randrange(2**31))
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
    rules = [{"index": index_check.index, "rule": index_check.rule} for index_check in checks if index_check.rule]
    show(
        {"indices": [asdict(index_check) for index_check in checks]}
        | ({} if found is None else {"sample": found.to_dict()}),
        sheets=[Sheet("", rows), Sheet("", rules, folded=("rule",))],
    )
    if not Output.as_json:
        for index_check in checks:
            for fault in index_check.faults:
                warn(f"{index_check.index}: {fault}: {fault.advice}")
        if found is not None:
            _show_sample(found, to)
    return 0 if all(index_check.ready for index_check in checks) and (found is None or found.is_healthy) else 1


def _show_sample(found: Diagnosis, to: To) -> None:
    examined = f"{found.sampled:,} examined"
    if found.sampled < found.fingerprinted:
        examined = f"{found.sampled:,} of these examined; {to.command('setup', found.index)} compares all"
    print_line(f"{found.fingerprinted:,} with a fingerprint, {examined}")
    if not found.findings:
        print_line("nothing is wrong")
    # What is wrong with the mapping the check has said.
    others = tuple(finding for finding in found.findings if finding.kind != "mapping")
    _, parts = sheets_of(replace(found, findings=others))
    print_sheets(*parts)
    for reason in found.reasons:
        warn(str(reason))


@takes(SimHashClient.follow, "once interval state_index")
def follow(index: str, /, *, metrics: float | None = None, to: To = To(), **how: Any) -> int:
    """
    Give whatever other programs write to INDEX its fingerprint, and its group where one is recorded.

    It runs until Ctrl-C or SIGTERM: it then finishes its batch, records how far it came, and ends with exit code 0. If
    the server can no longer be reached it waits. Run one for each INDEX: a second one only does the same work again.
    What it would do first says es-simhash setup INDEX.

    For example:

        es-simhash follow news
        es-simhash follow news --metrics 60
        es-simhash follow news --once

    Args:
        index:
            Name, alias, data stream or pattern, or several of them separated by commas.
        metrics:
            Print the numbers on stdout every so many seconds, one JSON object a line.
    """
    last = FollowReport("waiting")
    problem, printed_at = "", float("-inf")
    try:
        with (
            stop_requests(lambda: last.is_idle) as request,
            connect(to, index, is_quiet=True) as connection,
            closing(connection.simhash.follow(index, **how)) as reports,
        ):
            for last in reports:
                for failure in last.failures:
                    error(str(failure), **failure.to_dict())
                if last.problem != problem and last.state not in ("reading", "grouping"):
                    problem = last.problem
                    if problem:
                        warn(f"{problem}: waiting", kind=last.state)
                if metrics is not None and time.monotonic() - printed_at >= metrics:
                    printed_at = time.monotonic()
                    print_json(_to_dict(index, last))
                    sys.stdout.flush()
                if request.stop is not None:
                    break
    except KeyboardInterrupt:
        note("stopped")
    if metrics is not None:
        print_json(_to_dict(index, last))
    else:
        show(_to_dict(index, last), f"{index}: {_sentence(last)}")
    return PARTLY if how.get("once") and last.failed else 0


def _to_dict(index: str, report: FollowReport) -> dict[str, Any]:
    numbers = {name: number for name, number in asdict(report).items() if name != "failures"}
    return {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "index": index,
        **numbers,
    }


def _sentence(last: FollowReport) -> str:
    written = f"{count(last.written, 'fingerprint')} written, {last.stale:,} of them stale"
    failed = [f"{last.failed:,} failed"] if last.failed else []
    changed = count(last.read, "changed document")
    return ", ".join([f"{changed} read", written, f"{count(last.regrouped, 'group')} changed", *failed])
