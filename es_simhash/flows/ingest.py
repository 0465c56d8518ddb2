"""
Documents into an index, with their fingerprints, and a report on each.

The fields are put in by ``index.actions``, sending and trying again is ``bulk``'s; here they meet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_simhash.errors import InvalidInputError, shorten
from es_simhash.flows.bulk import Operation, Outcome, send_bulk, to_operation
from es_simhash.flows.context import Context, read_index_settings
from es_simhash.flows.protocol import Compute, Emit, Flow
from es_simhash.index.actions import OnPartial, with_fingerprints
from es_simhash.index.mapping import IndexSettings

__all__ = ["Written", "ingest", "text_fields_of"]

CHUNK_DOCUMENTS = 500
CHUNK_CHARACTERS = 4_000_000


@dataclass(frozen=True, slots=True)
class Written:
    """
    What became of one document.

    Attributes:
        position:
            Its place among the documents given, from 0.
        id:
            Its ``_id``; given by the server where the document had none.
        index:
            Name of the index that holds it.
        action:
            ``"written"`` or ``"refused"``.
        reason:
            Why it was refused, or was written without a fingerprint it should have; else ``None``.
        fingerprinted:
            Whether it was sent with a fingerprint: a document without text, or without features, is not.
    """

    position: int
    id: str | None
    index: str | None
    action: str
    reason: str | None = None
    fingerprinted: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON values."""
        return {
            "position": self.position,
            "id": self.id,
            "index": self.index,
            "action": self.action,
            "reason": self.reason,
            "fingerprinted": self.fingerprinted,
        }


def text_fields_of(settings: IndexSettings, given: str | Sequence[str] | None) -> str | Sequence[str]:
    """
    Return the text fields *given*, else those that the index records.

    Raises:
        InvalidInputError: If neither names any, or they differ.
    """
    if given:
        names = (given,) if isinstance(given, str) else tuple(given)
        if settings.text_fields and names != settings.text_fields:
            raise InvalidInputError(
                f"text_field {shorten(given)} differs from the index's {list(settings.text_fields)}: fingerprints of "
                "different fields cannot be compared; leave text_field out, or use another prefix"
            )
        return given
    if not settings.text_fields:
        raise InvalidInputError("the index does not record which field holds the text: pass text_field=")
    return settings.text_fields


def ingest(
    context: Context,
    index: str,
    documents: Iterable[Any],
    text_field: str | Sequence[str] | None,
    on_partial: OnPartial,
) -> Flow[None]:
    """
    Write *documents* to *index* with their fingerprints; emit a :class:`Written` for each, in order.
    """
    settings = yield from read_index_settings(context, index)
    problems: dict[int, str] = {}
    actions = with_fingerprints(
        documents,
        text_field=text_fields_of(settings, text_field),
        scheme=settings.scheme,
        prefix=context.prefix,
        value=settings.value,
        on_partial=on_partial,
        on_problem=lambda problem: problems.update({problem.position: problem.reason}),
    )
    position = 0
    while True:
        chunk, failure = yield Compute(_take, (actions,))
        operations = [_operation(action, index) for action in chunk]
        sent = iter((yield from send_bulk([each for each in operations if isinstance(each, Operation)])))
        for operation in operations:
            outcome = next(sent) if isinstance(operation, Operation) else operation
            has_fingerprint = isinstance(operation, Operation) and _has_fingerprint(operation, context.prefix)
            yield Emit(_report(position, outcome, problems.pop(position, None), has_fingerprint))
            position += 1
        if failure is not None:
            raise failure
        if not chunk:
            return


def _take(actions: Iterator[Any]) -> tuple[list[Any], Exception | None]:
    """Take what goes into one bulk request; a source that breaks is told after what it gave before."""
    chunk: list[Any] = []
    characters = 0
    try:
        for action in actions:
            chunk.append(action)
            characters += weigh(action)
            if len(chunk) >= CHUNK_DOCUMENTS or characters >= CHUNK_CHARACTERS:
                break
    except Exception as error:  # noqa: BLE001 -- raised by the flow, once the chunk is written
        return chunk, error
    return chunk, None


def weigh(value: Any) -> int:
    """
    Return roughly how many characters *value* takes in a request.
    """
    if isinstance(value, str):
        return len(value) + 2
    if isinstance(value, Mapping):
        return sum(len(key) + 3 + weigh(each) for key, each in value.items())
    if isinstance(value, (list, tuple)):
        return sum(map(weigh, value))
    return 8


def _operation(action: Any, index: str) -> Operation | Outcome:
    try:
        return to_operation(action, index)
    except InvalidInputError as error:
        return Outcome(None, index, 400, str(error))


def _has_fingerprint(operation: Operation, prefix: str) -> bool:
    body = operation.body
    if operation.kind == "update" and isinstance(body, Mapping):
        body = body.get("doc")
    held = body.get(prefix) if isinstance(body, Mapping) else None
    return isinstance(held, Mapping) and "fingerprint" in held


def _report(position: int, outcome: Outcome, problem: str | None, has_fingerprint: bool) -> Written:  # noqa: FBT001
    action = "written" if outcome.is_done else "refused"
    return Written(position, outcome.id, outcome.index, action, outcome.error or problem, has_fingerprint)
