"""``find``, ``passages``, ``groups`` and ``explain``: near-duplicates, looked at. None writes."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Annotated, Any

from cyclopts import Parameter

from es_simhash import (
    DEFAULT_SCHEME,
    PRESETS,
    IncompleteSearchError,
    IndexSettings,
    InvalidInputError,
    NearDups,
    SimHashClient,
    fingerprint as fingerprint_of,
    from_hex,
)
from es_simhash.cli.app import STDIN
from es_simhash.cli.connect import Connection, connect, warn_of_lacking
from es_simhash.cli.failures import UnfingerprintedText, WrongUseError, describe, kind_of
from es_simhash.cli.lines import Reader, Record, document_of, read_text
from es_simhash.cli.options import To, reads, takes
from es_simhash.cli.show import (
    PARTLY,
    Output,
    Tracker,
    count,
    error,
    note,
    print_json,
    print_line,
    print_sheets,
    print_text,
    show,
    warn,
)
from es_simhash.lookup.paste import MOST_KQL_BITS, Form, paste_lookup
from es_simhash.mapping.fields import read_text as read_document
from es_simhash.tables.notebook import Sheet
from es_simhash.tables.tabular import sheets_of

_FEW = 3
"""So few near-duplicates, and the nearest that were rejected are shown too."""

Id = Annotated[str | None, Parameter(name="--id", help="Search for this document of the index; it is left out.")]


def read_subject(text: str | None, file: str | None, **others: Any) -> str | None:
    """
    Return *text*, or that of *file*, or of stdin where nothing is given; ``None`` if one of *others* is given.
    Exactly one thing may be given.
    """
    given = [name for name, subject in {"TEXT": text, "--file": file, **others}.items() if subject is not None]
    ways = f"exactly one of TEXT, --file, {', '.join(others)}"
    if not given and sys.stdin is not None and not sys.stdin.isatty():
        if piped := read_text(STDIN):
            return piped
        raise WrongUseError(f"stdin is empty: pass {ways}, or send a text")
    if len(given) != 1:
        raise WrongUseError(f"pass {ways}")
    return read_text(STDIN) if text == STDIN else read_text(file) if file is not None else text


@takes(SimHashClient.find_near_dups, "max_distance preset verify numbers size filter source routing")
def find(
    index: str,
    text: str | None = None,
    /,
    *,
    file: str | None = None,
    document_id: Id = None,
    fingerprint: Annotated[Any, reads(from_hex, "Search for this fingerprint.", "HEX")] = None,
    many: Annotated[str | None, Parameter(name="--input")] = None,
    text_field: Annotated[tuple[str, ...], Parameter(alias="-t")] = (),
    query: Form | None = None,
    to: To = To(),
    **lookup: Any,
) -> int:
    """
    Find all near-duplicates in INDEX by the rule that it records, the most similar first.

    Without TEXT, or if it is -, the text comes from stdin. With --input each line is a text (a JSON string) or a
    document; the command prints one line of JSON for each, and exits with 3 if a line failed.

    Without --max-distance, --preset and --verify the rule of INDEX decides: its distance, and the similarity of texts.
    With --max-distance alone, and with --fingerprint, only bits do; then the nearest come first. If little is found,
    the nearest that the comparison rejected are named. The table shows the text, or the fields of --source.

    With --query the search is printed and not sent: by the distance of the rule, or by --max-distance. Its hits are
    candidates: all near-duplicates, and others; ES|QL (Elasticsearch 9.3 and later) computes the distances.

    For example:

        es-simhash find news "the quick brown fox" --max-distance 8
        es-simhash find news --id 4711 --source title,date
        es-simhash find 'news-*' - --filter '{"range": {"date": {"gte": "now-7d"}}}' <article.txt
        es-simhash find news --input new.jsonl.gz --text-field body >found.jsonl
        es-simhash find news --id 4711 --query esql

    Args:
        index:
            A name, an alias, a pattern, or several of them separated by commas.
        text:
            The text to look up.
        file:
            Search for the text of this file.
        many:
            Search for each line of this file: as for ingest, or JSON strings. Prints JSON Lines.
        text_field:
            Field of the text of the documents of --input. Repeatable. Default: what INDEX records.
        query:
            Print the search to paste into Dev Tools, a query bar (KQL, in Dashboards DQL) or Discover (ES|QL).
    """
    others = {"--id": document_id, "--fingerprint": fingerprint, "--input": many}
    content = read_subject(text, file, **others)
    if many is None and text_field:
        raise WrongUseError("--text-field is for the documents of --input: leave it out")
    if query is not None:
        _refuse_for_query(query, lookup, is_many=many is not None)
    with connect(to, index) as connection:
        if query is not None:
            _print_query(connection, to, index, query, (content, document_id, fingerprint), lookup)
            return 0
        settings = connection.settings(index).values()
        if many is not None:
            code = _find_many(connection, index, Reader([many]), text_field, lookup)
            _warn_of_unfilled(connection, to, index)
            return code
        if not Output.as_json and "source" not in lookup:
            fields = list(dict.fromkeys(name for index_settings in settings for name in index_settings.text_fields))
            lookup["source"] = fields or False
        near = _Shown(index, lookup.get("source"))
        try:
            if document_id is not None:
                found = connection.simhash.find_near_dups_of(index, document_id, **lookup)
            else:
                found = connection.simhash.find_near_dups(index, content, fingerprint=fingerprint, **lookup)
        except IncompleteSearchError as failure:
            near.print_part(failure)
            raise
        except InvalidInputError:
            _warn_of_unfilled(connection, to, index)  # the document of --id may be one of them
            raise
        if content is not None and found.plan is None and found.scheme is not None:
            why = UnfingerprintedText.of(content, found.scheme)
            warn(str(why), kind=why.kind, scheme=why.scheme)
        asked, recorded = lookup.get("max_distance"), max(map(_recorded_distance, settings), default=0)
        if asked is not None and asked < recorded:
            note(
                f"the index records {count(recorded, 'bit')}, and this looks no farther than {asked}: leave "
                "--max-distance out to find more"
            )
        _warn_of_unfilled(connection, to, index)
    near.print(found)
    if not found and found.plan is not None and not Output.as_json:
        has_passages = any(index_settings.passages for index_settings in settings)
        _say_where_to_go_on(to, index, content, has_passages=has_passages)
    return 0


class _Shown:
    """Prints what a lookup finds in *index*; *fields*: those that come first."""

    def __init__(self, index: str, fields: Any = ()) -> None:
        self._how: Any = {"known": {"index": index}, "first": fields if isinstance(fields, list) else ()}

    def print(self, found: Any) -> None:
        what = (
            f"no near-duplicates {found.rule or ''}"
            if isinstance(found, NearDups)
            else "no documents with shared passages"
        )
        if Output.as_json or found:
            show(found, **self._how)
        else:
            print_line(what.rstrip())
        if isinstance(found, NearDups) and not Output.as_json:
            for rejected in found.rejected if len(found) < _FEW else ():
                note(f"rejected: {rejected}")
            for reason in found.unverified:
                warn(str(reason))

    def print_part(self, failure: IncompleteSearchError) -> None:
        """Print what was found by a search that is not complete."""
        if failure.results is not None and (Output.as_json or failure.results):
            self.print(failure.results)


def _say_where_to_go_on(to: To, index: str, content: str | None, *, has_passages: bool) -> None:
    if len((content or " ").split()) == 1:
        note("the text is one word: if it is the id of a document, pass it with --id")
    add = to.command("create", index, "--existing", "--passages", "--yes")
    after = "" if has_passages else f", after {add} and {to.command('setup', index, '--yes')}"
    note(f"a text that is a part of a longer one is found by {to.command('passages', index)}{after}")
    note("a document that was written a moment ago is found after the next refresh of the index")


def _refuse_for_query(form: Form, lookup: Mapping[str, Any], *, is_many: bool) -> None:
    refused = {"verify", *(() if form == "dev-tools" else ("filter", "source", "size"))} & lookup.keys()
    if refused or is_many:
        named = ", ".join(f"--{name}" for name in sorted(refused) or ["input"])
        raise WrongUseError(f"{named}: not for --query {form}; leave it out")


def _print_query(
    connection: Connection,
    to: To,
    index: str,
    form: Form,
    asked: tuple[str | None, str | None, int | None],
    lookup: Mapping[str, Any],
) -> None:
    """Print the search for a text, a document or a fingerprint, and on stderr what its hits are."""
    text, id_, wanted = asked
    simhash = connection.simhash
    if form == "esql" and connection.product == "opensearch":
        raise InvalidInputError("OpenSearch has no ES|QL: give --query dev-tools, or kql for a query bar")
    rule = simhash.get_rule(index)
    if id_ is not None:
        wanted = simhash.get_fingerprint(index, id_, routing=lookup.get("routing"))
    elif text is not None:
        scheme = next(iter(connection.settings(index).values())).scheme
        wanted = fingerprint_of(text, scheme=scheme)
        if wanted is None:
            raise InvalidInputError(str(UnfingerprintedText.of(text, scheme)))
    preset = lookup.get("preset")
    by_rule = rule.max_distance if preset is None else PRESETS[preset].max_distance
    if form == "kql" and "max_distance" not in lookup and by_rule > MOST_KQL_BITS:
        other = "dev-tools" if connection.product == "opensearch" else "esql"
        left_out = f"near-duplicates at more, up to {by_rule}, are left out; --query {other} finds them"
        note(f"a query bar has room for {MOST_KQL_BITS} bits: {left_out}")
        by_rule = MOST_KQL_BITS
    distance = lookup.get("max_distance", by_rule)
    printed = paste_lookup(
        form,
        index,
        wanted or 0,
        max_distance=distance,
        prefix=to.prefix,
        filter=lookup.get("filter"),
        exclude_ids=[] if id_ is None else [id_],
        size=lookup.get("size", 1_000),
        source=lookup.get("source", False),
    )
    what = "rows are near-duplicates" if form == "esql" else "hits are candidates: near-duplicates, and others; those"
    note(
        f"the {what} within {count(distance, 'bit')}, texts not compared; {to.command('find', index)} goes by the rule"
    )
    if Output.says_json:  # what is to paste is printed as it is in a pipe, too
        print_json({"text": printed})
    else:
        print_text(printed)


def _recorded_distance(settings: IndexSettings) -> int:
    """Return the distance that an index records, 0 for none."""
    return settings.rule.max_distance if settings.is_grouped else settings.max_distance or 0


def _warn_of_unfilled(connection: Connection, to: To, index: str) -> None:
    """Called after the lookup, which it must not delay."""
    warn_of_lacking(connection, to, index, unfilled="no lookup finds them", ungrouped=None)


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
        for answer in connection.simhash.stream_near_dups_many(index, texts(), **lookup):
            record, question = waiting.popleft()
            failed += _print_answer(record, question, answer if isinstance(question, str) else question)
            tracker.advance(1, completed=reader.position)
    if failed:
        said = f"{count(failed, 'line')} of {tracker.done:,} failed: see their error in the output"
        error(said, kind="lines_failed", number=failed, lines=tracker.done)
    return PARTLY if failed else 0


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


def _recorded_text_fields(connection: Connection, index: str) -> tuple[str, ...]:
    recorded = [settings.text_fields for settings in connection.settings(index).values() if settings.text_fields]
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


@takes(SimHashClient.find_passages, "min_contained min_run size filter routing source")
def passages(
    index: str,
    text: str | None = None,
    /,
    *,
    file: str | None = None,
    document_id: Id = None,
    to: To = To(),
    **how: Any,
) -> None:
    """
    Find the documents of INDEX that share passages with TEXT: quotes, excerpts, texts inside texts.

    INDEX needs passages (es-simhash create --passages). Without TEXT, or if it is -, the text comes from stdin. Places
    are in characters, counted from 0.

    For example:

        es-simhash passages news --file article.txt
        es-simhash passages mails --id 4711 --min-contained 0.9

    Args:
        index:
            A name, an alias, a pattern, or several of them separated by commas.
        text:
            The text to look up.
        file:
            Search for the text of this file.
    """
    content = read_subject(text, file, **{"--id": document_id})
    shown = _Shown(index)
    with connect(to, index) as connection:
        try:
            if document_id is not None:
                found = connection.simhash.find_passages_of(index, document_id, **how)
            else:
                found = connection.simhash.find_passages(index, content or "", **how)
        except IncompleteSearchError as failure:
            shown.print_part(failure)
            raise
    shown.print(found)
    for line in found.stale:
        warn(line)


_OF_GROUPS, _OF_PAIRS = {"sort", "min_size", "filter", "source"}, {"preset", "verify", "max_distance"}

# Rows that are one table, so that the first groups are shown before the last ones are read.
_TOGETHER = 500


@takes(SimHashClient.groups, "sort min_size filter source")
@takes(SimHashClient.pairs, "preset verify numbers max_distance")
def groups(index: str, /, *, pairs: bool = False, against: str | None = None, to: To = To(), **how: Any) -> None:
    """
    Print each group of two or more near-duplicates in INDEX, as the documents record it.

    The first document of a group is its canonical, with the number of documents of the group; the others have their
    distance from it, in bits. Of each group 100 are printed, and how many more there are. With --json each group is one
    line, with all of them.

    With --pairs the rule that INDEX records decides, or --preset and --verify; with --max-distance alone, or
    --no-verify, only bits do. All fingerprints are read first. N copies of one text make N * (N - 1) / 2 pairs. Each
    pair is a line of JSON.

    For example:

        es-simhash groups news --sort size --min-size 10 --source title
        es-simhash groups news --json > groups.jsonl
        es-simhash groups new-crawl --pairs --against archive > pairs.jsonl

    Args:
        index:
            A name, an alias, a pattern, or several of them separated by commas.
        pairs:
            Print every pair of near-duplicates in INDEX once, recorded or not.
        against:
            With --pairs: pair each document with those of this other index.
    """
    if refused := how.keys() & (_OF_GROUPS if pairs else _OF_PAIRS) or (
        {"against"} if against and not pairs else set()
    ):
        named = ", ".join(f"--{name.replace('_', '-')}" for name in sorted(refused))
        raise WrongUseError(f"{named}: for {'groups; leave it out, or --pairs' if pairs else '--pairs; pass it too'}")
    with connect(to, index) as connection:
        if pairs:
            _print_pairs(connection, index, against, how)
        else:
            _print_groups(connection, to, index, how)


def _print_groups(connection: Connection, to: To, index: str, how: dict[str, Any]) -> None:
    found = merged = 0
    rows: list[Mapping[str, Any]] = []
    first = how["source"] if isinstance(how.get("source"), list) else []
    with closing(connection.simhash.groups(index, **how)) as every:
        for group in every:
            found += 1
            merged += group.canonicals > 1
            if Output.as_json:
                print_json(group.to_dict())
                continue
            _, [sheet] = sheets_of(group)
            rows += sheet.rows if isinstance(sheet, Sheet) else ()
            if len(rows) >= _TOGETHER:
                print_sheets(Sheet("", rows), known={"index": index}, first=first)
                rows.clear()
    if rows:
        print_sheets(Sheet("", rows), known={"index": index}, first=first)
    warn_of_lacking(connection, to, index)
    if merged:
        said = f"{count(merged, 'name')} of several groups, because indices that were not grouped together repeat an id"
        advice = "run es-simhash reconcile over all of them, or look at each by itself"
        warn(f"{said}: {advice}", kind="shared_ids", number=merged)
    if not found:
        note(f"no group of {how.get('min_size', 2)} or more documents")


def _print_pairs(connection: Connection, index: str, against: str | None, how: dict[str, Any]) -> None:
    said = set[str]()
    with closing(connection.simhash.pairs(index, against, **how)) as found:
        for pair in found:
            if pair.rule not in said:
                said.add(pair.rule)
                note(f"rule: {pair.rule}")
            print_json(pair.to_dict())


def explain(texts: tuple[str, ...], /, *, file: bool = False, to: To = To()) -> None:
    """
    Explain why texts A and B are near-duplicates, or why not.

    Shows the distance, the exact similarity, and the words that differ; of documents also what the rule of INDEX says.
    A and B are texts, files, or ids of documents. Three arguments are INDEX, as for other commands, and two ids. The
    distance is 0 bits for texts with the same features, about 32 of 64 for texts with nothing in common.

    For example:

        es-simhash explain "the boat leaves at nine" "the boat leaves at ten"
        es-simhash explain --file old.txt new.txt
        es-simhash explain news 4711 4712

    Args:
        texts:
            A and B, or INDEX, A and B.
        file:
            A and B are files; each file is one text; - is stdin.
    """
    if not 2 <= len(texts) <= (2 if file else 3):
        raise WrongUseError("pass two texts or files, or INDEX and two ids")
    *before, a, b = texts
    if a == b == STDIN:
        raise WrongUseError("stdin can be read only once: give a file for A or for B")
    if before:
        with connect(to, before[0]) as connection:
            found = connection.simhash.explain(before[0], a, b)
    else:
        from es_simhash.quality import explain as explain_texts  # noqa: PLC0415 - loads numpy

        first, second = (read_text(path) if file else path for path in (a, b))
        found = explain_texts(first, second, scheme=DEFAULT_SCHEME)
    show(found)
