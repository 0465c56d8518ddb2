"""How many duplicates are newer than the document that stays for them, by the date that people see."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from es_simhash.mapping.fields import Fields, read_values
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import resolve_index
from es_simhash.removal.find_shown import find_shown, name_of
from es_simhash.removal.records import moment_of
from es_simhash.transport.answers import check_whole
from es_simhash.transport.pages import Hits, read_each
from es_simhash.transport.protocol import Index

PAGE = 1_000


async def find_newer(server: Port, index: Index) -> tuple[str, int]:
    """
    Return the date field that is found, or ``""``, and how many duplicates have a later one than what stays for them.
    Cost: a search, and all duplicates and their canonicals are read, that field alone. Memory: a number for each.
    """
    shown = await find_shown(server, index, await resolve_index(server, index), ())
    if (date := name_of("date", shown)) is None:
        return "", 0
    fields = Fields(server.prefix)
    is_duplicate = {"exists": {"field": fields.duplicate_of}}
    body = {"_source": [date], "docvalue_fields": [fields.group]}
    later: dict[str, list[float]] = defaultdict(list)
    newer = 0

    def dates(hits: Hits) -> Iterator[tuple[str, float]]:
        for hit in hits:
            values = read_values(hit.get("_source") or {}, date)
            if values and (moment := moment_of(values[0])) is not None:
                yield hit["fields"][fields.group][0], moment

    def note(hits: Hits) -> None:
        for group, moment in dates(hits):
            later[group].append(moment)

    def compare(hits: Hits) -> None:
        nonlocal newer
        for group, moment in dates(hits):
            newer += sum(other > moment for other in later.pop(group, ()))

    check_whole(
        await read_each(server, index, {"query": {"bool": {"filter": [is_duplicate]}}, **body}, note, page=PAGE)
    )
    names = list(later)
    for begin in range(0, len(names), PAGE):
        groups = {"terms": {fields.group: names[begin : begin + PAGE]}}
        query = {"bool": {"filter": [groups], "must_not": [is_duplicate]}}
        check_whole(await read_each(server, index, {"query": query, **body}, compare, page=PAGE))
    return date, newer
