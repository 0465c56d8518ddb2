"""
Gives documents that another program has just written their fingerprints and groups, by their ids.

They are read again, and each is updated only in the version that was read; ``ingest`` decides.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from es_simhash.arguments import check_ids, check_name
from es_simhash.groups.grouping_request import GroupingRequest
from es_simhash.ingest.ingest import ingest
from es_simhash.ingest.reading import IngestOptions
from es_simhash.ingest.written import Written
from es_simhash.mapping.context import TextFields
from es_simhash.mapping.faults import find_source_faults
from es_simhash.mapping.fields import Fields, carries, without_fingerprint
from es_simhash.mapping.port import Around, Port
from es_simhash.mapping.resolve import agree, resolve_index
from es_simhash.mapping.rule import Grouping, target_of
from es_simhash.mapping.shards import reading_primaries
from es_simhash.mapping.user_fields import MappedField
from es_simhash.transport.answers import check_whole
from es_simhash.transport.conversation import refresh
from es_simhash.transport.pages import read_each
from es_simhash.transport.protocol import Call, check_index

PART = 2_000


async def tag_written(
    server: Port, index: str, ids: Iterable[str], request: GroupingRequest
) -> AsyncGenerator[Sequence[Written], None]:
    """
    Emit for each of *ids* what was done with the documents of that id, in order.
    Cost: for every 2,000 ids a search that reads them, an ingest of their texts, and a refresh.
    """
    check_index(check_name("index", index))
    every = list(dict.fromkeys(check_ids("ids", ids)))
    await refresh(server, index)
    reader = await reading_primaries(server, index)
    texts, others, whole = await _fields(server, index, request)
    ours = Fields(server.prefix).fingerprint
    for begin in range(0, len(every), PART):
        places = {id_: n for n, id_ in enumerate(every[begin : begin + PART], begin)}
        hits = await _read(reader.patient, index, list(places), [*texts, *others, ours])
        hits.sort(key=lambda hit: places[hit["_id"]])
        reports: dict[int, list[Written]] = {n: [] for n in places.values()}
        actions = [_update(hit, texts, server.prefix, is_whole=hit["_index"] in whole) for hit in hits]
        updates = ingest(_OursAlone(server), index, actions, IngestOptions(grouping=request))
        async with aclosing(updates) as parts:
            async for part in parts:
                for report in part:
                    place = places[hits[report.position]["_id"]]
                    reports[place].append(replace(report, position=place))
        gone = {n: [Written(n, id_, None, "refused", _GONE, kind="refused")] for id_, n in places.items()}
        await refresh(server, index)
        yield [report for n, some in reports.items() for report in some or gone[n]]


class _OursAlone(Around):
    """A port that writes no field of the user's back: of a list, only a part was read, and it would take its place."""

    def change(self, call: Call) -> Call:
        if call.api != "bulk":
            return call
        lines = [self._without_theirs(line) for line in call.arguments["body"]]
        return replace(call, arguments={**call.arguments, "body": lines})

    def _without_theirs(self, line: Any) -> Any:
        doc = line.get("doc") if isinstance(line, dict) else None
        return line if doc is None else {**line, "doc": {name: doc[name] for name in doc if name == self.prefix}}


async def _read(server: Port, index: str, ids: Sequence[str], fields: Sequence[str]) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    body = {"query": {"ids": {"values": ids}}, "_source": fields, "seq_no_primary_term": True}
    check_whole(await read_each(server, index, body, found.extend, page=2 * PART))
    return found


_GONE = "there is no document of this id"


async def _fields(server: Port, index: str, request: GroupingRequest) -> tuple[list[str], list[str], list[str]]:
    """
    Return the text fields of documents of *index*, the other fields that decide about them, and the indices
    whose ``_source`` is whole.
    """
    resolved = await resolve_index(server, index)
    settings = agree(resolved, server.context)
    texts = TextFields({name: one.text_fields for name, one in resolved.settings_of.items()}, settings.text_fields).all
    names = []
    for name, one in resolved.settings_of.items():
        grouping = request.put_on(target_of(one) or Grouping())
        apart = [grouping.per, grouping.within.field if grouping.within else None]
        names += [MappedField.find(resolved.mappings[name], field).path for field in apart if field is not None]
    whole = [name for name in resolved.settings_of if not find_source_faults(resolved.mappings.get(name, {}))]
    return texts, [name for name in dict.fromkeys(names) if name not in texts], whole


def _update(hit: Mapping[str, Any], texts: Sequence[str], prefix: str, *, is_whole: bool) -> dict[str, Any]:
    routing = {} if hit.get("_routing") is None else {"routing": hit["_routing"]}
    version = {"if_seq_no": hit["_seq_no"], "if_primary_term": hit["_primary_term"]}
    place = {"_op_type": "update", "_index": hit["_index"], "_id": hit["_id"]}
    source = hit.get("_source") or {}
    doc = without_fingerprint(source, prefix=prefix)
    is_left = is_whole and doc.keys() != source.keys()  # the fingerprint, perhaps, of a text that is gone
    if is_left or any(carries(doc, name) for name in texts):  # it was read whole: a text field that it lacks is empty
        doc = {**doc, **{name: None for name in texts if not carries(doc, name)}}
    return {**place, **routing, **version, "doc": doc}
