"""
``es-simhash dedupe``: duplicates shown, tagged, or removed by a plan and into an archive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import Any

import click

from es_simhash.cli import options
from es_simhash.cli.connect import connect
from es_simhash.cli.grouping_options import grouping as grouping_option
from es_simhash.cli.lines import Lines, Value
from es_simhash.cli.manual import Manual
from es_simhash.cli.options import Target
from es_simhash.cli.output import SHOWN_FAILURES, count, error, failures_as_json, print_json, print_line
from es_simhash.cli.regrouped import Regrouped
from es_simhash.cli.removal_options import removal as removal_option
from es_simhash.cli.stopping import say_if_stopped
from es_simhash.removal.dedupe_flow import Action
from es_simhash.removal.plan_file import read_plan
from es_simhash.removal.results import AGAIN, Deduped

_DONE = {"tag": "tagged", "delete": "deleted"}
_TAG_REMOVED = ("untagged", "would untag")
_LEFT_OUT = {
    "not_similar": "with a text that is not similar enough",
    "unreadable": "with a text that could not be read",
    "changed": "changed or deleted meanwhile",
    "stale": "with a fingerprint that is not that of the present text",
    "filtered": "left out by the filter",
    "limit": "beyond the limit",
    "common": "with passages that very many documents have, so that it was not compared with all of these",
}

EXAMPLES = [
    "es-simhash dedupe news --plan removal.jsonl",
    "es-simhash dedupe news --plan removal.jsonl --preset near --protect source --show title",
    "es-simhash dedupe --apply removal.jsonl --archive removed.jsonl.gz",
    "es-simhash dedupe news --action delete --yes --archive removed.jsonl.gz",
    "es-simhash dedupe news --preset near --yes",
    "es-simhash dedupe mails --contained 0.95 --plan removal.jsonl",
]


@click.command(cls=Manual, examples=EXAMPLES)
@click.argument("index", required=False)
@click.option(
    "--action",
    type=click.Choice(["tag", "delete"]),
    help="What to do with a duplicate. Default: delete with --plan, else tag.",
)
@click.option("-y", "--yes", is_flag=True, help="Do it. Without --yes the command only shows what it would do.")
@click.option("--plan", metavar="FILE", type=click.Path(dir_okay=False), help="Write a plan of removal to this file.")
@click.option("--apply", metavar="FILE", type=click.Path(dir_okay=False), help="Remove what this plan names.")
@click.option(
    "--archive",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Keep each document in this file before it is deleted: gzip, JSON Lines.",
)
@removal_option
@grouping_option
@options.target
@options.as_json
def command(
    index: str | None,
    action: Action | None,
    plan: str | None,
    apply: str | None,
    archive: str | None,
    removal: dict[str, Any],
    grouping: dict[str, Any],
    target: Target,
    *,
    yes: bool,
    as_json: bool,
) -> int:
    """
    Show which documents of INDEX are duplicates, and of what; tag them, or remove them.

    With --plan nothing is changed: the plan is a file to look at (es-simhash review) and then to apply. With --apply
    INDEX is left out, because the plan names it. A document is deleted only after it was archived, and only if it and
    its canonical, which stays, have not changed since their texts were compared. es-simhash restore undoes it. A
    command that was killed goes on when it is given again.

    With --contained the documents that add nothing take the place of near-duplicates: most of their text stands in a
    longer document, which stays. Tags of such documents that are right no longer are removed.
    """
    asked = {name: value for name, value in {**removal, **grouping}.items() if value is not None and value != ()}
    if apply is not None:
        if archive is None or index or plan or yes or action or asked:
            raise click.UsageError("give --apply FILE and --archive FILE, and nothing else: the plan says the rest")
        return _apply(apply, archive, target, as_json=as_json)
    if index is None:
        raise click.UsageError("Missing argument 'INDEX'.")
    if plan is not None:
        if archive is not None or yes or action == "tag":
            raise click.UsageError("--plan only makes a plan: give --archive with --apply")
        return _plan(index, plan, asked, target, as_json=as_json)
    action = action or "tag"
    if action == "delete" and yes and archive is None:
        raise click.UsageError("--action delete --yes needs --archive FILE, where deleted documents are kept")
    if archive is not None and not (action == "delete" and yes):
        raise click.UsageError("--archive needs --apply FILE, or --action delete --yes")
    if action == "tag" and (given := [name for name in asked if name in removal and name != "contained"]):
        raise click.UsageError(f"--{given[0].replace('_', '-')} needs --plan FILE or --action delete")
    regrouped = Regrouped()
    with connect(target, index) as connection:
        records = connection.simhash.dedupe(
            index, action=action, dry_run=not yes, archive=archive, on_regrouped=regrouped.add, **asked
        )
        counts = _Counts()
        with closing(records), say_if_stopped():
            _show(records, counts, relation=_relation(by_containment="contained" in asked), as_json=as_json)
    if not as_json:
        hint = (
            "" if yes or not (counts.total or counts.untagged) else _hint(index, action, contained=removal["contained"])
        )
        print_line(_done(counts, action, yes=yes) + hint)
    return _end(counts, regrouped, as_json=as_json)


@dataclass(slots=True)
class _Counts:
    """How many lines were shown, and how many of them were not carried out, by kind."""

    total: int = 0
    untagged: int = 0
    kinds: Counter[str] = field(default_factory=Counter)

    @property
    def done(self) -> int:
        return self.total - self.kinds.total()

    @property
    def exit_code(self) -> int:
        return 1 if self.kinds else 0


def _end(counts: _Counts, regrouped: Regrouped, *, as_json: bool) -> int:
    """Say what became of the groups, and return the exit code."""
    if not as_json:
        regrouped.print()
    elif found := regrouped.to_dicts():
        print_json({"regrouped": found})
    return max(counts.exit_code, regrouped.complain())


def _done(counts: _Counts, action: Action, *, yes: bool) -> str:
    tags = f", {count(counts.untagged, 'tag')} {'removed' if yes else 'to remove'}" if counts.untagged else ""
    if yes:
        return f"{count(counts.done, 'document')} {_DONE[action]}{tags}"
    return f"{count(counts.total, 'duplicate')} found{tags}, nothing changed"


def _hint(index: str, action: Action, *, contained: float | None) -> str:
    given = "" if contained is None else f" --contained {contained:g}"
    return "; pass --yes to do it" if action == "tag" else f"; next: es-simhash dedupe {index}{given} --plan FILE"


def _plan(index: str, path: str, asked: dict[str, Any], target: Target, *, as_json: bool) -> int:
    with connect(target, index) as connection:
        made = connection.simhash.plan_removal(index, path, **asked)
    if as_json:
        print_json(asdict(made))
        return 0
    print_line(f"{path}: {count(made.count, 'document')} of {made.documents:,} would be removed, nothing changed")
    for kind, number in made.left_out.items():
        print_line(f"left out: {number:,} {_LEFT_OUT[kind]}")
    print_line(f"look at it: es-simhash review {path}")
    return 0


def _apply(path: str, archive: str, target: Target, *, as_json: bool) -> int:
    header = read_plan(path).header
    names = sorted(header.index_uuids)
    counts, regrouped = _Counts(), Regrouped()

    def done() -> str:
        return f"{_done(counts, 'delete', yes=True)}, kept in {archive}"

    with (
        connect(target, names[0]) as connection,
        closing(connection.simhash.apply_removal(path, archive=archive, on_regrouped=regrouped.add)) as records,
        say_if_stopped(),
    ):
        _show(records, counts, relation=_relation(by_containment=header.is_by_containment), as_json=as_json)
    if not as_json:
        print_line(done())
    return _end(counts, regrouped, as_json=as_json)


def _relation(*, by_containment: bool) -> str:
    """Return what a document is to the one that stays."""
    return "contained in" if by_containment else "duplicate of"


def _show(records: Iterable[Deduped], counts: _Counts, *, relation: str, as_json: bool) -> None:
    """Print and count each record."""
    kinds = counts.kinds
    with Lines() as lines:
        for each in records:
            is_removed_tag = each.action in _TAG_REMOVED
            counts.untagged += is_removed_tag
            counts.total += not is_removed_tag
            if as_json:
                print_json(each.to_dict())
            else:
                lines.print(*_line(each, relation))
            if each.kind is not None:
                kinds[each.kind] += 1
                if kinds.total() <= SHOWN_FAILURES:
                    what = "not removed" if each.action == "kept" and each.kind == "missing" else each.action
                    [fields] = failures_as_json([each])
                    error(f"{each.index}/{each.id} was {what}: {each.reason}", **fields)
    if kinds:
        by_kind = ", ".join(f"{kind} {number:,}" for kind, number in sorted(kinds.items()))
        said = f"{count(kinds.total(), 'line')} not carried out ({by_kind}): {_advice(kinds)}"
        error(said, kind="not_carried_out", number=kinds.total(), kinds=dict(kinds))


def _advice(kinds: Iterable[str]) -> str:
    """Return what to do about lines that were not carried out."""
    found = set(kinds)
    parts = ["run the same command again for what was refused"] if found & AGAIN else []
    parts += ["put back what is in the archive with es-simhash restore"] if "not_restored" in found else []
    parts += ["plan again for what was changed"] if found - AGAIN - {"not_restored"} else []
    return ", and ".join(parts)


def _line(each: Deduped, relation: str) -> list[str | Value]:
    if each.action in _TAG_REMOVED:
        return [
            f"{each.action}  ",
            Value("id", each.id),
            "  no longer contained in ",
            Value("canonical", each.canonical),
        ]
    similarity = "" if each.similarity is None else f", similarity {each.similarity:.3f}"
    end = f", distance {each.distance}{similarity}"
    return [f"{each.action}  ", Value("id", each.id), f"  {relation} ", Value("canonical", each.canonical), end]
