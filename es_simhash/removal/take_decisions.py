"""What people decided, taken into the file of a removal, and what they kept in earlier ones. No server is asked."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from es_simhash.arguments import FilePath, check_input
from es_simhash.errors import Advice, InvalidInputError, Said, shorten
from es_simhash.removal.decisions import DECIDE_AGAIN, FORMAT, Decisions, last_words, parse_decisions, shown, unusable
from es_simhash.removal.removal_file import BATCH, RemovalFile
from es_simhash.transport.protocol import Key
from es_simhash.transport.retry import now

LONGEST_FILE = 256 << 20
_HEAD = 1_000  # bytes; in what the page writes, the name of the format is the first


def decide_removal(path: FilePath, decisions: FilePath | None = None) -> list[Decisions]:
    """
    Take the file *decisions* into the removal *path*, and return all that was decided there, in the order of taking in.

    Without *decisions* the removal is only read. A file that was taken in before changes nothing.

    Args:
        path:
            File of a removal.
        decisions:
            File that the review page has made, or a program.

    Raises:
        InvalidInputError: If a file cannot be used, is about another plan, or is older than what the same person has
            decided since.
    """
    check_input("path", path)
    if decisions is not None:
        check_input("decisions", decisions)
    with RemovalFile(path, writes=decisions is not None) as removal:
        if decisions is not None:
            take_in(removal, decisions)
        return list(removal.log)


def take_in(removal: RemovalFile, path: FilePath) -> None:
    """Take the file *path* in; raise InvalidInputError if it does not fit the plan exactly."""
    path = Path(path)
    data = _read(path)
    found = parse_decisions(data, str(path))
    if found.plan_sha256 != removal.sha256:
        again = shlex.join(["es-simhash", "plan", "INDEX", "--after", "OTHER.db"])
        raise InvalidInputError(
            f"{path} decides about another plan, and not about {removal.path}: give the removal that was reviewed, or "
            f"plan again without what was kept there ({again})"
        )
    if data in removal.decision_files:
        return
    if (later := removal.later_than(found)) is not None:
        raise InvalidInputError(
            f"{path} is of {found.at}, as old as or older than what {shorten(found.by)} decided at {later.at}, which "
            f"{removal.path} has: decide on the review page again"
        )
    numbers = {
        each.document.key: number
        for batch in (removal.batches(BATCH) if found.keep else ())
        for number, each in batch.items()
        if each.document.key in found.keep
    }
    if unknown := found.keep.difference(numbers):
        raise InvalidInputError(
            f"{path} keeps {shown(min(unknown, key=str))}, which {removal.path} does not name: {DECIDE_AGAIN}"
        )
    before = next((each.keep for each in last_words(removal.log) if each.person == found.person), found.keep)
    if less := len(before - found.keep):
        warnings.warn(f"{path} no longer keeps {less:,} of what {shorten(found.by)} kept before", stacklevel=2)
    if gone := sum(map(removal.may_have_deleted, numbers.values())):
        again = shlex.join(["es-simhash", "restore", str(removal.path)])
        warnings.warn(f"{gone:,} of what {path} keeps was deleted already: {again} puts it back", stacklevel=2)
    removal.add_decisions(data, now())


@dataclass(frozen=True, slots=True)
class Kept:
    """
    What people kept in one earlier removal.
    An index that was made again under the same alias has the same ids: there the id counts.
    """

    keys: frozenset[Key]
    ids: frozenset[str]
    indices: frozenset[str]
    view: frozenset[str]

    def about(self, indices: Collection[str], view: Collection[str]) -> bool:
        """Return whether anything kept may be in *indices*, which the names *view* stand for."""
        return any(key.index in indices for key in self.keys) or (bool(self.keys) and not self.view.isdisjoint(view))

    def holds(self, key: Key, view: Collection[str]) -> bool:
        """Return whether the document *key*, which the names *view* show, was kept."""
        if key in self.keys:
            return True
        return key.id in self.ids and key.index not in self.indices and not self.view.isdisjoint(view)


def read_kept(paths: Iterable[FilePath]) -> list[Kept]:
    """Return what people kept in the removals *paths*."""
    found = []
    for path in paths:
        with RemovalFile(path) as removal:
            header, ids = removal.header, frozenset(key.id for key in removal.kept)
            found.append(Kept(removal.kept, ids, frozenset(header.index_uuids), frozenset(header.view)))
    return found


def decisions_name(path: FilePath) -> Path:
    """Return the name, beside a removal, of the decisions that its page makes."""
    return Path(path).with_name(f"{Path(path).stem}.decisions.json")


def refuse_forgotten(removal: RemovalFile) -> None:
    """
    Raise InvalidInputError if decisions about the plan lie beside its file, and were not taken in.
    Those with the name of its decisions may be about a plan that had the name before: what they keep would go.
    """
    name = decisions_name(removal.path)
    for path in sorted(name.parent.glob("*.json")):
        is_named = path.name.startswith(name.stem)  # a browser may number it
        if path.is_dir() or not (is_named or _is_decisions(path)):
            continue
        is_other = False
        try:
            data = _read(path)
            found = parse_decisions(data, str(path))
            later = removal.later_than(found)
            is_replaced = later is not None and later.moment > found.moment
            is_other = found.plan_sha256 != removal.sha256
            if (is_other and not is_named) or data in removal.decision_files or is_replaced:
                continue
        except (InvalidInputError, OSError):  # nobody knows what it was meant to keep
            if not is_named:
                continue
        take = shlex.join(["es-simhash", "decide", str(removal.path), str(path)])
        about = f"another plan, which may have been in {removal.path} before: decide on the page of the present one"
        about = about if is_other else f"{removal.path}, and was not taken in: run {take}"
        raise InvalidInputError(
            Said(
                f"{path} decides about {about}, or pass ",
                Advice("decisions=False", typed="--decisions none"),
                ", if it does not count",
            )
        )


def _is_decisions(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return FORMAT.encode() in file.read(_HEAD)
    except OSError:
        return False


def _read(path: Path) -> bytes:
    if not path.is_file():
        raise InvalidInputError(f"{path} is no regular file: write the decisions to a file first")
    if path.stat().st_size > LONGEST_FILE:
        raise unusable(str(path), f"it is longer than {LONGEST_FILE:,} bytes")
    return path.read_bytes()
