"""``ingest``: documents from files into an index; their outcomes counted in the order of the lines, and a report."""

from __future__ import annotations

import json
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from itertools import chain, islice
from typing import Any, Literal, TypeAlias

from es_simhash import InvalidInputError, SimHashClient, Written
from es_simhash.arguments import check_count
from es_simhash.cli.app import FAILED
from es_simhash.cli.connect import Connection, connect
from es_simhash.cli.failures import WrongUseError, unblocking
from es_simhash.cli.lines import Format, Line, Reader, to_action
from es_simhash.cli.options import RULE, TextFields, To, takes
from es_simhash.cli.output_files import open_report
from es_simhash.cli.show import (
    PARTLY,
    SHOWN_FAILURES,
    count,
    error,
    note,
    plain_failures,
    print_failures,
    show,
    stopped,
    warn,
)
from es_simhash.cli.stopping import Request, exit_code, stop_requests
from es_simhash.errors import shorten

FIRST_LINES, MOST_NAMED = 500, 20
"""If none of so many lines has the text field, nothing is created, and at most so many of their fields are named."""


@takes(SimHashClient.ingest, f"{RULE} workers batch")
def ingest(
    index: str,
    files: tuple[str, ...],
    /,
    *,
    id_field: str | None = None,
    text_field: TextFields = (),
    format: Format = "auto",
    create: bool = False,
    on_duplicate: Literal["tag", "skip", "none"] = "tag",
    content_ids: bool = False,
    op_type: Literal["index", "create"] = "index",
    skip: int = 0,
    report: str | None = None,
    to: To = To(),
    **how: Any,
) -> int:
    """
    Write the documents of FILES to INDEX with their fingerprints.

    A file holds JSON Lines, or CSV with a header, in UTF-8, plain or as gzip; - is stdin. A line may also be an export
    with _id and _source. A JSON line is sent as it is, with the fingerprint put in, so that no number is rewritten.
    Lines that cannot be read, and documents that the server refuses, do not stop the others: the command prints the
    first of them on stderr, writes all of them to the report, and exits with 3. A document that has an id replaces the
    document with that id. A near-duplicate of a document in INDEX, or of an earlier document of the files, is tagged
    with the canonical of its group, unless --on-duplicate says otherwise.

    Ctrl-C finishes the lines that were read, and a second one stops at once; the command says how to go on. After a
    kill run it again: a document that has an id (also by --id-field or --content-ids), and is in INDEX as its line has
    it, is not written again and keeps its group.

    For example:

        es-simhash ingest news news.jsonl.gz --create --text-field body --id-field url
        es-simhash ingest news part-*.csv --report report.jsonl
        es-simhash ingest news crawl.jsonl --on-duplicate skip --preset near --report report.jsonl

    Args:
        index:
            Name of an index, alias or data stream.
        files:
            Files, or - for stdin.
        id_field:
            Field that holds the id. Default: _id, else the server makes an id.
        format:
            Format of the input; auto goes by the name of the file, and means jsonl for any other name.
        create:
            Create the index if it does not exist; needs --text-field. More can be said with es-simhash create.
        on_duplicate:
            tag: record the canonical in a near-duplicate; skip: do not write it, but tag it if its id is in INDEX;
            none: do not search for near-duplicates.
        content_ids:
            Make missing ids from the content, so that a rerun adds nothing.
        op_type:
            index: a document replaces the one with its id; create: documents are only created, as data streams demand.
        skip:
            Leave out so many lines at the beginning.
        report:
            Write the outcome of each document to this file, as JSON Lines: file, line, id, action, reason, and its
            canonical.
    """
    if create and not text_field:
        raise WrongUseError("--create needs --text-field: the new index records which fields hold the text")
    check_count("skip", skip, 0)
    max_distance = how.get("max_distance")
    if on_duplicate == "none" and how.pop("max_distance", None) is not None and not create:
        raise WrongUseError("--max-distance needs --create or another --on-duplicate: leave it out")
    how |= {"on_duplicate": None if on_duplicate == "none" else on_duplicate, "op_type": op_type}
    how |= {"text_field": text_field or None, "id_from": "content" if content_ids else None}
    with ExitStack() as stack:
        reader = Reader(files, format=format)
        connection = stack.enter_context(connect(to, index, is_quiet=True))
        tally = Tally(stack.enter_context(open_report(report, files)))
        is_new = create and not connection.client.indices.exists(index=index)
        run = Run(reader, stack.enter_context(reader.records()), tally, skip=skip, id_field=id_field)
        first = run.find_first()
        if first is None:
            if is_new:  # nothing is left, such as a rule, that would refuse the next try
                note(f"no line can be read, so {index} was not created")
            return tally.show(index, 0.0)
        if is_new:
            _check_grouping(how)
            run.check_text_field(text_field)
            made = connection.simhash.create_index(index, text_field=text_field, max_distance=max_distance)
            note(f"created {index}, scheme {made.scheme}")
        if not content_ids and "_id" not in first and (names := [*filter(_IDS.fullmatch, first["_source"])]):
            note(f"the lines have no _id, so the documents get new ids: --id-field {names[0]} takes theirs")
        began = time.monotonic()
        code = run.write(connection, index, how)
        # Before the report is closed, which may fail: its disk is full.
        return code or tally.show(index, time.monotonic() - began)


_IDS = re.compile("id|uuid|guid|url", re.IGNORECASE)


def _check_grouping(how: Mapping[str, Any]) -> None:
    """Refuse to create an index for a grouping by fields of the user's, which it would not map."""
    fields = {"per": how.get("per"), "within": how.get("within"), "canonical": {*how.get("canonical", ())} - _NO_FIELD}
    if given := [f"--{name}" for name, value in fields.items() if value]:
        raise InvalidInputError(
            f"--create maps no field for {', '.join(given)}, so nothing was created or written: give your mapping to "
            "es-simhash create --mappings FILE, then ingest without --create"
        )


_NO_FIELD = {"id", "longest"}

# The report names the file and the line of a document instead, and the command names the index.
_NOT_REPORTED = ("position", "index", "fingerprinted")
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
    file: str
    line: int
    id: str | None
    reason: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        refused = "" if self.kind == "unreadable" else "refused: "
        return f"{Line(self.file, self.line).place}: {refused}{self.reason}"


class Tally:
    """Counts the outcome of each line, and writes one line of JSON for each to *report*, if there is one."""

    def __init__(self, report: Callable[[str], Any] | None) -> None:
        self.report = report
        self.lines = 0
        self.last: Line | None = None
        self._counts: Counter[str] = Counter()
        self._failures: list[LineFailure] = []
        self._warnings: list[str] = []

    def add(self, line: Line, written: Written) -> None:
        """Count the outcome of a document."""
        is_in = written.action in ("written", "tagged")
        self._counts["written"] += is_in
        self._counts["fingerprinted"] += written.fingerprinted and is_in
        self._counts["updated"] += written.updated
        self._counts["too_short"] += written.too_short
        self._counts["tagged"] += written.action == "tagged"
        if written.reason is not None and written.action != "refused":
            self._counts["problems"] += 1
            if len(self._warnings) < SHOWN_FAILURES:
                self._warnings.append(f"{line.place}: {written.reason}")
        outcome = {name: value for name, value in written.to_dict().items() if name not in _NOT_REPORTED}
        self._add(line, outcome, kind=written.kind or "refused")

    def add_unreadable(self, line: Line) -> None:
        """Count a line that is no document."""
        self._add(line, {"id": None, "action": "unreadable", "reason": line.reason}, kind="unreadable")

    def _add(self, line: Line, outcome: dict[str, Any], *, kind: str) -> None:
        self.lines += 1
        self.last = line
        action = outcome["action"]
        if action not in ("written", "tagged"):
            self._counts[action] += 1
        if action in ("refused", "unreadable") and len(self._failures) < SHOWN_FAILURES:
            self._failures.append(LineFailure(kind, line.name, line.line, outcome["id"], outcome["reason"] or ""))
        if self.report is not None:
            plain = {"file": line.name, "line": line.line, **outcome}
            self.report(json.dumps(plain, ensure_ascii=False) + "\n")

    def sentence(self) -> str:
        """Return the counts in words."""
        counts = self._counts
        phrases = {"updated": "in place of one with the same id", "too_short": "too short to compare", **_PHRASES}
        parts = [f"{count(counts['written'], 'document')} written, {counts['fingerprinted']:,} with a fingerprint"]
        parts += [f"{counts[name]:,} {phrase}" for name, phrase in phrases.items() if counts[name]]
        return ", ".join(parts)

    def show(self, index: str, seconds: float) -> int:
        """Print failures and warnings, then the counts, and return the exit code."""
        counts = self._counts
        failed = counts["refused"] + counts["unreadable"]
        print_failures(self._failures, total=failed, advice="pass --report FILE to get all of them")
        advice = unblocking(failure.reason for failure in self._failures)
        if advice is not None:
            error(f"{index} takes no writes now: {advice}", kind="blocked")
        for warning in self._warnings:
            warn(warning)
        if (rest := counts["problems"] - len(self._warnings)) > 0:
            warn(f"and {rest:,} more documents with such a problem")
        if counts["written"] and not counts["fingerprinted"]:
            warn("no document has a fingerprint: compare --text-field with the names of the fields")
        names = ("written", "fingerprinted", "updated", "too_short", *_PHRASES)
        plain = {"index": index, **{name: counts[name] for name in names}}
        speed = f"{seconds:.1f} s, {self.lines / seconds if seconds else 0:,.0f} documents/s"
        show(
            plain | {"seconds": round(seconds, 3)} | plain_failures(self._failures),
            f"{index}: {self.sentence()}; {speed}",
        )
        if failed:
            return FAILED if advice and not counts["written"] else PARTLY
        return 0


_Read: TypeAlias = tuple[Line, dict[str, Any] | None]


class Run:
    """
    The lines of the files as bulk actions, and the outcomes counted in the order of the lines.
    One thread reads the lines, another one takes the answers: *_given* is changed only by the first, *_answered* only
    by the second. *_waiting*: lines that were read and not yet counted, in order.
    """

    def __init__(
        self, reader: Reader, records: Iterator[Line], tally: Tally, *, skip: int, id_field: str | None
    ) -> None:
        self._reader = reader
        self._tally = tally
        self._skip = skip
        self._lines: Iterator[_Read] = (to_action(line, id_field) for line in islice(records, skip, None))
        self._waiting: deque[Line] = deque()
        self._given = self._answered = 0
        self._request = Request()

    def _actions(self) -> Iterator[dict[str, Any]]:
        for line, action in self._lines:
            if self._request.stop is not None:
                return
            self._waiting.append(line)
            if action is not None:
                self._given += 1
                yield action

    def find_first(self) -> dict[str, Any] | None:
        """Count the lines before the first document, and return it; for a file without any nothing is made."""
        for line, action in self._lines:
            if action is not None:
                self._lines = chain([(line, action)], self._lines)
                return action
            self._tally.add_unreadable(line)
        return None

    def check_text_field(self, text_field: Sequence[str]) -> None:
        """Refuse to create an index for text fields that none of the first documents has."""
        wanted = {*text_field, *(name.partition(".")[0] for name in text_field)}
        read: list[_Read] = []
        names: dict[str, None] = {}
        for line, action in islice(self._lines, FIRST_LINES):
            read.append((line, action))
            found = {} if action is None else action["_source"]
            names |= dict.fromkeys(found)
            if not wanted.isdisjoint(found):
                self._lines = chain(read, self._lines)
                return
        raise InvalidInputError(
            f"none of {count(len(read), 'line')} has a field {shorten(', '.join(text_field))}, so nothing was created "
            f"or written: pass --text-field with one of {', '.join(map(shorten, islice(names, MOST_NAMED)))}"
        )

    def _is_idle(self) -> bool:
        """Return whether every document that was handed on has its answer."""
        return self._given == self._answered

    def write(self, connection: Connection, index: str, how: dict[str, Any]) -> int:
        """Write until the end, or until somebody stops it; what was read by then is finished first. Return its code."""
        try:
            with (
                stop_requests(self._is_idle) as self._request,
                closing(connection.simhash.ingest(index, self._actions(), **how)) as outcomes,
            ):
                for outcome in outcomes:
                    self._count(outcome, connection)
                    if self._request.stop is not None and self._is_idle():
                        break
                self._count_unreadable()
                if self._request.stop is not None:
                    raise self._request.stop
        except KeyboardInterrupt as stop:
            stopped(self._how_far())
            return exit_code(stop)
        except Exception:
            if self._tally.lines:
                note(self._how_far())
            raise
        return 0

    def _how_far(self) -> str:
        last = self._tally.last
        place = f"up to {last.place}: " if last else ""
        open_ = self._given - self._answered
        more = f"; up to {count(open_, 'document')} more may be written" if open_ else ""
        skip = self._skip + self._tally.lines
        return f"stopped: {place}{self._tally.sentence()}{more}; run it again with --skip {skip}"

    def _count(self, written: Written, connection: Connection) -> None:
        if written.position != self._answered:
            return  # before an error reports may lack a document, and its line is the first to send again
        self._count_unreadable()
        self._answered += 1
        self._tally.add(self._waiting.popleft(), written)
        connection.tell(self._reader.progress("ingesting"))

    def _count_unreadable(self) -> None:
        """Count the lines that are no documents and stand before the next document."""
        while self._waiting and self._waiting[0].reason is not None:
            self._tally.add_unreadable(self._waiting.popleft())
