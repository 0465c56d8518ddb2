"""
``es-simhash ingest``: documents from files into an index, with their fingerprints.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import islice
from typing import IO, Any, Literal

import click

from es_simhash.cli.connect import connect
from es_simhash.cli.grouping_options import grouping_options
from es_simhash.cli.manual import Manual
from es_simhash.cli.output import count, error, note, print_json, print_line, warn
from es_simhash.cli.progress import Tracker
from es_simhash.cli.records import Format, Reader, Record
from es_simhash.cli.shared_options import (
    Server,
    json_option,
    max_distance_option,
    prefix_option,
    scheme_options,
    server_options,
    text_field_option,
    workers_option,
)
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.flows.grouping.written import Written
from es_simhash.hashing import Scheme
from es_simhash.index.grouping.rule import Rule

SHOWN_FAILURES = 10
_WRITTEN = ("written", "tagged", "replaced")
_WORDS = {
    "tagged": "tagged as duplicates",
    "replaced": "canonical in the place of another",
    "skipped": "skipped as duplicates",
    "refused": "refused",
    "unreadable": "unreadable",
}
LONGEST_ID_BYTES = 512  # the servers' own limit


EXAMPLES = [
    "es-simhash ingest news news.jsonl.gz --create --text-field body --id-field url",
    "es-simhash ingest news part-*.csv --report report.jsonl",
    "es-simhash ingest news crawl.jsonl --on-duplicate skip --max-distance 8 --report report.jsonl",
    "zcat dump.gz | es-simhash ingest news - --limit 1000",
]


@click.command(cls=Manual, examples=EXAMPLES)
@click.argument("index")
@click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, allow_dash=True)
)
@click.option("--id-field", metavar="FIELD", help="Field that holds the document's id. Default: _id, else a new one.")
@text_field_option
@click.option(
    "--format",
    "format_",
    type=click.Choice(["auto", "jsonl", "csv", "tsv"]),
    default="auto",
    show_default=True,
    help="How the files are written; auto goes by the name, else jsonl.",
)
@click.option("--create", is_flag=True, help="Create the index if it is missing; needs --text-field.")
@max_distance_option
@click.option(
    "--on-duplicate",
    type=click.Choice(["tag", "skip", "replace", "none"]),
    default="tag",
    show_default=True,
    help="What becomes of a near-duplicate: tag it with its canonical, skip it, make it canonical; none: do not look.",
)
@grouping_options
@click.option("--content-ids", is_flag=True, help="Take a missing id from the content, so that a rerun adds nothing.")
@click.option("--limit", type=click.IntRange(min=1), help="Stop after so many lines.")
@click.option(
    "--report",
    type=click.File("w", encoding="utf-8", errors="backslashreplace", lazy=False),
    metavar="FILE",
    help="Write what became of each document, as JSON Lines.",
)
@workers_option
@scheme_options
@prefix_option
@server_options
@json_option
def command(
    index: str,
    files: tuple[str, ...],
    id_field: str | None,
    text_fields: tuple[str, ...],
    format_: Format,
    max_distance: int | None,
    on_duplicate: Literal["tag", "skip", "replace", "none"],
    rule: Rule | None,
    canonical: str | None,
    limit: int | None,
    report: IO[str] | None,
    workers: int | None,
    scheme: Scheme | str | None,
    prefix: str,
    server: Server,
    *,
    create: bool,
    content_ids: bool,
    as_json: bool,
) -> int:
    """
    Write the documents of FILE... to INDEX with their fingerprints.

    A file holds JSON Lines, or CSV or TSV with a header, plain or gzip; - is stdin. Lines as exports write them, with
    _id and _source, are understood too. A line that cannot be read, or that the server refuses, does not keep the
    others out: the first ones are named on stderr, all of them in the report, and the exit code is 1. Documents with
    an id can be written again: they replace themselves. Near-duplicates of what is there, or came before in the same
    files, are tagged with the document that stands for their group, unless --on-duplicate says otherwise.
    """
    if create and not text_fields:
        raise click.UsageError("--create needs --text-field: the new index records where its texts are")
    if on_duplicate == "none" and max_distance is not None and not create:
        raise click.UsageError("--max-distance is for --create and for --on-duplicate: leave it out")
    options: dict[str, Any] = {
        "text_field": text_fields or None,
        "on_duplicate": None if on_duplicate == "none" else on_duplicate,
        "max_distance": None if on_duplicate == "none" else max_distance,
        "rule": rule,
        "canonical": canonical,
        "id_from": "content" if content_ids else None,
        "workers": workers,
    }
    reader = Reader(files, format=format_)
    tally = _Tally(report)
    with ExitStack() as stack:
        connection = stack.enter_context(connect(server, index, prefix=prefix, scheme=scheme))
        if create and not connection.client.indices.exists(index=index):
            made = connection.simhash.create_index(index, text_field=text_fields, max_distance=max_distance)
            note(f"created {index}, scheme {made.scheme}")
        tracker = stack.enter_context(Tracker("ingesting", total=reader.total))
        try:
            actions = _Actions(islice(reader, limit), id_field, tally)
            written = connection.simhash.ingest(index, actions, **options)
            with closing(written):
                for each in written:
                    tally.add(actions.waiting.popleft(), each)
                    tracker.advance(1, completed=reader.position)
        except BaseException:
            if tally.lines:
                note(f"stopped after {tally.sentence()}; {tally.last_place} was the last line that has an answer")
            raise
        seconds = tracker.seconds
    tally.show(index, seconds, as_json=as_json)
    return 1 if tally.failed else 0


class _Actions:
    """The lines of the files as bulk actions; a line that is none is counted and left out."""

    def __init__(self, records: Iterator[Record], id_field: str | None, tally: _Tally) -> None:
        self._records = records
        self._id_field = id_field
        self._tally = tally
        # What was handed on and has no answer yet: as many as the library reads ahead.
        self.waiting: deque[Record] = deque()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for record in self._records:
            try:
                action = _action(record, self._id_field)
            except InvalidInputError as failure:
                self._tally.add_unreadable(record, str(failure))
            else:
                self.waiting.append(record)
                yield action


def _action(record: Record, id_field: str | None) -> dict[str, Any]:
    """
    Return the bulk action for a line, which can do no more than write one document to the index given.

    Raises:
        InvalidInputError: If the line is no document, or its id cannot be one.
    """
    if record.reason is not None:
        raise InvalidInputError(record.reason)
    document = record.value
    if isinstance(document, list):
        raise InvalidInputError("a list, not a document: write one document on each line (jq -c '.[]' does)")
    if not isinstance(document, Mapping):
        raise InvalidInputError(f"{shorten(document)} is not a document: write a JSON object on each line")
    action: dict[str, Any] = {"_op_type": "index"}
    given: Any = None
    if isinstance(document.get("_source"), Mapping):
        given = document.get("_id")
        if (routing := document.get("_routing")) is not None:
            action["routing"] = str(routing)
        document = document["_source"]
    elif "_id" in document:
        # No server takes a field of that name inside a document.
        given = document["_id"]
        document = {key: value for key, value in document.items() if key != "_id"}
    if id_field is not None:
        given = _field(document, id_field) if id_field != "_id" else given
        if given is None:
            raise InvalidInputError(f"it has no {id_field!r}, which --id-field names")
    if given is not None:
        action["_id"] = _check_id(given)
    action["_source"] = document
    return action


def _field(document: Any, path: str) -> Any:
    if isinstance(document, Mapping) and path in document:
        return document[path]
    first, dot, rest = path.partition(".")
    return _field(document.get(first), rest) if dot and isinstance(document, Mapping) else None


def _check_id(given: Any) -> str:
    if isinstance(given, bool) or not isinstance(given, (str, int)):
        raise InvalidInputError(f"its id {shorten(given)} is neither a string nor a whole number")
    text = str(given)
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"its id {shorten(text)} holds half a character (a lone surrogate)") from error
    # One id that is refused outright would cost every document of its bulk request.
    if not 0 < size <= LONGEST_ID_BYTES:
        raise InvalidInputError(f"its id {shorten(text)} has {size} bytes: give 1 to {LONGEST_ID_BYTES}")
    return text


@dataclass(slots=True)
class _Tally:
    """What became of the lines: counts, the first failures, and the report file."""

    report: IO[str] | None
    fingerprinted: int = 0
    problems: int = 0
    last_place: str = ""
    actions: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def written(self) -> int:
        return sum(self.actions[action] for action in _WRITTEN)

    @property
    def failed(self) -> int:
        return self.actions["refused"] + self.actions["unreadable"]

    @property
    def lines(self) -> int:
        return self.actions.total()

    def add(self, record: Record, each: Written) -> None:
        self.last_place = record.place
        self.actions[each.action] += 1
        self.fingerprinted += each.fingerprinted and each.action in _WRITTEN
        if each.action == "refused":
            self._fail(record, f"refused: {each.reason}")
        elif each.reason is not None:
            self.problems += 1
            if len(self.warnings) < SHOWN_FAILURES:
                self.warnings.append(f"{record.place}: {each.reason}")
        duplicate = {} if each.canonical is None else {"canonical": each.canonical, "distance": each.distance}
        self._write(record, {"id": each.id, "action": each.action, "reason": each.reason, **duplicate})

    def add_unreadable(self, record: Record, reason: str) -> None:
        self.actions["unreadable"] += 1
        self._fail(record, reason)
        self._write(record, {"id": None, "action": "unreadable", "reason": reason})

    def _fail(self, record: Record, reason: str) -> None:
        if len(self.failures) < SHOWN_FAILURES:
            self.failures.append(f"{record.place}: {reason}")

    def _write(self, record: Record, outcome: dict[str, Any]) -> None:
        if self.report is not None:
            line = {"file": record.file, "line": record.line, **outcome}
            self.report.write(json.dumps(line, ensure_ascii=False) + "\n")

    def sentence(self) -> str:
        parts = [f"{count(self.written, 'document')} written, {self.fingerprinted:,} with a fingerprint"]
        for action, words in _WORDS.items():
            parts += [f"{self.actions[action]:,} {words}"] if self.actions[action] else []
        return ", ".join(parts)

    def show(self, index: str, seconds: float, *, as_json: bool) -> None:
        for failure in self.failures:
            error(failure)
        if self.failed > len(self.failures):
            error(f"and {self.failed - len(self.failures):,} more: give --report FILE for all of them")
        for warning in self.warnings:
            warn(warning)
        if self.problems > len(self.warnings):
            warn(f"and {self.problems - len(self.warnings):,} more documents have such a problem")
        if self.written and not self.fingerprinted:
            warn("no document has a fingerprint: check --text-field against the names of the fields")
        if as_json:
            counts = {
                "index": index,
                "written": self.written,
                "fingerprinted": self.fingerprinted,
                **{action: self.actions[action] for action in _WORDS},
                "seconds": round(seconds, 3),
            }
            print_json({**counts, "failures": self.failures})
        else:
            rate = self.lines / seconds if seconds else 0.0
            print_line(f"{index}: {self.sentence()}; {seconds:.1f} s, {rate:,.0f} documents/s")
