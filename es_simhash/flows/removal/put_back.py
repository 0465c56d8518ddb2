"""
Writes archived documents back, each only if there is none of its id: nothing is overwritten.

The text of ``_source`` is sent as it was archived. A backing index of a data stream takes no new documents; they go
to its stream. Which documents come back is decided elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from es_simhash.flows.protocol import Call, Flow, status_of
from es_simhash.flows.transfer.bulk import send_bulk
from es_simhash.flows.transfer.retry import Patience, is_passing
from es_simhash.index.keys import Key
from es_simhash.index.operations import Operation, Outcome
from es_simhash.removal.records import Archived

__all__ = ["put_back"]

# What both products say where a document is to be created in a backing index.
_BACKING = "targeting backing indices is disallowed"

_HALF = re.compile("[\ud800-\udfff]")


def put_back(documents: Sequence[Archived], *, indices: Mapping[str, str] | None = None) -> Flow[list[Outcome]]:
    """
    Create *documents*, and return the outcome of each; status 409 where there is one of its id.

    Args:
        documents:
            The documents.
        indices:
            The index to write to, by name of the index that held a document; by default the same.

    Raises:
        Exception: The client's own, if the server cannot be reached, or answers nothing, in all attempts.
    """
    targets = dict(indices or {})
    outcomes = yield from _create(documents, targets)
    refused = [n for n, each in enumerate(outcomes) if each.error is not None and _BACKING in str(each.error)]
    if refused:
        targets |= yield from _streams()
        again = yield from _create([documents[n] for n in refused], targets)
        for n, outcome in zip(refused, again, strict=True):
            outcomes[n] = outcome
    return outcomes


def _create(documents: Sequence[Archived], targets: Mapping[str, str]) -> Flow[list[Outcome]]:
    operations = [_operation(each, targets.get(each.index, each.index)) for each in documents]
    patience = Patience()
    while True:
        try:
            return (yield from send_bulk(operations))
        except Exception as error:
            # Perhaps only the answer was lost. A document that was created then is a conflict now.
            if patience.is_spent or (status_of(error) is not None and not is_passing(error)):
                raise
        yield patience.wait()


def _operation(archived: Archived, index: str) -> Operation:
    # A default pipeline has changed the document when it was first written.
    header = {**Key(index, archived.id, archived.routing).header(), "pipeline": "_none"}
    # Half a character is no UTF-8; inside a string of JSON its escape means the same.
    source = _HALF.sub(lambda match: f"\\u{ord(match[0]):04x}", archived.source)
    return Operation("create", header, source)


def _streams() -> Flow[dict[str, str]]:
    """Return the data stream of each backing index."""
    answer: dict[str, Any] = yield Call("get_data_stream", {"name": "*"})
    return {each["index_name"]: stream["name"] for stream in answer["data_streams"] for each in stream["indices"]}
