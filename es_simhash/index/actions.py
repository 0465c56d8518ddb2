"""
The ingest helper: bulk actions in, the same actions with fingerprint fields out.

Works on the dicts that ``helpers.bulk``, ``streaming_bulk``, ``parallel_bulk`` and ``async_bulk`` of both clients
take. Nothing is sent from here and nothing given is changed.
"""

from __future__ import annotations

import json
import logging
import re
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, overload

from es_simhash.errors import InvalidInputError, WorkerError, shorten
from es_simhash.hashing import DEFAULT_SCHEME, Scheme, fingerprints, get_scheme
from es_simhash.hashing.pool import FingerprintPool, Pending, check_workers
from es_simhash.index.documents import carries, read_text, with_fields
from es_simhash.index.fields import DEFAULT_PREFIX, Fields, fingerprint_fields
from es_simhash.index.meta import check_text_fields

__all__ = ["OnPartial", "Problem", "with_fingerprints"]

logger = logging.getLogger("es_simhash")

OnPartial = Literal["clear", "pass"]
_Place = Callable[[Sequence[dict[str, Any]]], Any]

# A batch is what the hashing works on at once: enough to vectorise, little enough to hold.
BATCH_DOCUMENTS = 500
BATCH_CHARACTERS = 1_000_000

# Painless wants functions before statements, so nothing can be put in front of them.
_BEGINS_WITH_FUNCTION = re.compile(r"\s*[\w.<>\[\], ]+\s+\w+\s*\([^)]*\)\s*\{")


@dataclass(frozen=True, slots=True)
class Problem:
    """
    A document that was passed on without the fingerprint it should have.

    Attributes:
        position:
            Its place among the actions given, from 0.
        id:
            The document's ``_id``, where the action names one.
        index:
            The ``_index``, where the action names one.
        reason:
            One line: what is wrong and what to do.
    """

    position: int
    id: str | None
    index: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class _Prepared:
    """An action, the texts in it that want a fingerprint, and how to put the fields found into a copy of it."""

    position: int
    action: Any
    texts: tuple[str, ...] = ()
    build: Callable[[Sequence[dict[str, Any]]], Any] | None = None

    def finish(self, fields: Sequence[dict[str, Any]]) -> Any:
        return self.action if self.build is None else self.build(fields)


@dataclass(frozen=True, slots=True)
class _Helper:
    """What one call of :func:`with_fingerprints` was asked to do."""

    text_fields: tuple[str, ...]
    scheme: Scheme
    prefix: str
    value: bool
    on_partial: OnPartial
    on_problem: Callable[[Problem], object] | None

    def report(self, position: int, action: Any, reason: str) -> None:
        named = action if isinstance(action, Mapping) else {}
        problem = Problem(position, named.get("_id"), named.get("_index"), reason)
        if self.on_problem is None:
            logger.warning("document %r passed on without fingerprint: %s", problem.id, reason)
        else:
            self.on_problem(problem)

    def prepare(self, position: int, action: Any) -> _Prepared:
        """Return what *action* needs; an action that cannot be used is reported and passed on as it is."""
        try:
            parsed = json.loads(action) if isinstance(action, (str, bytes)) else action
            if not isinstance(parsed, Mapping):
                raise InvalidInputError(f"action {shorten(action)} is not a document: give a dict")
            operation = parsed.get("_op_type", "index")
            if operation in ("index", "create"):
                return self._prepare_document(position, parsed)
            if operation == "update":
                return self._prepare_update(position, parsed)
            return _Prepared(position, parsed)
        except (ValueError, RecursionError) as error:
            self.report(position, action, str(error))
            return _Prepared(position, action)

    def _prepare_document(self, position: int, action: Mapping[str, Any]) -> _Prepared:
        document = action.get("_source", action)
        if not isinstance(document, Mapping):
            raise InvalidInputError(f"_source {shorten(document)} is not a document: give a dict")
        texts, place = self._whole(position, action, document)

        def build(fields: Sequence[dict[str, Any]]) -> Any:
            finished = place(fields)
            return finished if document is action else {**action, "_source": finished}

        return _Prepared(position, action, texts, build)

    def _text(self, position: int, action: Any, document: Mapping[str, Any]) -> tuple[str, ...]:
        with_fields(document, {}, prefix=self.prefix)  # refuses a clash before any work is done
        try:
            text = read_text(document, self.text_fields)
        except InvalidInputError as error:
            self.report(position, action, str(error))
            text = None
        return () if text is None else (text,)

    def _whole(self, position: int, action: Any, document: Mapping[str, Any]) -> tuple[tuple[str, ...], _Place]:
        """Return the text of a whole document, and how to place its fields."""
        return (
            self._text(position, action, document),
            lambda fields: with_fields(document, fields[0] if fields else {}, prefix=self.prefix),
        )

    def _prepare_update(self, position: int, action: Mapping[str, Any]) -> _Prepared:
        source = action.get("_source")
        body = source if isinstance(source, Mapping) else action
        doc, upsert, script = body.get("doc"), body.get("upsert"), body.get("script")
        texts: tuple[str, ...] = ()
        places: list[tuple[str, int, int, _Place]] = []
        for key, part, read in (("doc", doc, self._partial), ("upsert", upsert, self._whole)):
            if isinstance(part, Mapping):
                more, place = read(position, action, part)
                places.append((key, len(texts), len(texts) + len(more), place))
                texts += more
        if script is not None:
            places.append(("script", 0, 0, lambda _: self._script(position, action, script)))

        def build(fields: Sequence[dict[str, Any]]) -> Any:
            changed = {key: place(fields[start:stop]) for key, start, stop, place in places}
            return {**action, "_source": {**body, **changed}} if body is source else {**action, **changed}

        if isinstance(doc, Mapping) and 0 < self._carried(doc) < len(self.text_fields):
            self.report(
                position,
                action,
                f"the update carries only some of the text fields {', '.join(self.text_fields)}; its fingerprint is "
                f"{'taken out' if self.on_partial == 'clear' else 'left as it was'}: backfill the document",
            )
        return _Prepared(position, action, texts, build)

    def _carried(self, doc: Mapping[str, Any]) -> int:
        return sum(carries(doc, name) for name in self.text_fields)

    def _partial(self, position: int, action: Any, doc: Mapping[str, Any]) -> tuple[tuple[str, ...], _Place]:
        """Return the text that a partial document decides, and how to place, leave or clear the fields."""
        carried = self._carried(doc)
        if carried == 0 or (carried < len(self.text_fields) and self.on_partial == "pass"):
            return (), lambda _: doc
        texts = self._text(position, action, doc) if carried == len(self.text_fields) else ()

        def place(fields: Sequence[dict[str, Any]]) -> dict[str, Any]:
            if fields and fields[0]:
                return with_fields(doc, fields[0], prefix=self.prefix)
            # A null takes the place of the whole object in the stored document.
            return {**with_fields(doc, {}, prefix=self.prefix), self.prefix: None}

        return texts, place

    def _script(self, position: int, action: Mapping[str, Any], script: Any) -> Any:
        """Return *script* with the fields taken out first, since nobody knows what it does to the text."""
        inline = {"source": script} if isinstance(script, str) else script
        source = inline.get("source") if isinstance(inline, Mapping) else None
        fate = "left as it was"
        if (
            self.on_partial == "clear"
            and isinstance(source, str)
            and inline.get("lang", "painless") == "painless"
            and not _BEGINS_WITH_FUNCTION.match(source)
        ):
            script = {**inline, "source": f"ctx._source.remove('{self.prefix}'); {source}"}
            fate = "taken out"
        self.report(position, action, f"a script may change the text; the fingerprint is {fate}: backfill the document")
        return script

    def begin(self, batch: Sequence[_Prepared], pool: FingerprintPool) -> _Begun:
        """Have the fingerprints of *batch* computed together."""
        return _Begun(batch, pool.submit([text for each in batch for text in each.texts]))

    def finish(self, begun: _Begun) -> list[Any]:
        """Return the actions of a batch with its fingerprints."""
        try:
            found = begun.pending.result()
        except WorkerError:
            raise
        except Exception:  # noqa: BLE001 -- one text must not take the others with it
            found = [self._one(each, text) for each in begun.batch for text in each.texts]
        fields = [fingerprint_fields(each, prefix=self.prefix, value=self.value) for each in found]
        finished, start = [], 0
        for each in begun.batch:
            stop = start + len(each.texts)
            finished.append(each.finish(fields[start:stop]))
            start = stop
        return finished

    def _one(self, prepared: _Prepared, text: str) -> int | None:
        try:
            return fingerprints([text], scheme=self.scheme)[0]
        except Exception as error:  # noqa: BLE001 -- reported, and the document goes on
            self.report(
                prepared.position,
                prepared.action,
                f"its text cannot be fingerprinted ({type(error).__name__}: {error})",
            )
            return None


@dataclass(frozen=True, slots=True)
class _Begun:
    """A batch whose fingerprints are being computed."""

    batch: Sequence[_Prepared]
    pending: Pending


class _Batch:
    """Collects prepared actions until there are enough texts to work on at once."""

    def __init__(self) -> None:
        self.held: list[_Prepared] = []
        self._characters = 0

    def add(self, prepared: _Prepared) -> bool:
        """Add one; return whether the batch is full."""
        self.held.append(prepared)
        self._characters += sum(map(len, prepared.texts))
        return len(self.held) >= BATCH_DOCUMENTS or self._characters >= BATCH_CHARACTERS


def _each(actions: Iterable[Any], helper: _Helper, pool: FingerprintPool) -> Iterator[Any]:
    batch = _Batch()
    begun: deque[_Begun] = deque()
    with pool:
        try:
            for position, action in enumerate(actions):
                if batch.add(helper.prepare(position, action)):
                    full, batch = batch, _Batch()
                    begun.append(helper.begin(full.held, pool))
                    while len(begun) > pool.ahead:
                        yield from helper.finish(begun.popleft())
        except WorkerError:
            raise
        except Exception:
            # The source broke: what it gave before must still reach the index.
            begun.append(helper.begin(batch.held, pool))
            for each in begun:
                yield from helper.finish(each)
            raise
        begun.append(helper.begin(batch.held, pool))
        while begun:
            yield from helper.finish(begun.popleft())


async def _async_each(actions: AsyncIterable[Any], helper: _Helper, pool: FingerprintPool) -> AsyncIterator[Any]:
    import asyncio  # noqa: PLC0415 -- sync callers do without its 50 ms

    batch, position = _Batch(), 0
    begun: deque[_Begun] = deque()

    async def finish(keep: int) -> AsyncIterator[Any]:
        while len(begun) > keep:
            for each in await asyncio.to_thread(helper.finish, begun.popleft()):
                yield each

    try:
        try:
            async for action in actions:
                full_now = batch.add(helper.prepare(position, action))
                position += 1
                if full_now:
                    full, batch = batch, _Batch()
                    begun.append(await asyncio.to_thread(helper.begin, full.held, pool))
                    async for each in finish(pool.ahead):
                        yield each
        except WorkerError:
            raise
        except Exception:
            begun.append(await asyncio.to_thread(helper.begin, batch.held, pool))
            async for each in finish(0):
                yield each
            raise
        begun.append(await asyncio.to_thread(helper.begin, batch.held, pool))
        async for each in finish(0):
            yield each
    finally:
        await asyncio.to_thread(pool.close)


@overload
def with_fingerprints(
    actions: AsyncIterable[Any],
    *,
    text_field: str | Sequence[str],
    scheme: str | Scheme = ...,
    prefix: str = ...,
    value: bool = ...,
    on_partial: OnPartial = ...,
    on_problem: Callable[[Problem], object] | None = ...,
    workers: int | None = ...,
    ahead: bool = ...,
) -> AsyncIterator[Any]: ...
@overload
def with_fingerprints(
    actions: Iterable[Any],
    *,
    text_field: str | Sequence[str],
    scheme: str | Scheme = ...,
    prefix: str = ...,
    value: bool = ...,
    on_partial: OnPartial = ...,
    on_problem: Callable[[Problem], object] | None = ...,
    workers: int | None = ...,
    ahead: bool = ...,
) -> Iterator[Any]: ...
def with_fingerprints(
    actions: Iterable[Any] | AsyncIterable[Any],
    *,
    text_field: str | Sequence[str],
    scheme: str | Scheme = DEFAULT_SCHEME,
    prefix: str = DEFAULT_PREFIX,
    value: bool = True,
    on_partial: OnPartial = "clear",
    on_problem: Callable[[Problem], object] | None = None,
    workers: int | None = None,
    ahead: bool = True,
) -> Iterator[Any] | AsyncIterator[Any]:
    """
    Return an iterator over *actions* in which each document carries the fingerprint of its text.

    Put it around what already goes into a bulk helper: ``helpers.bulk(client, with_fingerprints(actions,
    text_field="body"))``. Plain documents and ``index``, ``create``, ``update`` and ``delete`` actions may be mixed;
    an action may be a dict or its JSON text. An update whose ``doc`` decides the text changes the fingerprint, one
    that clears the text clears the fields, one that does not touch it leaves them alone. Reads up to 500 actions or a
    million characters at once, and once more ahead; with *workers*, so much for each of them.

    Args:
        actions:
            Bulk actions, from an iterable or an async iterable; they are never changed.
        text_field:
            Field, or fields in order, that the text comes from; a path such as ``article.body`` is fine.
        scheme:
            Name of a scheme, or a scheme. In an index that exists it must be the index's own:
            ``client.with_fingerprints`` sees to that.
        prefix:
            Name of the object that holds the fields.
        value:
            Whether to add the signed 64-bit copy that script filters read.
        on_partial:
            What becomes of the fingerprint in an update that brings only some of several text fields, or a script:
            ``"clear"`` takes it out, so that it cannot be wrong; ``"pass"`` leaves it, maybe stale. Both are reported.
        on_problem:
            Called with a :class:`Problem` for each document that goes on without the fingerprint it should have;
            by default a warning is logged.
        workers:
            Number of processes that compute fingerprints; ``None``: this one does. They are started once there were
            4 million characters. A script that uses them begins its work below ``if __name__ == "__main__":``,
            because each of them imports the script.
        ahead:
            Whether a thread computes the fingerprints of the next 500 actions while the bulk helper waits for its
            server. ``False`` reads no further than is asked for: for a source that may pause for long.

    Returns:
        An iterator (an async iterator for an async iterable) of as many actions, in the same order.

    Raises:
        TypeError: If an argument has the wrong type.
        InvalidInputError: If the scheme, a field name, the prefix, on_partial or workers cannot be used. Never for a
            document.
        WorkerError: While iterating, if a process ended before its work was done.

    Examples:
        >>> [action] = with_fingerprints([{"_id": "1", "body": "the quick brown fox"}], text_field="body")
        >>> action["_id"], action["simhash"]["fingerprint"] == to_hex(fingerprint("the quick brown fox"))
        ('1', True)
    """
    if on_partial not in ("clear", "pass"):
        raise InvalidInputError(f"on_partial {shorten(on_partial)} is not known: give 'clear' or 'pass'")
    check_workers(workers)
    chosen = get_scheme(scheme)
    fingerprints([], scheme=chosen)  # a scheme that cannot fingerprint texts is refused now, not at each document
    helper = _Helper(check_text_fields(text_field), chosen, Fields(prefix).prefix, bool(value), on_partial, on_problem)
    if isinstance(actions, AsyncIterable):
        return _async_each(actions, helper, FingerprintPool(chosen, workers=workers, thread=ahead))
    if isinstance(actions, (str, bytes, Mapping)) or not isinstance(actions, Iterable):
        raise TypeError(f"actions must be an iterable of documents, not {type(actions).__name__}")
    return _each(actions, helper, FingerprintPool(chosen, workers=workers, thread=ahead))
