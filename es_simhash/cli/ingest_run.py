"""The lines of files on their way into an index: given to the library, counted in order, stopped; and their report."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import IO, Any

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
from es_simhash.ingest.item import has_fingerprint
from es_simhash.transport.raw_json import read_json
from es_simhash.writes.operations import to_operation

# The report names the file and the line of a document instead, and the command names the index.
_NOT_REPORTED = ("position", "index", "fingerprinted")
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

    def add(self, record: Record, written: Written) -> None:
        self.last = record
        self._actions[written.action] += 1
        self._sums["fingerprinted"] += written.fingerprinted and written.action in _IN_THE_INDEX
        self._sums["updated"] += written.updated
        if written.action == "refused":
            self._fail(record, written.kind or "refused", written.reason or "", written.id)
        elif written.reason is not None:
            self._sums["problems"] += 1
            if len(self._warnings) < SHOWN_FAILURES:
                self._warnings.append(f"{record.place}: {written.reason}")
        self._write(record, {name: value for name, value in written.to_dict().items() if name not in _NOT_REPORTED})

    def add_unreadable(self, record: Record, reason: str) -> None:
        self.last = record
        self._actions["unreadable"] += 1
        self._fail(record, "unreadable", reason)
        self._write(record, {"id": None, "action": "unreadable", "reason": reason})

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


def _find_id(action: Mapping[str, Any]) -> str | None:
    if "_id" in action:
        return None
    return next((name for name in action["_source"] if name.casefold() in ("id", "uuid", "guid", "url")), None)


class IngestActions:
    """
    The lines of the files as bulk actions, without lines that are not documents.
    One thread reads the lines, another one takes the answers: *given* is changed only by the first, *answered* only by
    the second. *other_id*: a field of the first document that seems to hold the id that it lacks. *waiting*: lines that
    were read and not yet counted, in order, each with the reason why it is no document.
    """

    def __init__(self, records: Iterator[Record], id_field: str | None) -> None:
        self.waiting: deque[tuple[Record, str | None]] = deque()
        self.given = self.answered = 0
        self.other_id: str | None = None
        self.request = Request()
        self._records = records
        self._lines = self._read()
        self._id_field = id_field

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for record, action, reason in self._lines:
            if self.request.stop is not None:
                return
            self.waiting.append((record, reason))
            if action is not None:
                self.given += 1
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

    def _read(self) -> Iterator[tuple[Record, dict[str, Any] | None, str | None]]:
        for record in self._records:
            try:
                action = to_action(record, self._id_field)
            except InvalidInputError as failure:
                yield record, None, str(failure)
            else:
                yield record, action, None

    @property
    def is_idle(self) -> bool:
        """Whether every document that was handed on has its answer."""
        return self.given == self.answered


class IngestRun:
    """Writes the documents, counts the outcomes in the order of the lines, and says where to go on."""

    def __init__(self, actions: IngestActions, tally: Tally, reader: Reader, *, skip: int) -> None:
        self._actions = actions
        self._tally = tally
        self._reader = reader
        self._skip = skip

    def write(self, connection: Connection, index: str, arguments: dict[str, Any], tracker: Tracker) -> None:
        """Write until the end, or until somebody stops it; what was read by then is finished first."""
        actions = self._actions
        try:
            with (
                say_if_stopped(self._done, again=self._again),
                stop_requests(lambda: actions.is_idle) as actions.request,
                closing(connection.simhash.ingest(index, actions, **arguments)) as outcomes,
            ):
                for outcome in outcomes:
                    self._count(outcome, tracker)
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
        how: dict[str, Any] = {"on_problem": lambda problem: problems.update({problem.position: problem.reason})}
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

    def _count(self, written: Any, tracker: Tracker) -> None:
        if written.position != self._actions.answered:
            return  # before an error reports may lack a document, and its line is the first to send again
        self._count_settled()
        record, _ = self._actions.waiting.popleft()
        self._actions.answered += 1
        self._tally.add(record, written)
        tracker.advance(1, completed=self._reader.position)

    def _count_settled(self) -> None:
        """Count the lines that were not handed on and stand before the next document that was."""
        waiting = self._actions.waiting
        while waiting and (reason := waiting[0][1]) is not None:
            record, _ = waiting.popleft()
            self._tally.add_unreadable(record, reason)

    def _done(self) -> str:
        last = self._tally.last
        place = f"up to {last.place}: " if last else ""
        open_ = self._actions.given - self._actions.answered
        more = f"; up to {count(open_, 'document')} more may be written" if open_ else ""
        return f"{place}{self._tally.sentence()}{more}"

    def _again(self) -> str:
        return this_command("--skip", str(self._skip + self._tally.lines), without="--skip")
