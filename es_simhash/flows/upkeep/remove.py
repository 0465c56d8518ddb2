"""
Removes our fields from every document, and our entry from ``_meta``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_simhash.flows.context import Context, Index
from es_simhash.flows.protocol import Call, Flow, noting
from es_simhash.flows.transfer.answers import check_whole
from es_simhash.flows.transfer.bulk import send_bulk
from es_simhash.flows.transfer.pages import Hits, read_pages
from es_simhash.flows.transfer.primaries import reads_primaries
from es_simhash.flows.transfer.refresh import refresh
from es_simhash.flows.upkeep.manage import read_mappings
from es_simhash.index.faults import refuse_updates
from es_simhash.index.fields import GROUPED, OWNED
from es_simhash.index.marker import retired_markers
from es_simhash.index.meta import merge_meta
from es_simhash.index.operations import Failure, Operation, Outcome

__all__ = ["Removal", "remove_fields"]


@dataclass(frozen=True, slots=True)
class Removal:
    """
    What the removal of our fields did.

    Attributes:
        documents:
            Number of documents that no longer carry our fields.
        failures:
            The documents that could not be changed.
        indices:
            Names of the indices whose ``_meta`` no longer names the prefix; empty while there are failures.
    """

    documents: int
    failures: tuple[Failure, ...]
    indices: tuple[str, ...]


@reads_primaries
def remove_fields(context: Context, index: Index, *, page: int = 1_000) -> Flow[Removal]:
    """
    Remove our fields from every document, and our entry from ``_meta``.

    A field once mapped stays in the mapping, empty: no product can take it out. Where scripts are not allowed,
    ``_source`` keeps the prefix with a null.

    Raises:
        MappingError: If an index keeps only a part of ``_source``: an update would lose the rest.
        IncompleteSearchError: If not every document could be looked at; ``_meta`` is then left as it is.
    """
    mappings = yield from read_mappings(index)
    refuse_updates(mappings)
    names = list(mappings)
    clearing = _Clearing(context.prefix)
    body = {"query": {"exists": {"field": context.prefix}}, "_source": [context.prefix, f"{context.prefix}.*"]}
    yield from refresh(names)
    with noting(lambda: f"our fields were removed from {clearing.documents:,} documents"):
        check_whole((yield from read_pages(names, body, clearing.clear, page=page)), "run remove again")
    if not clearing.failures:
        for name, mapping in mappings.items():
            meta = merge_meta(mapping.get("_meta"), None, prefix=context.prefix)
            body = {"_meta": meta}
            if retired := retired_markers(mapping, prefix=context.prefix):
                body["properties"] = {context.prefix: {"properties": retired}}
            yield Call("put_mapping", {"index": name, "body": body})
        context.forget()
    yield from refresh(names)
    return Removal(clearing.documents, tuple(clearing.failures), () if clearing.failures else tuple(names))


class _Clearing:
    """Removes one object from documents, by a script if the server allows scripts."""

    def __init__(self, prefix: str) -> None:
        self.documents = 0
        self.failures: list[Failure] = []
        self._prefix = prefix
        self._scripts = True

    def clear(self, hits: Hits) -> Flow[bool]:
        outcomes = yield from self._send(hits)
        refused = [hit for hit, outcome in zip(hits, outcomes, strict=True) if outcome.status == 400]
        if refused and self._scripts:
            # No script language here, or none allowed: a partial document does it as well.
            self._scripts = False
            outcomes = [each for each in outcomes if each.status != 400] + (yield from self._send(refused))
        for outcome in outcomes:
            if outcome.is_done:
                self.documents += 1
            elif outcome.status != 404:  # a document deleted meanwhile has no fields left to clear
                self.failures.append(outcome.to_failure())
        return False

    def _send(self, hits: Sequence[Mapping[str, Any]]) -> Flow[list[Outcome]]:
        return (yield from send_bulk([_clear_operation(hit, self._prefix, script=self._scripts) for hit in hits]))


def _clear_operation(hit: Mapping[str, Any], prefix: str, *, script: bool) -> Operation:
    """Return the update that removes the object *prefix* from the document of *hit*."""
    header = {"_index": hit["_index"], "_id": hit["_id"], "retry_on_conflict": 5}
    if "_routing" in hit:
        header["routing"] = hit["_routing"]
    dotted = [f"{prefix}.{name}" for name in (*OWNED, *GROUPED)]
    if not script:
        found = hit.get("_source") or {}
        return Operation("update", header, {"doc": {key: None for key in (prefix, *dotted) if key in found}})
    source = "for (name in params.names) { ctx._source.remove(name) }"
    params = {"names": [prefix, *dotted]}
    return Operation("update", header, {"script": {"lang": "painless", "source": source, "params": params}})
