"""
How an ingest finds the documents near each batch: it asks the server by block terms, or first a table in memory.

The table (``resident.operations``) has every fingerprint that a search can show. Where it has none near a document,
there is nothing to ask; else documents with exactly those fingerprints are asked for, so whatever is said of a document
in the index comes from the server. No decision and no write.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from es_simhash.groups.lookups_flow import GroupLookups
from es_simhash.lookup.batch_flow import Batch
from es_simhash.lookup.memory_operations_flow import Resident
from es_simhash.lookup.memory_options import LookupRequest, ResidentError, pays
from es_simhash.lookup.near_dups import NearDups
from es_simhash.mapping.context import Context
from es_simhash.mapping.positions_flow import Range
from es_simhash.transport.protocol import Call, Compute, Flow, Together

logger = logging.getLogger("es_simhash")


@dataclass(frozen=True, slots=True)
class Asked:
    """
    What is asked about one batch.

    Attributes:
        fingerprints:
            Those of the batch, one or more.
        batch:
            The questions to the server; ``None`` where there are none.
        calls:
            The requests.
        ranges:
            What is searched at the same time for the table; ``None`` where it is not used.
    """

    fingerprints: Sequence[int]
    batch: Batch | None
    calls: Sequence[Call]
    ranges: Sequence[Range] | None = None


class IngestLookups:
    """
    The lookups of one ingest.

    Args:
        context:
            What the client object knows.
        index:
            What is searched.
        lookups:
            Asks the server.
        max_distance:
            Largest distance in bits, inclusive.
        request:
            What the caller wants.
    """

    def __init__(
        self, context: Context, index: str, lookups: GroupLookups, *, max_distance: int, request: LookupRequest
    ) -> None:
        self._lookups = lookups
        self._index = index
        self._is_wanted = request.lookups != "server"
        self._is_demanded = request.lookups == "memory"
        self._make = partial(Resident, context, index, max_distance=max_distance, memory_bytes=request.most_bytes)
        self._resident: Resident | None = None
        self._asked = 0

    def prepare(self) -> Flow[None]:
        """Learn the size of the index, which was refreshed just now."""
        yield from self._lookups.prepare()
        if self._resident is not None:
            try:
                yield from self._resident.catch_up(documents=self._lookups.documents)
            except ResidentError as error:
                self._give_up(error)
        elif self._is_demanded:
            yield from self._load()

    def note_written(self, written: Mapping[str, int]) -> None:
        """Note how many documents were *written* to each index that are in flight until :meth:`prepare`."""
        if self._resident is not None:
            self._resident.note_own(written)

    def ask(self, fingerprints: Sequence[int]) -> Flow[Asked]:
        """Return what to ask about *fingerprints*, one or more."""
        if self._is_worth_it():
            yield from self._load()
        resident = self._resident
        if resident is None:
            return self._ask_server(fingerprints)
        try:
            positions, near = yield Together([resident.positions_call(), Compute(resident.near, (fingerprints,))])
            size = len(resident)
            ranges = yield from resident.ranges(positions)
            if isinstance(near, BaseException):
                raise near
            if len(resident) > size:
                near = yield Compute(resident.near, (fingerprints,))
        except ResidentError as error:
            self._give_up(error)
            return self._ask_server(fingerprints)
        with_near = [each for each in fingerprints if near[each]]
        batch = self._lookups.batch(with_near, known=near) if with_near else None
        lines = [*resident.lines(ranges), *(batch.call().arguments["body"] if batch else ())]
        return Asked(fingerprints, batch, [Call("msearch", {"body": lines})] if lines else [], ranges)

    def _ask_server(self, fingerprints: Sequence[int]) -> Asked:
        self._asked += len(fingerprints)
        batch = self._lookups.batch(fingerprints)
        return Asked(fingerprints, batch, [batch.call()])

    def _is_worth_it(self) -> bool:
        """Return whether asking the server has cost about as much as reading all fingerprints would."""
        if self._resident is not None or not self._is_wanted:
            return False
        return pays(self._asked, milliseconds=self._lookups.milliseconds, documents=self._lookups.documents)

    def _load(self) -> Flow[None]:
        resident = self._make()
        try:
            yield from resident.load(documents=self._lookups.documents)
        except ResidentError as error:
            self._give_up(error)
        else:
            logger.info("ingest into %s: %d fingerprints are in memory", self._index, len(resident))
            self._resident = resident

    def _give_up(self, error: ResidentError) -> None:
        """Ask the server from now on; only for now, if it may be otherwise in a moment."""
        if error.is_passing:
            self._asked = 0
            return
        if self._is_demanded:
            raise error.for_caller(self._index) from error
        logger.info("ingest into %s: the server is asked about every document: %s", self._index, error)
        self._is_wanted, self._resident = False, None

    def take(self, asked: Asked, answers: Sequence[Any]) -> Flow[dict[int, NearDups]]:
        """
        Return the documents near each fingerprint that has some, given the *answers* to the calls of *asked*.

        An answer may be the exception that the call failed with.
        """
        if asked.ranges is None or self._resident is None:
            return {} if asked.batch is None else (yield from self._lookups.take(asked.batch, answers[0]))
        answer: Any = answers[0] if answers else {"responses": []}
        first = rest = answer
        if not isinstance(answer, BaseException):
            count = len(asked.ranges)
            first, rest = ({"responses": part} for part in (answer["responses"][:count], answer["responses"][count:]))
        resident, new = self._resident, None
        if asked.ranges:
            try:
                new = yield from resident.update(asked.ranges, first)
            except ResidentError as error:
                self._give_up(error)
                return (yield from self._lookups.ask(asked.fingerprints))
        found = {} if asked.batch is None else (yield from self._lookups.take(asked.batch, rest))
        if new is None or not len(new):
            return found
        near = yield Compute(resident.near_among, (asked.fingerprints, new))
        also = yield from self._lookups.ask([each for each in near if near[each]], known=near)
        return found | {each: _both(found[each], more) if each in found else more for each, more in also.items()}


def _both(one: NearDups, other: NearDups) -> NearDups:
    """Return the documents of both."""
    items = {each.key: each for each in (*one, *other)}
    return replace(
        one,
        items=tuple(items.values()),
        complete=one.complete and other.complete,
        reasons=(*one.reasons, *other.reasons),
    )
