"""Decides which fingerprint the text of a document has now, and which update it needs. No request is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from es_simhash.errors import InvalidInputError
from es_simhash.hashing.pool import FingerprintPool, TextHashes
from es_simhash.mapping.fields import (
    FINGERPRINTED,
    NO_SOURCE,
    clearing,
    fingerprint_fields,
    is_broken,
    made_wrong,
    now,
    read_text,
    say_taken,
    users_content,
)
from es_simhash.mapping.mapping import NEEDED_FIELDS
from es_simhash.transport.protocol import Key, document_key
from es_simhash.upkeep.put_fields import Target
from es_simhash.writes.bulk import versioned_header
from es_simhash.writes.operations import Failure, Operation

Document = Mapping[str, Any]

NOT_INDEXED = "es_simhash_not_indexed"
"""Name of the query that matches documents without one of the fields that lookups read."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """
    What one version of a document needs: *operation*, for this version only, or ``None`` if its fields are right; and
    what is sent where the server refuses that as a bad request. *failure*: why its text cannot be read. *is_stale*: it
    has a fingerprint of another text. *is_empty*: its text has no features.
    """

    place: Key
    operation: Operation | None = None
    otherwise: Operation | None = None
    failure: Failure | None = None
    is_stale: bool = False
    is_empty: bool = False


class Judging(Protocol):
    """Decides what documents need that have *source*, and match what *marks* them; *targets*: by name of index."""

    source: list[str]
    marks: dict[str, Any]

    @property
    def targets(self) -> Mapping[str, Any]: ...

    def judge(self, documents: Sequence[Document]) -> list[Judgement]: ...


class Judge:
    """Compares documents with the fingerprints of their texts, each by the settings of its concrete index."""

    def __init__(self, prefix: str, targets: Mapping[str, Target], *, workers: int | None = None) -> None:
        self._prefix = prefix
        every = [target.settings for target in targets.values()]
        with_passages = [settings.passages is not None for settings in every]
        self._pool = FingerprintPool(every[0].scheme, workers=workers, passages=any(with_passages))
        self.targets = targets
        texts = dict.fromkeys(field for target in targets.values() for field in target.settings.text_fields)
        self.source = [*texts, prefix, f"{prefix}.*"]
        names = list(NEEDED_FIELDS)
        # Lookups read passages where all indices have them.
        if all(with_passages):
            names.append("passages")
        held = [{"exists": {"field": f"{prefix}.{name}"}} for name in names]
        # Beside a filter, even one that matches everything, a should clause excludes nothing: it only marks hits.
        self.marks = {"should": [{"bool": {"_name": NOT_INDEXED, "must_not": [{"bool": {"filter": held}}]}}]}

    def judge(self, documents: Sequence[Document]) -> list[Judgement]:
        """Return what each of *documents* needs; those to be grouped again have a new moment of grouping."""
        at, found = now(), [self._read(document) for document in documents]
        texts = [text for text in found if isinstance(text, str)]
        computed = iter(self._pool.compute(texts))
        return [
            Judgement(document_key(document), failure=text)
            if isinstance(text, Failure)
            else self._compare(document, TextHashes(None) if text is None else next(computed), at)
            for document, text in zip(documents, found, strict=True)
        ]

    def close(self) -> None:
        self._pool.close()

    def _read(self, document: Document) -> str | Failure | None:
        """Return the text of a document, ``None`` where it has none, or why it cannot be read."""
        index, id_ = document["_index"], document["_id"]
        if "_source" not in document:
            return Failure("unusable", index, id_, NO_SOURCE)
        try:
            return read_text(document["_source"], self.targets[index].settings.text_fields)
        except InvalidInputError as error:
            return Failure("unusable", index, id_, str(error))

    def _compare(self, document: Document, hashes: TextHashes, at: str) -> Judgement:
        target = self.targets[document["_index"]]
        terms = () if target.settings.passages is None else hashes.passages
        fields = fingerprint_fields(
            hashes.fingerprint, prefix=self._prefix, value=target.settings.value, passages=terms
        )
        wanted: dict[str, Any] = fields.get(self._prefix, {})
        if target.is_synthetic and "value" in wanted:
            wanted["value"] = int(wanted["value"])
        is_empty = hashes.fingerprint is None
        place = document_key(document)
        if (held := users_content(document["_source"], self._prefix)) is not None and not is_broken(held):
            # Where there is nothing to write, what is there is right.
            failure = Failure("taken", place.index, place.id, say_taken(held, self._prefix)) if wanted else None
            return Judgement(place, failure=failure, is_empty=is_empty)
        change, is_stale = change_of(document["_source"], wanted, prefix=self._prefix, at=at)
        body: dict[str, Any] = {"doc": change}
        if change is None and not is_empty and NOT_INDEXED in document.get("matched_queries", ()):
            # It was written before the mapping had our fields: _source has them, but no lookup finds it.
            body = {"doc": {self._prefix: wanted}, "detect_noop": False}
        operation = None if body["doc"] is None else Operation("update", versioned_header(document), body)
        return Judgement(place, operation, is_stale=is_stale, is_empty=is_empty)


def change_of(
    source: Mapping[str, Any], wanted: Mapping[str, Any], *, prefix: str, at: str
) -> tuple[dict[str, Any] | None, bool]:
    """
    Return the partial document that gives *source* the fields *wanted*, and whether its fingerprint is stale. ``None``
    instead of the partial document if nothing must change. *wanted* is empty for a text without features. *at*: the new
    moment of grouping for a document that was grouped by another fingerprint; the next reconcile examines it again.
    """
    held = source.get(prefix)
    ours = held if isinstance(held, Mapping) else {}

    def has(name: str) -> bool:
        return ours.get(name) is not None or source.get(f"{prefix}.{name}") is not None

    is_ours = has("fingerprint")
    # A document that never had a fingerprint may have a group of its own, as ingest gives it, but is no duplicate.
    is_ungrouped = not (is_ours or has("duplicate_of") or has("distance"))
    gone = [name for name in (FINGERPRINTED if is_ungrouped else made_wrong(wanted)) if name not in wanted]
    if not wanted:
        # Only what is there is taken out: a null that is new would be one more key in the user's document.
        return clearing(source, gone, prefix=prefix) or None, is_ours
    dotted: dict[str, Any] = {
        key: None for name in (*gone, *wanted) if source.get(key := f"{prefix}.{name}") is not None
    }
    unwanted = {name: None for name in gone if ours.get(name) is not None}
    new = {name for name, value in wanted.items() if ours.get(name) != value} | unwanted.keys()
    if not new and not dotted:
        return None, False
    # Groups depend neither on passages nor on the mark of a pipeline.
    is_other = bool(new - {"passages", "error"})
    is_grouped = is_other and "fingerprint" in wanted and has("group")
    changed = {prefix: {**wanted, **unwanted, **({"at": at} if is_grouped else {})}} if new else {}
    return changed | dotted, is_ours and is_other


@dataclass(frozen=True, slots=True)
class BackfillProgress:
    """
    The progress of a backfill; all numbers except *total* are sums since its beginning.

    Attributes:
        total:
            Number of documents to look at, as counted at the beginning, or *seen* if that is more.
        seen:
            Number of documents looked at; one that others changed meanwhile counts again.
        changed:
            Number of documents whose fields were written; in a dry run, that would be.
        stale:
            How many of these had a fingerprint, but not that of their text.
        empty:
            Number of documents whose text has no features; they carry no fingerprint.
        failures:
            The documents that could not be read or written, since the last report.
        failed:
            Number of these in all.
        is_done:
            Whether this is the last report.
        is_settled:
            ``False`` if others changed so much that the last pass still wrote: documents may have a fingerprint of an
            older text, or none. Run it again.
    """

    total: int
    seen: int
    changed: int
    stale: int
    empty: int
    failures: tuple[Failure, ...]
    failed: int
    is_done: bool = False
    is_settled: bool = True


FIRST_FAILURES = 100
"""So many failures of a whole run are kept."""
