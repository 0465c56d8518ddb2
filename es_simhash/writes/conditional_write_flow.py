"""
Changes documents that others may change too: read, change, write only if nobody was faster, else repeat.

Every write here carries ``if_seq_no`` and ``if_primary_term`` and goes to the index that holds the document, so it
also works behind aliases and data streams. The caller decides what to change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from es_simhash.transport.keys import Key, document_key
from es_simhash.transport.protocol import Call, Flow
from es_simhash.transport.retry_flow import Patience, ask
from es_simhash.writes.bulk_flow import send_bulk
from es_simhash.writes.operations import Operation, Outcome, Refusal

CONFLICT = 409
MISSING = 404
UNREADABLE = 503
NO_INDEX = "index_not_found_exception"
# Others who change the same document are soon done.
_CONFLICT_WAIT_SECONDS = 0.05
_ATTEMPTS = 8


# From a document as it is now (the item of a multi-get) to ("update" or "delete", its body), or None to leave it.
Change = Callable[[Key, Mapping[str, Any]], tuple[str, Any] | None]


def versioned_header(found: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return the metadata of an operation that is carried out only on the version *found* of a document.

    The routing value is the one that the document has now: Elasticsearch keeps the one that an update names.
    """
    return {**document_key(found).header(), "if_seq_no": found["_seq_no"], "if_primary_term": found["_primary_term"]}


def rewrite(
    places: Sequence[Key],
    change: Change,
    *,
    source: bool | Sequence[str],
    check: Callable[[], Flow[None]] | None = None,
) -> Flow[list[Outcome | None]]:
    """
    Read each document as it is now, and write what *change* makes of it, unless somebody else was faster.

    A document that was changed meanwhile, or that the server could not read, is read and judged again, up to 8 times.

    Args:
        places:
            The documents.
        change:
            Decides; called again for a document that was changed meanwhile.
        source:
            ``_source`` fields that *change* needs.
        check:
            Carried out after documents were read, and before what was made of them is sent.

    Returns:
        For each place the outcome of its write; ``None`` where nothing was to be done. A document that is gone has
        status 404, one that others kept changing 409, one that could not be read 503.
    """
    outcomes: list[Outcome | None] = [None] * len(places)
    waiting = list(range(len(places)))
    patience = Patience(_ATTEMPTS, _CONFLICT_WAIT_SECONDS)
    while waiting:
        found = yield from _read([places[i] for i in waiting], source=source)
        operations: dict[int, Operation] = {}
        unread: list[int] = []
        for i, item in zip(waiting, found, strict=True):
            outcomes[i] = None
            place = places[i]
            refusal = Refusal.read(UNREADABLE, item["error"]) if "error" in item else None
            if refusal is not None and refusal.type != NO_INDEX:
                # A full queue or a shard without a copy says nothing of the document.
                outcomes[i] = Outcome(place.id, place.index, UNREADABLE, refusal)
                unread.append(i)
            elif not item.get("found"):
                gone = Refusal(MISSING, reason="there is no such document")
                outcomes[i] = Outcome(place.id, place.index, MISSING, gone)
            elif (decided := change(place, item)) is not None:
                operations[i] = Operation(decided[0], versioned_header(item), decided[1])
        if operations and check is not None:
            yield from check()
        sent = yield from send_bulk(list(operations.values()))
        outcomes_now = dict(zip(operations, sent, strict=True))
        for i, outcome in outcomes_now.items():
            outcomes[i] = outcome
        waiting = unread + [i for i, outcome in outcomes_now.items() if outcome.status == CONFLICT]
        if patience.is_spent:
            break
        if waiting:
            yield patience.wait()
    return outcomes


def _read(places: Sequence[Key], *, source: bool | Sequence[str]) -> Flow[list[Mapping[str, Any]]]:
    if not places:
        return []
    wanted = source if isinstance(source, bool) else list(source)
    docs = [{**each.header(), "_source": wanted} for each in places]
    answer = yield from ask(Call("mget", {"body": {"docs": docs}}))
    items: list[Mapping[str, Any]] = answer["docs"]
    return items
