"""Bulk actions in, the same actions with fingerprint fields out, from any iterable. Nothing is sent."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count, islice
from typing import Any, Generic, Protocol, TypeVar, overload

from es_simhash.arguments import check_choice, check_count, check_function, check_items
from es_simhash.errors import WorkerError
from es_simhash.hashing import DEFAULT_SCHEME, Scheme, fingerprints, get_scheme
from es_simhash.hashing.pool import FingerprintPool, Pending, TextHashes
from es_simhash.ingest.actions import (
    ActionRules,
    IdFrom,
    Prepared,
    Problem,
    as_given,
    for_helpers,
    prepare_action,
    with_id,
)
from es_simhash.mapping.fields import DEFAULT_PREFIX, Fields, our_fields
from es_simhash.mapping.meta import check_text_fields

logger = logging.getLogger("es_simhash")

# A batch is what the hashing works on at once: enough for arrays to pay, few enough to keep in memory.
BATCH_DOCUMENTS = 500
# Fewer at the beginning, so that the first come early.
FIRST_DOCUMENTS = 50
BATCH_CHARACTERS = 1_000_000


@overload
def with_fingerprints(
    actions: AsyncIterable[Any],
    *,
    text_field: str | Sequence[str],
    scheme: str | Scheme = ...,
    prefix: str = ...,
    value: bool = ...,
    passages: bool = ...,
    on_problem: Callable[[Problem], object] | None = ...,
    workers: int | None = ...,
    ahead: bool = ...,
    batch: int = ...,
    id_from: IdFrom = ...,
) -> AsyncIterator[Any]: ...
@overload
def with_fingerprints(
    actions: Iterable[Any],
    *,
    text_field: str | Sequence[str],
    scheme: str | Scheme = ...,
    prefix: str = ...,
    value: bool = ...,
    passages: bool = ...,
    on_problem: Callable[[Problem], object] | None = ...,
    workers: int | None = ...,
    ahead: bool = ...,
    batch: int = ...,
    id_from: IdFrom = ...,
) -> Iterator[Any]: ...
def with_fingerprints(
    actions: Iterable[Any] | AsyncIterable[Any],
    *,
    text_field: str | Sequence[str],
    scheme: str | Scheme = DEFAULT_SCHEME,
    prefix: str = DEFAULT_PREFIX,
    value: bool = True,
    passages: bool = False,
    on_problem: Callable[[Problem], object] | None = None,
    workers: int | None = None,
    ahead: bool = True,
    batch: int = BATCH_DOCUMENTS,
    id_from: IdFrom = None,
) -> Iterator[Any] | AsyncIterator[Any]:
    """
    Return an iterator over *actions* in which each document carries the fingerprint of its text.

    Put it around what already goes into a bulk helper: ``helpers.bulk(client, with_fingerprints(actions,
    text_field="body"))``. Plain documents and ``index``, ``create``, ``update`` and ``delete`` actions may be mixed;
    an action may be a dict or its JSON text. An update whose ``doc`` decides the text changes the fingerprint, one
    that clears the text clears the fields, one that does not touch it leaves them alone. The server merges objects,
    so such an update has a null for each field of ours that another text may have left. An update that brings only
    some of several text fields takes the fingerprint out; one with a script goes on as it is, and its fingerprint may
    be stale until a backfill. Both are reported. Reads up to *batch* actions
    or a million characters at once, and as many again ahead; with *workers*, as many ahead for each of them.

    Args:
        actions:
            Bulk actions, from an iterable or an async iterable; they are never changed. A generator may yield one dict
            again and again, with other values. What is given as JSON text goes on as that text, under ``_source``, with
            the fields put in; no number in it is rewritten.
        text_field:
            Field, or fields in order, that the text comes from; a path such as ``article.body`` is fine.
        scheme:
            Name of a scheme, or a scheme. In an index that exists it must be the index's own:
            ``client.with_fingerprints`` takes it from there.
        prefix:
            Name of the object that holds the fields.
        value:
            Whether to add the signed 64-bit copy that script filters read.
        passages:
            Whether to add the terms of passages, for an index that has them; ``client.with_fingerprints`` knows.
        on_problem:
            Called with a :class:`Problem` for each document that goes on without the fingerprint it should have;
            by default a warning is logged.
        workers:
            Number of processes that compute fingerprints; ``None``: this one does. Starting them takes a second or
            two. A script that uses them begins its work below ``if __name__ == "__main__":``, because each of them
            imports the script.
        ahead:
            Whether a thread computes the fingerprints of the next batch while the bulk helper waits for its server.
            ``False`` reads no further than the helper needs: for a source that may pause for long.
        batch:
            Number of actions whose fingerprints are computed together.
        id_from:
            ``"random"`` gives an ``_id`` to each document that has none, so that a request which the client sends again
            cannot write it twice; see :meth:`SimHashClient.with_fingerprints`. ``None`` leaves that to the server.

    Returns:
        An iterator (an async iterator for an async iterable) of as many actions, in the same order.

    Raises:
        TypeError: If an argument has the wrong type.
        InvalidInputError: If the scheme, a field name, the prefix, workers or id_from cannot be used.
            Never for a document.
        WorkerError: While iterating, if a process ended before its work was done.

    Examples:
        >>> from es_simhash import fingerprint, to_hex
        >>> [action] = with_fingerprints([{"_id": "1", "body": "the quick brown fox"}], text_field="body")
        >>> action["_id"], action["simhash"]["fingerprint"] == to_hex(fingerprint("the quick brown fox"))
        ('1', True)
    """
    check_options(actions, on_problem=on_problem, workers=workers, id_from=id_from)
    positions = count()

    def hand_on(prepared: Prepared) -> Any:
        position = next(positions)
        for reason in prepared.problems:
            _report(on_problem, position, prepared.action, reason)
        action = for_helpers(prepared.action)
        return action if id_from is None else with_id(action)

    return fingerprint_actions(
        actions,
        text_field=text_field,
        scheme=scheme,
        prefix=prefix,
        value=value,
        passages=passages,
        workers=workers,
        ahead=ahead,
        batch=batch,
        prepare=prepare_action,
        hand_on=hand_on,
    )


def fingerprint_actions(
    actions: Iterable[Any] | AsyncIterable[Any],
    *,
    text_field: str | Sequence[str],
    scheme: str | Scheme,
    prefix: str,
    value: bool,
    passages: bool,
    workers: int | None,
    ahead: bool,
    batch: int,
    prepare: Callable[[Any, ActionRules], _T],
    hand_on: Callable[[_T], Any],
) -> Iterator[Any] | AsyncIterator[Any]:
    """
    Do the work of :func:`with_fingerprints`.
    For each action: *prepare* reads it; the fingerprints of a batch are computed; ``finish`` puts the fields in;
    *hand_on* makes of the result what is yielded.
    """
    check_count("batch", batch)
    chosen = get_scheme(scheme)
    fingerprints([], scheme=chosen)  # a scheme that cannot fingerprint texts is refused now, not at each document
    rules = ActionRules(check_text_fields(text_field), Fields(prefix).prefix)
    make_pool = partial(FingerprintPool, chosen, workers=workers, thread=ahead, passages=bool(passages))
    batcher = _Batcher(rules, make_pool, bool(value), prepare, hand_on, batch)
    return batcher.iterate_async(actions) if isinstance(actions, AsyncIterable) else batcher.iterate(actions)


class Fingerprinted(Protocol):
    """What was read of an action: the *texts* whose fields it gets."""

    @property
    def texts(self) -> Sequence[str]: ...

    def finish(self, fields: Sequence[dict[str, Any]]) -> None: ...


_T = TypeVar("_T", bound=Fingerprinted)


@dataclass(slots=True)
class _Batcher(Generic[_T]):
    """Collects actions into batches, has their fingerprints computed, and gives the finished actions in order."""

    _rules: ActionRules
    _make_pool: Callable[[], FingerprintPool]
    _value: bool
    _prepare: Callable[[Any, ActionRules], _T]
    _hand_on: Callable[[_T], Any]
    _most: int
    _position: int = 0
    _batch: list[_T] = field(default_factory=list)
    _characters: int = 0
    _begun: deque[tuple[Sequence[_T], Pending]] = field(default_factory=deque)
    _pool: FingerprintPool = field(init=False)

    def iterate(self, actions: Iterable[Any]) -> Iterator[Any]:
        with self._make_pool() as self._pool:
            try:
                for action in actions:
                    if self._add(action):
                        yield from self._advance(self._pool.ahead)
            except WorkerError:
                raise
            except Exception:
                # The source broke: what it gave before must still reach the index.
                yield from self._advance()
                raise
            yield from self._advance()

    async def iterate_async(self, actions: AsyncIterable[Any]) -> AsyncIterator[Any]:
        """Yield each of *actions*, finished; what takes long is done in a thread."""
        import asyncio  # noqa: PLC0415 -- sync callers do without its 50 ms

        self._pool = await asyncio.to_thread(self._make_pool)
        try:
            try:
                async for action in actions:
                    if self._add(action):
                        for finished in await asyncio.to_thread(self._advance, self._pool.ahead):
                            yield finished
            except WorkerError:
                raise
            except Exception:
                for finished in await asyncio.to_thread(self._advance):
                    yield finished
                raise
            for finished in await asyncio.to_thread(self._advance):
                yield finished
        finally:
            await asyncio.to_thread(self._pool.close)

    def _advance(self, keep: int = 0) -> list[Any]:
        """Have the fingerprints of the batch computed together; return what is finished, but for *keep* batches."""
        batch, self._batch, self._characters = self._batch, [], 0
        texts = [text for prepared in batch for text in prepared.texts]
        self._begun.append((batch, self._pool.submit(texts)))
        finished: list[Any] = []
        while len(self._begun) > keep:
            finished += self._finish(*self._begun.popleft())
        return finished

    def _add(self, action: Any) -> bool:
        """Add an action to the batch; return whether the batch is full."""
        prepared = self._prepare(as_given(action), self._rules)
        self._batch.append(prepared)
        self._position += 1
        for text in prepared.texts:
            self._characters += len(text)
        most = min(self._most, max(FIRST_DOCUMENTS, self._position // 2))
        return len(self._batch) >= most or self._characters >= BATCH_CHARACTERS

    def _finish(self, batch: Sequence[_T], pending: Pending) -> list[Any]:
        """Return the actions of a batch with its fingerprints."""
        fields = map(self._fields, pending())
        for prepared in batch:
            prepared.finish(list(islice(fields, len(prepared.texts))))
        return list(map(self._hand_on, batch))

    def _fields(self, hashes: TextHashes) -> dict[str, Any]:
        own = our_fields(hashes.fingerprint, value=self._value)
        if hashes.passages:
            own["passages"] = list(hashes.passages)
        return own


def _report(on_problem: Callable[[Problem], object] | None, position: int, action: Any, reason: str) -> None:
    named = action if isinstance(action, Mapping) else {}
    problem = Problem(position, named.get("_id"), named.get("_index"), reason)
    if on_problem is None:
        logger.warning("document %r passed on without fingerprint: %s", problem.id, reason)
    else:
        on_problem(problem)


def check_options(
    actions: Any,
    *,
    on_problem: Callable[[Problem], object] | None,
    workers: int | None,
    id_from: IdFrom,
) -> None:
    """Check the arguments of :func:`with_fingerprints` that do not depend on an index."""
    check_iterable("actions", actions)
    check_choice("id_from", id_from, ("random", None))
    if on_problem is not None:
        check_function("on_problem", on_problem)
    if workers is not None:
        check_count("workers", workers)


def check_iterable(name: str, actions: Any) -> None:
    """Raise if *actions*, the argument *name*, are one document, a text or no iterable."""
    if not isinstance(actions, AsyncIterable):
        check_items(name, actions, of="documents")
