"""
Which concrete index an ingest writes to, and whether that index maps our fields.

An index that a rollover made may lack them. The server would then map them dynamically, as text, and from then on no
lookup through the alias would work. Documents are not written here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from es_simhash.errors import MappingError
from es_simhash.flows.context import Context, Resolved, agree, resolve_index
from es_simhash.flows.protocol import Call, Flow, status_of
from es_simhash.index.mapping import mapping_of
from es_simhash.index.meta import IndexSettings, merge_meta

__all__ = ["WriteTarget", "check_indices", "find_write_target"]

_BACKING = ".ds-"


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """
    Where an ingest writes.

    Attributes:
        resolved:
            The concrete indices behind the name, all of them with our fields where they are written to.
        settings:
            Settings of the index that is written to.
    """

    resolved: Resolved
    settings: IndexSettings

    def accepts(self, index: str) -> bool:
        """Return whether a document may name *index* itself: one behind the name, with our fields."""
        return self.resolved.assumed is not None or index in self.resolved.each


def find_write_target(context: Context, index: str) -> Flow[WriteTarget]:
    """
    Return where a write to *index* goes; add our fields to that index where it lacks them and its neighbours have them.

    Cost: one request (get mapping); for an alias one more.

    Raises:
        SchemeMismatchError: As :func:`~es_simhash.flows.context.agree`.
        MappingError: If no index has our fields, or they cannot be added to the one that is written to.
    """
    resolved = yield from resolve_index(context, index)
    agreed = agree(resolved, context)
    if index in resolved.mappings or not resolved.mappings:
        return WriteTarget(resolved, agreed)
    name = yield from _write_index(index, resolved)
    if name is None:
        return WriteTarget(resolved, agreed)
    if name not in resolved.each:
        resolved = yield from _add_fields(context, index, name, resolved, agreed)
        agreed = agree(resolved, context)
    own = resolved.each[name]
    return WriteTarget(resolved, replace(agreed, text_fields=own.text_fields or agreed.text_fields, value=own.value))


def _write_index(index: str, resolved: Resolved) -> Flow[str | None]:
    """Return the concrete index that a write to the alias or data stream *index* goes to; ``None`` if unknown."""
    if all(name.startswith(_BACKING) for name in resolved.mappings):
        # The last generation; names differ before it by date and product.
        return max(resolved.mappings, key=lambda name: name.rsplit("-", 1)[-1])
    try:
        answer: Mapping[str, Mapping[str, Mapping[str, Mapping[str, bool]]]] = yield Call("get_alias", {"index": index})
    except Exception as error:
        if status_of(error) not in (401, 403):
            raise
        return next(iter(resolved.mappings)) if len(resolved.mappings) == 1 else None
    aliases = {name: each["aliases"].get(index) for name, each in answer.items()}
    named = {name: alias for name, alias in aliases.items() if alias is not None}
    chosen = [name for name, alias in named.items() if alias.get("is_write_index")]
    if chosen:
        return chosen[0]
    return next(iter(named)) if len(named) == 1 else None


def _add_fields(context: Context, alias: str, name: str, resolved: Resolved, agreed: IndexSettings) -> Flow[Resolved]:
    """Add our fields to the index *name*, as the indices beside it have them."""
    meta = merge_meta(resolved.mappings[name].get("_meta"), agreed, prefix=context.prefix)
    try:
        yield Call("put_mapping", {"index": name, "body": mapping_of(agreed, prefix=context.prefix) | {"_meta": meta}})
    except Exception as error:
        if status_of(error) not in (400, 401, 403):
            raise
        raise _unmapped(alias, [name], context.prefix) from error
    context.forget()
    return (yield from resolve_index(context, alias))


def check_indices(context: Context, index: str, resolved: Resolved, written: set[str]) -> Flow[Resolved]:
    """
    Return the indices behind *index*, after a batch went to the concrete indices *written*.

    Raises:
        MappingError: If one of them, made by a rollover meanwhile, does not map our fields as it must.
    """
    if resolved.assumed is not None or written <= resolved.mappings.keys():
        return resolved
    now = yield from resolve_index(context, index)
    faulty = {fault.index for fault in now.faults} | set(now.unmapped)
    if wrong := sorted(written & faulty):
        raise _unmapped(index, wrong, context.prefix)
    return now


def _unmapped(alias: str, names: list[str], prefix: str) -> MappingError:
    return MappingError(
        f"index {names[0]!r} behind {alias!r} does not map {prefix!r}: add the component template of "
        f"build_component_template to the index template that makes such indices, and index {names[0]!r} anew",
        problems=tuple(f"index {name!r} does not map {prefix!r}" for name in names),
    )
