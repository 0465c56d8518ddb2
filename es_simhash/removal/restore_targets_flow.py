"""
Where an archived document is written to: its index, or the data stream that the index is part of.

No server takes a new document for a backing index, only for its stream. No document is read or written here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from es_simhash.errors import InvalidInputError
from es_simhash.mapping.context import Context
from es_simhash.mapping.meta import IndexSettings
from es_simhash.mapping.resolve_flow import judge_mappings, no_index
from es_simhash.removal.results import RestoredKind
from es_simhash.transport.protocol import Call, Flow, status_of
from es_simhash.transport.retry_flow import ask
from es_simhash.writes.targets_flow import last_generation, write_index

VECTORS = ("dense_vector", "rank_vectors", "sparse_vector")


@dataclass(frozen=True, slots=True)
class Target:
    """
    Where documents are written to; *name* is a concrete index or a data stream.

    *settings*: ``None`` if the index has no fields of this package. *created*: ``None`` if not known. *vectors*:
    fields that the server keeps as vectors. *may_change*: a final pipeline may change what is written. *fault*:
    why nothing can be written there. *is_named*: the caller named it. *view*: the name by which its documents are
    grouped: the alias that the caller named, else the name of the index.
    """

    name: str
    settings: IndexSettings | None = None
    is_stream: bool = False
    created: datetime | None = None
    vectors: frozenset[str] = frozenset()
    may_change: bool = True
    fault: RestoredKind | None = None
    detail: str = ""
    is_named: bool = False
    view: str = ""

    def is_newer_than(self, moment: str) -> bool:
        """Return whether the index may have been created after *moment*."""
        try:
            return self.created is None or self.created >= datetime.fromisoformat(moment)
        except (TypeError, ValueError):
            return True


def find_target(context: Context, name: str, *, is_named: bool) -> Flow[Target]:
    """
    Return where documents for *name* are written to; costs up to three requests.

    *is_named*: the caller names it, not the archive: then it may be an alias or a data stream, and a missing
    index, or an alias without a write index, is an error and not a fault of the target.
    """
    try:
        answer = yield from ask(Call("get_mapping", {"index": name}))
    except Exception as error:
        if status_of(error) != 404 or is_named:
            raise
        return Target(name, fault="index_missing")
    if not answer:
        raise no_index(name)
    if name not in answer:
        if not is_named:
            return Target(name, fault="index_missing", detail=f"{name} is an alias or a data stream now")
        return (yield from _behind_name(context, name, answer))
    mapping = answer[name].get("mappings") or {}
    if "_data_stream_timestamp" in mapping:
        stream = yield from _stream_of(name)
        return (yield from _judge(context, stream or name, name, mapping, is_stream=stream is not None))
    return (yield from _judge(context, name, name, mapping))


def _judge(
    context: Context, name: str, index: str, mapping: Mapping[str, Any], *, is_stream: bool = False
) -> Flow[Target]:
    """Return the target *name*, whose documents go to the concrete *index*."""
    settings = judge_mappings({index: {"mappings": mapping}}, context).each.get(index)
    fault: RestoredKind | None = None if settings is not None else "unmapped"
    created, may_change = yield from _read_settings(name, index)
    vectors = frozenset(_find_vectors(mapping.get("properties") or {}, ""))
    return Target(name, settings, is_stream, created, vectors, may_change, fault, view=name)


def _behind_name(context: Context, name: str, answer: Mapping[str, Any]) -> Flow[Target]:
    """Return the target of an alias or data stream that the caller names."""
    mappings = {index: each.get("mappings") or {} for index, each in answer.items()}
    if all("_data_stream_timestamp" in mapping for mapping in mappings.values()):
        last = last_generation(mappings)
        return (yield from _judge(context, name, last, mappings[last], is_stream=True))
    index = (
        next(iter(mappings))
        if len(mappings) == 1
        else write_index((yield from ask(Call("get_alias", {"name": name}))), name)
    )
    if index not in mappings:
        found = ", ".join(sorted(mappings))
        raise InvalidInputError(
            f"{name!r} stands for several indices, none of which is its write index: name one of {found}"
        )
    return replace((yield from _judge(context, index, index, mappings[index])), view=name)


def _stream_of(index: str) -> Flow[str | None]:
    """Return the data stream that the backing *index* is a part of; ``None`` where it is part of none any more."""
    answer = yield from ask(Call("get_data_stream", {"name": "*"}))
    for stream in answer.get("data_streams") or ():
        if any(each.get("index_name") == index for each in stream.get("indices") or ()):
            return str(stream["name"])
    return None


def _find_vectors(properties: Mapping[str, Any], path: str) -> Iterator[str]:
    for name, node in properties.items():
        if node.get("type") in VECTORS:
            yield path + name
        yield from _find_vectors(node.get("properties") or {}, f"{path}{name}.")


def _read_settings(name: str, index: str) -> Flow[tuple[datetime | None, bool]]:
    """Return when *index* was created, and whether *name* has a final pipeline, as far as they may be read."""
    try:
        answer = yield from ask(
            Call("get_settings", {"index": name, "name": "index.creation_date,index.final_pipeline"})
        )
    except Exception as error:
        if status_of(error) not in (401, 403):
            raise
        return None, True
    found = {each: (held.get("settings") or {}).get("index") or {} for each, held in answer.items()}
    may_change = any(held.get("final_pipeline", "_none") != "_none" for held in found.values())
    try:
        created = datetime.fromtimestamp(int(found[index]["creation_date"]) / 1000).astimezone()
    except (KeyError, ValueError, OverflowError):
        return None, may_change
    return created, may_change
