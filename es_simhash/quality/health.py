"""
Judges the fingerprints of an index: faults and notes, from counts and sampled documents.

No request is made here; ``flows.upkeep.doctor`` gets the counts and documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import sqrt
from typing import Any, Literal

from es_simhash.errors import InvalidInputError
from es_simhash.hashing import Scheme, block_terms, fingerprints, from_hex
from es_simhash.mapping.documents import text_or_none
from es_simhash.mapping.fields import Fields
from es_simhash.quality.edits import count_scripts
from es_simhash.quality.health_words import SENTENCES, FindingKind
from es_simhash.tables.notebook import Sheet
from es_simhash.tables.tabular import Tabular
from es_simhash.texts.similarity import shingle_set

Severity = Literal["error", "warning", "note"]
Values = Mapping[str, int | float | str]

FEW_SHINGLES = 10
"""Below so many shingles (12 words of English, 14 characters of Chinese) one changed word moves many bits."""

# A term with this many times the documents that chance would give it is reported.
_HOT = 20.0


@dataclass(frozen=True, slots=True)
class Finding:
    """
    A fault of an index, or a note about it.

    Attributes:
        severity:
            ``error``: near-duplicates are lost or wrong. ``warning``: lookups are slow or poor. ``note``: good to know.
        kind:
            What was found, as a word for programs.
        values:
            What its sentence says: numbers, names, an example.
    """

    severity: Severity
    kind: FindingKind
    values: Values = field(default_factory=dict)

    @property
    def topic(self) -> str:
        """``mapping``, ``missing``, ``stale``, ``broken``, ``short``, ``hot``, ``numbers``, ``texts`` or ``groups``."""
        return SENTENCES[self.kind].topic

    @property
    def message(self) -> str:
        """What was found, as a sentence for people."""
        return SENTENCES[self.kind].message.format(**self.values)

    @property
    def advice(self) -> str:
        """What to do, as a sentence for people."""
        return SENTENCES[self.kind].advice.format(**self.values)

    def to_row(self) -> dict[str, Any]:
        """Return what people read."""
        return {"severity": self.severity, "topic": self.topic, "message": self.message, "advice": self.advice}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return {**self.to_row(), "kind": self.kind, "values": dict(self.values)}


@dataclass(frozen=True, slots=True)
class Diagnosis(Tabular):
    """
    The health of one index.

    Attributes:
        index:
            What was examined.
        documents, fingerprinted:
            How many documents there are, and how many with a fingerprint.
        sampled:
            How many fingerprinted documents were drawn at random and read.
        findings:
            What was found, errors first.
        forecast:
            For each max_distance the plan that would be used and the candidates expected.
        reasons:
            Why the figures are not about all documents; empty if they are.
    """

    index: str
    documents: int = 0
    fingerprinted: int = 0
    sampled: int = 0
    findings: tuple[Finding, ...] = ()
    forecast: tuple[Mapping[str, Any], ...] = ()
    reasons: tuple[str, ...] = field(default=())

    @property
    def is_healthy(self) -> bool:
        """Whether there is no error."""
        return not self.reasons and all(each.severity != "error" for each in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        findings = [each.to_dict() for each in self.findings]
        return {**asdict(replace(self, findings=())), "findings": findings, "healthy": self.is_healthy}

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a row for each finding."""
        return [each.to_row() for each in self.findings]

    def _title(self) -> str:
        state = "healthy" if self.is_healthy else "not healthy"
        return f"{self.index}: {state}; {self.fingerprinted:,} of {self.documents:,} documents have a fingerprint"

    def _sheets(self) -> Sequence[Sheet]:
        reasons = [{"reason": each} for each in self.reasons]
        sheets = [Sheet("Findings", self.to_dicts()), Sheet("Lookups", self.forecast)]
        return [*sheets, Sheet("Not all documents were examined", reasons)] if reasons else sheets


def judge_sample(
    hits: Sequence[Mapping[str, Any]], *, scheme: Scheme, text_fields: Sequence[str], prefix: str
) -> list[Finding]:
    """
    Return findings from sampled documents with fingerprints: stale and broken fingerprints, missing and short texts.

    Args:
        hits:
            Hits with ``_source`` (text fields and our fields) and doc values of fingerprint and blocks.
        scheme:
            Scheme of the index.
        text_fields:
            Fields of the text; without them nothing can be said of texts.
        prefix:
            Name of the object that holds the fields.
    """
    findings = _judge_values(hits, Fields(prefix))
    if text_fields:
        return findings + _judge_texts(hits, scheme, text_fields, Fields(prefix))
    return [*findings, Finding("note", "text_field_unknown")]


def _judge_values(hits: Sequence[Mapping[str, Any]], fields: Fields) -> list[Finding]:
    """Return findings about the fields themselves: fingerprint, block terms, and the signed copy."""
    broken: list[str] = []
    rounded: list[str] = []
    numbers = 0
    for hit in hits:
        values = hit.get("fields") or {}
        value = _fingerprint(values, fields.fingerprint)
        terms = tuple((values.get(name) or [None])[0] for name in fields.blocks)
        if value is None or terms != block_terms(value):
            broken.append(hit["_id"])
            continue
        own = (hit.get("_source") or {}).get(fields.prefix)
        number = own.get("value") if isinstance(own, Mapping) else None
        if number is not None:
            numbers += not isinstance(number, str)
            rounded += [] if _unsigned(number) == value else [hit["_id"]]
    findings = []
    if broken:
        findings.append(Finding("error", "broken", _share(broken, hits)))
    if rounded:
        findings.append(Finding("error", "rounded", {**_share(rounded, hits), "field": fields.value}))
    elif numbers:
        findings.append(Finding("note", "numbers", {"part": numbers, "whole": len(hits), "field": fields.value}))
    return findings


def _judge_texts(
    hits: Sequence[Mapping[str, Any]], scheme: Scheme, text_fields: Sequence[str], fields: Fields
) -> list[Finding]:
    held = [_fingerprint(hit.get("fields") or {}, fields.fingerprint) for hit in hits]
    texts = [text_or_none(hit, text_fields) for hit in hits]
    known = [
        (hit["_id"], text, value)
        for hit, text, value in zip(hits, texts, held, strict=True)
        if text is not None and value is not None
    ]
    current = fingerprints([text for _, text, _ in known], scheme=scheme)
    stale = [name for (name, _, value), now in zip(known, current, strict=True) if now != value]
    short = [name for name, text, _ in known if shingle_set(text).size < FEW_SHINGLES]
    findings = _judge_scripts([text for _, text, _ in known], scheme)
    absent = [hit["_id"] for hit, text in zip(hits, texts, strict=True) if text is None]
    if absent:
        findings.append(Finding("warning", "unreadable_texts", _share(absent, hits)))
    if stale:
        findings.append(Finding("error", "stale", _share(stale, known)))
    if short:
        severity: Severity = "warning" if len(short) > len(known) / 4 else "note"
        findings.append(Finding(severity, "short", {**_share(short, known), "least": FEW_SHINGLES}))
    return findings


def _judge_scripts(texts: Sequence[str], scheme: Scheme) -> list[Finding]:
    scripts = count_scripts(texts, scheme)
    if scripts is None or not scripts.are_mixed:
        return []
    return [Finding("warning" if scripts.pairs else "note", "two_scripts", asdict(scripts))]


def judge_missing(
    hits: Sequence[Mapping[str, Any]], missing: int, *, scheme: Scheme, text_fields: Sequence[str]
) -> list[Finding]:
    """
    Return the findings about documents without a fingerprint, from a sample of them.

    Args:
        hits:
            Hits with the text fields in ``_source``.
        missing:
            How many there are in all.
        scheme:
            Scheme of the index.
        text_fields:
            Fields of the text.
    """
    if not missing:
        return []
    texts = [text for hit in hits if (text := text_or_none(hit, text_fields)) is not None]
    lost = [value for value in fingerprints(texts, scheme=scheme) if value is not None]
    if not hits or not text_fields:
        return [Finding("error", "missing", {"missing": missing})]
    if not lost:
        return [Finding("note", "featureless", {"missing": missing, "whole": len(hits)})]
    return [Finding("error", "missing_of_sample", {"missing": missing, "part": len(lost), "whole": len(hits)})]


def judge_blocks(counts: Mapping[str, Sequence[tuple[str, int]]], fingerprinted: int, most_equal: int) -> list[Finding]:
    """
    Return the block terms that far more documents share than chance explains.

    Args:
        counts:
            The most frequent terms of each block field, with their numbers of documents.
        fingerprinted:
            Number of fingerprinted documents.
        most_equal:
            Number of documents with the most frequent fingerprint.
    """
    chance = fingerprinted / 2**16
    findings = []
    for name, terms in counts.items():
        hot = [(term, count) for term, count in terms if count > _HOT * (chance + sqrt(chance) + 1)]
        if hot:
            term, count = hot[0]
            severity: Severity = "warning" if count > fingerprinted / 100 else "note"
            values: Values = {"field": name, "term": term, "documents": count, "chance": round(chance, 1)}
            if most_equal > count / 2:
                findings.append(Finding(severity, "hot_copies", {**values, "copies": most_equal}))
            else:
                findings.append(Finding(severity, "hot", values))
    return findings


def _unsigned(value: Any) -> int | None:
    """Return the fingerprint that the signed copy *value* represents; ``None`` if it is not a whole number."""
    try:
        return int(value) % (1 << 64)
    except (TypeError, ValueError):
        return None


def _fingerprint(values: Mapping[str, Any], name: str) -> int | None:
    try:
        return from_hex((values.get(name) or [""])[0])
    except (InvalidInputError, TypeError):
        return None


def _share(part: Sequence[str], whole: Sequence[Any]) -> Values:
    """Return how many of the sampled documents *part* are, with an example."""
    return {"part": len(part), "whole": len(whole), "example": part[0]}
