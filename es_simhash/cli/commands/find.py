"""``es-simhash find``: near-duplicates of texts and documents; and ``passages``: documents that share a part."""

from __future__ import annotations

import shlex
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, get_args

import click

from es_simhash import (
    PRESETS,
    IncompleteSearchError,
    IndexSettings,
    InvalidInputError,
    NearDups,
    Overlaps,
    fingerprint as fingerprint_of,
)
from es_simhash.cli import options
from es_simhash.cli.connect import Connection, connect
from es_simhash.cli.duplicates import warn_of_lacking
from es_simhash.cli.failures import UnfingerprintedText, describe, kind_of
from es_simhash.cli.grouping_options import lookup_options, numbers_option, preset_option
from es_simhash.cli.input_files import piped_text, read_text_argument
from es_simhash.cli.input_records import Reader, Record, document_of
from es_simhash.cli.options import Target
from es_simhash.cli.output import (
    Tracker,
    count,
    error,
    note,
    print_json,
    print_line,
    print_result,
    print_text,
    warn,
)
from es_simhash.cli.parameter_types import FINGERPRINT, INPUT_FILE
from es_simhash.lookup.lookup_options import LookupOptions
from es_simhash.lookup.paste import Form, paste_lookup
from es_simhash.mapping.fields import read_text as read_document
from es_simhash.passages.lookup import PassageOptions

_FEW = 3
"""So few near-duplicates, and the nearest that were rejected are shown too."""


def _print_near_dups(found: NearDups, index: str, *, as_json: bool, recorded: int | None, fields: Any) -> None:
    """Print what was *found*. *recorded*: the distance of the index, if one was given; *fields*: those shown first."""
    if recorded is not None and found.max_distance < recorded:
        note(
            f"the index records {count(recorded, 'bit')}, and this looks no farther than {found.max_distance}: leave "
            "--max-distance out to find more"
        )
    if as_json:
        print_json(found.to_dict())
        return
    if found:
        print_result(found, known={"index": index}, first=fields)
    else:
        print_line(f"no near-duplicates {found.rule or ''}".rstrip())
    if len(found) < _FEW:
        for rejected in found.rejected:
            note(f"rejected: {rejected}")
    for reason in found.unverified:
        warn(str(reason))


def _print_answer(record: Record, text: str | Exception, outcome: NearDups | Exception) -> bool:
    """Print the answer to one line of a file as one line of JSON; return whether it failed."""
    found = outcome.results if isinstance(outcome, IncompleteSearchError) else outcome
    shown: dict[str, Any] = {"line": record.line}
    if isinstance(found, NearDups):
        shown |= found.to_dict()
        if isinstance(text, str) and found.plan is None and found.scheme is not None:
            why = UnfingerprintedText.of(text, found.scheme)
            shown["no_fingerprint"] = {"kind": why.kind, "message": str(why)}
    if isinstance(outcome, Exception):
        shown["error"] = {"kind": kind_of(outcome), "message": describe(outcome)}
    print_json(shown)
    return isinstance(outcome, Exception)


@options.manual(
    'es-simhash find news "the quick brown fox" --max-distance 8',
    "es-simhash find news --id 4711 --source title,date",
    'es-simhash find \'news-*\' - --filter \'{"range": {"date": {"gte": "now-7d"}}}\' <article.txt',
    "es-simhash find news --input new.jsonl.gz --text-field body >found.jsonl",
    "es-simhash find news --id 4711 --query esql",
    common="--file --id --input --lookups --text-field --max-distance --size --preset --filter --source --url --json",
)
@click.argument("index")
@click.argument("text", required=False)
@options.text_file
@options.document_id
@options.routing
@click.option("--fingerprint", type=FINGERPRINT, metavar="HEX", help="Search for this fingerprint.")
@click.option(
    "--input",
    "many",
    metavar="FILE",
    type=INPUT_FILE,
    help="Search for each line: of files as for ingest, or JSON strings. Prints JSON Lines.",
)
@options.delimiter
@options.text_field
@options.max_distance
@options.takes(LookupOptions)
@preset_option
@click.option(
    "--query",
    "form",
    type=click.Choice(get_args(Form)),
    help="Print the search to paste into Dev Tools, a query bar (KQL, in Dashboards DQL) or Discover (ES|QL).",
)
@options.share(
    "--verify",
    help="Compare the texts of the documents found, and drop those that share less than this part of their "
    "7-letter shingles.",
)
@numbers_option
@options.filter_query
@options.source
@lookup_options
@options.scheme_files
@options.target
def command(
    index: str,
    text: str | None,
    file: str | None,
    document_id: str | None,
    fingerprint: int | None,
    many: str | None,
    delimiter: str | None,
    text_field: tuple[str, ...],
    form: Form | None,
    target: Target,
    *,
    as_json: bool,
    **lookup: Any,  # for all methods below
) -> int:
    """
    Find all near-duplicates in INDEX by the rule that it records, the most similar first.

    INDEX may be a name, an alias, a pattern, or several of them separated by commas. Without TEXT, or if it is -,
    the text comes from stdin. With --input each line is a text (a JSON string) or a document; the text of a document is
    in --text-field, by default in the fields that the index records. The command prints one line of JSON for each line
    of the input, and exits with 1 if a line failed. --lookups is for --input.

    Without --max-distance, --preset and --verify the rule of INDEX decides: its distance, and the similarity of texts.
    With --max-distance alone, and with --fingerprint, only bits do; then the nearest come first. If little is found,
    the nearest that the comparison rejected are named. The table shows the text, or the fields of --source.

    With --query the search is printed and not sent: by the distance of the rule, or by --max-distance. Its hits are
    candidates: all near-duplicates, and others; ES|QL (Elasticsearch 9.3 and later) computes the distances.
    """
    text = piped_text(text, file, document_id, fingerprint, many) or text
    if sum(given is not None for given in (text, file, document_id, fingerprint, many)) != 1:
        raise click.UsageError("pass exactly one of TEXT, --file, --id, --fingerprint and --input")
    if many is None:
        options.refuse_given("is for the documents of --input: leave it out", "delimiter", "text_field")
    if form is not None:
        options.refuse_given("is not for --query", *_NOT_OF_A_QUERY)
        if form != "dev-tools":
            options.refuse_given("is for --query dev-tools", "filter", "source", "size")
    in_memory = {"lookups": lookup.pop("lookups")}
    content = read_text_argument(text, file) if text is not None or file is not None else None
    with connect(target, index) as connection:
        settings = connection.settings(index).values()
        if form is not None:
            asked = content, document_id, fingerprint
            _print_query(connection, index, form, *asked, lookup, prefix=target.prefix, as_json=as_json)
            return 0
        if many is not None:
            code = _find_many(connection, index, Reader([many], delimiter=delimiter), text_field, lookup | in_memory)
            _warn_of_unfilled(connection, index)
            return code
        if not as_json and lookup["source"] is False:
            fields = list(dict.fromkeys(name for index_settings in settings for name in index_settings.text_fields))
            lookup["source"] = fields or False
        fields = lookup["source"] if isinstance(lookup["source"], list) else []
        recorded = None if lookup["max_distance"] is None else max(map(_recorded_distance, settings), default=None)
        try:
            if document_id is not None:
                found = connection.simhash.find_near_dups_of(index, document_id, **lookup)
            else:
                found = connection.simhash.find_near_dups(index, content, fingerprint=fingerprint, **lookup)
            if content is not None and found.plan is None and found.scheme is not None:
                why = UnfingerprintedText.of(content, found.scheme)
                warn(str(why), kind=why.kind, scheme=why.scheme)
        except IncompleteSearchError as failure:
            if failure.results is not None and (as_json or failure.results):
                _print_near_dups(failure.results, index, as_json=as_json, recorded=recorded, fields=fields)
            raise
        except InvalidInputError:
            _warn_of_unfilled(connection, index)  # the document of --id may be one of them
            raise
        _warn_of_unfilled(connection, index)
    _print_near_dups(found, index, as_json=as_json, recorded=recorded, fields=fields)
    if not found and found.plan is not None and not as_json:
        _say_where_to_go_on(index, content, has_passages=any(index_settings.passages for index_settings in settings))
    return 0


def _say_where_to_go_on(index: str, content: str | None, *, has_passages: bool) -> None:
    if len((content or " ").split()) == 1:
        note("the text is one word: if it is the id of a document, pass it with --id")
    name = shlex.quote(index)
    add = f"es-simhash create {name} --existing --passages --yes"
    after = "" if has_passages else f", after {add} and es-simhash backfill {name}"
    note(f"a text that is a part of a longer one is found by es-simhash passages {name}{after}")
    note("a document that was written a moment ago is found after the next refresh of the index")


# What a search cannot do, or what is for many texts.
_NOT_OF_A_QUERY = ("many", "text_field", "verify", "numbers", "lookups")


def _print_query(
    connection: Connection,
    index: str,
    form: Form,
    text: str | None,
    id_: str | None,
    wanted: int | None,
    lookup: Mapping[str, Any],
    *,
    prefix: str,
    as_json: bool,
) -> None:
    """Print the search for a text, a document or the fingerprint *wanted*, and on stderr what its hits are."""
    simhash = connection.simhash
    rule = simhash.get_rule(index)
    if id_ is not None:
        wanted = simhash.get_fingerprint(index, id_, routing=lookup["routing"])
    elif text is not None:
        scheme = next(iter(connection.settings(index).values())).scheme
        wanted = fingerprint_of(text, scheme=scheme)
        if wanted is None:
            raise InvalidInputError(str(UnfingerprintedText.of(text, scheme)))
    distance = lookup["max_distance"]
    if distance is None:
        preset = lookup["preset"]
        distance = rule.max_distance if preset is None else PRESETS[preset].max_distance
    printed = paste_lookup(
        form,
        index,
        wanted or 0,
        max_distance=distance,
        prefix=prefix,
        filter=lookup["filter"],
        exclude_ids=[] if id_ is None else [id_],
        size=lookup["size"] or 1_000,
        source=lookup["source"],
    )
    what = "rows are near-duplicates" if form == "esql" else "hits are candidates: near-duplicates, and others; those"
    note(
        f"the {what} within {count(distance, 'bit')}, texts not compared; es-simhash find {shlex.quote(index)} goes by "
        "the rule"
    )
    if as_json:
        print_json({"text": printed})
    else:
        print_text(printed)


def _recorded_distance(settings: IndexSettings) -> int:
    """Return the distance that an index records, 0 for none."""
    return settings.rule.max_distance if settings.is_grouped else settings.max_distance or 0


def _warn_of_unfilled(connection: Connection, index: str) -> None:
    """Called after the lookup, which it must not delay."""
    warn_of_lacking(connection, index, unfilled="no lookup finds them", ungrouped=None)


def _find_many(
    connection: Connection, index: str, reader: Reader, text_fields: tuple[str, ...], lookup: dict[str, Any]
) -> int:
    waiting: deque[tuple[Record, str | InvalidInputError]] = deque()  # read, and not answered

    def texts() -> Iterator[Any]:
        fields = text_fields
        for record in reader:
            if not fields and isinstance(record.value, Mapping):
                fields = _recorded_text_fields(connection, index)
            question = _question(record, fields)
            waiting.append((record, question))
            yield question if isinstance(question, str) else None  # which fails in its place

    failed = 0
    with Tracker("finding", total=reader.total) as tracker:
        found = connection.simhash.stream_near_dups_many(index, texts(), **lookup)
        for answer in found:
            record, question = waiting.popleft()
            failed += _print_answer(record, question, answer if isinstance(question, str) else question)
            tracker.advance(1, completed=reader.position)
    if failed:
        said = f"{count(failed, 'line')} of {tracker.done:,} failed: see their error in the output"
        error(said, kind="lines_failed", number=failed, lines=tracker.done)
    return 1 if failed else 0


def _recorded_text_fields(connection: Connection, index: str) -> tuple[str, ...]:
    recorded = [
        index_settings.text_fields
        for index_settings in connection.simhash.get_settings(index).values()
        if index_settings.text_fields
    ]
    if not recorded:
        raise InvalidInputError(f"index {index} does not record its text field: pass --text-field")
    return recorded[0]


def _question(record: Record, text_fields: tuple[str, ...]) -> str | InvalidInputError:
    """Return the text of a line, or why it has none. The text of a document without text is empty."""
    if record.reason is None and isinstance(record.value, str):
        return record.value
    try:
        return read_document(document_of(record), text_fields) or ""
    except InvalidInputError as failure:
        return failure


@options.manual(
    "es-simhash passages news --file article.txt",
    "es-simhash passages mails --id 4711 --min-contained 0.9",
    "es-simhash passages news - --min-run 120 --json <page.txt",
)
@click.argument("index")
@click.argument("text", required=False)
@options.text_file
@options.document_id
@options.routing
@options.takes(PassageOptions)
@options.filter_query
@options.target
def passages(
    index: str,
    text: str | None,
    file: str | None,
    document_id: str | None,
    target: Target,
    *,
    as_json: bool,
    **how: Any,
) -> int:
    """
    Find the documents of INDEX that share passages with TEXT: quotes, excerpts, texts inside texts.

    INDEX may be a name, an alias, a pattern, or several of them separated by commas; it needs passages (es-simhash
    create --passages). Without TEXT, or if it is -, the text comes from stdin. Places are in characters, counted from
    0.
    """
    text = piped_text(text, file, document_id) or text
    if sum(given is not None for given in (text, file, document_id)) != 1:
        raise click.UsageError("pass exactly one of TEXT, --file and --id")
    content = None if document_id is not None else read_text_argument(text, file)
    with connect(target, index) as connection:
        try:
            if document_id is not None:
                found = connection.simhash.find_passages_of(index, document_id, **how)
            else:
                found = connection.simhash.find_passages(index, content or "", **how)
        except IncompleteSearchError as failure:
            if failure.results is not None and (as_json or failure.results):
                _print(failure.results, index, as_json=as_json)
            raise
    _print(found, index, as_json=as_json)
    return 0


def _print(found: Overlaps, index: str, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "overlaps": [overlap.to_dict() for overlap in found],
                "complete": found.complete,
                "min_contained": found.min_contained,
                "min_run": found.min_run,
                "candidates": found.candidates,
                "stale": list(found.stale),
            }
        )
        return
    if found:
        print_result(found, known={"index": index})
    else:
        print_line("no documents with shared passages")
    for line in found.stale:
        warn(line)
