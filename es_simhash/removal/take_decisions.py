"""What people decided, taken into the file of a removal, and what they kept in earlier ones. No server is asked."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from es_simhash.arguments import FilePath
from es_simhash.errors import InvalidInputError
from es_simhash.mapping.fields import now
from es_simhash.removal.decisions import DECIDE_AGAIN, parse_decisions, shown, unusable
from es_simhash.removal.removal_file import RemovalFile
from es_simhash.transport.protocol import Key

LONGEST_FILE = 256 << 20


def take_in(removal: RemovalFile, paths: Sequence[FilePath]) -> None:
    """
    Take the files *paths* in, and count what they keep; one that was taken in before changes nothing.
    Raises InvalidInputError if one does not fit the plan exactly, or if the file that the page names lies beside the
    removal and was not taken in: what it keeps would go.
    """
    for path in map(Path, paths):
        if (data := _read(path)) not in removal.decision_files:
            _take(removal, path, data)
    beside = decisions_name(removal.path)
    if not beside.is_symlink() and not beside.exists():
        return
    if not beside.is_file() or _read(beside) not in removal.decision_files:
        raise InvalidInputError(
            f"{beside} lies beside {removal.path}, and was not taken in: give it by decisions=FILE, or move it away "
            "if it does not count"
        )


def _take(removal: RemovalFile, path: Path, data: bytes) -> None:
    found = parse_decisions(data, str(path))
    if found.plan_sha256 != removal.sha256:
        raise InvalidInputError(
            f"{path} decides about another plan, and not about {removal.path}: give the removal that was reviewed, or "
            "plan again without what was kept there (after=FILE)"
        )
    numbers = removal.find_numbers(found.keep | found.remove)
    if unknown := (found.keep | found.remove).difference(numbers):
        raise InvalidInputError(
            f"{path} decides about {shown(min(unknown, key=str))}, which {removal.path} does not name: {DECIDE_AGAIN}"
        )
    if gone := sum(removal.may_have_deleted(numbers[key]) for key in found.keep):
        again = f"restore({str(removal.path)!r}) puts it back"
        warnings.warn(f"{gone:,} of what {path} keeps was deleted already: {again}", stacklevel=2)
    removal.add_decisions(data, now())


@dataclass(frozen=True, slots=True)
class Kept:
    """What people kept in one earlier removal, of the *indices*; in another index, such as a new one, the id counts."""

    keys: frozenset[Key]
    ids: frozenset[str]
    indices: frozenset[str]

    def holds(self, key: Key) -> bool:
        """Return whether the document *key* was kept."""
        return key in self.keys or (key.id in self.ids and key.index not in self.indices)


def read_kept(paths: Iterable[FilePath]) -> list[Kept]:
    """Return what people kept in the removals *paths*."""
    found = []
    for path in paths:
        with RemovalFile(path) as removal:
            ids = frozenset(key.id for key in removal.kept)
            found.append(Kept(removal.kept, ids, frozenset(removal.header.index_uuids)))
    return found


def decisions_name(path: FilePath) -> Path:
    """Return the name, beside a removal, of the decisions that its page makes."""
    return Path(path).with_name(f"{Path(path).stem}.decisions.json")


def _read(path: Path) -> bytes:
    if not path.is_file():
        raise InvalidInputError(f"{path} is no regular file: write the decisions to a file first")
    if path.stat().st_size > LONGEST_FILE:
        raise unusable(str(path), f"it is longer than {LONGEST_FILE:,} bytes")
    return path.read_bytes()
