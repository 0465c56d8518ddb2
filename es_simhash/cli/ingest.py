"""``ingest``: documents from files into an index; their outcomes counted in the order of the lines, and a report."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, dataclass, field
from itertools import chain, islice
from typing import IO, Annotated, Any, Literal

from es_simhash import DEFAULT_SCHEME, InvalidInputError, SimHashClient, Written, with_fingerprints
from es_simhash.arguments import check_count
from es_simhash.cli.app import FAILED
from es_simhash.cli.connect import Connection, connect
from es_simhash.cli.failures import WrongUseError, unblocking
from es_simhash.cli.lines import Format, Reader, Record, document_of, read_delimiter, to_action
from es_simhash.cli.options import RULE, TextFields, To, reads, takes
from es_simhash.cli.output_files import end_report, open_report
from es_simhash.cli.show import (
    DRY,
    PARTLY,
    SHOWN_FAILURES,
    Tracker,
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
from es_simhash.ingest.item import has_fingerprint
from es_simhash.transport.raw_json import read_json
from es_simhash.writes.operations import to_operation

FIRST, MOST_NAMED = 500, 20
"""If no document has the text field, the message names fields of so many documents, and at most so many fields."""

_DELIMITER = "What separates the columns of CSV. Default: the one of , ; and tab that the header has most of."


@takes(SimHashClient.ingest, f"{RULE} workers batch")
def ingest(
    index: str,
    files: tuple[str, ...],
    /,
    *,
    id_field: str | None = None,
    text_field: TextFields = (),
    format: Format = "auto",
    delimiter: Annotated[Any, reads(read_delimiter, _DELIMITER, "CHARACTER")] = None,
    create: bool = False,
    on_duplicate: Literal["tag", "skip", "none"] = "tag",
    content_ids: bool = False,
    op_type: Literal["index", "create"] = "index",
    skip: int = 0,
    report: str | None = None,
    dry_run: bool = False,
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
        dry_run:
            Read the lines, make their fingerprints and count them; write nothing, and search for no near-duplicates.
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
        reader = Reader(files, format=format, delimiter=delimiter)
        connection = stack.enter_context(connect(to, index))
        tally = Tally(open_report(stack, report, files, dry_run=dry_run), is_dry=dry_run)
        is_new = create and not connection.client.indices.exists(index=index)
        actions = IngestActions(islice(reader, skip, None), id_field)
        if not actions.pass_unreadable(tally):
            end_report(tally.report)
            if is_new:  # nothing is left, such as a rule, that would refuse the next try
                note(f"no line can be read, so {index} was not created")
            return tally.show(index, 0.0)
        if is_new:
            _check_grouping(to, index, text_field, how)
            _check_text_field(Reader(files, format=format, delimiter=delimiter), text_field, skip)
            made = connection.simhash.create_index(
                index, text_field=text_field, max_distance=max_distance, dry_run=dry_run
            )
            note(f"{'would create' if dry_run else 'created'} {index}, scheme {made.scheme}")
        if actions.other_id is not None and not content_ids:
            note(f"the lines have no _id, so the documents get new ids: --id-field {actions.other_id} takes theirs")
        run = IngestRun(actions, tally, reader, skip=skip)
        code = 0
        with Tracker("ingesting", total=reader.total) as tracker:
            if dry_run:
                run.try_out(connection, to, index, how, tracker, is_new=is_new)
            else:
                code = run.write(connection, index, how, tracker)
            seconds = tracker.seconds
        if code:
            return code
        is_useless = is_new and not dry_run and tally.lacks_fingerprints
        # Before the report is closed, which may fail: its disk is full.
        code = tally.show(index, seconds, repair=_repair(to, index, text_field) if is_useless else None)
        return FAILED if is_useless else code


def _repair(to: To, index: str, text_field: Sequence[str]) -> str:
    """Return how to repair a new index, none of whose documents has a fingerprint."""
    add = to.command("create", index, "--existing", "--text-field", "FIELD", "--yes")
    fill = to.command("setup", index, "--yes")
    return f"if the texts are not in {', '.join(text_field)} but in another FIELD, run {add} && {fill}"


def _check_text_field(reader: Reader, text_field: Sequence[str], skip: int) -> None:
    """
    Refuse to create an index for text fields that no document has. Cost: the lines before the first that has one.
    Lines that cannot be read are for the ingest to report.
    """
    if reader.total is None:
        return  # a stream can be read only once
    wanted = {*text_field, *(field_name.partition(".")[0] for field_name in text_field)}
    names: dict[str, None] = {}
    lines = 0
    for record in islice(reader, skip, None):
        lines += 1
        with suppress(InvalidInputError):
            found = document_of(record)
            if not wanted.isdisjoint(found):
                return
            names |= dict.fromkeys(found) if lines <= FIRST else {}
            names.pop("_id", None)
    if names:
        raise InvalidInputError(
            f"none of {count(lines, 'line')} has a field {shorten(', '.join(text_field))}, so nothing was created or "
            f"written: pass --text-field with one of {', '.join(map(shorten, islice(names, MOST_NAMED)))}"
        )


def _check_grouping(to: To, index: str, text_field: Sequence[str], how: Mapping[str, Any]) -> None:
    """Refuse to create an index for a grouping by fields of the user's, which it would not map."""
    orders = [order for order in how.get("canonical", ()) if order not in ("id", "longest")]
    wanted = {"--per": how.get("per"), "--within": how.get("within"), "--canonical": orders}
    if given := [name for name, value in wanted.items() if value]:
        texts = [word for name in text_field for word in ("--text-field", name)]
        raise InvalidInputError(
            f"--create maps no field for {', '.join(given)}, so nothing was created or written: put it into a FILE "
            f"with your mapping, run {to.command('create', index, *texts, '--mappings', 'FILE')}, then ingest "
            "without --create"
        )


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
        self._sums["too_short"] += written.too_short
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
            self._failures.append(LineFailure(kind, record.place, record.name, record.line, id_, reason))

    def _write(self, record: Record, outcome: dict[str, Any]) -> None:
        if self.report is not None:
            line = {"file": record.name, "line": record.line, **outcome}
            self.report.write(json.dumps(line, ensure_ascii=False) + "\n")

    def sentence(self) -> str:
        verb = "would be written" if self.is_dry else "written"
        parts = [f"{count(self._written, 'document')} {verb}, {self._sums['fingerprinted']:,} with a fingerprint"]
        parts += [f"{self._sums['updated']:,} in place of one with the same id"] if self._sums["updated"] else []
        parts += [f"{self._sums['too_short']:,} too short to compare"] if self._sums["too_short"] else []
        for action, phrase in _PHRASES.items():
            parts += [f"{self._actions[action]:,} {phrase}"] if self._actions[action] else []
        return ", ".join(parts)

    def show(self, index: str, seconds: float, *, repair: str | None = None) -> int:
        """
        Print failures and warnings, then the counts, and return the exit code; *repair*: what to do if no document has
        a fingerprint.
        """
        failed = self._actions["refused"] + self._actions["unreadable"]
        print_failures(self._failures, total=failed, advice="pass --report FILE to get all of them")
        advice = unblocking(failure.reason for failure in self._failures)
        if advice is not None:
            error(f"{index} takes no writes now: {advice}", kind="blocked")
        for warning in self._warnings:
            warn(warning)
        if self._sums["problems"] > len(self._warnings):
            warn(f"and {self._sums['problems'] - len(self._warnings):,} more documents with such a problem")
        if repair is not None:
            error(f"no document has a fingerprint: {repair}", kind="no_fingerprint")
        elif self.lacks_fingerprints:
            warn("no document has a fingerprint: compare --text-field with the names of the fields")
        counts = {
            "index": index,
            "dry_run": self.is_dry,
            "written": self._written,
            "fingerprinted": self._sums["fingerprinted"],
            "updated": self._sums["updated"],
            "too_short": self._sums["too_short"],
            **{action: self._actions[action] for action in _PHRASES},
            "seconds": round(seconds, 3),
        }
        rate = self.lines / seconds if seconds else 0.0
        speed = f"{seconds:.1f} s, {rate:,.0f} documents/s"
        show(counts | plain_failures(self._failures), f"{index}: {self.sentence()}; {speed}{DRY * self.is_dry}")
        if failed:
            return FAILED if advice and not self._written else PARTLY
        return 0


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

    def write(self, connection: Connection, index: str, how: dict[str, Any], tracker: Tracker) -> int:
        """Write until the end, or until somebody stops it; what was read by then is finished first. Return its code."""
        actions = self._actions
        try:
            with (
                stop_requests(lambda: actions.is_idle) as actions.request,
                closing(connection.simhash.ingest(index, actions, **how)) as outcomes,
            ):
                for outcome in outcomes:
                    self._count(outcome, tracker)
                    if actions.request.stop is not None and actions.is_idle:
                        break
                self._count_settled()
                if actions.request.stop is not None:
                    raise actions.request.stop
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
        open_ = self._actions.given - self._actions.answered
        more = f"; up to {count(open_, 'document')} more may be written" if open_ else ""
        skip = self._skip + self._tally.lines
        return f"stopped: {place}{self._tally.sentence()}{more}; run it again with --skip {skip}"

    def try_out(
        self,
        connection: Connection,
        to: To,
        index: str,
        how: dict[str, Any],
        tracker: Tracker,
        *,
        is_new: bool,
    ) -> None:
        """Count what would be written to *index*, which does not exist yet if it is new; write nothing."""
        with closing(connection.simhash.ingest(index, (), **how, dry_run=True)) as checked:
            if not is_new:
                list(checked)
        problems: dict[int, str] = {}
        made: dict[str, Any] = {"on_problem": lambda problem: problems.update({problem.position: problem.reason})}
        made |= {"text_field": how["text_field"], "workers": how.get("workers")}
        if is_new:
            documents = with_fingerprints(self._actions, scheme=DEFAULT_SCHEME, prefix=to.prefix, **made)
        else:
            documents = connection.simhash.with_fingerprints(index, self._actions, **made)
        for number, action in enumerate(documents):
            reason = problems.pop(number, None)
            operation = to_operation(action)
            if isinstance(operation.body, str):
                operation.body = read_json(operation.body)
            is_done = reason is None and has_fingerprint(operation, to.prefix)
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
