"""
Which concrete indices an ingest may write to, and the text fields of the one that it writes to.

An index without our fields, such as one made by a rollover meanwhile, is refused: the server maps them as text there,
and from then on no lookup through the alias works. Documents are not written here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from es_simhash.errors import MappingError
from es_simhash.mapping.context import Context, Resolved
from es_simhash.mapping.meta import IndexSettings
from es_simhash.mapping.resolve_flow import agree, resolve_index
from es_simhash.transport.protocol import Call, Flow, status_of
from es_simhash.writes.targets_flow import last_generation, prepare_targets, write_index

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
    Return where a write to *index* goes, after our fields were added where they can be.

    Cost: one request (get mapping), and those of
    :func:`~es_simhash.writes.targets_flow.prepare_targets`; one more for an alias over indices with different
    text fields.

    Raises:
        SchemeMismatchError: As :func:`~es_simhash.mapping.resolve_flow.agree`.
        MappingError: If no index has our fields, or a rollover would create one without them.
    """
    resolved = yield from resolve_index(context, index)
    resolved = yield from prepare_targets(context, index, resolved)
    settings = agree(resolved, context)
    if not settings.text_fields and len(resolved.each) > 1:
        own = resolved.each.get((yield from _write_index(index, resolved)))
        settings = settings if own is None else replace(settings, text_fields=own.text_fields)
    return WriteTarget(resolved, settings)


def _write_index(index: str, resolved: Resolved) -> Flow[str]:
    """Return the concrete index that a write to the alias or data stream *index* goes to; empty if unknown."""
    if all(name.startswith(_BACKING) for name in resolved.mappings):
        return last_generation(resolved.mappings)
    try:
        answer: Mapping[str, Any] = yield Call("get_alias", {"name": index})
    except Exception as error:
        if status_of(error) not in (401, 403, 404):
            raise
        return ""
    return write_index(answer, index) or ""


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
        f"build_component_template to the index template that makes such indices, and index {names[0]!r} again",
        problems=tuple(f"index {name!r} does not map {prefix!r}" for name in names),
    )
