"""
Finds the documents of an index that add nothing, because another document contains them.

The rule and its measure are in ``passages.contained``. Terms of passages are read, then the texts of
documents that share one; the caller reads and compares again the texts that a decision rests on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from es_simhash.groups.read import read_texts
from es_simhash.groups.recorded import field_kinds
from es_simhash.hashing import hamming_distance
from es_simhash.mapping.context import Resolved
from es_simhash.mapping.fields import Fields, read_values
from es_simhash.mapping.port import Port
from es_simhash.mapping.rule import Grouping
from es_simhash.passages.find_passages import check_filled
from es_simhash.removal.may_delete import Candidate
from es_simhash.texts.measures import CONTAINED_SHINGLES
from es_simhash.transport.answers import check_whole
from es_simhash.transport.pages import Hits, Reading
from es_simhash.transport.protocol import Index, Progress

if TYPE_CHECKING:
    from es_simhash.groups.table import Table, Texts
    from es_simhash.passages.contained import AddsNothing, SharedTerms


PAGE = 2_000
BATCH = 500

Judge = Callable[[Sequence[Candidate]], Awaitable[list[int | str]]]
"""
Compares the present texts of documents; returns of each the number of its line in the plan, or why it has none.
``decided`` and ``filtered``: the document stays, whatever contains it. Any other reason is about the pair alone.
"""


@dataclass(frozen=True, slots=True)
class Found:
    """
    The documents that would be removed, as numbers of lines in the plan.
    *found*: how many may be removed, before their present texts are compared. *left_out*: how many stay, by reason.
    """

    lines: list[int]
    found: int
    left_out: Counter[str]


async def find_contained(
    server: Port, index: Index, resolved: Resolved, grouping: Grouping, bound: float, judge: Judge, *, common: int
) -> Found:
    """
    Return the documents of *index* of which another one, which stays, contains at least the share *bound*.
    Cost: all ids and terms of passages are read, then one search for every 500 documents that share a term with
    another, and what *judge* costs for each that may be contained. Raises MappingError if an index has no passages,
    IncompleteSearchError if documents have none yet or could not be read.
    """
    from es_simhash.passages.contained import SharedTerms  # noqa: PLC0415 -- loads numpy

    await check_filled(server, index, resolved.each)
    shared = SharedTerms(common=common)
    table = await _read_terms(server, index, resolved, grouping, shared)
    places: list[int] = await server.compute(_with_pairs, table, shared)
    text_fields = resolved.text_fields
    texts = await read_texts(server, index, table, places, text_fields, CONTAINED_SHINGLES)
    rule: AddsNothing = await server.compute(_find_pairs, table, shared, texts, bound)
    found = len(await server.compute(rule.decide))
    lines = await _judge_all(server, rule, table, judge)
    gone: dict[int, int] = await server.compute(rule.decide)
    left_out = rule.left_out()
    left_out["unreadable"] += texts.unread
    left_out["common"] += await server.compute(_count_staying, shared, gone)
    return Found([lines[pair] for pair in gone.items()], found, +left_out)


async def _read_terms(server: Port, index: Index, resolved: Resolved, grouping: Grouping, shared: SharedTerms) -> Table:
    """Add the terms of all documents to *shared*, and return the documents, in the same order."""
    from es_simhash.groups.table import Table  # noqa: PLC0415 -- loads numpy

    fields = Fields(server.prefix)
    dates = [field for field, kind in field_kinds(resolved, grouping).items() if kind == "date"]
    text_fields = resolved.text_fields
    table = Table(server.prefix, grouping, dates=dates, text_fields=text_fields)

    def add(hits: Hits) -> None:
        hits = [hit for hit in hits if hit.get("fields", {}).get(fields.fingerprint)]
        table.add(hits)
        shared.add([read_values(hit.get("_source") or {}, fields.passages) for hit in hits])

    body = table.search_body()
    exists: list[dict[str, Any]] = [{"exists": {"field": name}} for name in (fields.fingerprint, fields.passages)]
    body |= {"query": {"bool": {"filter": exists}}, "_source": [*(body["_source"] or ()), fields.passages]}
    reading = Reading(server, index, body, page=PAGE)
    async with aclosing(reading.pages()) as pages:
        async for hits in pages:
            await server.compute(add, hits)
            server.tell(Progress(len(table), None, "reading passages"))
    check_whole(reading.gaps)
    return table


def _with_pairs(table: Table, shared: SharedTerms) -> list[int]:
    """Return the places of documents that share a term with another one that may contain them, or the reverse."""
    import numpy as np  # noqa: PLC0415

    wanted = np.zeros(len(table), np.bool_)
    for left, right in shared.pairs():
        allowed = table.allows(left, right)
        wanted[left[allowed]] = wanted[right[allowed]] = True
    places: list[int] = np.flatnonzero(wanted).tolist()
    return places


def _find_pairs(table: Table, shared: SharedTerms, texts: Texts, bound: float) -> AddsNothing:
    """Return the rule over the pairs of which one may contain the other, by their shingles."""
    import numpy as np  # noqa: PLC0415

    from es_simhash.passages.contained import AddsNothing, find_containers  # noqa: PLC0415

    numbers, lengths = texts.numbers, texts.lengths
    sizes = np.where(numbers >= 0, texts.sets.sizes[numbers] if len(texts.sets.sizes) else 0, 0)
    order = table.order()
    order = order[np.lexsort((-(np.zeros_like(sizes) if lengths is None else lengths)[order], -sizes[order]))]
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    parts = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float64))]
    for left, right in shared.pairs():
        allowed = table.allows(left, right)
        parts.append(find_containers((left[allowed], right[allowed]), ranks, numbers, texts.sets, bound))
    contained, containers, shares = (np.concatenate(each) for each in zip(*parts, strict=True))
    return AddsNothing(contained, containers, shares, ranks)


async def _judge_all(server: Port, rule: AddsNothing, table: Table, judge: Judge) -> dict[tuple[int, int], int]:
    """Let the pairs be judged that the rule rests on, until all of them are; return the lines of those confirmed."""
    lines: dict[tuple[int, int], int] = {}
    while pairs := await server.compute(rule.unjudged):
        # Those of one container stand together, so that it is read once.
        pairs.sort(key=lambda pair: pair[1])
        for begin in range(0, len(pairs), BATCH):
            part = pairs[begin : begin + BATCH]
            rows = [(table.row(document), table.row(container)) for document, container in part]
            results = await judge([(a, b, hamming_distance(a.fingerprint, b.fingerprint)) for a, b in rows])
            for pair, result in zip(part, results, strict=True):
                if isinstance(result, int):
                    lines[pair] = result
                    rule.confirm(pair)
                elif result in ("decided", "filtered"):
                    rule.keep(pair[0], result)
                else:
                    rule.refute(pair, result)
            server.tell(Progress(min(begin + BATCH, len(pairs)), len(pairs), "comparing texts"))
    return lines


def _count_staying(shared: SharedTerms, gone: Mapping[int, int]) -> int:
    """Return how many documents were not compared with all that share passages with them, and stay."""
    common = shared.with_common()
    common[list(gone)] = False
    return int(common.sum())
