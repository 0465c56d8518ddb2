"""How plan, apply, reconcile and restore show what becomes of each duplicate and of the groups. No command is here."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from es_simhash import DuplicateResult
from es_simhash.cli.output import (
    SHOWN_FAILURES,
    count,
    error,
    failures_as_json,
    print_json,
    print_line,
    print_sheets,
    warn,
)
from es_simhash.groups.read import count_lacking
from es_simhash.tables.notebook import Sheet

if TYPE_CHECKING:
    from es_simhash import RemovalPlan
    from es_simhash.cli.connect import Connection


SHOWN = 20
"""Lines about single documents that are printed for people."""


@dataclass(slots=True)
class Counts:
    """
    How many lines there are; of them, kept by decision, done by an earlier run, and by kind not carried out,
    and the kinds of these that the same command may carry out *again*.
    *before*: documents that an earlier decision keeps, so that the plan has no line for them.
    """

    before: int = 0
    total: int = 0
    decided: int = 0
    earlier: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    again: set[str] = field(default_factory=set)

    def add(self, record: DuplicateResult) -> None:
        self.total += 1
        self.decided += record.kind == "decided"
        self.earlier += record.earlier
        if not record.is_done and record.kind is not None:
            self.kinds[record.kind] += 1
            self.again |= {record.kind} if record.may_be_done else set()

    @property
    def all_gone(self) -> bool:
        """Whether other programs deleted every document, so that one sentence says it all."""
        return self.total == self.kinds["missing"] > 0

    @property
    def done(self) -> int:
        return self.total - self.kinds.total() - self.decided - self.earlier

    @property
    def kept(self) -> dict[str, int]:
        """How many were not, by kind, also by decision."""
        return dict(self.kinds) | ({"decided": number} if (number := self.decided + self.before) else {})

    @property
    def decided_words(self) -> str:
        """What the line about the deletions says of those that are kept by decision."""
        number = self.decided + self.before
        return f"; {number:,} {'stays' if number == 1 else 'stay'} by decision" if number else ""


def _way_on(connection: Connection, index: str) -> str:
    """Return the command that fills and groups what is left of *index*."""
    is_grouped = any(own.is_grouped for own in connection.settings(index).values())
    words = ["setup", index, "--yes"] if is_grouped else ["backfill", index]
    return shlex.join(["es-simhash", *words])


def warn_of_lacking(
    connection: Connection,
    index: str,
    lacking: tuple[int, int] | None = None,
    *,
    unfilled: str = "they are in no group",
    ungrouped: str | None = "the index shows no group of them",
) -> None:
    """
    Say which documents of *index* nobody has looked at, or grouped: a setup was interrupted, or others write.
    *lacking*: how many; by default they are counted, with a request or two. *unfilled*, *ungrouped*: what follows.
    """
    if lacking is None:
        settings, with_groups = connection.settings(index), ungrouped is not None
        try:
            lacking = connection.run(lambda server: count_lacking(server, index, settings, with_groups=with_groups))
        except Exception:  # noqa: BLE001 -- the command itself says what is wrong with the index
            return
    for number, kind, what, so in (
        (
            lacking[0],
            "without_fingerprint",
            "with a text field and without fingerprint (texts without letters get none)",
            unfilled,
        ),
        (lacking[1], "ungrouped", "never grouped", ungrouped),
    ):
        if number and so is not None:
            said = f"{count(number, 'document')} {what}: {so}; run {_way_on(connection, index)}"
            warn(said, kind=kind, number=number)


def warn_of_plan(connection: Connection, index: str, made: RemovalPlan) -> None:
    warn_of_lacking(
        connection,
        index,
        (made.without_fingerprint, made.ungrouped),
        unfilled="no plan can have them",
        ungrouped="the plan has their duplicates, and the index shows none yet",
    )
    if made.unmet:
        why = "of another index or routing, gone, or no duplicate"
        said = f"{count(made.unmet, 'document')} kept before, and not met now: {why}"
        warn(said, kind="decisions_unmet", number=made.unmet)


def show(
    records: Iterable[DuplicateResult],
    *,
    as_json: bool,
    is_dry: bool = False,
    is_listed: bool = True,
    decided: int | None = None,
) -> Counts:
    """
    Print the records if they are *is_listed*, for people only the first, then what is not carried out; return counts.
    What an earlier run deleted is a record of its own only with *as_json*. *decided*: how many stay without a record.
    """
    counts = Counts(before=decided or 0)
    told = 0
    rows: list[dict[str, Any]] = []
    gone: list[DuplicateResult] = []  # the first ones, as long as nothing else was found
    for record in records:
        counts.add(record)
        if is_listed and as_json:
            print_json(record.to_dict())
        if counts.all_gone:
            gone += [record] if len(gone) < SHOWN else []
            continue
        for one in (*gone, record):
            if len(rows) < SHOWN and not one.earlier:
                rows.append(_cells(one))
            if not one.is_done and one.kind is not None and (told := told + 1) <= SHOWN_FAILURES:
                what = "" if one.kind == "missing" else f" {'would be' if is_dry else 'was'} {one.action}"
                [fields] = failures_as_json([one])
                error(f"{one.index}/{one.id}{what}: {one.reason}", **fields)
        gone.clear()
    listed = 0 if counts.all_gone else counts.total - counts.earlier
    if is_listed and not as_json and listed:
        # No id of a document that goes is cut.
        print_sheets(Sheet("", rows, folded=("id", "index", "duplicate of", "in")))
        if listed > SHOWN:
            print_line(f"and {listed - SHOWN:,} more (--json prints all)")
    if counts.kinds:
        said = _said_gone(counts.total) if counts.all_gone else _not_carried_out(counts, is_dry=is_dry)
        error(said, kind="not_carried_out", number=counts.kinds.total(), kinds=dict(counts.kinds))
    return counts


def _said_gone(number: int) -> str:
    which, them = (f"all {number:,} are", "them") if number > 1 else ("the document is", "it")
    return (
        f"{which} gone already: nothing is left to do; another program deleted {them}, or another removal, which has "
        f"{them}"
    )


def _not_carried_out(counts: Counts, *, is_dry: bool) -> str:
    kinds = counts.kinds
    by_kind = ", ".join(f"{'gone' if kind == 'missing' else kind} {number:,}" for kind, number in sorted(kinds.items()))
    were_not = "would not be" if is_dry else "not"
    return f"{count(kinds.total(), 'line')} {were_not} carried out ({by_kind}): {_advice(set(kinds), counts.again)}"


_NO_NEW_PLAN = {"not_restored", "unarchived", "missing"}


def _advice(found: set[str], again: set[str]) -> str:
    parts = ["run the same command again for what was refused"] if again else []
    parts += ["put back what was archived with es-simhash restore"] if "not_restored" in found else []
    parts += ["look for a copy of the file, or plan again, for what is unarchived"] if "unarchived" in found else []
    parts += ["plan again for what was changed"] if found - again - _NO_NEW_PLAN else []
    return ", and ".join(parts or ["nothing is left to do for what is gone"])


def _cells(record: DuplicateResult) -> dict[str, Any]:
    what = {"what": "gone" if record.kind == "missing" else record.action, "id": record.id}
    # Documents of several indices may share an id.
    one, two = (
        (record.index, record.canonical_index) if record.canonical_index not in ("", record.index) else (None, None)
    )
    which = {"index": one, "duplicate of": record.canonical, "in": two}
    why = "by decision" if record.kind == "decided" else None
    return what | which | {"bits": record.distance, "similarity": record.similarity, "why": why}
