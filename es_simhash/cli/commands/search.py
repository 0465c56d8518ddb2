"""``es-simhash search``: search results without near-duplicates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

from es_simhash import DistinctHit, DistinctPage, InvalidInputError
from es_simhash.cli import options
from es_simhash.cli.connect import Connection, connect
from es_simhash.cli.input_files import read_text
from es_simhash.cli.options import Target
from es_simhash.cli.output import count, note, print_json, print_line, say_command
from es_simhash.cli.parameter_types import INPUT_FILE
from es_simhash.cli.stopping import this_command
from es_simhash.cli.tables import print_sheets
from es_simhash.folding.request import DistinctOptions, DistinctSearch
from es_simhash.mapping.fields import Fields
from es_simhash.tables.tabular import sheets_of

_LIMITS = (
    "one hit of each group, the best; this search counts documents in its total and aggregations, takes all documents "
    "without a group for one, and has no page after from + size of 10,000; es-simhash search --distinct has none of "
    "these limits"
)


# By distance the string has every fingerprint that was shown.
_LONGEST_AFTER = 300
_AFTER_IN_JSON = "raise --size, or give --after the string that --json prints as after"


class _By(click.ParamType):  # type: ignore[type-arg]  # generic only in newer clicks
    name = "by"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "group":
            return value
        if not str(value).isdecimal() or int(value) > 64:
            self.fail("pass group, or a number of bits from 0 to 64", param, ctx)
        return int(value)


@options.manual(
    'es-simhash search news "bridge over the river" --distinct',
    'es-simhash search news "bridge" --distinct --similar 3 --total --json',
    "es-simhash search news --query query.json --distinct --by 3",
    'es-simhash search news "bridge" --paste',
)
@click.argument("index")
@click.argument("words", required=False)
@click.option(
    "--query",
    "path",
    metavar="FILE",
    type=INPUT_FILE,
    help="JSON of the search: query, sort, aggs and so on; - for stdin.",
)
@click.option("--distinct", is_flag=True, help="Show one hit of each group of near-duplicates, the best.")
@click.option(
    "--by",
    type=_By(),
    default="group",
    metavar="group|BITS",
    help="Fold hits of one group, or within so many bits.",
)
@options.takes(DistinctOptions)
@click.option("--total", is_flag=True, help="Count all distinct hits; every matching document is looked at.")
@click.option("--after", metavar="STRING", help="Show the page after the one that printed this.")
@click.option("--paste", is_flag=True, help="Print the search to paste elsewhere, which folds groups as a server can.")
@options.source
@options.scheme
@options.target
def command(
    index: str,
    words: str | None,
    path: str | None,
    after: str | None,
    target: Target,
    *,
    source: bool | list[str],
    distinct: bool,
    paste: bool,
    as_json: bool,
    **how: Any,
) -> int:
    """
    Search INDEX for WORDS, or with the search in a file, and show the best hits.

    INDEX may be a name, an alias, a pattern, or several of them separated by commas. WORDS are searched in the fields
    of the text that the index records. With --distinct no two hits are near-duplicates, over all pages; the column
    similar has the number of matching documents that a hit stands for. The groups are those of ingest and
    reconcile.
    """
    if (words is None) == (path is None):
        raise click.UsageError("pass WORDS or --query FILE")
    asked = {"after": after is not None, "total": how["total"], "similar": how["similar"], "by": how["by"] != "group"}
    if not distinct and (extra := [name for name, is_given in asked.items() if is_given]):
        raise click.UsageError(f"--{extra[0]} needs --distinct")
    with connect(target, index) as connection:
        fields = _text_fields(connection, index)
        body: dict[str, Any] = _read_body(path) if path is not None else {"query": _query(words or "", fields, index)}
        if source is not False or "_source" not in body:
            body["_source"] = source if source is not False else fields
        shown = body["_source"] if isinstance(body["_source"], list) else []
        if paste:
            return _print_paste(index, body, target.prefix, how["size"])
        if not distinct:
            hits = _search(connection, index, body, how)
            _print(hits, index, as_json=as_json, fields=shown, is_distinct=False)
            return 0
        page = connection.simhash.search_distinct(index, body, after=after, **how)
    _print(page, index, as_json=as_json, fields=shown, is_distinct=True)
    return 0


def _text_fields(connection: Connection, index: str) -> list[str]:
    return list(
        dict.fromkeys(name for each in connection.simhash.get_settings(index).values() for name in each.text_fields)
    )


def _query(words: str, fields: list[str], index: str) -> dict[str, Any]:
    if not fields:
        raise InvalidInputError(
            f"index {index} does not record its text field: run {say_command('setup', index)} --text-field FIELD "
            "--yes, or pass --query FILE with a whole search"
        )
    return {"multi_match": {"query": words, "fields": fields}}


def _read_body(path: str) -> dict[str, Any]:
    try:
        body = json.loads(read_text(path))
    except ValueError as error:
        raise InvalidInputError(f"{path} is no JSON ({error}): write a search as an object") from error
    if not isinstance(body, dict):
        raise InvalidInputError(f"{path} is no search: write an object with query, sort and so on")
    return body


def _search(connection: Connection, index: str, body: Mapping[str, Any], how: Mapping[str, Any]) -> DistinctPage:
    """Return the hits as the server ranks them, in the form of a page."""
    from es_simhash.folding.counts import read_answer  # noqa: PLC0415 -- of one way, and slow to import

    DistinctSearch(index, body, Fields(), "group")
    answer = connection.run(lambda server: read_answer(server, index, None, {**body, "size": how["size"]}))
    return DistinctPage(tuple(map(DistinctHit, answer["hits"]["hits"])))


def _print_paste(index: str, body: Mapping[str, Any], prefix: str, size: int) -> int:
    DistinctSearch(index, body, Fields(prefix), "group")
    print_line(f"GET /{index}/_search")
    print_json({**body, "size": size, "collapse": {"field": Fields(prefix).group}}, indent=2)
    note(_LIMITS)
    return 0


def _print(page: DistinctPage, index: str, *, as_json: bool, fields: Any, is_distinct: bool) -> None:
    if as_json:
        print_json(page.to_dict())
        return
    if not page:
        print_line("no hits")
        return
    title, parts = sheets_of(page)
    if not is_distinct:
        title = count(len(page), "hit")
    print_sheets(*parts, title=title, known={"index": index}, first=fields)
    if page.after is not None:
        is_short = len(page.after) <= _LONGEST_AFTER
        way = this_command("--after", page.after, without="--after") if is_short else _AFTER_IN_JSON
        note(f"there are more: {way}")
