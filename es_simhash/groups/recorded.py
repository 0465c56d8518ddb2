"""
Reads the grouping of an index from its mapping, and records it once, or another one in its place.

All writers of an index use the grouping that the first of them recorded. ``reconcile`` rewrites documents.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, Literal

from es_simhash.errors import InvalidInputError, MappingError, shorten
from es_simhash.groups.grouping_request import GroupingRequest, choose_grouping
from es_simhash.mapping.context import Resolved
from es_simhash.mapping.faults import Fault, find_group_faults, mapping_error
from es_simhash.mapping.meta import REGROUPING_KEY, IndexSettings, read_settings
from es_simhash.mapping.port import Port
from es_simhash.mapping.resolve import agree, narrowed, resolve_index
from es_simhash.mapping.rule import Grouping
from es_simhash.mapping.user_fields import Way, countable_field, is_off, walk_fields
from es_simhash.transport.conversation import unless_refused
from es_simhash.transport.protocol import Index
from es_simhash.writes.targets import write_settings

logger = logging.getLogger("es_simhash.grouping")
"""Says, at level INFO, which grouping an operation recorded: it decides from then on."""


FieldKind = Literal["date", "number", "keyword"]
_NUMBERS = ("long", "integer", "short", "byte", "unsigned_long", "double", "float", "half_float", "scaled_float")

_KINDS: dict[str, FieldKind] = {
    "date": "date",
    "date_nanos": "date",
    "keyword": "keyword",
    **dict.fromkeys(_NUMBERS, "number"),
}


async def settle_grouping(
    server: Port,
    resolved: Resolved,
    request: GroupingRequest,
    *,
    record: bool = True,
    may_differ: bool = False,
    regroup: bool = False,
) -> Grouping:
    """
    Return the grouping of the *resolved* indices; the first time, record it in their ``_meta``.
    Where the mappings may not be read, the request is used unchecked, and nothing is recorded. *may_differ*, only for
    operations that write nothing: the request may differ from the record. *regroup*: it replaces the record.
    """
    settings = agree(resolved, server.context)
    refuse_group_faults(resolved, server.prefix)
    has_texts = bool(resolved.settings_of) and all(one.text_fields for one in resolved.settings_of.values())
    bases = _find_bases(resolved.settings_of, settings)
    grouping, *others = {
        choose_grouping(base, request, prefix=server.prefix, has_texts=has_texts, may_differ=may_differ or regroup)
        for base in bases
    }
    if others:
        raise _different(resolved.settings_of)
    field_kinds(resolved, grouping)
    if record:
        await record_grouping(server, resolved, grouping, regroup=regroup)
    return grouping


def refuse_group_faults(resolved: Resolved, prefix: str, *, grouped_only: bool = False) -> None:
    """Raise MappingError if an index, or one that is grouped, lacks a field of groups, or this login may not see it."""
    for name, own in resolved.settings_of.items():
        if grouped_only and not own.is_grouped:
            continue
        if faults := find_group_faults(resolved.mappings[name], prefix=prefix):
            raise mapping_error(name, faults)


async def record_grouping(server: Port, resolved: Resolved, grouping: Grouping, *, regroup: bool = False) -> None:
    """
    Record *grouping* in each of the *resolved* indices that does not record it.
    Its mapping is read again first. Another program may have recorded a rule meanwhile: only *regroup* replaces that.
    """
    for name, one in resolved.settings_of.items():
        if Grouping.read(one) == grouping or not _has_record(resolved.mappings[name], server.prefix):
            continue
        now = await resolve_index(server, name)
        own = now.settings_of.get(name)
        if not regroup:
            _compare(now, grouping)
        if own is None or Grouping.read(own) == grouping:
            continue
        begun = {REGROUPING_KEY: True} if own.is_grouped else {}
        settings = replace(own, extra=grouping.put(own.extra) | begun)
        try:
            await write_settings(server, name, now.mappings[name], settings)
        except Exception as error:
            error.add_note("The grouping is recorded in the mapping once: let a user who may change mappings begin.")
            raise
        missed = grouping.misses
        what = f"index {name!r} records its grouping now, for all that group or look something up: {grouping}"
        what += f"; {missed}" if missed else ""
        logger.info("%s; another one takes reconcile(index, regroup=True)", what)


def warn_of_regrouping(resolved: Resolved) -> None:
    """Log which of the *resolved* indices may still have groups of another rule, in the words of ``check``."""
    if names := [name for name, own in resolved.settings_of.items() if own.is_regrouping]:
        fault = Fault("regrouping")
        logging.getLogger("es_simhash").warning("%s: %s: %s", ", ".join(names), fault, fault.advice)


async def finish_regrouping(server: Port, index: Index, grouping: Grouping) -> None:
    """
    Note in the mappings of *index*, after all documents were looked at, that none has groups of another rule.
    Not in those of which *index* shows a part; and a login that may not write mappings leaves them as they are.
    """
    resolved, hidden = await resolve_index(server, index), await narrowed(server, index)
    for name, own in resolved.settings_of.items():
        if own.is_regrouping and name not in hidden and Grouping.read(own) == grouping:
            extra = {key: value for key, value in own.extra.items() if key != REGROUPING_KEY}
            done = write_settings(server, name, resolved.mappings[name], replace(own, extra=extra))
            await unless_refused(done, 401, 403)


def _has_record(mapping: Mapping[str, Any], prefix: str) -> bool:
    return read_settings(mapping, prefix=prefix) is not None


def _find_bases(settings_of: Mapping[str, IndexSettings], settings: IndexSettings) -> list[IndexSettings]:
    """Return *settings* with each of the groupings that grouped indices have, or will have."""
    found = [grouping for one in settings_of.values() if (grouping := Grouping.read(one)) is not None]
    return [replace(settings, extra=grouping.put(settings.extra)) for grouping in found] or [settings]


def _different(settings_of: Mapping[str, IndexSettings]) -> InvalidInputError:
    names: dict[Grouping | None, list[str]] = {}
    for name, own in settings_of.items():
        names.setdefault(Grouping.read(own), []).append(name)
    said = (f"{shorten(', '.join(some))}: {', '.join(rule.sentences())}" for rule, some in names.items() if rule)
    return InvalidInputError(
        f"the indices are grouped by different rules ({'; '.join(said)}): name one index, or group all of them by one "
        "rule: reconcile(index, regroup=True), and everything in which these differ"
    )


async def keep_recorded(
    server: Port, index: Index, grouping: Grouping, *, before: Resolved, record: bool = True
) -> None:
    """
    Raise if *index* records another grouping by what the client remembers; record it again where nothing is recorded.
    That happens if a program removes the record, or creates an index of *before* again. Otherwise, and unless it is to
    *record*, no request is sent.
    """
    known = server.context.known.recall(index)
    if known is None:
        return
    _compare(known[1], grouping)
    lacking = [name for name, one in known[1].settings_of.items() if name in before.settings_of and not one.is_grouped]
    if record and any(_has_record(before.mappings[name], server.prefix) for name in lacking):
        await record_grouping(server, await resolve_index(server, index), grouping)


async def check_recorded(server: Port, index: Index, grouping: Grouping, *, before: Resolved) -> None:
    """
    Raise if the mappings of *index* do not record *grouping* now. Costs one request.
    *before*: the indices as the run found them; :func:`settle_grouping` has recorded the grouping in them since.
    """
    resolved = await resolve_index(server, index)
    _compare(resolved, grouping)
    for name in before.settings_of.keys() & resolved.mappings.keys():
        settings = resolved.settings_of.get(name)
        if _has_record(before.mappings[name], server.prefix) and (settings is None or not settings.is_grouped):
            raise MappingError(f"the grouping of index {name!r} was removed meanwhile: start again")


def _compare(resolved: Resolved, grouping: Grouping) -> None:
    for name, settings in resolved.settings_of.items():
        recorded = Grouping.read(settings)
        if recorded is not None and recorded != grouping:
            raise MappingError(f"the grouping of index {name!r} was changed to {recorded} meanwhile: start again")


def field_kinds(resolved: Resolved, grouping: Grouping) -> dict[str, FieldKind]:
    """Return the kind of each field that *grouping* reads; raise if it is mapped wrongly or differently."""
    kinds: dict[str, FieldKind] = {}
    for field, allowed, use in _uses(grouping):
        found = {name: _field_kind(name, resolved.mappings[name], field, allowed, use) for name in resolved.settings_of}
        if len(set(found.values())) > 1:
            raise MappingError(f"field {field!r} is not of one kind in all indices: {found}")
        if found:
            kinds[field] = next(iter(found.values()))
    return kinds


def _uses(grouping: Grouping) -> Iterator[tuple[str, tuple[FieldKind, ...], str]]:
    """Yield each field that *grouping* reads, what it may be, and what it decides."""
    for key in grouping.order_keys:
        if key.kind == "preference":
            yield key.field, ("keyword",), "be preferred by its values"
        elif key.kind == "field":
            yield key.field, ("date", "number"), "decide which document is canonical"
    if grouping.per is not None:
        yield grouping.per, ("keyword",), "keep documents apart (per)"
    if grouping.within is not None:
        yield grouping.within.field, ("date",), "limit how far documents are apart (within)"


def _field_kind(
    name: str, mapping: Mapping[str, Any], field: str, allowed: tuple[FieldKind, ...], use: str
) -> FieldKind:
    node = find_field(mapping, field)
    found = node.get("type")
    kind = _KINDS.get(found) if isinstance(found, str) else None
    if kind is None or kind not in allowed or not _is_plain(node):
        shown = f"{found!r} with a normalizer or null_value, or without doc values" if kind in allowed else f"{found!r}"
        state = "is not mapped" if not node else f"is mapped as {shown}"
        below = countable_field(field, mapping) if "keyword" in allowed else field
        named = [below] if below != field else _find_dates(mapping) if "date" in allowed else []
        advice = f": name {' or '.join(map(repr, named))}" if named else ""
        advice = advice or (", and the index has no date field" if "date" in allowed else "")
        raise MappingError(
            f"field {field!r} of index {name!r} {state}: only a {' or a '.join(allowed)} can {use}{advice}"
        )
    return kind


def _find_dates(mapping: Mapping[str, Any]) -> list[str]:
    """Return up to three date fields that are not ours, to name to the user."""
    dates = (
        name for name, _ in walk_fields(mapping) if find_field(mapping, name).get("type") in ("date", "date_nanos")
    )
    return list(islice((name for name in dates if not find_field(mapping, f"{name.rpartition('.')[0]}.block0")), 3))


def _is_plain(node: Mapping[str, Any]) -> bool:
    """Return whether a search can show the values of the field, those of a keyword as they stand in the document."""
    is_changed = node.get("type") == "keyword" and (node.get("normalizer") or node.get("null_value") is not None)
    return not is_changed and not is_off(node, "doc_values")


def find_field(mapping: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    """
    Return how *mapping* maps *field*, a path that may end with a multi-field; empty where it does not.
    If the field is below a nested object or one that is not enabled, no search of documents reaches it, and the mapping
    of that object is returned.
    """
    way = Way.to(mapping, field)
    for node in way.above:
        if is_off(node, "enabled"):
            return {"type": "object", "enabled": False}
        if node.get("type") == "nested":
            return node
    return way.node
