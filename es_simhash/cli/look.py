"""``find``, ``passages``, ``groups`` and ``explain``: near-duplicates, looked at. None writes."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Annotated, Any

from cyclopts import Parameter

from es_simhash import (
    DEFAULT_SCHEME,
    PRESETS,
    IncompleteSearchError,
    InvalidInputError,
    NearDups,
    Overlaps,
    SimHashClient,
    fingerprint as fingerprint_of,
    from_hex,
)
from es_simhash.cli.app import STDIN
from es_simhash.cli.connect import Connection, connect, warn_of_lacking, warn_of_shared_ids
from es_simhash.cli.failures import WrongUseError, describe, kind_of, no_features, why_unfound
from es_simhash.cli.lines import Line, Reader, document_of, read_text
from es_simhash.cli.options import To, reads, takes
from es_simhash.cli.show import (
    PARTLY,
    Output,
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
        es-simhash find news --input new.jsonl.gz >found.jsonl
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
        query:
            Print the search to paste into Dev Tools, a query bar (KQL, in Dashboards DQL) or Discover (ES|QL).
    """
    others = {"--id": document_id, "--fingerprint": fingerprint, "--input": many}
    content = read_subject(text, file, **others)
    if query is not None:
        _refuse_for_query(query, lookup, is_many=many is not None)
    with connect(to, index) as connection:
        if query is not None:
            _print_query(connection, to, index, query, content, document_id, fingerprint, lookup)
            return 0
        if many is not None:
            code = _find_many(connection, index, Reader([many]), lookup)
            _warn_of_unfilled(connection, to, index)
            return code
        if not Output.as_json and "source" not in lookup:
            lookup["source"] = _text_fields(connection, index) or False
        try:
            with _printing_a_part(index):
                if document_id is not None:
                    found = connection.simhash.find_near_dups_of(index, document_id, **lookup)
                else:
                    found = connection.simhash.find_near_dups(index, content, fingerprint=fingerprint, **lookup)
        except InvalidInputError:
            _warn_of_unfilled(connection, to, index)  # the document of --id may be one of them
            raise
        if why := why_unfound(content, found):
            warn(**why)
        _warn_of_unfilled(connection, to, index)
    _print_found(found, index)
    if not found and found.plan is not None and not Output.as_json:
        way = to.command("passages", index)
        note(f"a part of a longer text is found by {way}, a document of a moment ago after the next refresh")
    return 0


def _text_fields(connection: Connection, index: str) -> list[str]:
    settings = connection.settings(index).values()
    return list(dict.fromkeys(name for index_settings in settings for name in index_settings.text_fields))


def _print_found(found: NearDups | Overlaps, index: str) -> None:
    """Print what a lookup in *index* found."""
    if Output.as_json or found:
        show(found, known={"index": index})
    elif isinstance(found, NearDups):
        print_line(f"no near-duplicates {found.rule or ''}".rstrip())
    else:
        print_line("no documents with shared passages")
    if isinstance(found, NearDups) and not Output.as_json:
        for rejected in found.rejected if len(found) < _FEW else ():
            note(f"rejected: {rejected}")
        for reason in found.unverified:
            warn(str(reason))


@contextmanager
def _printing_a_part(index: str) -> Iterator[None]:
    """Print what a search found within the block that is not complete, and fail."""
    try:
        yield
    except IncompleteSearchError as failure:
        if failure.results is not None and (Output.as_json or failure.results):
            _print_found(failure.results, index)
        raise


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
    text: str | None,
    id_: str | None,
    wanted: int | None,
    lookup: Mapping[str, Any],
) -> None:
    """Print the search for a text, a document or a fingerprint, and on stderr what its hits are."""
    is_opensearch = connection.product == "opensearch"
    if form == "esql" and is_opensearch:
        raise InvalidInputError("OpenSearch has no ES|QL: give --query dev-tools, or kql for a query bar")
    rule = connection.simhash.get_rule(index)
    if id_ is not None:
        wanted = connection.simhash.get_fingerprint(index, id_, routing=lookup.get("routing"))
    elif text is not None:
        scheme = next(iter(connection.settings(index).values())).scheme
        wanted = fingerprint_of(text, scheme=scheme)
        if wanted is None:
            raise InvalidInputError(no_features(scheme))
    distance = rule.max_distance if "preset" not in lookup else PRESETS[lookup["preset"]].max_distance
    if form == "kql" and "max_distance" not in lookup and distance > MOST_KQL_BITS:
        left_out = f"near-duplicates at more, up to {distance}, are left out"
        other = "dev-tools" if is_opensearch else "esql"
        note(f"a query bar has room for {MOST_KQL_BITS} bits: {left_out}; --query {other} finds them")
        distance = MOST_KQL_BITS
    distance = lookup.get("max_distance", distance)
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


def _warn_of_unfilled(connection: Connection, to: To, index: str) -> None:
    """Called after the lookup, which it must not delay."""
    warn_of_lacking(connection, to, index, with_groups=False)


def _find_many(connection: Connection, index: str, reader: Reader, lookup: dict[str, Any]) -> int:
    waiting: deque[tuple[Line, str | InvalidInputError]] = deque()  # read, and not answered

    def texts() -> Iterator[Any]:
        for line in reader:
            question = _question(connection, index, line)
            waiting.append((line, question))
            yield question if isinstance(question, str) else None  # which fails in its place

    failed = lines = 0
    for answer in connection.simhash.stream_near_dups_many(index, texts(), **lookup):
        line, question = waiting.popleft()
        text, outcome = (question, answer) if isinstance(question, str) else (None, question)
        lines += 1
        failed += isinstance(outcome, Exception)
        _print_answer(line, text, outcome)
        connection.tell(reader.progress("finding"))
    if failed:
        said = f"{count(failed, 'line')} of {lines:,} failed: see their error in the output"
        error(said, kind="lines_failed", number=failed, lines=lines)
    return PARTLY if failed else 0


def _print_answer(line: Line, text: str | None, outcome: NearDups | Exception) -> None:
    """Print the answer to one line of a file as one line of JSON."""
    found = outcome.results if isinstance(outcome, IncompleteSearchError) else outcome
    shown: dict[str, Any] = {"line": line.line}
    if isinstance(found, NearDups):
        shown |= found.to_dict()
        if why := why_unfound(text, found):
            shown["no_fingerprint"] = why
    if isinstance(outcome, Exception):
        shown["error"] = {"kind": kind_of(outcome), "message": describe(outcome)}
    print_json(shown)


def _question(connection: Connection, index: str, line: Line) -> str | InvalidInputError:
    """Return the text of a line, or why it has none. The text of a document without text is empty."""
    if line.reason is None and isinstance(line.value, str):
        return line.value
    try:
        return read_document(document_of(line), _text_fields(connection, index)) or ""
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
    with connect(to, index) as connection, _printing_a_part(index):
        if document_id is not None:
            found = connection.simhash.find_passages_of(index, document_id, **how)
        else:
            found = connection.simhash.find_passages(index, content or "", **how)
    _print_found(found, index)
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
    refused = how.keys() & (_OF_GROUPS if pairs else _OF_PAIRS)
    if refused or (against and not pairs):
        named = ", ".join(f"--{name.replace('_', '-')}" for name in sorted(refused) or ["against"])
        raise WrongUseError(f"{named}: for {'groups; leave it out, or --pairs' if pairs else '--pairs; pass it too'}")
    with connect(to, index) as connection:
        if pairs:
            _print_pairs(connection, index, against, how)
        else:
            _print_groups(connection, to, index, how)


def _print_groups(connection: Connection, to: To, index: str, how: dict[str, Any]) -> None:
    found = merged = 0
    rows: list[Mapping[str, Any]] = []

    def print_rows() -> None:
        print_sheets(Sheet("", rows), known={"index": index})
        rows.clear()

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
                print_rows()
    print_rows()
    warn_of_lacking(connection, to, index)
    warn_of_shared_ids(merged)
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
