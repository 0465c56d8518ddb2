"""
The lines of files on their way into an index: handed to the library, counted in their order, and stopped with care.

The options are in ``commands/ingest.py``, the checkpoint's file in ``ingest_checkpoint.py``.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import islice
from typing import Any, TypeAlias

from es_simhash.cli.bulk_actions import to_action
from es_simhash.cli.connect import Connection
from es_simhash.cli.ingest_checkpoint import CHECKPOINT_LINES, IngestCheckpoint, Position
from es_simhash.cli.ingest_resumed import WrittenBefore
from es_simhash.cli.output import count, note
from es_simhash.cli.progress import Tracker
from es_simhash.cli.records import Reader, Record
from es_simhash.cli.stopping import Request, say_if_stopped, stop_requests, this_command
from es_simhash.cli.tally import Tally
from es_simhash.errors import InvalidInputError
from es_simhash.ingest.own_records import find_own_record, refuse_own_record
from es_simhash.ingest.written import Written

# The checkpoint is also written after so many seconds.
CHECKPOINT_SECONDS = 1.0
# Lines that are compared at once with what was written before.
_PART = 500

# A line, its action, and what became of it where it is not to be written: why it is no document, or the report on it.
_Line: TypeAlias = tuple[Record, dict[str, Any] | None, str | Written | None]


class IngestActions:
    """
    The lines of the files as bulk actions. A line that is not a document, or was written before, is left out.

    A thread reads them, and another one takes the answers: each of the two numbers is changed by one thread only.

    Attributes:
        waiting:
            Lines that were read and not yet counted; each that is not handed on with the reason why it is not a
            document, or with the report on it.
        given:
            How many documents were handed on.
        answered:
            How many of them have their answer.
        request:
            Whether to stop.
    """

    def __init__(
        self,
        records: Iterator[Record],
        id_field: str | None,
        saved: IngestCheckpoint | None,
        before: WrittenBefore | None = None,
    ) -> None:
        self.waiting: deque[tuple[Record, str | Written | None]] = deque()
        self.given = self.answered = 0
        self.request = Request()
        self._records = records
        self._id_field = id_field
        self._saved = saved
        self._before = before

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for record, action, settled in self._settle(self._read()):
            if self.request.stop is not None:
                return
            if settled is not None or action is None:
                self.waiting.append((record, settled))
                continue
            self.given += 1
            self.waiting.append((record, None))
            yield action

    def _settle(self, lines: Iterator[_Line]) -> Iterator[_Line]:
        """Yield *lines*, and the reports on those that were written before."""
        while self._before is not None and self._before.left and (part := list(islice(lines, _PART))):
            found = iter(self._before.find([action for _, action, _ in part if action is not None]))
            for record, action, reason in part:
                yield record, action, reason if action is None else next(found)
        yield from lines

    def _read(self) -> Iterator[_Line]:
        for record in self._records:
            if find_own_record(record.value) is not None:
                self._records = iter(())  # closes the file
                refuse_own_record(record.value, record.place)
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

    def _count(self, each: Any, tracker: Tracker) -> None:
        self._count_settled()
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
        """Put into the checkpoint what has its answer."""
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
        return this_command(skip=self._skip + self._tally.lines)
