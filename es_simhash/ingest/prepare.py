"""
Has the caller's function prepare the documents that will be written, such as by an embedding, after the decision.

What decided may not change. A document that the function fails for is refused, as if by the server: ``settle`` decides
its duplicates again.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from inspect import isawaitable, iscoroutinefunction
from typing import Any, TypeAlias

from es_simhash.errors import InvalidInputError, WrongTypeError, shorten
from es_simhash.ingest.item import Item
from es_simhash.mapping.fields import dotted_names, read_values
from es_simhash.mapping.port import Port
from es_simhash.mapping.rule import Grouping
from es_simhash.mapping.user_fields import MappedField
from es_simhash.transport.raw_json import JsonObject, keep_text
from es_simhash.writes.operations import Operation, Outcome, Refusal

Prepare: TypeAlias = Callable[[list[dict[str, Any]]], Any]

_REFUSED, _CUT = 400, 300


def without_waiting(function: Prepare | None) -> Prepare | None:
    """Return *function* as a blocking client calls it; raise WrongTypeError now, or later, if it is to be awaited."""
    if function is None:
        return None
    if iscoroutinefunction(function) or iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
        raise WrongTypeError("prepare is a coroutine function: give a plain one, or use AsyncSimHashClient")

    def call(documents: list[dict[str, Any]]) -> Any:
        made = function(documents)
        if isawaitable(made):
            if isinstance(made, Coroutine):
                made.close()  # else Python warns that nobody awaited it
            raise WrongTypeError("it returned what is to be awaited: return the documents, or use AsyncSimHashClient")
        return made

    return call


@dataclass(frozen=True, slots=True)
class Preparer:
    """Calls *function* with documents, whose *fields* decided about them, and which have fields of ours at *prefix*."""

    function: Prepare
    fields: tuple[str, ...]
    prefix: str

    @classmethod
    def make(
        cls,
        function: Prepare | None,
        prefix: str,
        text_fields: Sequence[str],
        grouping: Grouping | None,
        mappings: Iterable[Mapping[str, Any]],
    ) -> Preparer | None:
        """Return what calls *function*, if there is one; the fields of *grouping* are found in *mappings*."""
        if function is None:
            return None
        within = grouping.within if grouping else None
        named = [grouping.per, within and within.field, *(key.field for key in grouping.order_keys)] if grouping else []
        named += grouping.key if grouping else ()
        paths = (MappedField.find(each, str(field)).path for field in named if field for each in mappings)
        ours = (prefix, *dotted_names(prefix))
        return cls(function, tuple(dict.fromkeys((*text_fields, *paths, *ours))), prefix)

    async def run(self, server: Port, items: Iterable[Item]) -> None:
        """Put what the function makes of those of *items* that will be written whole into them, or refuse them."""
        wanted = [(each, each.operation) for each in items if each.is_sent and each.operation]
        wanted = [(item, operation) for item, operation in wanted if operation.kind in ("index", "create")]
        copies = await server.compute(lambda: [_copy(operation) for _, operation in wanted])
        for (item, operation), copied in zip(wanted, copies, strict=True):
            if isinstance(copied, str):
                item.outcome = _refusal(operation, copied)
        wanted = [each for each in wanted if each[0].outcome is None]
        given = [each for each in copies if not isinstance(each, str)]
        if not wanted:
            return
        try:
            made = await server.compute(self.function, given)
            made = await made if isawaitable(made) else made
            if made is None:
                raise WrongTypeError("it returned None: return the documents")
            made = list(made)
            if len(made) != len(wanted):
                raise InvalidInputError(f"{len(made)} documents returned for {len(wanted)}")
        except Exception as error:  # noqa: BLE001 -- it is the caller's function, and each report says what it raised
            reason = f"prepare failed ({_said(error)})"
            for item, operation in wanted:
                item.outcome = _refusal(operation, reason)
            return
        for (item, operation), one in zip(wanted, made, strict=True):
            if wrong := self._wrong(operation, one):
                item.outcome = _refusal(operation, wrong)
            else:
                operation.body = _changed(operation.body, one)

    def _wrong(self, operation: Operation, made: Any) -> str:
        """Return why *made* cannot stand for the document of *operation*; empty if it can."""
        id_, before = operation.header.get("_id"), operation.body
        if not isinstance(made, Mapping):
            return f"prepare returned {shorten(made)}, which is no document: return a dict"
        if (other := made.get("_id", id_)) != id_:
            return f"prepare changed the id {shorten(id_)} to {shorten(other)}: leave it as it is"
        changed = (name for name in self.fields if repr(read_values(made, name)) != repr(read_values(before, name)))
        name = next(changed, None)
        return "" if name is None else f"prepare changed the field {name!r}, by which it was decided: leave it as it is"


def _changed(body: Mapping[str, Any], made: Mapping[str, Any]) -> dict[str, Any]:
    """Return *made* as the document that was *body*; numbers keep their digits in what is the very same object."""
    values = {name: value for name, value in made.items() if name != "_id"}
    if isinstance(body, JsonObject):
        values |= {name: body[name] for name in values.keys() & body.keys() if repr(values[name]) == repr(body[name])}
    return keep_text(body, values)


def _copy(operation: Operation) -> dict[str, Any] | str:
    """Return the document of *operation*, so that the caller's stays as it is; or why it cannot be copied."""
    id_ = operation.header.get("_id")
    try:
        return {**({} if id_ is None else {"_id": id_}), **deepcopy({**operation.body})}
    except Exception as error:  # noqa: BLE001 -- values of the caller say themselves how they are copied
        return f"a value in it cannot be copied for prepare ({_said(error)})"


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:_CUT]}"


def _refusal(operation: Operation, reason: str) -> Outcome:
    header = operation.header
    return Outcome(header.get("_id"), header.get("_index"), _REFUSED, Refusal(_REFUSED, reason=reason))
