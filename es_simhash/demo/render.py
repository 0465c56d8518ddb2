"""The judgement of the demo as rich tables. Texts become `Text`, never markup, so that a `[` stays a `[`."""

from __future__ import annotations

from collections.abc import Collection

from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from es_simhash.demo.known_copies import EDIT_KINDS, Document, Report, Status
from es_simhash.tables.hidden import shown
from es_simhash.tables.terminal import draw_marked
from es_simhash.texts.worddiff import word_diff

CELLS = 40
"""Width of the opening of a text on the terminal."""

_STATUS_STYLES = {
    Status.FOUND: "green",
    Status.LINKED: "green",
    Status.MISSED: "yellow",
    Status.APART: "dim",
    Status.SURPRISE: "magenta",
    Status.LOST: "bold red",
}


def summary_text(report: Report) -> Text:
    """Return one sentence: how many copies were found, how many were missed, and any fault."""
    same_text = len(report.verdicts) - report.count(Status.APART, Status.SURPRISE)
    found = report.count(Status.FOUND, Status.LINKED)
    text = Text(
        f"Of {same_text} edited copies among {report.documents} documents, {found} were found "
        f"within {report.max_distance} bits, {report.count(Status.MISSED)} missed; "
        f"{report.count(Status.APART)} translations and paraphrases were rightly left apart"
    )
    faults = [
        (report.count(Status.SURPRISE), "translations or paraphrases were reported", "magenta"),
        (len(report.unexpected), "unrelated pairs were reported", "magenta"),
        (report.count(Status.LOST), "near-duplicates were LOST by the search", "bold red"),
    ]
    for count, what, style in faults:
        if count:
            text.append(f"; {count} {what}", style=style)
    return text.append(".")


def edits_table(report: Report) -> Table:
    table = Table(title="By kind of edit", title_justify="left")
    table.add_column("edit")
    table.add_column("what was done")
    table.add_column("found", justify="right")
    table.add_column("distance in bits", justify="right")
    for summary in report.by_edit():
        bits = "-" if summary.nearest is None else f"{summary.nearest} to {summary.farthest}"
        found = f"{summary.found} of {summary.copies}"
        table.add_row(summary.edit, EDIT_KINDS[summary.edit].label, found, bits)
    return table


def verdicts_table(report: Report, *, statuses: Collection[Status] = tuple(Status)) -> Table:
    """Return a table of the edited copies with one of *statuses*: the outcome of each, and the reason."""
    table = Table(title="Edited copies", title_justify="left")
    table.add_column("document", overflow="fold")
    table.add_column("bits", justify="right")
    table.add_column("outcome")
    table.add_column("why", min_width=20)
    for verdict in report.verdicts:
        if verdict.status in statuses:
            table.add_row(
                Text(verdict.document.id).append(f"\n{verdict.document.edit}", style="dim"),
                Text("-" if verdict.distance is None else str(verdict.distance)),
                Text(verdict.status.value, style=_STATUS_STYLES[verdict.status]),
                Text(verdict.reason),
            )
    return table


def groups_table(report: Report) -> Table:
    """Return a table of the groups: the canonical document, and each member with its distance from it."""
    table = Table(title="Groups of near-duplicates", title_justify="left", show_lines=True)
    table.add_column("canonical")
    table.add_column("near-duplicates (bits)", overflow="fold", min_width=20)
    for group in report.groups:
        members = Text("\n").join(
            Text(document.id if distance is None else f"{document.id} ({distance})")
            for document, distance in group.members
        )
        table.add_row(Text(f"{group.canonical.id}\n").append(_opening(group.canonical)), members)
    return table


def diff_panel(before: Document, after: Document, *, distance: int, max_changes: int = 4) -> Panel:
    """
    Return a panel with the words that differ between two documents, marked `[-removed-]` `{+added+}`.
    *distance*: of the fingerprints, in bits, for the title. *max_changes*: number of changes shown.
    """
    diff = word_diff(before.text, after.text, max_changes=max_changes)
    lines = Text("\n").join(map(draw_marked, diff.marked()))
    bits = "1 bit" if distance == 1 else f"{distance} bits"
    title = Text(f"{before.id} -> {after.id}, {bits}")
    label = EDIT_KINDS[after.edit].label if after.edit and after.edit_of == before.id else None
    return Panel(lines, title=title, title_align="left", subtitle=label, subtitle_align="right")


def _opening(document: Document) -> Text:
    text = Text(_visible((document.title or document.text)[: CELLS + 1]), style="dim")
    text.truncate(CELLS, overflow="ellipsis")
    return text


def _visible(text: str) -> str:
    """Return *text* on one line, without characters that control a terminal or change the direction of text."""
    return shown(text.replace("\n", "⏎").replace("\t", " "))
