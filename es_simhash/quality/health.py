"""
The findings of a sample: when there is one, how grave it is, and the sentence that says it. No request is made.

``report/words.zh.json`` has the sentences in Chinese. A name in braces is a value of the finding.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import sqrt
from typing import Any, Literal, NamedTuple

from es_simhash.hashing import Scheme, block_terms, fingerprints
from es_simhash.mapping.faults import Fault
from es_simhash.mapping.fields import Fields, read_fingerprint, text_or_none
from es_simhash.record import Record
from es_simhash.removal.guard_rails import OneStays
from es_simhash.tables.notebook import Part, Sheet
from es_simhash.tables.tabular import Tabular
from es_simhash.texts.shingle_sets import shingle_sets

FindingKind = Literal[
    "not_ready",
    "no_source",
    "partial_source",
    "text_field_unknown",
    "unreadable_texts",
    "broken",
    "rounded",
    "stale",
    "short",
    "missing",
    "missing_of_sample",
    "hot",
    "large_group",
    "short_text",
    "lost_canonicals",
]


class Sentence(NamedTuple):
    topic: str
    message: str
    advice: str


_SHARE = "{part:,} of {whole:,} sampled documents"
SENTENCES: Mapping[FindingKind, Sentence] = {
    "not_ready": Sentence("mapping", "{index}: {fault}", "{advice}"),
    "no_source": Sentence("mapping", f"{{index}}: {Fault('no_source')}", Fault("no_source").advice),
    "partial_source": Sentence(
        "mapping", f"{{index}}: {Fault('partial_source', found='{left_out}')}", Fault("partial_source").advice
    ),
    "text_field_unknown": Sentence(
        "texts",
        "the mapping does not record the text field, so texts were not examined",
        "record the text field with setup(index, text_field=FIELD)",
    ),
    "unreadable_texts": Sentence(
        "texts",
        f"{_SHARE} have a fingerprint but no readable text, such as {{example!r}}",
        "verification cannot compare them: keep the text in _source, and let this user read it",
    ),
    "broken": Sentence(
        "broken",
        f"{_SHARE} have a fingerprint that is not 16 lower-case hex digits, or block terms that are not its own, such "
        "as document {example!r}",
        "write the fields with this library only, and backfill these documents",
    ),
    "rounded": Sentence(
        "numbers",
        f"{_SHARE} have a {{field}} other than their fingerprint, such as {{example!r}}",
        "a program that reads numbers as doubles, such as JavaScript, rounded them: backfill the index",
    ),
    "stale": Sentence(
        "stale",
        f"{_SHARE} have a fingerprint of another text, such as document {{example!r}}",
        "the text was updated without the fields, or is redacted for this user: backfill them, and send updates "
        "through ingest or with_fingerprints",
    ),
    "lost_canonicals": Sentence(
        "groups",
        "documents that name a canonical that is not there: {documents:,}, in {groups:,} groups; who searches for "
        "documents that are no duplicates does not find them",
        "run reconcile over all indices that are grouped together",
    ),
    "short": Sentence(
        "short",
        f"{_SHARE} have fewer than {{least}} shingles (runs of some 7 letters, or of 5 Chinese characters), such as "
        "document {example!r}",
        "one changed word changes many of their bits: look up with a preset or with verification",
    ),
    "missing": Sentence("missing", "documents without a fingerprint: {missing:,}", "backfill the index"),
    "missing_of_sample": Sentence(
        "missing",
        f"documents that may lack their fingerprint: {{missing:,}}; {_SHARE} of those examined should have one",
        "backfill the index",
    ),
    "hot": Sentence(
        "hot",
        "{field} {term!r} is in {documents:,} documents; by chance it would be in {chance:,}",
        "texts with much in common, such as template text or copies: lookups near them read more; leave template text "
        "out of the field, or group the copies",
    ),
    "short_text": Sentence(
        "texts",
        "{documents:,} documents have the short text {text!r}, and {whole:,} of them that were read have {titles:,} "
        "different values of {field}",
        "they may be different documents: see them with es-simhash groups before you remove any",
    ),
    "large_group": Sentence(
        "groups",
        "{documents:,} documents repeat document {group!r}",
        "look whether they are copies before you remove any: es-simhash groups {index} --min-size {documents}",
    ),
}
"""The sentences of each kind."""

Severity = Literal["error", "warning", "note"]
Values = Mapping[str, int | float | str]

FEW_SHINGLES = 10
"""Below so many shingles (12 words of English, 14 characters of Chinese) one changed word moves many bits."""

# A term with this many times the documents that chance would give it is reported.
_HOT = 20.0


@dataclass(frozen=True, slots=True)
class Finding(Record):
    """
    A fault of an index, or a note about it.
    *severity*: ``error``: near-duplicates are lost or wrong; ``warning``: lookups are slow or poor; ``note``: good to
    know. *values*: what the placeholders of its sentence stand for; ``quality.health`` has the sentences.
    """

    _NAMES = "severity topic message advice kind values"

    severity: Severity
    kind: FindingKind
    values: Values = field(default_factory=dict)

    @property
    def topic(self) -> str:
        """``mapping``, ``missing``, ``stale``, ``broken``, ``short``, ``hot``, ``numbers``, ``texts`` or ``groups``."""
        return SENTENCES[self.kind].topic

    @property
    def message(self) -> str:
        return SENTENCES[self.kind].message.format(**self.values)

    @property
    def advice(self) -> str:
        return SENTENCES[self.kind].advice.format(**self.advice_values)

    @property
    def advice_values(self) -> Values:
        """The values in an advice: the index is an argument of a command there, and quoted for the shell."""
        return {**self.values, "index": shlex.quote(str(self.values.get("index", "INDEX")))}

    def to_row(self) -> dict[str, Any]:
        return {"severity": self.severity, "topic": self.topic, "message": self.message, "advice": self.advice}


@dataclass(frozen=True, slots=True)
class Diagnosis(Tabular):
    """
    The health of one index.
    *sampled*: how many fingerprinted documents were drawn at random and read. *findings*: errors first. *reasons*: why
    the figures are not about all documents; empty if they are.
    """

    index: str
    documents: int = 0
    fingerprinted: int = 0
    sampled: int = 0
    findings: tuple[Finding, ...] = ()
    reasons: tuple[str, ...] = field(default=())

    @property
    def is_healthy(self) -> bool:
        """Whether no error was found, and every document asked for was looked at."""
        return not self.reasons and all(finding.severity != "error" for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        findings = [finding.to_dict() for finding in self.findings]
        return {**asdict(replace(self, findings=())), "findings": findings, "healthy": self.is_healthy}

    def to_dicts(self) -> list[dict[str, Any]]:
        return [finding.to_row() for finding in self.findings]

    def _title(self) -> str:
        state = "healthy" if self.is_healthy else "not healthy"
        return f"{self.index}: {state}; {self.fingerprinted:,} of {self.documents:,} documents have a fingerprint"

    def _sheets(self) -> Sequence[Part]:
        findings = [
            {
                "severity": finding.severity,
                "topic": finding.topic,
                "found": finding.message,
                "what to do": finding.advice,
            }
            for finding in self.findings
        ]
        return [Sheet("Findings", findings, folded=("found", "what to do"))]

    def _notes(self) -> Mapping[str, Sequence[str]]:
        return {"not every document was looked at": self.reasons}


def judge_sample(
    hits: Sequence[Mapping[str, Any]], *, scheme: Scheme, text_fields: Sequence[str], prefix: str
) -> list[Finding]:
    """
    Return findings from sampled documents: stale and broken fingerprints, missing and short texts.
    *hits*: with the text fields and the object *prefix* in ``_source``, and with doc values of the fingerprint and the
    blocks. Without *text_fields* only the fingerprints are judged.
    """
    findings = _judge_values(hits, Fields(prefix))
    if text_fields:
        return findings + _judge_texts(hits, scheme, text_fields, Fields(prefix))
    return [*findings, Finding("note", "text_field_unknown")]


def _judge_values(hits: Sequence[Mapping[str, Any]], fields: Fields) -> list[Finding]:
    """Return findings about the fields themselves: fingerprint, block terms, and the signed copy."""
    broken: list[str] = []
    rounded: list[str] = []
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
            rounded += [] if _unsigned(number) == value else [hit["_id"]]
    findings = []
    if broken:
        findings.append(Finding("error", "broken", _share(broken, hits)))
    if rounded:
        findings.append(Finding("error", "rounded", {**_share(rounded, hits), "field": fields.value}))
    return findings


def _judge_texts(
    hits: Sequence[Mapping[str, Any]], scheme: Scheme, text_fields: Sequence[str], fields: Fields
) -> list[Finding]:
    values = [_fingerprint(hit.get("fields") or {}, fields.fingerprint) for hit in hits]
    texts = [text_or_none(hit, text_fields) for hit in hits]
    known = [
        (hit["_id"], text, value)
        for hit, text, value in zip(hits, texts, values, strict=True)
        if text is not None and value is not None
    ]
    current = fingerprints([text for _, text, _ in known], scheme=scheme)
    stale = [name for (name, _, value), now in zip(known, current, strict=True) if now != value]
    shingles = shingle_sets([text for _, text, _ in known])
    short = [name for (name, _, _), found in zip(known, shingles, strict=True) if found.size < FEW_SHINGLES]
    findings = []
    absent = [hit["_id"] for hit, text in zip(hits, texts, strict=True) if text is None]
    if absent:
        findings.append(Finding("warning", "unreadable_texts", _share(absent, hits)))
    if stale:
        findings.append(Finding("error", "stale", _share(stale, known)))
    if short:
        severity: Severity = "warning" if len(short) > len(known) / 4 else "note"
        findings.append(Finding(severity, "short", {**_share(short, known), "least": FEW_SHINGLES}))
    return findings


def judge_missing(
    hits: Sequence[Mapping[str, Any]], missing: int, drawn_from: int, *, scheme: Scheme, text_fields: Sequence[str]
) -> list[Finding]:
    """Return the findings about *missing* documents without a fingerprint; *hits*: a sample of *drawn_from* of them."""
    if not missing:
        return []
    texts = [text for hit in hits if (text := text_or_none(hit, text_fields)) is not None]
    lost = [value for value in fingerprints(texts, scheme=scheme) if value is not None]
    if not hits or not text_fields:
        return [Finding("error", "missing", {"missing": missing})]
    if not lost:
        return []
    return [Finding("error", "missing_of_sample", {"missing": drawn_from, "part": len(lost), "whole": len(hits)})]


def judge_blocks(counts: Mapping[str, Sequence[tuple[str, int]]], fingerprinted: int) -> list[Finding]:
    """
    Return a finding for each block field with a term that far more documents share than chance explains.
    *counts*: the most frequent term of each block field, if there is one, with its documents.
    """
    chance = fingerprinted / 2**16
    findings = []
    for name, terms in counts.items():
        for term, count in terms:
            if count > _HOT * (chance + sqrt(chance) + 1):
                severity: Severity = "warning" if count > fingerprinted / 100 else "note"
                values: Values = {"field": name, "term": term, "documents": count, "chance": round(chance, 1)}
                findings.append(Finding(severity, "hot", values))
    return findings


def judge_groups(largest: Sequence[tuple[str, int]], documents: int, *, index: str) -> list[Finding]:
    """Return a finding where the largest group, if there is one, takes in so many documents that most are no copies."""
    return [
        Finding("warning", "large_group", {"index": index, "group": name, "documents": members})
        for name, members in largest
        if OneStays(name, members, documents).is_suspicious
    ]


def _unsigned(value: Any) -> int | None:
    """Return the fingerprint that the signed copy *value* represents; ``None`` if it is not a whole number."""
    try:
        return int(value) % (1 << 64)
    except (TypeError, ValueError):
        return None


def _fingerprint(values: Mapping[str, Any], name: str) -> int | None:
    return read_fingerprint((values.get(name) or [None])[0])


def _share(part: Sequence[str], whole: Sequence[Any]) -> Values:
    """Return how many of the sampled documents *part* are, with an example."""
    return {"part": len(part), "whole": len(whole), "example": part[0]}
