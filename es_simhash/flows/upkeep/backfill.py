"""
Fingerprints for documents that are in an index already, and for those whose text has changed since they got theirs.

Reads everything, compares, and writes only what is missing or wrong, each document only as it was when it was read.
Passes over what changed meanwhile until nothing is left. How a fingerprint is made is ``hashing``'s business.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from es_simhash.errors import InvalidInputError, MappingError
from es_simhash.flows.context import Context, Index, agree, check_index, read_index_settings, resolve_index
from es_simhash.flows.protocol import Call, Compute, Emit, Flow, Together, Wait
from es_simhash.flows.transfer.answers import check_whole
from es_simhash.flows.transfer.bulk import Operation, Outcome, bulk_call, finish_bulk
from es_simhash.flows.transfer.conditional_write import CONFLICT, MISSING, UNREADABLE, Place, place_of, rewrite
from es_simhash.flows.transfer.pages import Hits, read_slices
from es_simhash.flows.transfer.refresh import now, refresh
from es_simhash.flows.upkeep.manage import put_mapping
from es_simhash.hashing import DEFAULT_SCHEME, get_scheme
from es_simhash.hashing.pool import FingerprintPool
from es_simhash.index.documents import read_text
from es_simhash.index.fields import fingerprint_fields
from es_simhash.index.meta import IndexSettings, check_text_fields, text_fields_of
from es_simhash.index.query import check_filter

if TYPE_CHECKING:
    from es_simhash.flows.upkeep.checkpoint import Checkpoint

__all__ = ["BackfillOptions", "BackfillProgress", "backfill"]

BULK = 500
# Passes after the first, over what others changed meanwhile.
PASSES = 8
# What writing one document takes, for the forecast of a dry run; measured by bench/backfill.py.
WRITE_SECONDS = 1 / 5_000


@dataclass(frozen=True, slots=True)
class BackfillOptions:
    """
    How to backfill: the keyword arguments of the client's method.

    Raises:
        TypeError: If one has the wrong type.
        InvalidInputError: If one has a value that cannot be used.
    """

    text_field: str | Sequence[str] | None = None
    filter: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None
    workers: int = 1
    slices: int = 2
    page: int = 1_000
    documents_per_second: float | None = None
    checkpoint: str | os.PathLike[str] | None = None
    dry_run: bool = False

    def __post_init__(self) -> None:
        check_filter(self.filter)
        for name in ("workers", "slices", "page"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} must be an int, not {type(value).__name__}")
            if value < 1:
                raise InvalidInputError(f"{name} {value} is too small: give 1 or more")
        if self.documents_per_second is not None and self.documents_per_second <= 0:
            raise InvalidInputError(f"documents_per_second {self.documents_per_second} is too small: give more than 0")


@dataclass(frozen=True, slots=True)
class BackfillProgress:
    """
    How far a backfill is; all numbers but *total* are sums so far.

    Attributes:
        total:
            Number of documents to look at, as counted at the beginning.
        seen:
            Number of documents looked at in the first pass.
        changed:
            Number of documents whose fields were written; in a dry run, that would be.
        stale:
            How many of these had a fingerprint, but not that of their text.
        empty:
            Number of documents whose text has no features; they carry no fingerprint.
        failures:
            One line for each document that could not be read or written, since the last report.
        failed:
            Number of these in all.
        seconds_left:
            In a dry run, roughly how long the work would take; else ``None``.
        is_done:
            Whether this is the last report.
    """

    total: int
    seen: int
    changed: int
    stale: int
    empty: int
    failures: tuple[str, ...]
    failed: int
    seconds_left: float | None = None
    is_done: bool = False


def backfill(context: Context, index: Index, options: BackfillOptions) -> Flow[None]:
    """
    Give every document of *index* the fingerprint of its present text; emit a :class:`BackfillProgress` now and then.

    Raises:
        MappingError: If the index lacks the fields, in a dry run; else they are added.
        IncompleteSearchError: If some documents could not be looked at.
    """
    from es_simhash.flows.upkeep.checkpoint import Checkpoint  # noqa: PLC0415 -- loads numpy

    check_index(index)
    settings = yield from _settings(context, index, options)
    names = check_text_fields(text_fields_of(settings, options.text_field))
    answer = yield Call("get_settings", {"index": index})
    uuids = {name: each["settings"]["index"]["uuid"] for name, each in answer.items()}
    purpose = {"prefix": context.prefix, "scheme": settings.scheme.to_dict(), "text_fields": list(names)}
    pool = FingerprintPool(settings.scheme, workers=options.workers)
    checkpoint = yield Compute(Checkpoint, (None if options.dry_run else options.checkpoint, purpose))
    try:
        work = _Work(context, index, settings, names, options, uuids, pool, checkpoint)
        yield from work.run()
    finally:
        try:
            yield Compute(pool.close)
        finally:
            yield Compute(checkpoint.close)


def _settings(context: Context, index: Index, options: BackfillOptions) -> Flow[IndexSettings]:
    """Return the settings of *index*; the first time, add our fields to it, or in a dry run say what they would be."""
    resolved = yield from resolve_index(context, index)
    lacks_all = not resolved.each or resolved.faults
    is_new = lacks_all and all(each.fault.kind == "no_scheme" for each in resolved.faults)
    if not is_new or not options.text_field:
        return agree(resolved, context)
    if options.dry_run:
        return context.assumed_settings() or IndexSettings(get_scheme(DEFAULT_SCHEME))
    yield from put_mapping(context, index, None, options.text_field, None, value=None)
    return (yield from read_index_settings(context, index))


class _Work:
    """One backfill on its way."""

    def __init__(
        self,
        context: Context,
        index: Index,
        settings: IndexSettings,
        names: tuple[str, ...],
        options: BackfillOptions,
        uuids: Mapping[str, str],
        pool: FingerprintPool,
        checkpoint: Checkpoint,
    ) -> None:
        self._prefix = context.prefix
        self._index = index
        self._settings = settings
        self._names = names
        self._options = options
        self._uuids = uuids
        self._pool = pool
        self._checkpoint = checkpoint
        self._query = {"bool": {"filter": check_filter(options.filter)}}
        self._source = [*names, self._prefix, f"{self._prefix}.*"]
        self._at = ""
        self._failures: list[str] = []
        self._left: list[str] = []
        self._total = self._seen = self._changed = self._stale = self._empty = self._failed = 0
        self._began = self._elapsed = 0.0

    def run(self) -> Flow[None]:
        yield from refresh(self._index)
        self._total = (yield Call("count", {"index": self._index, "body": {"query": self._query}}))["count"]
        self._began = yield Compute(time.monotonic)
        yield from self._check_source()
        body = {"query": self._query, "_source": self._source, "seq_no_primary_term": True}
        yield from self._pass(body, self._options.page, self._handle)
        for _ in range(0 if self._options.dry_run else PASSES):
            # Only ids and versions: whatever is as this run left it needs no second look.
            before = self._changed + self._failed
            self._left.clear()
            yield from refresh(self._index)
            yield from self._pass({**body, "_source": False}, 5 * self._options.page, self._handle_changed)
            if self._changed + self._failed == before:
                break
        for line in self._left:
            self._fail(line)
        if not self._options.dry_run:
            yield from refresh(self._index)
        yield Emit(self._progress(is_done=True))

    def _check_source(self) -> Flow[None]:
        mappings = yield Call("get_mapping", {"index": self._index})
        for name, held in mappings.items():
            if (held.get("mappings") or {}).get("_source", {}).get("enabled", True) in (False, "false"):
                raise MappingError(f"index {name!r} keeps no _source, so no text can be read: index its documents anew")

    def _pass(self, body: Mapping[str, Any], page: int, handle: Any) -> Flow[None]:
        options = self._options
        gaps = yield from read_slices(
            self._index,
            body,
            handle,
            page=page,
            slices=options.slices,
            documents_per_second=options.documents_per_second,
        )
        check_whole(gaps)

    def _key(self, index: str, id_: str, version: Mapping[str, Any]) -> int:
        from es_simhash.flows.upkeep.checkpoint import version_key  # noqa: PLC0415

        return version_key(self._uuids.get(index, index), id_, version["_seq_no"], version["_primary_term"])

    def _unknown(self, hits: Hits) -> list[tuple[Mapping[str, Any], int]]:
        keys = [self._key(hit["_index"], hit["_id"], hit) for hit in hits]
        known = self._checkpoint.holds(keys)
        return [(hit, key) for hit, key, is_known in zip(hits, keys, known, strict=True) if not is_known]

    def _handle(self, hits: Hits, ahead: Sequence[Call]) -> Flow[list[Any]]:
        """Deal with a page of the first pass; the next pages are read while this one is written."""
        self._at = yield Compute(now)
        operations, keys, right = yield Compute(self._judge, (hits,))
        chunks = [operations[begin : begin + BULK] for begin in range(0, len(operations), BULK)]
        if self._options.dry_run:
            self._changed += len(operations)
            chunks = []
        calls = [*map(bulk_call, chunks), *ahead]
        answers = (yield Together(calls, concurrency=max(2, 2 * self._options.slices))) if calls else []
        conflicts: list[Place] = []
        done = list(right)
        for chunk, answer in zip(chunks, answers, strict=False):
            for operation, outcome in zip(chunk, (yield from finish_bulk(chunk, answer)), strict=True):
                self._note(operation.header, outcome, keys, done, conflicts)
        yield Compute(self._checkpoint.add, (done,))
        if conflicts:
            yield from self._again(conflicts)
        self._seen += len(hits)
        yield from self._pace()
        yield Emit(self._progress())
        return list(answers[len(chunks) :])

    def _judge(self, hits: Hits) -> tuple[list[Operation], dict[tuple[str, str], int], list[int]]:
        """Return what is to be written, the keys of those versions, and the keys of what is right as it is."""
        unknown = self._unknown(hits)
        texts: list[str] = []
        held: list[tuple[Mapping[str, Any], int, int | None]] = []
        failed: list[int] = []
        for hit, key in unknown:
            text, reason = self._text(hit)
            if reason is not None:
                self._fail(f"{hit['_index']}/{hit['_id']}: {reason}")
                failed.append(key)
                continue
            held.append((hit, key, None if text is None else len(texts)))
            texts += [] if text is None else [text]
        prints = self._pool.compute(texts)
        # Not kept: a later run is to try these again.
        self._checkpoint.add(failed, keep=False)
        operations, keys, right = [], {}, []
        for hit, key, number in held:
            body = self._change(hit, None if number is None else prints[number])
            if body is None:
                right.append(key)
            else:
                operations.append(Operation("update", place_of(hit).header(hit), body))
                keys[hit["_index"], hit["_id"]] = key
        return operations, keys, right

    def _text(self, found: Mapping[str, Any]) -> tuple[str | None, str | None]:
        """Return the text of a document, or why it has none that can be read."""
        if "_source" not in found:
            return None, "the index keeps no _source, so the text cannot be read"
        try:
            return read_text(found["_source"], self._names), None
        except InvalidInputError as error:
            return None, str(error)

    def _change(self, found: Mapping[str, Any], fingerprint: int | None) -> dict[str, Any] | None:
        """Return the update that a document needs; ``None`` if it says what it should."""
        held = found["_source"].get(self._prefix)
        is_ours = isinstance(held, Mapping) and "fingerprint" in held
        if fingerprint is None:
            self._empty += 1
            if not is_ours:
                return None
            self._stale += 1
            return {"doc": {self._prefix: None}}
        wanted = fingerprint_fields(fingerprint, prefix=self._prefix, value=self._settings.value)[self._prefix]
        if isinstance(held, Mapping) and all(held.get(name) == value for name, value in wanted.items()):
            return None
        if is_ours:
            self._stale += 1
        # What was grouped by another fingerprint is due to be looked at by the next reconcile.
        grouped = {"at": self._at} if isinstance(held, Mapping) and held.get("group") else {}
        return {"doc": {self._prefix: {**wanted, **grouped}}}

    def _note(
        self,
        header: Mapping[str, Any],
        outcome: Outcome,
        keys: Mapping[tuple[str, str], int],
        done: list[int],
        conflicts: list[Place],
    ) -> None:
        index, id_ = header["_index"], header["_id"]
        if outcome.is_done and outcome.version is not None:
            self._changed += 1
            sequence, term = outcome.version
            done.append(self._key(index, id_, {"_seq_no": sequence, "_primary_term": term}))
        elif outcome.status == CONFLICT:
            conflicts.append(Place(index, id_, header.get("routing")))
        elif outcome.status != MISSING:
            self._fail(f"{index}/{id_}: {outcome.error}")
            self._checkpoint.add([keys[index, id_]], keep=False)

    def _handle_changed(self, hits: Hits, ahead: Sequence[Call]) -> Flow[list[Any]]:
        """Deal with a page of a later pass."""
        unknown = yield Compute(self._unknown, (hits,))
        if unknown:
            yield from self._again([place_of(hit) for hit, _ in unknown])
            yield Emit(self._progress())
        return (yield Together(ahead, concurrency=self._options.slices)) if ahead else []

    def _again(self, places: Sequence[Place]) -> Flow[None]:
        """Read what others have changed, and give it the fingerprint of what it says now."""
        self._at = yield Compute(now)
        for begin in range(0, len(places), BULK):
            part = places[begin : begin + BULK]
            seen: dict[tuple[str, str], int] = {}
            outcomes = yield from rewrite(part, partial(self._renew, seen), source=self._source)
            done: list[int] = []
            for place, outcome in zip(part, outcomes, strict=True):
                if outcome is None:
                    done += [seen[place.index, place.id]] if (place.index, place.id) in seen else []
                elif outcome.status in (CONFLICT, UNREADABLE):
                    self._left.append(f"{place.index}/{place.id}: {outcome.error}")
                else:
                    header = {"_index": place.index, "_id": place.id, "routing": place.routing}
                    self._note(header, outcome, seen, done, [])
            yield Compute(self._checkpoint.add, (done,))

    def _renew(
        self, seen: dict[tuple[str, str], int], place: Place, found: Mapping[str, Any]
    ) -> tuple[str, Any] | None:
        """Return the change that a document wants as it is *found* now, and note in *seen* which version that is."""
        key = self._key(place.index, place.id, found)
        text, reason = self._text(found)
        if reason is not None:
            self._fail(f"{place.index}/{place.id}: {reason}")
            self._checkpoint.add([key], keep=False)
            seen.pop((place.index, place.id), None)
            return None
        seen[place.index, place.id] = key
        fingerprint = None if text is None else self._pool.compute([text])[0]
        body = self._change(found, fingerprint)
        return None if body is None else ("update", body)

    def _fail(self, line: str) -> None:
        self._failed += 1
        self._failures.append(line)

    def _pace(self) -> Flow[None]:
        """Wait where the work is faster than it may be."""
        self._elapsed = (yield Compute(time.monotonic)) - self._began
        if self._options.documents_per_second is not None:
            ahead = self._seen / self._options.documents_per_second - self._elapsed
            if ahead > 0:
                yield Wait(ahead)

    def _progress(self, *, is_done: bool = False) -> BackfillProgress:
        failures, self._failures = tuple(self._failures), []
        left = None
        if self._options.dry_run:
            left = self._elapsed + self._changed * WRITE_SECONDS
        return BackfillProgress(
            self._total,
            self._seen,
            self._changed,
            self._stale,
            self._empty,
            failures,
            self._failed,
            left,
            is_done,
        )
