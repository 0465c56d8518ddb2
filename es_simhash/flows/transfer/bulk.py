"""
Sending bulk requests so that nothing is lost: what is refused for load is sent again, the rest is reported.

Knows actions and statuses, not fingerprints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from es_simhash.errors import InvalidInputError, shorten
from es_simhash.flows.protocol import Call, Flow, error_text, status_of
from es_simhash.flows.transfer.retry import Patience, is_passing
from es_simhash.index.operations import Operation, Outcome, Refusal

__all__ = ["Operation", "Outcome", "bulk_call", "finish_bulk", "send_bulk", "to_operation"]

# Keys that belong to the action line of a bulk request, with and without the underscore of older spellings.
_METADATA = (
    "dynamic_templates",
    "if_primary_term",
    "if_seq_no",
    "list_executed_pipelines",
    "pipeline",
    "require_alias",
    "require_data_stream",
    "retry_on_conflict",
    "routing",
    "version",
    "version_type",
)
_TOO_LARGE = 413
# One operation that breaks a rule, such as an id of more than 512 bytes, has the whole request refused.
_INVALID = "action_request_validation_exception"


def to_operation(action: Any, index: str | None = None) -> Operation:
    """
    Return the operation that *action*, in the form the clients' bulk helpers take, stands for.

    Args:
        action:
            A plain document, or a dict with ``_op_type``, ``_index``, ``_id``, ``_source`` and so on.
        index:
            The index, where the action names none.

    Raises:
        InvalidInputError: If it is not such an action.
    """
    if not isinstance(action, Mapping):
        raise InvalidInputError(f"action {shorten(action)} is not a document: give a dict")
    rest = dict(action)
    kind = rest.pop("_op_type", "index")
    if kind not in ("index", "create", "update", "delete"):
        raise InvalidInputError(f"_op_type {shorten(kind)} is not known: give index, create, update or delete")
    plain = "_source" not in rest and kind in ("index", "create")
    header: dict[str, Any] = {} if index is None else {"_index": index}
    # In a plain document only the underscored names are metadata: `version` may be the user's own field.
    names = {"_id": "_id", "_index": "_index"} | {f"_{name}": name for name in _METADATA}
    for key, name in (names if plain else names | {name: name for name in _METADATA}).items():
        if key in rest:
            value = rest.pop(key)
            if value is not None:
                header[name] = value
    if kind == "delete":
        return Operation(kind, header)
    return Operation(kind, header, rest.get("_source", rest))


def bulk_call(operations: Sequence[Operation]) -> Call:
    """
    Return the request that carries *operations* out; its answer is for :func:`finish_bulk`.
    """
    return Call("bulk", {"body": [line for operation in operations for line in operation.lines()]})


def send_bulk(operations: Sequence[Operation]) -> Flow[list[Outcome]]:
    """
    Carry *operations* out and return their outcomes, in order.

    Operations that the server refuses for load (429, 502, 503, 504) are sent again with growing waits. A
    request that is too large (413), or that one operation breaks the rules for, is halved until that one is alone.
    Any other refusal is an outcome. A request that fails as a whole for another reason raises the client's own
    exception.
    """
    if not operations:
        return []
    try:
        answer = yield bulk_call(operations)
    except Exception as error:  # noqa: BLE001 -- judged by finish_bulk
        answer = error
    return (yield from finish_bulk(operations, answer))


def finish_bulk(operations: Sequence[Operation], answer: Any) -> Flow[list[Outcome]]:
    """
    Return the outcomes of *operations*, given the *answer* to their request, or the exception it failed with.

    As :func:`send_bulk`, for a request that went out beside others.
    """
    outcomes = yield from _judge(operations, answer)
    patience = Patience()
    while (
        waiting := [i for i, outcome in enumerate(outcomes) if is_passing(outcome.status)]
    ) and not patience.is_spent:
        yield patience.wait()
        for i, outcome in zip(waiting, (yield from _send_once([operations[i] for i in waiting])), strict=True):
            outcomes[i] = outcome
    return outcomes


def _send_once(operations: Sequence[Operation]) -> Flow[list[Outcome]]:
    try:
        answer = yield bulk_call(operations)
    except Exception as error:  # noqa: BLE001 -- judged below
        answer = error
    return (yield from _judge(operations, answer))


def _judge(operations: Sequence[Operation], answer: Any) -> Flow[list[Outcome]]:
    """Return what one answer says of each operation; a request refused for one of them is sent in halves."""
    if not isinstance(answer, BaseException):
        return [_outcome(item) for item in answer["items"]]
    status = status_of(answer)
    concerns_one = status == _TOO_LARGE or (status == 400 and _INVALID in error_text(answer))
    if concerns_one and len(operations) > 1:
        half = len(operations) // 2
        first = yield from _send_once(operations[:half])
        return first + (yield from _send_once(operations[half:]))
    if status is None or not (concerns_one or is_passing(status)):
        raise answer
    refusal = Refusal(status, reason=str(answer))
    return [Outcome(op.header.get("_id"), op.header.get("_index"), status, refusal) for op in operations]


def _outcome(item: Mapping[str, Any]) -> Outcome:
    [result] = item.values()
    status, id_, index = result.get("status", 0), result.get("_id"), result.get("_index")
    if "error" in result or status >= 400:
        return Outcome(id_, index, status, Refusal.read(status, result.get("error") or result.get("result", "failed")))
    if result.get("result") == "noop" and "_seq_no" not in result:  # an update that changes nothing has a _seq_no
        return Outcome(id_, index, status, Refusal(status, reason="an ingest pipeline dropped it"), is_dropped=True)
    version = (result["_seq_no"], result["_primary_term"]) if "_seq_no" in result else None
    return Outcome(id_, index, status, version=version)
