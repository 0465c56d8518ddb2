"""
Changes documents that others may change too: read, change, write only if nobody was faster, else repeat.

Every write here carries ``if_seq_no`` and ``if_primary_term`` and goes to the index that holds the document, so it
also works behind aliases and data streams. The caller decides what to change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_simhash.flows.protocol import Call, Flow
from es_simhash.flows.transfer.bulk import send_bulk
from es_simhash.flows.transfer.retry import Patience, ask
from es_simhash.index.operations import Operation, Outcome, Refusal

__all__ = ["Change", "Place", "place_of", "rewrite"]

CONFLICT = 409
MISSING = 404
UNREADABLE = 503
_NO_INDEX = "index_not_found_exception"
# Others who change the same document are soon done.
_CONFLICT_WAIT_SECONDS = 0.05
_ATTEMPTS = 8


@dataclass(frozen=True, slots=True)
class Place:
    """
    Where a document is.

    Attributes:
        index:
            Name of the index that holds it, never an alias.
        id:
            Its ``_id``.
        routing:
            Its routing value, where it has one.
    """

    index: str
    id: str
    routing: str | None = None

    def header(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """Return the metadata of an operation that is carried out only on the version *found*."""
        header: dict[str, Any] = {"_index": self.index, "_id": self.id}
        # The routing value that the document has now: Elasticsearch keeps the one that an update names.
        if (routing := found.get("_routing")) is not None:
            header["routing"] = routing
        return header | {"if_seq_no": found["_seq_no"], "if_primary_term": found["_primary_term"]}


# From a document as it is now (the item of a multi-get) to ("update" or "delete", its body), or None to leave it.
Change = Callable[[Place, Mapping[str, Any]], tuple[str, Any] | None]


def place_of(hit: Mapping[str, Any]) -> Place:
    """
    Return where the document of a search's *hit* is.
    """
    return Place(hit["_index"], hit["_id"], hit.get("_routing"))


def rewrite(
    places: Sequence[Place],
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
            if refusal is not None and refusal.type != _NO_INDEX:
                # A full queue or a shard without a copy says nothing of the document.
                outcomes[i] = Outcome(place.id, place.index, UNREADABLE, refusal)
                unread.append(i)
            elif not item.get("found"):
                gone = Refusal(MISSING, reason="there is no such document")
                outcomes[i] = Outcome(place.id, place.index, MISSING, gone)
            elif (decided := change(place, item)) is not None:
                operations[i] = Operation(decided[0], place.header(item), decided[1])
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


def _read(places: Sequence[Place], *, source: bool | Sequence[str]) -> Flow[list[Mapping[str, Any]]]:
    if not places:
        return []
    wanted = source if isinstance(source, bool) else list(source)
    docs = [
        {"_index": each.index, "_id": each.id, "_source": wanted}
        | ({} if each.routing is None else {"routing": each.routing})
        for each in places
    ]
    answer = yield from ask(Call("mget", {"body": {"docs": docs}}))
    items: list[Mapping[str, Any]] = answer["docs"]
    return items
