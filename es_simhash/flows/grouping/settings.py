"""
The grouping of an index: what its mapping records, and recording it once.

All writers of an index go by the rule that the first of them recorded. Nothing is grouped here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from es_simhash.errors import InvalidInputError, MappingError
from es_simhash.flows.context import Context, Index, read_index_settings
from es_simhash.flows.protocol import Call, Flow, status_of
from es_simhash.index.grouping.rule import Grouping, GroupingRequest, choose_grouping
from es_simhash.index.meta import IndexSettings, merge_meta, read_settings

__all__ = ["field_type", "settle_grouping"]

_DATES = ("date", "date_nanos")
_NUMBERS = ("long", "integer", "short", "byte", "double", "float", "half_float", "scaled_float", "unsigned_long")


def settle_grouping(context: Context, index: Index, request: GroupingRequest, *, record: bool = True) -> Flow[Grouping]:
    """
    Return the grouping of *index*; the first time, record it in ``_meta``.

    Who may not read mappings is believed, and records nothing.

    Raises:
        InvalidInputError: If the index, or one of several, is grouped otherwise than the caller wishes.
        MappingError: If the group fields, or the field that decides the order, are not mapped as they must be.
    """
    settings = yield from read_index_settings(context, index)
    try:
        answer = yield Call("get_mapping", {"index": index})
    except Exception as error:
        if status_of(error) not in (401, 403):
            raise
        return choose_grouping(settings, request)
    held: dict[str, IndexSettings] = {}
    for name, each in sorted(answer.items()):
        found = read_settings(each.get("mappings") or {}, prefix=context.prefix)
        if found is not None:
            held[name] = found
            _check_fields(name, each["mappings"], context.prefix)
    recorded = {name: grouping for name, each in held.items() if (grouping := Grouping.read(each)) is not None}
    if len(set(recorded.values())) > 1:
        raise InvalidInputError(f"indices {', '.join(recorded)} are grouped by different rules: name one of them")
    base = held[next(iter(recorded))] if recorded else settings
    grouping = choose_grouping(base, request)
    for name, each in answer.items():
        if name in held:
            field_type(name, each["mappings"], grouping)
    if record:
        for name, own in held.items():
            if name not in recorded:
                yield from _record(context, name, answer[name]["mappings"], replace(own, extra=grouping.put(own.extra)))
    return grouping


def _record(context: Context, name: str, mapping: Mapping[str, Any], settings: IndexSettings) -> Flow[None]:
    meta = merge_meta(mapping.get("_meta"), settings, prefix=context.prefix)
    try:
        yield Call("put_mapping", {"index": name, "body": {"_meta": meta}})
    except Exception as error:
        error.add_note("The grouping is recorded in the mapping once: let somebody who may change mappings begin.")
        raise
    context.forget()


def _check_fields(name: str, mapping: Mapping[str, Any], prefix: str) -> None:
    properties = ((mapping.get("properties") or {}).get(prefix) or {}).get("properties") or {}
    missing = [each for each in ("group", "duplicate_of", "distance", "at") if each not in properties]
    if missing:
        raise MappingError(
            f"index {name!r} does not map {prefix}.{missing[0]}: add it with put_mapping",
            problems=tuple(f"field {prefix}.{each} is not mapped" for each in missing),
        )


def field_type(name: str, mapping: Mapping[str, Any], grouping: Grouping) -> str | None:
    """
    Return ``"date"`` or ``"number"`` for the field that decides the canonical order; ``None`` where none does.

    Raises:
        MappingError: If the field is not mapped as a date or a number.
    """
    if grouping.field is None:
        return None
    node: Mapping[str, Any] = mapping
    for part in grouping.field.split("."):
        node = (node.get("properties") or {}).get(part) or {}
    found = node.get("type")
    if found not in _DATES + _NUMBERS:
        raise MappingError(
            f"field {grouping.field!r} of index {name!r} is mapped as {found!r}: only a date or a number can decide "
            "which document is canonical"
        )
    return "date" if found in _DATES else "number"
