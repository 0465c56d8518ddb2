"""
Creating, preparing, checking and clearing indices.

Mappings are built and compared in ``index.mapping``; here is the order of requests. No lookup and no ingest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from es_simhash.errors import InvalidInputError, MappingError, SimHashError, shorten
from es_simhash.flows.context import Context, Index, check_index
from es_simhash.flows.protocol import Call, Flow, error_text, status_of
from es_simhash.flows.transfer.answers import check_whole
from es_simhash.flows.transfer.bulk import Operation, send_bulk
from es_simhash.flows.transfer.pages import Hits, read_pages
from es_simhash.hashing import DEFAULT_SCHEME, Scheme
from es_simhash.index.fields import Fields
from es_simhash.index.mapping import (
    IndexSettings,
    build_settings,
    find_faults,
    mapping_of,
    merge_meta,
    read_settings,
)

__all__ = ["IndexCheck", "Removal", "check", "create_index", "put_mapping", "remove"]


@dataclass(frozen=True, slots=True)
class IndexCheck:
    """
    What :func:`check` found in one index.

    Attributes:
        index:
            Name of the index.
        ready:
            Whether lookups and ingest work there.
        scheme:
            Identifier of the scheme recorded; ``None`` where none is.
        text_fields:
            Fields that the text comes from, as recorded.
        max_distance:
            The default recorded, in bits.
        documents:
            Number of documents.
        fingerprinted:
            Number of documents that carry a fingerprint.
        problems:
            One line for each fault, with what to do.
    """

    index: str
    ready: bool
    scheme: str | None
    text_fields: tuple[str, ...]
    max_distance: int | None
    documents: int
    fingerprinted: int
    problems: tuple[str, ...]


def create_index(
    context: Context,
    index: str,
    settings: IndexSettings,
    mappings: Mapping[str, Any] | None,
    index_settings: Mapping[str, Any] | None,
) -> Flow[IndexSettings]:
    """
    Create *index* with the caller's own *mappings* and *index_settings* and our fields beside them.
    """
    if not isinstance(index, str):
        raise TypeError(f"index must be a name, not {type(index).__name__}")
    check_index(index)
    ours = mapping_of(settings, prefix=context.prefix)
    theirs = dict(mappings or {})
    properties = dict(theirs.get("properties") or {})
    if context.prefix in properties:
        raise InvalidInputError(f"the mappings given already have a field {context.prefix!r}: choose another prefix")
    merged = {
        **theirs,
        "_meta": merge_meta(theirs.get("_meta"), settings, prefix=context.prefix),
        "properties": properties | ours["properties"],
    }
    body: dict[str, Any] = {"mappings": merged} | ({"settings": dict(index_settings)} if index_settings else {})
    yield Call("create_index", {"index": index, "body": body})
    context.forget()
    return settings


def put_mapping(
    context: Context,
    index: Index,
    scheme: str | Scheme | None,
    text_field: str | Sequence[str],
    max_distance: int | None,
    *,
    value: bool | None,
) -> Flow[list[str]]:
    """
    Add our fields and the ``_meta`` entry to indices that exist; return the names of those changed.

    What is not given stays as an index records it. Nothing is written to any index before all are known to fit.

    Raises:
        MappingError: If an index maps the prefix to something else, or records another scheme for it.
    """
    mappings = yield from _mappings(index)
    bodies = {}
    for name, held in mappings.items():
        mapping = held.get("mappings") or {}
        _refuse_other_use(name, mapping, context.prefix)
        recorded = read_settings(mapping, prefix=context.prefix)
        wanted = scheme or context.wanted
        if recorded is not None and wanted is not None and not replace(context, wanted=wanted).accepts(recorded.scheme):
            raise MappingError(
                f"index {name!r} records scheme {recorded.scheme} for prefix {context.prefix!r}, not {wanted}: "
                "backfill the new scheme under a second prefix"
            )
        given = build_settings(
            scheme=recorded.scheme if recorded else wanted or DEFAULT_SCHEME,
            text_field=text_field or (recorded.text_fields if recorded else ()),
            max_distance=recorded.max_distance if recorded and max_distance is None else max_distance,
            value=recorded.value if recorded and value is None else value is not False,
        )
        settings = replace(given, extra=recorded.extra) if recorded else given
        meta = merge_meta(mapping.get("_meta"), settings, prefix=context.prefix)
        bodies[name] = mapping_of(settings, prefix=context.prefix) | {"_meta": meta}
    for name, body in bodies.items():
        yield Call("put_mapping", {"index": name, "body": body})
    context.forget()
    return sorted(mappings)


def _refuse_other_use(name: str, mapping: Mapping[str, Any], prefix: str) -> None:
    if prefix not in (mapping.get("properties") or {}):
        return
    faults = [fault for fault in find_faults(mapping, prefix=prefix) if "is not mapped" not in fault]
    if faults:
        raise MappingError(
            f"index {name!r}: {faults[0]}: a field's type cannot be changed; use another prefix, or a new index",
            problems=tuple(faults),
        )


def _mappings(index: Index) -> Flow[dict[str, Any]]:
    mappings = yield Call("get_mapping", {"index": check_index(index)})
    if not mappings:
        raise InvalidInputError(f"no index matches {shorten(index)}: check the name")
    return dict(sorted(mappings.items()))


def check(context: Context, index: Index) -> Flow[list[IndexCheck]]:
    """
    Return what keeps, or does not keep, lookups in each of the indices from working; reads only.
    """
    mappings = yield from _mappings(index)
    checks = []
    for name, held in mappings.items():
        checks.append((yield from _check_one(context, name, held.get("mappings") or {})))
    return checks


def _check_one(context: Context, name: str, mapping: Mapping[str, Any]) -> Flow[IndexCheck]:
    problems = [
        f"{fault}: add it with put_mapping, and backfill the documents that are there"
        if "is not mapped" in fault
        else f"{fault}: create the index anew, or use another prefix"
        for fault in find_faults(mapping, prefix=context.prefix)
    ]
    settings: IndexSettings | None = None
    try:
        settings = read_settings(mapping, prefix=context.prefix)
    except SimHashError as error:
        problems.append(str(error))
    if settings is None and not problems:
        problems.append("the mapping records no scheme: add it with put_mapping")
    if settings is not None and not context.accepts(settings.scheme):
        problems.append(f"the index uses scheme {settings.scheme}, not {context.wanted}")
    ready = not problems
    documents = fingerprinted = 0
    try:
        documents = (yield Call("count", {"index": name}))["count"]
        body = {"query": {"exists": {"field": Fields(context.prefix).fingerprint}}}
        fingerprinted = (yield Call("count", {"index": name, "body": body}))["count"]
    except Exception as error:
        if status_of(error) != 400:
            raise
        ready = False
        problems.append("the index cannot be searched: open it" if "closed" in error_text(error) else str(error))
    else:
        if ready and fingerprinted < documents:
            problems.append(
                f"{documents - fingerprinted} of {documents} documents have no fingerprint and cannot be found: "
                "backfill them (texts without features stay without)"
            )
    return IndexCheck(
        name,
        ready,
        None if settings is None else str(settings.scheme),
        () if settings is None else settings.text_fields,
        None if settings is None else settings.max_distance,
        documents,
        fingerprinted,
        tuple(problems),
    )


@dataclass(frozen=True, slots=True)
class Removal:
    """
    What :func:`remove` did.

    Attributes:
        documents:
            Number of documents that no longer carry our fields.
        failures:
            One line for each document that could not be changed.
        indices:
            Names of the indices whose ``_meta`` no longer names the prefix; empty while there are failures.
    """

    documents: int
    failures: tuple[str, ...]
    indices: tuple[str, ...]


def remove(context: Context, index: Index) -> Flow[Removal]:
    """
    Take our fields out of every document, and our entry out of ``_meta``.

    A field once mapped stays in the mapping, empty: no product can take it out. Where scripts are not allowed,
    ``_source`` keeps the prefix with a null.

    Raises:
        IncompleteSearchError: If not every document could be looked at; ``_meta`` is then left as it is.
    """
    mappings = yield from _mappings(index)
    clearing = _Clearing(context.prefix)
    body = {"query": {"exists": {"field": context.prefix}}, "_source": False}
    names = list(mappings)
    yield Call("refresh", {"index": names})
    check_whole((yield from read_pages(names, body, clearing.clear, page=1_000)), "run remove again")
    if not clearing.failures:
        for name, held in mappings.items():
            meta = merge_meta((held.get("mappings") or {}).get("_meta"), None, prefix=context.prefix)
            yield Call("put_mapping", {"index": name, "body": {"_meta": meta}})
        context.forget()
    yield Call("refresh", {"index": names})
    return Removal(clearing.documents, tuple(clearing.failures), () if clearing.failures else tuple(names))


class _Clearing:
    """Takes one object out of documents, by a script where the server allows one."""

    def __init__(self, prefix: str) -> None:
        self.documents = 0
        self.failures: list[str] = []
        self._prefix = prefix
        self._script: dict[str, Any] | None = {
            "lang": "painless",
            "source": "ctx._source.remove(params.prefix)",
            "params": {"prefix": prefix},
        }

    def clear(self, hits: Hits) -> Flow[bool]:
        outcomes = yield from send_bulk([self._operation(hit) for hit in hits])
        refused = [hit for hit, outcome in zip(hits, outcomes, strict=True) if outcome.status == 400]
        if refused and self._script is not None:
            self._script = None
            outcomes = [each for each in outcomes if each.status != 400]
            outcomes += yield from send_bulk([self._operation(hit) for hit in refused])
        for outcome in outcomes:
            if outcome.is_done:
                self.documents += 1
            elif outcome.status != 404:  # deleted meanwhile: nothing left to clear
                self.failures.append(f"{outcome.index}/{outcome.id}: {outcome.error}")
        return False

    def _operation(self, hit: Mapping[str, Any]) -> Operation:
        header = {"_index": hit["_index"], "_id": hit["_id"], "retry_on_conflict": 5}
        if "_routing" in hit:
            header["routing"] = hit["_routing"]
        body = {"script": self._script} if self._script else {"doc": {self._prefix: None}}
        return Operation("update", header, body)
