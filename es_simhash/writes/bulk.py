"""
Bulk requests and conditional writes: every operation gets an outcome, no older text replaces a newer one.

Operations that a busy server refuses are sent again; every other refusal is an outcome. Of our fields, only those
are read that tell a document of an earlier attempt from another one with its id. A conditional write carries
``if_seq_no`` and ``if_primary_term`` and goes to the concrete index, so it works behind aliases and data streams.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from es_simhash.mapping.fields import DEFAULT_PREFIX, GROUPED
from es_simhash.mapping.port import Port
from es_simhash.transport.conversation import attempt, halves, rounds, until
from es_simhash.transport.protocol import Call, Key, document_key, status_of
from es_simhash.transport.refusals import (
    CHANGED_MEANWHILE,
    SHARD_GONE,
    is_of_one,
    is_passing,
    is_unwritable,
    may_be_lost,
)
from es_simhash.writes.operations import Operation, Outcome, Refusal, new_id

logger = logging.getLogger("es_simhash")

MISSING, CONFLICT, UNREADABLE = 404, 409, 503
NO_INDEX = "index_not_found_exception"
# Refusals that may come after the server has done the work.
_UNSURE = frozenset({502, 503, 504})
Kinship: TypeAlias = Literal["ours", "same", "other"]
# From a document as it is now (the item of a multi-get) to ("update", its body), or None to leave it.
Change = Callable[[Key, Mapping[str, Any]], tuple[str, Any] | None]


def compare_created(sent: Any, found: Mapping[str, Any], *, prefix: str, is_unsure: bool) -> Kinship:
    """
    Say what a document is that was found when *sent* was to be created under its id.
    ``"ours"``: this operation created it; ``"same"``: it was there, and is equal apart from group fields; ``"other"``:
    it differs, or cannot be compared. The moment of grouping in a grouped document tells our document from an earlier
    one; without that moment, an equal document is ``"ours"`` only if *is_unsure*: an answer was lost.
    """
    try:
        plain = json.loads(json.dumps(sent))
    except (TypeError, ValueError, RecursionError):
        return "other"  # a client serialises such values in its own way
    if not isinstance(plain, dict):
        return "other"
    mine, theirs = _our_fields(plain, prefix), _our_fields(found, prefix)
    if "at" not in mine:
        return "other" if plain != dict(found) else "ours" if is_unsure else "same"
    # A pipeline may have changed the rest of a document that we wrote.
    if mine == theirs and (is_unsure or plain == dict(found)):
        return "ours"
    return "same" if _ungrouped(plain, prefix) == _ungrouped(found, prefix) else "other"


def _our_fields(document: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    held = document.get(prefix)
    return dict(held) if isinstance(held, Mapping) else {}


def _ungrouped(document: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    ours = {key: value for key, value in _our_fields(document, prefix).items() if key not in GROUPED}
    return {**document, prefix: ours}


class Bulk:
    """
    Operations that go out in one bulk request, and in more requests until each of them has its outcome.
    A document without an id gets one and is created, so sent again after a lost answer it is not written twice. One
    that could not be created because its id exists is read and compared: a lost attempt may have written it. Operations
    on one document keep their order: one that does not replace it waits for the outcomes of those before it, and what
    was refused for load is not sent again after a later operation replaced or deleted it. Without *repeats_scripts*, a
    script that the server may have run is not sent again (it may count twice), unless it has ``if_seq_no``, with which
    the server runs it once.
    """

    def __init__(
        self, operations: Sequence[Operation], *, prefix: str = DEFAULT_PREFIX, repeats_scripts: bool = True
    ) -> None:
        self._prefix = prefix
        self._repeats_scripts = repeats_scripts
        self.outcomes: list[Outcome | None] = [None] * len(operations)
        self._operations = list(operations)
        # What was asked for, where the id is ours, by position.
        self._asked: dict[int, Operation] = {}
        for place, operation in enumerate(operations):
            if operation.kind in ("index", "create") and operation.header.get("_id") is None:
                self._asked[place] = operation
                header = {**operation.header, "_id": new_id()}
                self._operations[place] = replace(operation, kind="create", header=header)
        self._waves = _waves(self._operations)
        # Positions to send again at once, those that the server may have carried out already, and those that are
        # therefore not sent again.
        self._changed: set[int] = set()
        self._unsure: set[int] = set()
        self._final: set[int] = set()
        self._is_plain = True  # until an outcome is more than that the operation was carried out

    def call(self) -> Call:
        """Return the first request; its answer, or the exception it failed with, is for :meth:`finish`."""
        return self._call(self._waves[0])

    async def finish(self, server: Port, answer: Any) -> list[Outcome]:
        """Return the outcome of each operation, given the *answer* to the first request."""
        given = [answer]
        for wave in self._waves:

            async def send(places: Sequence[int], wave: Sequence[int] = wave) -> Sequence[int]:
                if given:
                    await self._take(server, places, given.pop())
                else:
                    await self._send(server, places)
                while self._changed:
                    changed = self._waiting(wave)
                    self._changed.clear()
                    if changed:
                        await self._send(server, changed)
                return [] if self._is_plain else self._waiting(wave)

            await rounds(server, wave, send)
            if not self._is_plain:
                await self._recognise(server, wave)
        return [outcome for outcome in self.outcomes if outcome is not None]

    async def _recognise(self, server: Port, wave: Sequence[int]) -> None:
        """Correct the outcomes of documents that exist because an earlier attempt of ours created them."""
        taken: dict[int, Outcome] = {}
        for place in wave:
            operation, outcome = self._operations[place], self.outcomes[place]
            if outcome is None or outcome.status != CONFLICT or outcome.index is None or place in self._asked:
                continue
            # JSON as text is compared by its sender.
            if operation.kind == "create" and isinstance(operation.body, Mapping):
                taken[place] = outcome
        if not taken:
            return
        headers = {place: self._operations[place].header for place in taken}
        keys = [
            Key(outcome.index or "", headers[place]["_id"], headers[place].get("routing"))
            for place, outcome in taken.items()
        ]
        try:
            answer = await server.patient.mget(body={"docs": [key.header() for key in keys]})
        except Exception as error:  # noqa: BLE001 -- a writer without the right to read is told of the conflict
            logger.debug("documents that exist were not compared: %s", error)
            return
        for (place, outcome), item in zip(taken.items(), answer["docs"], strict=True):
            if not isinstance(item.get("_source"), Mapping):
                continue
            sent, is_unsure = self._operations[place].document(self._prefix), place in self._unsure
            kinship = compare_created(sent, item["_source"], prefix=self._prefix, is_unsure=is_unsure)
            if kinship == "ours":
                self.outcomes[place] = Outcome(outcome.id, outcome.index, 201, version=_version_of(item))
            elif kinship == "same":
                self.outcomes[place] = replace(outcome, is_same=True)

    def _call(self, places: Iterable[int]) -> Call:
        return Call(
            "bulk", {"body": [line for place in places for line in self._operations[place].lines(self._prefix)]}
        )

    async def _send(self, server: Port, places: Sequence[int]) -> None:
        await self._take(server, places, await attempt(server.send(self._call(places))))

    async def _take(self, server: Port, places: Sequence[int], answer: Any) -> None:
        """Note the outcome of each operation from one answer; send a request in halves if one operation spoils it."""

        async def send(half: Sequence[int]) -> Any:
            return await server.send(self._call(half))

        for part, came in await halves(server, places, answer, send=send, splits=is_of_one):
            if isinstance(came, BaseException):
                self._refuse(part, came)
                continue
            for place, item in zip(part, came["items"], strict=True):
                outcome = _outcome(item)
                if outcome.error is None and outcome.status not in _UNSURE:
                    self.outcomes[place] = outcome  # most operations, without detours
                else:
                    self._note(place, outcome)

    def _refuse(self, places: Sequence[int], error: BaseException) -> None:
        status = 400 if is_unwritable(error) else status_of(error)
        if status is None or not (is_of_one(error) or is_passing(error)):
            raise error
        reason = "a value in it cannot be written as JSON" if is_unwritable(error) else str(error)
        refusal = Refusal(status, reason=reason)
        for place in places:
            header = self._operations[place].header
            self._note(place, Outcome(header.get("_id"), header.get("_index"), status, refusal))

    def _note(self, place: int, outcome: Outcome) -> None:
        """Note an *outcome*, unless it only says that the operation was carried out before, or must be changed."""
        self._is_plain = False
        operation = self._operations[place]
        if outcome.status == CONFLICT and place in self._asked:
            if outcome.id == operation.header["_id"]:
                outcome = Outcome(outcome.id, outcome.index, 201)
            elif self._asked[place].kind == "index":  # a pipeline chose an id that is taken: replace that document
                self._operations[place] = replace(operation, kind="index")
                self._changed.add(place)
                del self._asked[place]
        elif outcome.status == MISSING and operation.kind == "delete" and place in self._unsure:
            outcome = Outcome(outcome.id, outcome.index, 200)
        if outcome.status in _UNSURE:
            self._unsure.add(place)
            if not self._repeats_scripts and _is_counted(operation):
                self._final.add(place)
                reason = f"the server may have run the script all the same, so it is not sent again: {outcome.error}"
                outcome = replace(outcome, error=Refusal(outcome.status, reason=reason), is_unsure=True)
        self.outcomes[place] = outcome

    def _waiting(self, wave: Sequence[int]) -> list[int]:
        """Return what to send again; an operation that a later one has made pointless takes its outcome from that."""
        waiting: list[int] = []
        later: dict[str, Outcome] = {}
        for place in reversed(wave):
            operation, outcome = self._operations[place], self.outcomes[place]
            if outcome is None:
                continue
            id_ = str(operation.header.get("_id"))
            if place in self._changed or (_is_passing(outcome) and place not in self._final):
                if id_ in later:
                    self.outcomes[place] = Outcome(later[id_].id, later[id_].index, 200)
                    self._changed.discard(place)
                else:
                    waiting.append(place)
            elif outcome.is_done or (operation.kind == "delete" and outcome.status == MISSING):
                later[id_] = outcome
        return waiting[::-1]


def _is_passing(outcome: Outcome) -> bool:
    return is_passing(outcome.status, "" if outcome.error is None else outcome.error.type)


def _waves(operations: Sequence[Operation]) -> list[list[int]]:
    """Return positions to send together, in order: a wave goes out when the one before it has all its outcomes."""
    if len({str(operation.header.get("_id")) for operation in operations}) == len(operations):
        return [list(range(len(operations)))]
    waves: list[list[int]] = [[]]
    last: dict[str, tuple[int, Operation]] = {}
    for place, operation in enumerate(operations):
        number = 0
        if (id_ := operation.header.get("_id")) is not None:
            number, earlier = last.get(str(id_), (0, operation))
            if not _may_share(earlier, operation):
                number += 1
            last[str(id_)] = number, operation
        if number == len(waves):
            waves.append([])
        waves[number].append(place)
    return waves


def _is_counted(operation: Operation) -> bool:
    """Return whether a server that gets *operation* twice may change the document twice."""
    is_script = operation.kind == "update" and isinstance(operation.body, Mapping) and "script" in operation.body
    return is_script and "if_seq_no" not in operation.header


def _may_share(earlier: Operation, later: Operation) -> bool:
    """Return whether both may be in one request: the *later* leaves nothing of what the *earlier* wrote."""
    if earlier is later:
        return True
    places = [(operation.header.get("_index"), operation.header.get("routing")) for operation in (earlier, later)]
    return later.kind in ("index", "delete") and places[0] == places[1]


async def send_bulk(server: Port, operations: Sequence[Operation]) -> list[Outcome]:
    """
    Carry *operations* out and return their outcomes, in order.
    Operations that the server refuses for load (429, 502, 503, 504) are sent again, with waits that grow while it
    takes none of them. A request that is too large (413), or that one operation breaks the rules for, is halved until
    that one is alone. Any other refusal is an outcome. A request that fails as a whole for another reason raises the
    client's exception.
    """
    if not operations:
        return []
    bulk = Bulk(operations, prefix=server.prefix)
    return await bulk.finish(server, await attempt(server.send(bulk.call())))


async def send_surely(server: Port, operations: Sequence[Operation]) -> list[Outcome]:
    """Carry out operations that may be carried out twice; sent again also where perhaps only the answer was lost."""
    return await until(server, lambda: send_bulk(server, operations), passes=may_be_lost)


def _outcome(item: Mapping[str, Any]) -> Outcome:
    [result] = item.values()
    status, id_, index = result.get("status", 0), result.get("_id"), result.get("_index")
    if "error" in result or status >= 400:
        refusal = Refusal.read(status, result.get("error") or result.get("result", "failed"))
        if SHARD_GONE.fits(None, refusal.type):
            refusal = replace(refusal, status=UNREADABLE)
        return Outcome(id_, index, refusal.status, refusal)
    if result.get("result") == "noop" and "_seq_no" not in result:  # an update that changes nothing has a _seq_no
        return Outcome(id_, index, status, Refusal(status, reason="an ingest pipeline dropped it"), is_dropped=True)
    return Outcome(id_, index, status, version=_version_of(result))


def _version_of(item: Mapping[str, Any]) -> tuple[int, int] | None:
    return (item["_seq_no"], item["_primary_term"]) if "_seq_no" in item else None


def versioned_header(found: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return the metadata of an operation that is carried out only on the version *found* of a document.
    The routing value is the one that the document has now: Elasticsearch keeps the one that an update names.
    """
    return {**document_key(found).header(), "if_seq_no": found["_seq_no"], "if_primary_term": found["_primary_term"]}


async def rewrite(
    server: Port,
    places: Sequence[Key],
    change: Change,
    *,
    source: bool | Sequence[str],
    check: Callable[[], Awaitable[None]] | None = None,
) -> list[Outcome | None]:
    """
    Read each document, and write what *change* makes of it, unless somebody else was faster; up to 8 times.
    A document that was changed meanwhile, or could not be read, is read and judged again, so *change* may be called
    again for it. *check* runs after documents were read and before anything is sent. An outcome is ``None`` if nothing
    was to be done; its status is 404 for a document that is gone, 409 for one that others kept changing, 503 for one
    that could not be read.
    """
    outcomes: list[Outcome | None] = [None] * len(places)
    wanted = source if isinstance(source, bool) else list(source)

    async def attempt_all(waiting: Sequence[int]) -> Sequence[int]:
        docs = [{**places[i].header(), "_source": wanted} for i in waiting]
        found = (await server.patient.mget(body={"docs": docs}))["docs"]
        operations: dict[int, Operation] = {}
        unread: list[int] = []
        for i, item in zip(waiting, found, strict=True):
            outcomes[i] = None
            place = places[i]
            refusal = Refusal.read(UNREADABLE, item["error"]) if "error" in item else None
            if refusal is not None and refusal.type != NO_INDEX:
                # A full queue or a shard without a copy says nothing of the document.
                outcomes[i] = Outcome(place.id, place.index, UNREADABLE, refusal, is_unread=True)
                unread.append(i)
            elif not item.get("found"):
                gone = Refusal(MISSING, reason="there is no such document")
                outcomes[i] = Outcome(place.id, place.index, MISSING, gone)
            elif (decided := change(place, item)) is not None:
                operations[i] = Operation(decided[0], versioned_header(item), decided[1])
        if operations and check is not None:
            await check()
        sent = await send_bulk(server, list(operations.values()))
        for i, outcome in zip(operations, sent, strict=True):
            outcomes[i] = outcome
        return unread + [i for i, outcome in zip(operations, sent, strict=True) if outcome.status == CONFLICT]

    await rounds(server, range(len(places)), attempt_all, CHANGED_MEANWHILE)
    return outcomes
