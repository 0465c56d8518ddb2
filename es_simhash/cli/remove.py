"""``plan``, ``review``, ``apply``, ``restore`` and ``history``: removals, made, looked at, carried out and undone."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from es_simhash import DuplicateResult, InvalidInputError, Removed, SimHashClient, removal_history
from es_simhash.cli.connect import connect, warn_of_lacking
from es_simhash.cli.failures import WrongUseError
from es_simhash.cli.options import RULE, DryRun, To, Yes, takes
from es_simhash.cli.output_files import open_report, refuse_output, write_whole
from es_simhash.cli.show import (
    DRY,
    PARTLY,
    SHOWN_FAILURES,
    Output,
    count,
    error,
    note,
    print_json,
    print_line,
    print_sheets,
    print_text,
    show,
    visible,
    warn,
)
from es_simhash.errors import shorten
from es_simhash.removal.decisions import in_words
from es_simhash.removal.removal_file import RemovalFile, open_archived
from es_simhash.removal.review import Review, example_line
from es_simhash.removal.sqlite_file import DamagedError
from es_simhash.removal.take_decisions import decisions_name
from es_simhash.tables.notebook import Sheet

SHOWN = 20
"""Lines about single documents that are printed for people."""


@takes(SimHashClient.plan_removal, f"after also filter max_share show {RULE}")
def plan(index: str, /, *, out: str | None = None, to: To = To(), **how: Any) -> None:
    """
    Plan which duplicates of INDEX to delete, and for what. INDEX is not changed.

    Only documents go of which nothing is lost: what stays has the same text, or all of it. The others are held back:
    --also takes them in, by class. Without --out the first lines of the plan are printed. With --out there is a file:
    look at it with es-simhash review, then delete with es-simhash apply. --max-share refuses no plan: it judges the
    apply, and a plan says what will be refused. The canonical of each group stays.

    For example:

        es-simhash plan news
        es-simhash plan news --out removal.db --preset near --also few,numbers --show title,url
        es-simhash plan news --out removal2.db --after removal.db

    Args:
        index:
            A name, an alias, a pattern, or several of them separated by commas.
        out:
            Make this file: a removal, with the plan. One that exists is refused.
    """
    with connect(to, index) as connection:
        made = connection.simhash.plan_removal(index, out, **how)
        warn_of_lacking(connection, to, index, (made.without_fingerprint, made.ungrouped))
    if made.unmet:
        why = "of another index or routing, gone, or no duplicate"
        said = f"{count(made.unmet, 'document')} kept before, and not met now: {why}"
        warn(said, kind="decisions_unmet", number=made.unmet)
    if out is None:
        show_records(
            DuplicateResult.of(line, "would delete" if made.goes(line) else "held back") for line in made.removals
        )
    elif Output.as_json:
        print_json({name: value for name, value in asdict(made).items() if name != "removals"})
    if Output.as_json:
        return
    place = f"{out}: " if out else ""
    print_line(f"{place}{count(made.count, 'document')} of {made.documents:,} would be removed, nothing changed")
    print_line(made.loss_words)
    for line in made.examples:
        print_text(visible(f"  {line.loss}: {example_line(line)}"))
    for advice in made.advice:
        print_line(advice)
    print_line(f"rule: {made.rule}")
    if made.left_out:
        print_line(f"left out: {', '.join(made.left_out_words)}")
    for refusal in made.refusals:
        print_line(f"will be refused: {refusal}")
    if out:
        print_line(f"sha256: {made.sha256}")
        print_line(f"look at it: es-simhash review {shlex.quote(out)}; with --html FILE, decide what is kept")
        _print_next(out, made.count, made.held)
    elif made.count:
        print_line("next: the same command with --out FILE, which makes a removal of it")


def _check_removals(paths: Iterable[str]) -> None:
    """Refuse a name of an index, or any other, where the file of a removal is wanted."""
    for path in paths:
        if not Path(path).exists():
            advice = "es-simhash plan INDEX --out FILE makes one"
            raise InvalidInputError(f"{shorten(path)} is not a file: give a removal; {advice}")


def _print_next(path: str, removals: int, held: int) -> None:
    if not removals and held:
        print_line("nothing goes as it is: decide on the page, or plan with --also")
    elif removals:
        print_line(f"then: {shlex.join(['es-simhash', 'apply', path, '--yes'])}")
        print_line(f"with what the page decides: --decisions {shlex.quote(str(decisions_name(path)))}")


def review(
    removal: str, /, *, html: str | None = None, language: Literal["en", "zh"] = "en", limit: int = SHOWN
) -> None:
    """
    Show the plan in the file REMOVAL: how many documents would go, and what stays beside each of them.

    What loses most comes first, and of that the least similar, with the words that differ: [-those of the document
    that goes-] and {+those of the one that stays+}. No server is asked, and nothing is removed. With --json the numbers
    alone are printed. On the page one can decide what is kept, or removed, after all, and save that as a file for
    es-simhash apply --decisions.

    For example:

        TTY_COMPATIBLE=1 es-simhash review removal.db --limit 200 | less
        es-simhash review removal.db --html removal.html --language zh

    Args:
        removal:
            The file, as es-simhash plan --out made it.
        html:
            Write a page for a browser to this file.
        language:
            Language of the page.
        limit:
            Number of lines printed, what loses most first. Default: 20. The page has all of them.
    """
    _check_removals([removal])
    with Review(removal) as found:
        number = sum(found.summary.losses.values())
        if html is not None:
            refuse_output(html, inputs=[removal])
            write_whole(Path(html), found.html(language=language))
        if Output.as_json:
            print_json(found.to_dict())
            return
        if html is not None:
            said = f"{count(number, 'duplicate')} {'is' if number == 1 else 'are'} shown in {html}"
            print_line(f"{said}: open it in a browser; what stays and what goes can be decided there")
            print_line(f"sha256: {found.sha256}")
        else:
            for line in found.text(limit=limit):
                print_text(visible(line))
            if (rest := number - limit) > 0:
                note(f"{count(rest, 'more line')}: raise --limit, or write a page with --html FILE")
        _print_next(removal, found.summary.removals, number - found.summary.removals)


@takes(SimHashClient.apply_removal, "sha256 max_share large_groups")
def apply(
    removal: str,
    /,
    *,
    decisions: tuple[str, ...] = (),
    yes: Yes = False,
    quiet: Annotated[bool, Parameter(alias="-q")] = False,
    to: To = To(),
    **approval: Any,
) -> int:
    """
    Delete what the file REMOVAL plans, as es-simhash plan made it.

    A document is deleted only after it was archived in the file, and only if what decided about it and about its
    canonical, which stays, is as it was when it was planned: their texts and titles, and the fields of --per, --within,
    --canonical and --filter. es-simhash restore undoes it. A command that was killed goes on when it is
    given again.

    For example:

        es-simhash apply removal.db
        es-simhash apply removal.db --decisions removal.decisions.json --yes

    Args:
        removal:
            The file, as es-simhash plan --out made it.
        decisions:
            Keep, or remove, what this file of the review page says, now and in later runs. Repeatable.
        quiet:
            Print a summary and what went wrong, and no line for each document.
    """
    _check_removals([removal])
    with RemovalFile(removal, writes=yes, is_checked=False) as file:  # also where a run stopped while it wrote
        header, going = file.header, file.count_lines("going")
    names = sorted(header.index_uuids)
    with connect(to, names[0]) as connection:
        connection.to_refresh.update(names)
        applied = connection.simhash.apply_removal(removal, decisions=decisions, dry_run=not yes, **approval)
        with closing(applied) as records:
            counts = show_records(records, is_dry=not yes, is_listed=yes and not quiet, decided=header.decided)
    if not yes:
        kept, hint = (f", and kept in {removal}", ", pass --yes to do it") if counts.done else ("", "")
        what = f"{count(counts.done, 'document')} of {', '.join(names)} would be deleted{kept}"
        plain = {"plan": removal, "count": going, "indices": names}
        show(
            {**plain, "would_delete": counts.done, "kept": counts.kept},
            f"{what}{counts.decided_words}; nothing changed{hint}",
        )
    elif not Output.as_json:
        earlier = f", {counts.earlier:,} by earlier runs" if counts.earlier else ""
        kept = f", kept in {removal}" if counts.done or counts.earlier else ""
        print_line(f"{count(counts.done, 'document')} deleted{earlier}{kept}{counts.decided_words}")
    elif quiet:
        print_json({"deleted": counts.done, "deleted_earlier": counts.earlier, "kept": counts.kept})
    return PARTLY if counts.kinds else 0


_WORDS = {
    "restored": "restored",
    "would restore": "would be restored",
    "exists": "there already",
    "differs": "there in another version, not changed",
    "refused": "refused",
}


def restore(
    removals: tuple[str, ...],
    /,
    *,
    index: str | None = None,
    dry_run: DryRun = False,
    report: str | None = None,
    to: To = To(),
) -> int:
    """
    Put the documents that REMOVALS archived back, each as it was, into the index that it was removed from.

    A document is only created where it is missing, so the command may be run again after an interruption. One that is
    there in another version is reported and not changed. Afterwards the group fields are made right. The exit code is 3
    if a document is not there as the file has it, and 1 if a file is damaged: then what is whole is restored.

    For example:

        es-simhash restore removal.db --dry-run
        es-simhash restore january.db february.db --index news-restored

    Args:
        removals:
            Files that es-simhash apply archived documents in.
        index:
            Put all documents into this index, not where they were removed from.
        report:
            Write the outcome of each document to this file, as JSON Lines.
    """
    _check_removals(removals)
    actions, kinds = Counter[str](), Counter[str]()
    ended: DamagedError | OSError | None = None
    with open_archived(removals[0], writes=not dry_run) as removal:
        first = min(removal.header.index_uuids, default="-")  # the product of the server is found by it
    with connect(to, index or first) as connection, open_report(report, removals, dry_run=dry_run) as write:
        with closing(connection.simhash.restore(removals, index=index, dry_run=dry_run)) as records:
            try:
                for record in records:
                    actions[record.action] += 1
                    connection.to_refresh.add(record.index)
                    if write is not None:
                        write(json.dumps(record.to_dict(), ensure_ascii=False) + "\n")
                    if not record.is_done:
                        kinds[record.kind or record.action] += 1
                        if kinds.total() <= SHOWN_FAILURES:
                            fields = record.to_dict() | {"kind": record.kind or record.action}
                            error(f"{record.index}/{record.id}: {record.action}: {record.reason}", **fields)
            except (DamagedError, OSError) as failure:  # of a removal, or of the report
                ended = failure
        others = "; then their groups are put right, which may change the group fields of other documents, too"
        ending = others * bool(actions["would restore"]) + DRY * dry_run
        found = ", ".join(f"{number:,} {_WORDS[action]}" for action, number in sorted(actions.items()))
        sentence = f"{count(actions.total(), 'document')}: {found or 'nothing to do'}{ending}"
        show({"dry_run": dry_run, "documents": dict(actions)}, sentence)
        if ended is not None:
            raise ended
    return _say_kinds(kinds, "document", "not restored")


def _say_kinds(kinds: Counter[str], noun: str, what: str, advice: str = "") -> int:
    """Say how many were *what*, by kind, and return the exit code."""
    if not kinds:
        return 0
    number = kinds.total()
    names = {"missing": "gone"}
    by_kind = ", ".join(f"{names.get(kind, kind)} {found:,}" for kind, found in sorted(kinds.items()))
    error(f"{count(number, noun)} {what} ({by_kind}){advice}", kind="not_carried_out", number=number, kinds=dict(kinds))
    return PARTLY


# Removed documents that are printed for the one that stands for them.
MOST_STOOD_FOR = 100


def history(id: str, removals: tuple[str, ...] = (), /) -> int:
    """
    Say where the documents with the _id ID have gone, and for which removed documents they stand.

    The files are read, and no server is asked: the command does not know what another program did later. The exit code
    is 1 if the files do not know the ID.

    For example:

        es-simhash history 4711 january.db february.db

    Args:
        id:
            The _id of a document.
        removals:
            Files that es-simhash apply archived documents in.
    """
    if not removals:
        named = ["ID", id] if Path(id).is_file() else [id, "REMOVAL"]
        raise WrongUseError(f"give an ID and a removal: {shlex.join(['es-simhash', 'history', *named])}")
    found = removal_history(id, removals)
    # Nothing is cut: a moment and a file are of use only as a whole.
    how: Any = {"folded": ("id", "deleted for", "at", "restored", "index", "file", "approved by")}
    title = f"{found.id} stands for these removed documents"
    stood_for = Sheet(title, list(map(_cells_of_removed, found.stands_for)), most=MOST_STOOD_FOR, **how)
    show(found, sheets=[Sheet("", list(map(_cells_of_removed, found.removals)), **how), stood_for])
    if not found:
        note(f"{id} is archived in none of these removals; es-simhash review says what people kept")
    return 0 if found else 1


def _cells_of_removed(removed: Removed) -> dict[str, Any]:
    return {
        "id": removed.id,
        "deleted for": removed.canonical,
        "bits": removed.distance,
        "at": removed.deleted or removed.at,
        "then": "kept" if removed.kept else "archived" if removed.deleted is None else None,
        "restored": removed.restored,
        "index": removed.index,
        "its index": None if removed.canonical_index == removed.index else removed.canonical_index,
        "file": removed.path,
        "approved by": in_words(removed.approved) or None,
    }


@dataclass(slots=True)
class Counts:
    """
    How many documents were deleted, or would be, by this run and by *earlier* ones; how many stay by decision; and how
    many, by kind, for another reason.
    """

    done: int = 0
    earlier: int = 0
    decided: int = 0
    kinds: Counter[str] = field(default_factory=Counter)

    @property
    def kept(self) -> dict[str, int]:
        """How many stay, by kind, also by decision."""
        return dict(self.kinds) | ({"decided": self.decided} if self.decided else {})

    @property
    def decided_words(self) -> str:
        """What the line about the deletions says of those that are kept by decision."""
        return f"; {self.decided:,} {'stays' if self.decided == 1 else 'stay'} by decision" if self.decided else ""


def show_records(
    records: Iterable[DuplicateResult], *, is_dry: bool = False, is_listed: bool = True, decided: int | None = None
) -> Counts:
    """
    Print the records if they are *is_listed*, for people only the first, then what is not carried out; return counts.
    What an earlier run deleted is a record of its own only as JSON. *decided*: how many stay without a record.
    """
    counts = Counts(decided=decided or 0)
    listed = 0
    rows: list[dict[str, Any]] = []
    for record in records:
        if is_listed and Output.as_json:
            print_json(record.to_dict())
        if record.earlier:
            counts.earlier += 1
            continue
        listed += 1
        if len(rows) < SHOWN:
            rows.append(_cells(record))
        if record.kind == "decided":
            counts.decided += 1
        elif record.is_done or record.kind is None:
            counts.done += 1
        else:
            counts.kinds[record.kind] += 1
            if counts.kinds.total() <= SHOWN_FAILURES:
                what = "" if record.kind == "missing" else f" {'would be' if is_dry else 'was'} {record.action}"
                error(f"{record.index}/{record.id}{what}: {record.reason}", **record.to_dict())
    if is_listed and not Output.as_json:
        # No id of a document that goes is cut.
        print_sheets(Sheet("", rows, folded=("id", "index", "duplicate of", "in")))
        if listed > SHOWN:
            print_line(f"and {listed - SHOWN:,} more (--json prints all)")
    what = f"{'would not be' if is_dry else 'not'} carried out"
    _say_kinds(counts.kinds, "line", what, ": run it again for what was refused, plan again for what was changed")
    return counts


def _cells(record: DuplicateResult) -> dict[str, Any]:
    what = {"what": "gone" if record.kind == "missing" else record.action, "id": record.id}
    # Documents of several indices may share an id.
    one, two = (
        (record.index, record.canonical_index) if record.canonical_index not in ("", record.index) else (None, None)
    )
    which = {"index": one, "duplicate of": record.canonical, "in": two}
    why = "by decision" if record.kind == "decided" else None
    return what | which | {"loss": record.loss, "similarity": record.similarity, "why": why}
