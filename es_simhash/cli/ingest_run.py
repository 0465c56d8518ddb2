"""The lines of files on their way into an index: given to the library, counted in order, stopped; and their report."""

from __future__ import annotations

import json
import os
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice
from typing import IO, Any, TypeAlias

from es_simhash import DEFAULT_SCHEME, InvalidInputError, Written, with_fingerprints
from es_simhash.cli.connect import Connection
from es_simhash.cli.input_records import Reader, Record, to_action
from es_simhash.cli.options import Target
from es_simhash.cli.output import (
    SHOWN_FAILURES,
    Tracker,
    count,
    dry_run_ending,
    error,
    failures_as_json,
    note,
    print_failures,
    print_json,
    print_line,
    warn,
)
from es_simhash.cli.stopping import Request, say_if_stopped, stop_requests, this_command
from es_simhash.ingest.checkpoint import CHECKPOINT_LINES, IngestCheckpoint, Position, WrittenBefore
from es_simhash.ingest.item import has_fingerprint
from es_simhash.transport.raw_json import read_json
from es_simhash.writes.operations import to_operation, writes_refused

# The report names the file and the line of a document instead, and the command names the index.
_NOT_REPORTED = ("position", "index", "fingerprinted")
# Counted beside the actions; a checkpoint has both in one dict.
_SUMS = ("fingerprinted", "problems", "updated")
_IN_THE_INDEX = ("written", "tagged")
_PHRASES = {
    "tagged": "tagged as duplicates",
    "skipped": "skipped",
    "unchanged": "there already",
    "dropped": "dropped by an ingest pipeline",
    "refused": "refused",
    "unreadable": "unreadable",
}


@dataclass(frozen=True, slots=True)
class LineFailure:
    """A line that is not in the index; *kind* is ``"unreadable"``, or what the library says of a refused document."""

    kind: str
    place: str
    file: str
    line: int
    id: str | None
    reason: str

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "place"}

    def __str__(self) -> str:
        return f"{self.place}: {'' if self.kind == 'unreadable' else 'refused: '}{self.reason}"


@dataclass(slots=True)
class Tally:
    """Counts the outcome of each line, and writes one line of JSON for each to *report*, if there is one."""

    report: IO[str] | None
    is_dry: bool = False
    last: Record | None = None
    _actions: Counter[str] = field(default_factory=Counter)
    _sums: Counter[str] = field(default_factory=Counter)
    _failures: list[LineFailure] = field(default_factory=list)
    _warnings: list[str] = field(default_factory=list)

    @property
    def lines(self) -> int:
        return self._actions.total()

    @property
    def failed(self) -> int:
        return self._actions["refused"] + self._actions["unreadable"]

    @property
    def _written(self) -> int:
        return sum(self._actions[action] for action in _IN_THE_INDEX)

    @property
    def lacks_fingerprints(self) -> bool:
        return self._written > 0 and not self._sums["fingerprinted"]

    def add(self, record: Record, each: Written) -> None:
        self.last = record
        self._actions[each.action] += 1
        self._sums["fingerprinted"] += each.fingerprinted and each.action in _IN_THE_INDEX
        self._sums["updated"] += each.updated
        if each.action == "refused":
            self._fail(record, each.kind or "refused", each.reason or "", each.id)
        elif each.reason is not None:
            self._sums["problems"] += 1
            if len(self._warnings) < SHOWN_FAILURES:
                self._warnings.append(f"{record.place}: {each.reason}")
        self._write(record, {name: value for name, value in each.to_dict().items() if name not in _NOT_REPORTED})

    def add_unreadable(self, record: Record, reason: str) -> None:
        self.last = record
        self._actions["unreadable"] += 1
        self._fail(record, "unreadable", reason)
        self._write(record, {"id": None, "action": "unreadable", "reason": reason})

    @property
    def counts(self) -> dict[str, int]:
        """The counts, as :meth:`resume` takes them."""
        return {**self._actions, **{name: self._sums[name] for name in _SUMS}}

    def resume(self, counts: Mapping[str, int]) -> None:
        self._actions = Counter(counts)
        self._sums = Counter({name: self._actions.pop(name, 0) for name in _SUMS})

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
        verb = "would be written" if self.is_dry else "written"
        parts = [f"{count(self._written, 'document')} {verb}, {self._sums['fingerprinted']:,} with a fingerprint"]
        parts += [f"{self._sums['updated']:,} in place of one with the same id"] if self._sums["updated"] else []
        for action, phrase in _PHRASES.items():
            parts += [f"{self._actions[action]:,} {phrase}"] if self._actions[action] else []
        return ", ".join(parts)

    def show(self, index: str, seconds: float, *, as_json: bool, repair: str | None = None) -> None:
        """Print failures and warnings, then the counts; *repair*: what to do if no document has a fingerprint."""
        print_failures(self._failures, total=self.failed, advice="pass --report FILE to get all of them")
        for warning in self._warnings:
            warn(warning)
        if self._sums["problems"] > len(self._warnings):
            warn(f"and {self._sums['problems'] - len(self._warnings):,} more documents with such a problem")
        if repair is not None:
            error(f"no document has a fingerprint: {repair}", kind="no_fingerprint")
        elif self.lacks_fingerprints:
            warn("no document has a fingerprint: compare --text-field with the names of the fields")
        if as_json:
            counts = {
                "index": index,
                "dry_run": self.is_dry,
                "written": self._written,
                "fingerprinted": self._sums["fingerprinted"],
                "updated": self._sums["updated"],
                **{action: self._actions[action] for action in _PHRASES},
                "seconds": round(seconds, 3),
            }
            print_json({**counts, "failures": failures_as_json(self._failures)})
        else:
            rate = self.lines / seconds if seconds else 0.0
            speed = f"{seconds:.1f} s, {rate:,.0f} documents/s"
            print_line(f"{index}: {self.sentence()}; {speed}{dry_run_ending(is_dry=self.is_dry)}")


# The checkpoint is also written after so many seconds.
CHECKPOINT_SECONDS = 1.0
# Lines that are compared at once with what was written before.
_PART = 500

# A line, its action, and what became of it where it is not to be written: why it is no document, or the report on it.
_Line: TypeAlias = tuple[Record, dict[str, Any] | None, str | Written | None]


def _find_id(action: Mapping[str, Any]) -> str | None:
    if "_id" in action or action["_op_type"] not in ("index", "create"):
        return None
    return next((name for name in action["_source"] if name.casefold() in ("id", "uuid", "guid", "url")), None)


class IngestActions:
    """
    The lines of the files as bulk actions, without lines that are not documents or were written before.
    One thread reads the lines, another one takes the answers: *given* is changed only by the first, *answered* only by
    the second. *other_id*: a field of the first document that seems to hold the id that it lacks. *waiting*: lines that
    were read and not yet counted, in order, as in :data:`_Line`.
    """

    def __init__(
        self,
        records: Iterator[Record],
        id_field: str | None,
        saved: IngestCheckpoint | None,
        before: WrittenBefore | None = None,
        connection: Connection | None = None,
    ) -> None:
        self.waiting: deque[tuple[Record, str | Written | None]] = deque()
        self.given = self.answered = 0
        self.other_id: str | None = None
        self.request = Request()
        self._records = records
        self._lines = self._read()
        self._id_field = id_field
        self._saved = saved
        self._before = before
        self._connection = connection

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for record, action, settled in self._settle(self._lines):
            if self.request.stop is not None:
                return
            if settled is not None or action is None:
                self.waiting.append((record, settled))
                continue
            self.given += 1
            self.waiting.append((record, None))
            yield action

    def pass_unreadable(self, tally: Tally) -> bool:
        """Count the lines before the first that can be read, so that nothing is made for a file that has none."""
        for record, action, reason in self._lines:
            if action is not None:
                self.other_id = _find_id(action)
                self._lines = chain([(record, action, reason)], self._lines)
                return True
            tally.add_unreadable(record, str(reason))
        return False

    def _settle(self, lines: Iterator[_Line]) -> Iterator[_Line]:
        before, connection = self._before, self._connection
        while before and connection and before.left and (part := list(islice(lines, _PART))):
            found = iter(
                connection.run(
                    lambda server: before.find(server, [action for _, action, _ in part if action is not None])
                )
            )
            for record, action, reason in part:
                yield record, action, reason if action is None else next(found)
        yield from lines

    def _read(self) -> Iterator[_Line]:
        for record in self._records:
            try:
                action = to_action(record, self._id_field)
            except InvalidInputError as failure:
                yield record, None, str(failure)
                continue
            if self._saved is not None and "_id" not in action:
                action["_id"] = self._saved.id_for(record.number, record.line)
            yield record, action, None

    @property
    def is_idle(self) -> bool:
        """Whether every document that was handed on has its answer."""
        return self.given == self.answered


class IngestRun:
    """Writes the documents, counts the outcomes in the order of the lines, and says where to go on."""

    def __init__(
        self, actions: IngestActions, tally: Tally, reader: Reader, saved: IngestCheckpoint | None, *, skip: int
    ) -> None:
        self._actions = actions
        self._tally = tally
        self._reader = reader
        self._saved = saved
        self._skip = skip
        self._unsaved = 0
        self._saved_at = time.monotonic()

    def write(self, connection: Connection, index: str, arguments: dict[str, Any], tracker: Tracker) -> None:
        """Write until the end, or until somebody stops it; what was read by then is finished first."""
        actions = self._actions
        try:
            with (
                say_if_stopped(self._done, again=self._again),
                stop_requests(lambda: actions.is_idle) as actions.request,
                closing(connection.simhash.ingest(index, actions, **arguments)) as outcomes,
            ):
                for each in outcomes:
                    self._count(each, tracker)
                    if actions.request.stop is not None and actions.is_idle:
                        break
                self._count_settled()
                if actions.request.stop is not None:
                    raise actions.request.stop
        except Exception:
            if self._tally.lines:
                note(f"stopped: {self._done()}")
                note(f"to go on: {self._again()}")
            raise
        finally:
            self.save()

    def try_out(
        self,
        connection: Connection,
        index: str,
        target: Target,
        arguments: dict[str, Any],
        tracker: Tracker,
        *,
        is_new: bool,
    ) -> None:
        """Count what would be written to *index*, which does not exist yet if it is new; write nothing."""
        with closing(connection.simhash.ingest(index, (), **arguments, dry_run=True)) as checked:
            if not is_new:
                list(checked)
        problems: dict[int, str] = {}
        how: dict[str, Any] = {"on_problem": lambda each: problems.update({each.position: each.reason})}
        how |= {name: arguments[name] for name in ("text_field", "workers")}
        if is_new:
            scheme = target.scheme or DEFAULT_SCHEME
            documents = with_fingerprints(self._actions, scheme=scheme, prefix=target.prefix, **how)
        else:
            documents = connection.simhash.with_fingerprints(index, self._actions, **how)
        for number, action in enumerate(documents):
            reason = problems.pop(number, None)
            operation = to_operation(action)
            if isinstance(operation.body, str):
                operation.body = read_json(operation.body)
            is_done = reason is None and has_fingerprint(operation, target.prefix)
            self._count(Written(number, action.get("_id"), index, "written", reason, fingerprinted=is_done), tracker)
        self._count_settled()

    def _count(self, each: Any, tracker: Tracker) -> None:
        if each.position != self._actions.answered:
            return  # before an error reports may lack a document, and its line is the first to send again
        self._count_settled()
        if self._saved is not None and each.hindrance is not None:
            raise writes_refused(each.hindrance, each.index, each.reason)  # not done: a later run goes on here
        record, _ = self._actions.waiting.popleft()
        self._actions.answered += 1
        if self._saved is not None and each.updated and self._saved.made(each.id):
            each = replace(each, updated=False)  # this line, sent again after a kill
        self._tally.add(record, each)
        tracker.advance(1, completed=self._reader.position)
        self._unsaved += 1
        if self._unsaved >= CHECKPOINT_LINES or time.monotonic() - self._saved_at >= CHECKPOINT_SECONDS:
            self.save()

    def _count_settled(self) -> None:
        """Count the lines that were not handed on and stand before the next document that was."""
        waiting = self._actions.waiting
        while waiting and (settled := waiting[0][1]) is not None:
            record, _ = waiting.popleft()
            if isinstance(settled, Written):
                self._tally.add(record, settled)
            else:
                self._tally.add_unreadable(record, settled)

    def save(self, *, is_finished: bool = False) -> None:
        self._unsaved, self._saved_at = 0, time.monotonic()
        if self._saved is None or self._tally.last is None:
            if self._saved is not None and is_finished:
                self._saved.save(replace(self._saved.position, is_finished=True))
            return
        last, report_bytes = self._tally.last, self._tally.sync_report()
        self._saved.save(
            Position(last.number, last.line, self._tally.lines, self._tally.counts, report_bytes, is_finished)
        )

    def _done(self) -> str:
        last = self._tally.last
        place = f"up to {last.place}: " if last else ""
        open_ = self._actions.given - self._actions.answered
        more = f"; up to {count(open_, 'document')} more may be written" if open_ else ""
        return f"{place}{self._tally.sentence()}{more}"

    def _again(self) -> str:
        if self._saved is not None:
            return this_command()
        return this_command("--skip", str(self._skip + self._tally.lines), without="--skip")
