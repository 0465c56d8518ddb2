"""
Many lookups by the fingerprints of one point in time of an index: when that pays, and the answer of each.

``resident.snapshot`` has the point in time. What it does not answer, ``find_many`` asks the server.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from es_simhash.lookup.memory_options import LookupRequest, ResidentError, pays
from es_simhash.lookup.memory_snapshot_flow import Snapshot
from es_simhash.lookup.near_dups import NearDups, held_fingerprints, rescore
from es_simhash.lookup.options import effective_distance
from es_simhash.lookup.plan import make_plan
from es_simhash.lookup.query import check_filter
from es_simhash.lookup.question import Subject
from es_simhash.mapping.limits import IndexStats
from es_simhash.transport.protocol import Compute, Flow
from es_simhash.transport.view import Hits

logger = logging.getLogger("es_simhash")

Near = Mapping[int, Sequence[int]]


class MemoryLookups:
    """
    The lookups of one call that are answered from memory.

    Args:
        request:
            What the caller wants.
        total:
            How many lookups the call makes, where that is known.

    Attributes:
        is_loaded:
            Whether fingerprints are in memory.
    """

    def __init__(self, request: LookupRequest, total: int | None) -> None:
        self._request = request
        self._is_wanted = request.lookups != "server"
        self._total = total
        self._asked = 0
        self._snapshot: Snapshot | None = None
        self._nothing: NearDups | None = None

    @property
    def is_loaded(self) -> bool:
        """Whether fingerprints are in memory."""
        return self._snapshot is not None

    def prepare(self, subject: Subject) -> Flow[None]:
        """
        Read the fingerprints of *subject* if that pays now, or the caller demands it.

        Raises:
            InvalidInputError, IncompleteSearchError: If they cannot be read and the caller demands it.
            SettingsChanged: If the settings of the index have changed.
        """
        if self._nothing is not None and self._nothing != _nothing_for(subject):
            yield from self.close()  # the index was created again with another scheme, for example
        if self._snapshot is None and self._is_wanted and (self._request.lookups == "memory" or self._pays(subject)):
            yield from self._load(subject)

    def _pays(self, subject: Subject) -> bool:
        if subject.options.plan is not None:
            return False
        lookups = self._asked if self._total is None else self._total - self._asked
        stats = subject.stats or IndexStats()
        return pays(lookups, milliseconds=subject.milliseconds, documents=stats.documents)

    def _load(self, subject: Subject, *, is_last: bool = False) -> Flow[None]:
        options = subject.options
        snapshot = Snapshot(
            subject.context,
            subject.index,
            max_distance=effective_distance(subject.settings, options),
            memory_bytes=self._request.most_bytes,
            filter=check_filter(options.filter),
            routing=options.routing,
        )
        try:
            yield from snapshot.load(subject.settings)
        except BaseException as error:
            yield from snapshot.close()
            if not isinstance(error, ResidentError):
                raise
            if error.kind == "expired" and not is_last:
                yield from self._load(subject, is_last=True)  # an index was made anew while it was read
            else:
                self._give_up(subject, error)
        else:
            logger.info("lookups in %s: %d fingerprints are in memory", subject.index, len(snapshot))
            self._snapshot, self._nothing = snapshot, _nothing_for(subject)

    def _give_up(self, subject: Subject, error: ResidentError) -> None:
        """Ask the server from now on."""
        if self._request.lookups == "memory":
            raise error.for_caller(subject.index) from error
        logger.info("lookups in %s: the server is asked about every text: %s", subject.index, error)
        self._is_wanted = False

    def ask(self, subject: Subject, fingerprints: Sequence[int]) -> Flow[dict[int, NearDups]]:
        """
        Return the answers for *fingerprints*, without those that the server has to be asked for.

        Raises:
            InvalidInputError, IncompleteSearchError: As :meth:`prepare`.
        """
        self._asked += len(fingerprints)
        for is_last in (False, True):
            if self._snapshot is None or not fingerprints:
                break
            try:
                return (yield from _answers(self._snapshot, subject, fingerprints))
            except ResidentError as error:
                yield from self.close()
                if error.kind == "expired" and not is_last:
                    # A caller may take long between two batches, or an index was made anew.
                    yield from self._load(subject)
                else:
                    self._give_up(subject, error)
        return {}

    def close(self) -> Flow[None]:
        """Give back what the server keeps."""
        snapshot, self._snapshot, self._nothing = self._snapshot, None, None
        if snapshot is not None:
            yield from snapshot.close()


def _nothing_for(subject: Subject) -> NearDups:
    """Return the answer of a lookup that finds nothing; its plan says that all fingerprints were compared."""
    distance = effective_distance(subject.settings, subject.options)
    return NearDups(scheme=subject.settings.scheme, max_distance=distance, plan=make_plan(distance, ()))


def _answers(snapshot: Snapshot, subject: Subject, fingerprints: Sequence[int]) -> Flow[dict[int, NearDups]]:
    near: Near = yield Compute(snapshot.near, (fingerprints,))
    yield from snapshot.keep()
    nothing = _nothing_for(subject)
    answers = dict.fromkeys((each for each in near if not near[each]), nothing)
    waiting = deque(_groups(near, subject.options.sizes.fingerprints))
    while waiting:
        some = waiting.popleft()
        known = {each for one in some for each in near[one]}
        hits = yield from snapshot.hits(subject.holders_body(known, page=subject.options.sizes.largest_page))
        if hits is not None:
            answers |= yield Compute(_read, (subject, {one: near[one] for one in some}, hits, nothing))
        elif len(some) > 1:
            waiting += (some[: len(some) // 2], some[len(some) // 2 :])
    return answers


def _groups(near: Near, most: int) -> Iterator[list[int]]:
    """Yield those that have something *near*, in groups with at most so many near fingerprints; not what has more."""
    group: list[int] = []
    count = 0
    for each, known in near.items():
        if not 0 < len(known) <= most:
            continue
        if count + len(known) > most:
            yield group
            group, count = [], 0
        group.append(each)
        count += len(known)
    if group:
        yield group


def _read(subject: Subject, near: Near, hits: Hits, nothing: NearDups) -> dict[int, NearDups]:
    """Return the answers for the fingerprints of *near*, whose documents are all among *hits*."""
    holders: dict[int, list[Mapping[str, Any]]] = {}
    for hit in hits:
        for digits in held_fingerprints(hit, subject.field):
            holders.setdefault(int(digits, 16), []).append(hit)
    answers = {}
    for wanted, known in near.items():
        some = [hit for each in known for hit in holders.get(each, ())]
        size, prefix = subject.options.size, subject.context.prefix
        found = rescore(some, wanted, max_distance=nothing.max_distance, prefix=prefix, size=size)
        answers[wanted] = replace(nothing, items=tuple(found), candidates=len(some))
    return answers
