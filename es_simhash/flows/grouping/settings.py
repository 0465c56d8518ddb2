"""
The grouping of an index: what its mapping records, and recording it once.

All writers of an index use the grouping that the first of them recorded. Nothing is grouped here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from es_simhash.errors import InvalidInputError, MappingError
from es_simhash.flows.context import Context, Resolved
from es_simhash.flows.protocol import Call, Flow
from es_simhash.flows.resolve import agree
from es_simhash.index.grouping.rule import Grouping, GroupingRequest, choose_grouping
from es_simhash.index.meta import IndexSettings, merge_meta, read_settings

__all__ = ["order_kind", "settle_grouping"]

_DATES = ("date", "date_nanos")
_NUMBERS = ("long", "integer", "short", "byte", "double", "float", "half_float", "scaled_float", "unsigned_long")


def settle_grouping(
    context: Context, resolved: Resolved, request: GroupingRequest, *, record: bool = True
) -> Flow[Grouping]:
    """
    Return the grouping of the *resolved* indices; the first time, record it in their ``_meta``.

    Where the mappings may not be read, the request is used unchecked, and nothing is recorded.

    Raises:
        InvalidInputError: If the index, or one of several, is grouped otherwise than *request* says.
        MappingError: If the group fields, or the field that decides the order, are not mapped as they must be.
    """
    settings = agree(resolved, context)
    for name in resolved.each:
        _check_fields(name, resolved.mappings[name], context.prefix)
    recorded = {name: grouping for name, own in resolved.each.items() if (grouping := Grouping.read(own)) is not None}
    if len(set(recorded.values())) > 1:
        raise InvalidInputError(f"indices {', '.join(recorded)} are grouped by different rules: name one of them")
    base = resolved.each[next(iter(recorded))] if recorded else settings
    grouping = choose_grouping(base, request)
    order_kind(resolved, grouping)
    if record:
        for name, own in resolved.each.items():
            if name not in recorded and read_settings(resolved.mappings[name], prefix=context.prefix) is not None:
                new = replace(own, extra=grouping.put(own.extra))
                yield from _record(context, name, resolved.mappings[name], new)
    return grouping


def _record(context: Context, name: str, mapping: Mapping[str, Any], settings: IndexSettings) -> Flow[None]:
    meta = merge_meta(mapping.get("_meta"), settings, prefix=context.prefix)
    try:
        yield Call("put_mapping", {"index": name, "body": {"_meta": meta}})
    except Exception as error:
        error.add_note("The grouping is recorded in the mapping once: let a user who may change mappings begin.")
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


def order_kind(resolved: Resolved, grouping: Grouping) -> str | None:
    """
    Return ``"date"`` or ``"number"`` for the field that decides the canonical order; ``None`` where none does.

    Raises:
        MappingError: If an index does not map the field as a date or a number, or two indices differ in that.
    """
    if grouping.field is None:
        return None
    kinds = {name: _field_kind(name, resolved.mappings[name], grouping.field) for name in resolved.each}
    if len(set(kinds.values())) > 1:
        raise MappingError(f"field {grouping.field!r} is a date in one index and a number in another: {kinds}")
    return next(iter(kinds.values()), None)


def _field_kind(name: str, mapping: Mapping[str, Any], field: str) -> str:
    node: Mapping[str, Any] = mapping
    for part in field.split("."):
        node = (node.get("properties") or {}).get(part) or {}
    found = node.get("type")
    if found not in _DATES + _NUMBERS:
        raise MappingError(
            f"field {field!r} of index {name!r} is mapped as {found!r}: only a date or a number can decide which "
            "document is canonical"
        )
    return "date" if found in _DATES else "number"
