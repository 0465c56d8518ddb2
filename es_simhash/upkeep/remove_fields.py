"""Removes our fields from every document, and our entry from ``_meta``; or only what grouping wrote there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from es_simhash.errors import count
from es_simhash.mapping.faults import nothing_recorded
from es_simhash.mapping.fields import FINGERPRINTED, GROUPED, clearing, users_content
from es_simhash.mapping.meta import (
    IndexSettings,
    marker_properties,
    markers_in_use,
    merge_meta,
    read_settings,
    recorded_prefixes,
)
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import narrowed
from es_simhash.mapping.rule import take_out
from es_simhash.mapping.shards import reading_primaries
from es_simhash.transport.buckets import count_whole
from es_simhash.transport.conversation import refresh
from es_simhash.transport.protocol import Index, document_key, index_key, names_in, noting
from es_simhash.upkeep.backfill import BackfillOptions, Passes
from es_simhash.upkeep.needed import Document, Judgement
from es_simhash.upkeep.put_fields import read_mappings
from es_simhash.writes.bulk import versioned_header
from es_simhash.writes.operations import Failure, Operation
from es_simhash.writes.targets import change_mapping, refuse_updates, write_settings


@dataclass(frozen=True, slots=True)
class RemovedFields:
    """
    What the removal of our fields did.

    Attributes:
        documents:
            Number of documents that no longer carry the fields.
        failures:
            The documents that could not be changed.
        indices:
            Names of the indices whose ``_meta`` no longer names the prefix, or no longer records a grouping; empty
            while there are failures. An index of which an alias hides documents with the fields is not among them.
        is_settled:
            ``False`` if others wrote the fields so often that the last pass still removed some. Run it again.
    """

    documents: int
    failures: tuple[Failure, ...]
    indices: tuple[str, ...]
    is_settled: bool = True


async def remove_fields(
    server: Port, index: Index, *, groups_only: bool = False, dry_run: bool = False
) -> RemovedFields:
    """
    Remove our fields from every document, and our entry from ``_meta``; or the group fields, and the grouping.
    A field once mapped stays in the mapping, empty: no product can remove it. Where scripts are not allowed,
    ``_source`` keeps the prefix with a null. The markers are retired before any document is changed, because a server
    may refuse that. An index that does not record the prefix is left as it is, and so are keys of others in our object.
    Raises MappingError if none records it and documents have such a field, or if one keeps only a part of ``_source``
    (an update would lose the rest),
    and IncompleteSearchError if not every document could be read; ``_meta`` is then left as it is.
    """
    server = await reading_primaries(server, index)
    every = await read_mappings(server, index)
    prefix = server.prefix
    # Elsewhere nothing of ours was written: what is there with these names is the user's own.
    mappings = {name: mapping for name, mapping in every.items() if prefix in recorded_prefixes(mapping)}
    if not mappings:
        if await count_whole(server, index, {"exists": {"field": prefix}}):
            raise nothing_recorded(index_key(index), every, prefix)
        return RemovedFields(0, (), ())
    await refuse_updates(server, index, mappings)
    fields = GROUPED if groups_only else (*FINGERPRINTED, *GROUPED)
    held = [{"exists": {"field": f"{prefix}.{name}"}} for name in fields]
    ours = {"terms": {"_index": list(mappings)}}
    query = {"bool": {"filter": [ours], "should": held, "minimum_should_match": 1}}
    await refresh(server, list(mappings))
    # What an alias hides keeps its fields; so their record stays, too.
    names = await _shown_whole(server, index, list(mappings), query)
    left = {name: _left(mapping, prefix, groups_only) for name, mapping in mappings.items()}
    recorded = []
    for name in names:
        meta = mappings[name].get("_meta")
        if merge_meta(meta, left[name], prefix=prefix) != (meta or {}):
            recorded.append(name)
    if dry_run:
        return RemovedFields(await count_whole(server, index, query), (), tuple(recorded))
    with noting(lambda: "no document was changed"):
        for name in names:
            if left[name] is None and markers_in_use(mappings[name], prefix=prefix):
                retired = marker_properties(None, prefix=prefix, mapping=mappings[name])
                await change_mapping(server, name, mappings[name], {"properties": {prefix: {"properties": retired}}})
                server.context.forget()
    passes = Passes(index, [query], _Removal(prefix, mappings, fields), BackfillOptions())
    failures = list[Failure]()
    with noting(lambda: f"our fields were removed from {count(passes.changed, 'document')}"):
        async with aclosing(passes.run(server)) as reports:
            async for report in reports:
                failures += report.failures
    last = passes.report()
    failures += last.failures
    recorded = recorded if last.is_settled and not failures else []
    if recorded:
        for name in recorded:  # read again: meanwhile, another program may have recorded something
            mapping = (await read_mappings(server, name))[name]
            if (settings := _left(mapping, prefix, groups_only)) is None:
                meta = merge_meta(mapping.get("_meta"), None, prefix=prefix)
                await change_mapping(server, name, mapping, {"_meta": meta})
            else:
                await write_settings(server, name, mapping, settings)
        server.context.forget()
    await refresh(server, index)
    return RemovedFields(last.changed, tuple(failures), tuple(recorded), last.is_settled)


async def _shown_whole(server: Port, index: Index, names: Sequence[str], query: Mapping[str, Any]) -> list[str]:
    """Return those of the concrete indices *names* in which no document that matches *query* is hidden by an alias."""
    found = list(names)
    for name in [] if names_in(index) == found else await narrowed(server, index):
        if name not in found:
            continue
        everything = await count_whole(server, name, query)
        shown = await count_whole(server, index, {"bool": {"filter": [query, {"term": {"_index": name}}]}})
        if shown < everything:
            found.remove(name)
    return found


def _left(mapping: Mapping[str, Any], prefix: str, groups_only: bool) -> IndexSettings | None:  # noqa: FBT001
    """Return what ``_meta`` is to record of the prefix; ``None`` for nothing."""
    settings = read_settings(mapping, prefix=prefix) if groups_only else None
    return None if settings is None else replace(settings, extra=take_out(settings.extra))


class _Removal:
    """Decides that a document loses the fields *names* of ours: by a script, where the server runs it."""

    def __init__(self, prefix: str, targets: Mapping[str, Any], names: Sequence[str]) -> None:
        self.targets, self.marks = targets, dict[str, Any]()
        self.source = [prefix, f"{prefix}.*"]
        self._prefix = prefix
        self._names = names
        self._script = _script(names, prefix)

    def judge(self, documents: Sequence[Document]) -> list[Judgement]:
        """Return what each of *documents* needs; what has another's content in our place is left as it is."""
        return [self._judge(document) for document in documents]

    def _judge(self, document: Document) -> Judgement:
        source, judgement = document.get("_source") or {}, Judgement(document_key(document))
        if users_content(source, self._prefix) is not None:
            return judgement
        header = versioned_header(document)
        # No script language here, none allowed, or not for this document: a partial document does it as well.
        partial = Operation("update", header, {"doc": clearing(source, self._names, prefix=self._prefix)})
        return replace(judgement, operation=Operation("update", header, self._script), otherwise=partial)


def _script(names: Sequence[str], prefix: str) -> dict[str, Any]:
    """Return the update that removes the fields *names* of ours from any document; keys of others stay."""
    source = (
        "for (name in params.dotted) { ctx._source.remove(name) } def own = ctx._source[params.prefix]; "
        "if (own instanceof Map) { for (name in params.names) { own.remove(name) } "
        "if (own.isEmpty()) { ctx._source.remove(params.prefix) } }"
    )
    params = {"dotted": [f"{prefix}.{name}" for name in names], "prefix": prefix, "names": list(names)}
    return {"script": {"lang": "painless", "source": source, "params": params}}
