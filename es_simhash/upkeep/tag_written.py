"""
Gives documents that another program has just written their fingerprints and groups, by their ids.

They are read again and judged as in a backfill, and ``reconcile`` groups them. No field of the user's is written.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from typing import Any

from es_simhash.arguments import check_ids, check_name
from es_simhash.groups.grouping_request import GroupingRequest
from es_simhash.groups.reconcile import reconcile
from es_simhash.groups.recorded import settle_grouping
from es_simhash.ingest.written import Written
from es_simhash.mapping.fields import our_object
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import resolve_index
from es_simhash.mapping.shards import reading_primaries
from es_simhash.transport.answers import check_whole
from es_simhash.transport.conversation import refresh
from es_simhash.transport.pages import read_each
from es_simhash.transport.protocol import Key, check_index, document_key, ids_query
from es_simhash.upkeep.needed import Judge
from es_simhash.upkeep.put_fields import find_targets
from es_simhash.writes.bulk import send_bulk
from es_simhash.writes.operations import Failure, refuse_hindered
from es_simhash.writes.targets import refuse_masked_values, refuse_unseen

# So many documents are judged and grouped together.
PART_DOCUMENTS = 1_000


async def tag_written(
    server: Port, index: str, ids: Iterable[str], request: GroupingRequest
) -> AsyncGenerator[Sequence[Written], None]:
    """
    Emit for each of *ids* what was done with the documents of that id, in order.
    Cost: for every 1,000 ids two searches that read them, a bulk, and a :func:`reconcile` of these ids.
    """
    check_index(check_name("index", index))
    every = list(dict.fromkeys(check_ids("ids", ids)))
    server = await reading_primaries(server, index)
    await refresh(server, index)
    # What is refused is refused before anything is written.
    await refuse_unseen(server, await resolve_index(server, index))
    targets = await find_targets(server, index, None, dry_run=False)
    grouping = await settle_grouping(server, await resolve_index(server, index), request)
    if grouping.per is not None:
        await refuse_masked_values(server, index, grouping.per)
    judge = Judge(server.prefix, targets)
    for begin in range(0, len(every), PART_DOCUMENTS):
        places = {id_: place for place, id_ in enumerate(every[begin : begin + PART_DOCUMENTS], begin)}
        failures = await _put_fingerprints(server, index, judge, list(places))
        short: set[Key] = set()
        done = await reconcile(server, index, request, ids=list(places), may_lack=False, short=short)
        failures |= {(failure.index, failure.id): failure for failure in done.failures}
        hits = await _read(server, index, list(places), {"_source": server.prefix})
        reports = {place: list[Written]() for place in places.values()}
        for hit in hits:
            place = places[hit["_id"]]
            report = _report(place, hit, failures.get(document_key(hit)[:2]), server.prefix)
            report.too_short = document_key(hit) in short
            reports[place].append(report)
        gone = {place: [Written(place, id_, None, "refused", _GONE, kind="refused")] for id_, place in places.items()}
        yield [one for place, some in reports.items() for one in some or gone[place]]


_GONE = "there is no document of this id"


async def _read(server: Port, index: str, ids: Sequence[str], body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    query = {"bool": {"filter": [ids_query(ids)], **body.get("query", {})}}
    check_whole(await read_each(server.patient, index, {**body, "query": query}, found.extend, page=2 * PART_DOCUMENTS))
    return found


async def _put_fingerprints(
    server: Port, index: str, judge: Judge, ids: Sequence[str]
) -> dict[tuple[str, str], Failure]:
    """Give the documents *ids* the fingerprints of their texts; return why some did not get it, by index and id."""
    hits = await _read(server, index, ids, {"query": judge.marks, "_source": judge.source, "seq_no_primary_term": True})
    judged = await server.compute(judge.judge, hits)
    outcomes = await send_bulk(
        server, [operation for judgement in judged if (operation := judgement.operation) is not None]
    )
    refuse_hindered(outcomes)
    failures = [judgement.failure for judgement in judged if judgement.failure is not None]
    failures += [outcome.to_failure() for outcome in outcomes if not outcome.is_done]
    return {(failure.index, failure.id): failure for failure in failures}


def _report(place: int, hit: Mapping[str, Any], failure: Failure | None, prefix: str) -> Written:
    ours = our_object(hit.get("_source") or {}, prefix)
    is_fingerprinted = ours.get("fingerprint") is not None
    reason = None if failure is None else failure.reason
    if failure is not None and failure.kind != "unusable":
        return Written(
            place, hit["_id"], hit["_index"], "refused", reason, fingerprinted=is_fingerprinted, kind="refused"
        )
    report = Written(place, hit["_id"], hit["_index"], "written", reason, fingerprinted=is_fingerprinted)
    if is_fingerprinted:
        report.canonical, report.distance = ours.get("group"), ours.get("distance", 0)
        report.action = "written" if ours.get("duplicate_of") is None else "tagged"
    return report
