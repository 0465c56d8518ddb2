"""
What became of the lines of an ingest: counts, the first failures and warnings, and the report file.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Any

from es_simhash.cli.output import (
    SHOWN_FAILURES,
    count,
    failures_as_json,
    print_failures,
    print_json,
    print_line,
    warn,
)
from es_simhash.cli.records import Record
from es_simhash.ingest.written import Written

# The report names the file and the line of a document instead, and the command names the index.
_NOT_REPORTED = ("position", "index", "fingerprinted")
_IN_THE_INDEX = ("written", "tagged", "replaced")
_PHRASES = {
    "tagged": "tagged as duplicates",
    "replaced": "became canonical in place of another",
    "skipped": "skipped",
    "unchanged": "there already",
    "dropped": "dropped by an ingest pipeline",
    "refused": "refused",
    "unreadable": "unreadable",
}


@dataclass(frozen=True, slots=True)
class LineFailure:
    """
    A line that is not in the index.

    Attributes:
        kind:
            ``"unreadable"``, or what the library says of a document that was refused.
        place:
            File and line, for people.
        file:
            Name of the file.
        line:
            Number of the line.
        id:
            The ``_id``, where it is known.
        reason:
            Why, in one line.
    """

    kind: str
    place: str
    file: str
    line: int
    id: str | None
    reason: str

    def __str__(self) -> str:
        """Return one line for people."""
        return f"{self.place}: {'' if self.kind == 'unreadable' else 'refused: '}{self.reason}"

    def to_dict(self) -> dict[str, Any]:
        """Return the failure as plain JSON values."""
        return {"kind": self.kind, "file": self.file, "line": self.line, "id": self.id, "reason": self.reason}


@dataclass(slots=True)
class Tally:
    """
    Counts the outcome of each line.

    Attributes:
        report:
            File that gets one line of JSON for each line counted, or ``None``.
        last:
            The last line counted.
    """

    report: IO[str] | None
    last: Record | None = None
    _fingerprinted: int = 0
    _problems: int = 0
    _contained: int = 0
    _updated: int = 0
    _actions: Counter[str] = field(default_factory=Counter)
    _failures: list[LineFailure] = field(default_factory=list)
    _warnings: list[str] = field(default_factory=list)

    @property
    def lines(self) -> int:
        """Number of lines counted."""
        return self._actions.total()

    @property
    def failed(self) -> int:
        """Number of lines that are not in the index because they could not be read, or were refused."""
        return self._actions["refused"] + self._actions["unreadable"]

    @property
    def _written(self) -> int:
        return sum(self._actions[action] for action in _IN_THE_INDEX)

    def add(self, record: Record, each: Written) -> None:
        """Count the outcome that the server gave for a line."""
        self.last = record
        self._actions[each.action] += 1
        self._fingerprinted += each.fingerprinted and each.action in _IN_THE_INDEX
        self._contained += each.contained_in is not None
        self._updated += each.updated
        if each.action == "refused":
            self._fail(record, each.kind or "refused", each.reason or "", each.id)
        elif each.reason is not None:
            self._problems += 1
            if len(self._warnings) < SHOWN_FAILURES:
                self._warnings.append(f"{record.place}: {each.reason}")
        self._write(record, {name: value for name, value in each.to_dict().items() if name not in _NOT_REPORTED})

    def add_unreadable(self, record: Record, reason: str) -> None:
        """Count a line that is not a document."""
        self.last = record
        self._actions["unreadable"] += 1
        self._fail(record, "unreadable", reason)
        self._write(record, {"id": None, "action": "unreadable", "reason": reason})

    @property
    def counts(self) -> dict[str, int]:
        """The counts, as :meth:`resume` takes them."""
        sums = {"fingerprinted": self._fingerprinted, "problems": self._problems, "contained": self._contained}
        return {**self._actions, **sums, "updated": self._updated}

    def resume(self, counts: Mapping[str, int]) -> None:
        """Begin with the counts of an earlier run."""
        rest = dict(counts)
        self._fingerprinted, self._problems = rest.pop("fingerprinted", 0), rest.pop("problems", 0)
        self._contained, self._updated = rest.pop("contained", 0), rest.pop("updated", 0)
        self._actions = Counter(rest)

    def sync_report(self) -> int:
        """Return the size of the report in bytes, once all of it is on the disk."""
        if self.report is None or not self.report.seekable():
            return 0
        self.report.flush()
        os.fsync(self.report.fileno())
        return self.report.tell()

    def _fail(self, record: Record, kind: str, reason: str, id_: str | None = None) -> None:
        if len(self._failures) < SHOWN_FAILURES:
            self._failures.append(LineFailure(kind, record.place, record.file, record.line, id_, reason))

    def _write(self, record: Record, outcome: dict[str, Any]) -> None:
        if self.report is not None:
            line = {"file": record.file, "line": record.line, **outcome}
            self.report.write(json.dumps(line, ensure_ascii=False) + "\n")

    def sentence(self) -> str:
        """Return the counts in words."""
        parts = [f"{count(self._written, 'document')} written, {self._fingerprinted:,} with a fingerprint"]
        parts += [f"{self._updated:,} in place of one with the same id"] if self._updated else []
        for action, phrase in _PHRASES.items():
            parts += [f"{self._actions[action]:,} {phrase}"] if self._actions[action] else []
        parts += [f"{self._contained:,} add nothing to a longer one"] if self._contained else []
        return ", ".join(parts)

    def show(self, index: str, seconds: float, *, as_json: bool) -> None:
        """Print failures and warnings, then the counts."""
        print_failures(self._failures, total=self.failed, advice="pass --report FILE to get all of them")
        for warning in self._warnings:
            warn(warning)
        if self._problems > len(self._warnings):
            warn(f"and {self._problems - len(self._warnings):,} more documents with such a problem")
        if self._written and not self._fingerprinted:
            warn("no document has a fingerprint: compare --text-field with the names of the fields")
        if as_json:
            counts = {
                "index": index,
                "written": self._written,
                "fingerprinted": self._fingerprinted,
                "updated": self._updated,
                **{action: self._actions[action] for action in _PHRASES},
                "contained": self._contained,
                "seconds": round(seconds, 3),
            }
            print_json({**counts, "failures": failures_as_json(self._failures)})
        else:
            rate = self.lines / seconds if seconds else 0.0
            print_line(f"{index}: {self.sentence()}; {seconds:.1f} s, {rate:,.0f} documents/s")
