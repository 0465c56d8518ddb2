"""Decides which fingerprint the text of a document has now, and which update the document needs. No request is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_simhash.errors import InvalidInputError
from es_simhash.hashing.pool import FingerprintPool, TextHashes
from es_simhash.mapping.documents import read_text
from es_simhash.mapping.fields import CONTAINED_IN, OWNED, clearing, fingerprint_fields, made_wrong
from es_simhash.mapping.mapping import NEEDED_FIELDS
from es_simhash.transport.names import Key, document_key
from es_simhash.upkeep.targets_flow import Target
from es_simhash.writes.bulk_flow import versioned_header
from es_simhash.writes.operations import Failure, Operation

Document = Mapping[str, Any]

NOT_INDEXED = "es_simhash_not_indexed"
"""Name of the query that matches documents without one of the fields that lookups read."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """
    What one version of a document needs: *operation*, for this version only, or ``None`` if its fields are right.

    *key* names the version in the checkpoint. *failure*: why its text cannot be read. *is_stale*: it has a
    fingerprint of another text. *is_empty*: its text has no features.
    """

    place: Key
    key: int
    operation: Operation | None = None
    failure: Failure | None = None
    is_stale: bool = False
    is_empty: bool = False

    @property
    def is_right(self) -> bool:
        """Whether the fields of the document are right."""
        return self.operation is None and self.failure is None


class Judge:
    """Compares documents with the fingerprints of their texts, each by the settings of its concrete index."""

    def __init__(self, prefix: str, targets: Mapping[str, Target], pool: FingerprintPool) -> None:
        self._prefix = prefix
        self._pool = pool
        self.targets = dict(targets)
        # For each index whose text fields are not recorded yet: those that no document has shown so far.
        self._unseen = {name: set(each.text_fields) for name, each in targets.items() if not each.is_recorded}

    @property
    def source(self) -> list[str]:
        """The ``_source`` fields that are needed."""
        texts = dict.fromkeys(field for each in self.targets.values() for field in each.text_fields)
        return [*texts, self._prefix, f"{self._prefix}.*"]

    def not_indexed_query(self) -> dict[str, Any]:
        """Return the query named :data:`NOT_INDEXED`; lookups read passages where all indices have them."""
        names = list(NEEDED_FIELDS)
        if all(each.settings.passages is not None for each in self.targets.values()):
            names.append("passages")
        every = [{"exists": {"field": f"{self._prefix}.{name}"}} for name in names]
        return {"bool": {"_name": NOT_INDEXED, "must_not": [{"bool": {"filter": every}}]}}

    def key(self, index: str, id_: str, sequence: int, term: int) -> int:
        """Return the key of a version of a document."""
        from es_simhash.upkeep.ledger import version_key  # noqa: PLC0415 -- loads numpy

        return version_key(self.targets[index].uuid, id_, sequence, term)

    def key_of(self, document: Document) -> int:
        """Return the key of the version that *document* is."""
        return self.key(document["_index"], document["_id"], document["_seq_no"], document["_primary_term"])

    def judge(self, documents: Sequence[Document], *, at: str) -> list[Judgement]:
        """
        Return what each of *documents* needs; *at* is the new moment of grouping of those that must be
        grouped again.
        """
        found = [self._read(each) for each in documents]
        computed = iter(self._pool.compute_hashes([text for text in found if isinstance(text, str)]))
        return [
            Judgement(document_key(document), self.key_of(document), failure=text)
            if isinstance(text, Failure)
            else self._compare(document, TextHashes(None) if text is None else next(computed), at)
            for document, text in zip(documents, found, strict=True)
        ]

    def take_shown(self) -> list[str]:
        """Return the indices in which each text field has been seen in a document since the last call."""
        shown = [name for name, fields in self._unseen.items() if not fields]
        for name in shown:
            del self._unseen[name]
        return shown

    def never_seen(self) -> tuple[str, ...]:
        """Return the text fields that no document of any index has, of those that are not recorded yet."""
        unseen = list(self._unseen.values())
        others = {
            field for name, each in self.targets.items() if name not in self._unseen for field in each.text_fields
        }
        return tuple(sorted(set.intersection(*unseen) - others)) if unseen else ()

    def _read(self, document: Document) -> str | Failure | None:
        """Return the text of a document, ``None`` where it has none, or why it cannot be read."""
        index, id_ = document["_index"], document["_id"]
        if "_source" not in document:
            return Failure("unusable", index, id_, "the index stores no _source, so the text cannot be read")
        if unseen := self._unseen.get(index):
            unseen.difference_update([name for name in unseen if _holds(document["_source"], name)])
        try:
            return read_text(document["_source"], self.targets[index].text_fields)
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
        change, is_stale = change_of(document["_source"], wanted, prefix=self._prefix, at=at)
        body: dict[str, Any] = {"doc": change}
        if change is None and not is_empty and NOT_INDEXED in document.get("matched_queries", ()):
            # It was written before the mapping had our fields: _source has them, but no lookup finds it.
            body = {"doc": {self._prefix: wanted}, "detect_noop": False}
        place = document_key(document)
        operation = None if body["doc"] is None else Operation("update", versioned_header(document), body)
        return Judgement(place, self.key_of(document), operation, is_stale=is_stale, is_empty=is_empty)


def change_of(
    source: Mapping[str, Any], wanted: Mapping[str, Any], *, prefix: str, at: str
) -> tuple[dict[str, Any] | None, bool]:
    """
    Return the partial document that gives *source* the fields *wanted*, and whether its fingerprint is stale.

    ``None`` instead of the partial document if nothing must change. *wanted* is empty for a text without
    features. *at*: the new moment of grouping for a document that was grouped by another fingerprint; the next
    reconcile examines it again.
    """
    held = source.get(prefix)
    ours = held if isinstance(held, Mapping) else {}

    def has(name: str) -> bool:
        return ours.get(name) is not None or source.get(f"{prefix}.{name}") is not None

    is_ours = has("fingerprint")
    # A document that never had a fingerprint may have a group of its own, as ingest gives it, but is no duplicate.
    is_ungrouped = not (is_ours or has("duplicate_of") or has("distance"))
    gone = [name for name in (OWNED if is_ungrouped else made_wrong(wanted)) if name not in wanted]
    if not wanted:
        # Only what is there is taken out: a null that is new would be one more key in the user's document.
        return clearing(source, gone, prefix=prefix) or None, is_ours
    dotted: dict[str, Any] = {
        key: None for name in (*gone, *wanted) if source.get(key := f"{prefix}.{name}") is not None
    }
    unwanted = {name: None for name in gone if ours.get(name) is not None}
    is_tagged = CONTAINED_IN in unwanted
    unwanted.pop(CONTAINED_IN, None)
    new = {name for name, value in wanted.items() if ours.get(name) != value} | unwanted.keys()
    if is_tagged and not new.isdisjoint(("fingerprint", "passages")):
        unwanted[CONTAINED_IN] = None  # the text that stood in another one was changed
    if not new and not dotted:
        return None, False
    # Groups depend neither on passages nor on the mark of a pipeline.
    is_other = bool(new - {"passages", "error"})
    is_grouped = is_other and "fingerprint" in wanted and has("group")
    changed = {prefix: {**wanted, **unwanted, **({"at": at} if is_grouped else {})}} if new else {}
    return changed | dotted, is_ours and is_other


def _holds(source: Mapping[str, Any], field: str) -> bool:
    """Return whether *source* has any value in *field*, text or not."""
    try:
        return read_text(source, [field]) is not None
    except InvalidInputError:
        return True
