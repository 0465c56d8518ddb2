"""
The plan of removal, a file of JSON Lines: written whole or not at all, and checked whole before it is used.

    {"format": "es-simhash-plan", "version": 2, "at", "index_uuids", "prefix", "grouping", "decided_by", "count", ...}
    {"id", "index", "routing", "seq_no", "primary_term", "digest", "fields", "canonical", "distance", ...}
    {"sha256"}

The smallest similarity is first; in a plan by distance alone, the largest distance. The last line has the
SHA-256 of all bytes before it. Memory: about 30 bytes for each line while a plan is written, 16 while it is
read: lines are read again when they are used, and each must be the one that was checked.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Self

from es_simhash.arguments import FilePath
from es_simhash.errors import InvalidInputError, MappingError, shorten
from es_simhash.ingest.actions import FORMAT
from es_simhash.mapping.rule import Grouping
from es_simhash.record import Record
from es_simhash.removal.files import bad_line, read_lines, refuse_output, sync_file, sync_folder, to_line
from es_simhash.removal.may_delete import Excess, Guards
from es_simhash.removal.records import PlannedRemoval, take
from es_simhash.transport.protocol import Key

VERSION = 2
PLAN_AGAIN = "make the plan again"
DIGEST = 16


@dataclass(frozen=True, slots=True)
class PlanHeader(Record):
    """
    The first line of a plan.
    *index_uuids*: UUID of each concrete index, by name. *grouping*: as ``_meta`` records one. *at*: ISO 8601. *view*:
    the names that the user gave, such as an alias: documents that they do not show are neither counted nor regrouped.
    It is empty in a plan that Spark made, and for date math. *decided_by*: the fields of each index that the digests of
    documents are made of. *filter*: the queries that every document that goes must match. *decided*: how many
    duplicates are not in it because earlier decisions keep them.
    """

    _NAMES = "at index_uuids view prefix grouping decided_by filter decided count guards"
    _OPTIONAL = "view filter decided"

    index_uuids: Mapping[str, str]
    prefix: str
    grouping: Mapping[str, Any]
    count: int = 0
    guards: Guards = field(default_factory=Guards)
    at: str = ""
    view: tuple[str, ...] = ()
    decided_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    filter: tuple[Mapping[str, Any], ...] = ()
    decided: int | None = None

    @property
    def has_view(self) -> bool:
        """Whether it was made for other names than those of its indices; they may show a part of these only."""
        return not self.index_uuids.keys() >= set(self.view)

    @property
    def excess(self) -> list[Excess]:
        """The shares that are too large by the numbers of the plan."""
        return self.guards.find_excess(self.count)

    @property
    def is_by_containment(self) -> bool:
        """Whether its documents go because others contain them; these may be canonicals of groups."""
        return "contained" in self.grouping

    @property
    def rule(self) -> str:
        """By what its documents are duplicates, in words; its JSON where another version wrote it, or an editor."""
        try:
            if not self.is_by_containment:
                return str(Grouping.from_dict(self.grouping))
            # A plan by containment records neither a distance nor a similarity nor a rule of groups.
            nothing = {"rule": "star", "max_distance": 0, "similarity": None}
            of_groups = Grouping.from_dict({**nothing, "canonical": ["id"], **self.grouping})
            _, stays, _ = of_groups.parts()
            limits = replace(of_groups, similarity=None).pair_rule.parts()[2:]
            return "; ".join([f"at least {self.grouping['contained'] * 100:g} % stands in what stays", *limits, stays])
        except (MappingError, TypeError, ValueError):
            return json.dumps(dict(self.grouping))

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> PlanHeader:
        """Return the header that :meth:`to_dict` made *plain* of; raise ValueError if it is no such header."""
        uuids, decided_by = take(plain, "index_uuids", dict), take(plain, "decided_by", dict)
        return cls(
            {name: take(uuids, name, str) for name in uuids},
            take(plain, "prefix", str),
            take(plain, "grouping", dict),
            take(plain, "count", int),
            Guards.from_dict(take(plain, "guards", dict)),
            str(plain.get("at") or ""),
            tuple(map(str, take(plain, "view", list, type(None)) or ())),
            {name: tuple(map(str, take(decided_by, name, list))) for name in uuids},
            tuple(take({"filter": each}, "filter", dict) for each in take(plain, "filter", list, type(None)) or ()),
            take(plain, "decided", int, type(None)),
        )


class PlanWriter:
    """
    Writes a plan beside its final name, and gives it the name when it is whole; a context manager.
    An unfinished plan leaves no file. At the end it replaces a plan or an empty file of that name; another file there
    is refused at once (InvalidInputError).
    """

    def __init__(self, path: FilePath) -> None:
        refuse_output(path, kind="plan")
        self._path = Path(path)
        folder = self._path.parent
        name = f".{self._path.name}."
        self._lines = tempfile.TemporaryFile(dir=folder, prefix=name)  # noqa: SIM115
        self._whole = tempfile.NamedTemporaryFile(dir=folder, prefix=name, suffix=".tmp", delete=False)  # noqa: SIM115
        self._similarities = array("d")
        self._distances = array("b")
        self._ends = array("q", [0])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.close()
        self._whole.close()
        Path(self._whole.name).unlink(missing_ok=True)  # after finish() it has another name

    def __len__(self) -> int:
        return len(self._distances)

    def add(self, removal: PlannedRemoval) -> None:
        """Add a line; the order of calls decides only among equal similarities and distances."""
        line = to_line(removal.to_dict())
        self._lines.write(line)
        self._ends.append(self._ends[-1] + len(line))
        self._similarities.append(-1.0 if removal.similarity is None else removal.similarity)
        self._distances.append(removal.distance)

    def order(self, limit: int | None = None, among: Sequence[int] | None = None) -> list[int]:
        """Return the line numbers *among* (``None``: all) in plan order; *limit* keeps the most similar ones."""
        import numpy as np  # noqa: PLC0415 -- readers of plans do without it

        distances = np.frombuffer(self._distances, np.int8).astype(np.int16)
        lines = np.lexsort((-distances, np.frombuffer(self._similarities, np.float64)))
        order: list[int] = (lines if among is None else lines[np.isin(lines, among)]).tolist()
        return order if limit is None else order[max(0, len(order) - limit) :]

    def finish(self, header: PlanHeader, order: list[int]) -> str:
        """Write the lines of *order* under *header*, name the file, and return its SHA-256 without the last line."""
        digest = hashlib.sha256()

        def write(data: bytes) -> None:
            digest.update(data)
            self._whole.write(data)

        counted = replace(header, count=len(order))
        write(to_line({"format": FORMAT, "version": VERSION, **counted.to_dict()}))
        for number in order:
            self._lines.seek(self._ends[number])
            write(self._lines.read(self._ends[number + 1] - self._ends[number]))
        sha256 = digest.hexdigest()
        self._whole.write(to_line({"sha256": sha256}))
        sync_file(self._whole.file)
        self._whole.close()
        os.replace(self._whole.name, self._path)  # noqa: PTH105
        sync_folder(self._path)
        return sha256


@dataclass(frozen=True, slots=True)
class Plan:
    """
    A plan found whole; *sha256* names it in archives, *digests* has 16 bytes for each line but the last.
    *kept*: documents that stay by decision; the length and the guard rails are without them, the lines are all there.
    *approved*: who decided, and why.
    """

    path: Path
    header: PlanHeader
    sha256: str
    digests: bytes = field(repr=False)
    kept: frozenset[Key] = frozenset()
    approved: tuple[str, str] | None = None

    def __len__(self) -> int:
        return self.header.count - len(self.kept)

    def removals(self) -> Iterator[PlannedRemoval]:
        """Yield each line from the file; raise InvalidInputError at one that is not the one that was checked."""
        last = self.header.count + 1
        with self.path.open("rb") as file:
            lines = read_lines(file, self.path)
            for number in range(1, last + 1):
                line = next(lines, b"")
                if _digest(line) != self.digests[(number - 1) * DIGEST : number * DIGEST]:
                    advice = "see what was done, and run it again"
                    raise bad_line(self.path, number, "the plan was changed or replaced while it was used", advice)
                if number > 1:
                    yield _parse(line, self.path, number)

    def batches(self, size: int) -> Iterator[list[PlannedRemoval]]:
        """Yield the lines of :meth:`removals`, *size* at a time."""
        removals = self.removals()
        while lines := list(islice(removals, size)):
            yield lines


def read_plan(path: FilePath) -> Plan:
    """Return the plan in *path* after checking all of it; errors name the file, and the line if there is one."""
    path = Path(path)
    if path.exists() and not path.is_file():
        raise InvalidInputError(
            f"{path} is no regular file, and a plan is read twice: write it to a file, and give that"
        )
    with path.open("rb") as file:
        return _read(read_lines(file, path), path)


def _read(lines: Iterator[bytes], path: Path) -> Plan:
    first = next(lines, None)
    if first is None:
        raise InvalidInputError(f"{path} is empty, and not a plan of removal: {PLAN_AGAIN}")
    header = _parse_header(first, path)
    if first.endswith(b"\r\n"):
        raise InvalidInputError(f"{path} has other line ends (CR LF) than it was made with: copy it again as it is")
    digest = hashlib.sha256(first)
    digests = bytearray(_digest(first))
    stated, number = None, 1
    for number, line in enumerate(lines, 2):
        if not line.endswith(b"\n") or (stated := _read_trailer(line)) is not None:
            break
        _parse(line, path, number)
        digest.update(line)
        digests += _digest(line)
    if stated is None:
        raise InvalidInputError(f"{path} was cut short: its last line has no sha256: {PLAN_AGAIN}")
    if stated != digest.hexdigest() or header.count != number - 2:
        raise InvalidInputError(f"{path} was changed after it was made: its sha256 does not fit: {PLAN_AGAIN}")
    if next(lines, None) is not None:
        raise bad_line(path, number + 1, "the plan goes on after its end", f"delete what follows line {number}")
    return Plan(path, header, stated, bytes(digests))


def _digest(line: bytes) -> bytes:
    return hashlib.blake2b(line, digest_size=DIGEST).digest()


def _read_trailer(line: bytes) -> str | None:
    plain = _read_object(line) if line.startswith(b'{"sha256"') else None
    found = None if plain is None else plain.get("sha256")
    return found if isinstance(found, str) else None


def _read_object(line: bytes) -> dict[str, Any] | None:
    try:
        plain = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return plain if isinstance(plain, dict) else None


def _parse_header(line: bytes, path: Path) -> PlanHeader:
    plain = _read_object(line)
    if plain is None or plain.get("format") != FORMAT:
        raise InvalidInputError(f"{path} is not a plan of removal: give a file that es-simhash plan has made")
    if plain.get("version") != VERSION:
        raise InvalidInputError(
            f"{path} is a plan of version {shorten(plain.get('version'))}, and this program reads version {VERSION}: "
            f"{PLAN_AGAIN}"
        )
    try:
        return PlanHeader.from_dict(plain)
    except ValueError as error:
        raise bad_line(path, 1, f"is not the first line of a plan ({error})", PLAN_AGAIN) from error


def _parse(line: bytes, path: Path, number: int) -> PlannedRemoval:
    plain = _read_object(line)
    try:
        if plain is None:
            raise ValueError("it is not a JSON object")
        return PlannedRemoval.from_dict(plain)
    except ValueError as error:
        raise bad_line(path, number, f"is not a line of a plan ({error})", PLAN_AGAIN) from error
