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
from es_simhash.mapping.fields import Fields, read_fingerprint, text_or_none
from es_simhash.record import Record
from es_simhash.removal.guard_rails import OneStays
from es_simhash.tables.notebook import Part, Sheet
from es_simhash.tables.tabular import Tabular
from es_simhash.texts.letters import have_fewer
from es_simhash.texts.measures import FEWEST_LETTERS

FindingKind = Literal[
    "mapping", "stale", "broken", "missing", "short", "hot", "lost_canonicals", "large_group", "short_text"
]


class Sentence(NamedTuple):
    message: str
    advice: str


_SHARE = "{part:,} of {whole:,} sampled documents"
SENTENCES: Mapping[FindingKind, Sentence] = {
    "mapping": Sentence("{index}: {fault}", "{advice}"),
    "stale": Sentence(
        f"{_SHARE} have a fingerprint of another text, such as document {{example!r}}",
        "the text was updated without the fields, or is redacted for this user: run es-simhash setup {index}, and send "
        "updates through ingest or with_fingerprints",
    ),
    "broken": Sentence(
        f"{_SHARE} have a fingerprint that is not 16 lower-case hex digits, or block terms or a number that are not "
        "its own, such as document {example!r}",
        "another program wrote the fields, or rounded the number as JavaScript does: run es-simhash setup {index}, and "
        "write the fields with this library only",
    ),
    "missing": Sentence(
        "documents without a fingerprint: {missing:,}; of {whole:,} that were read, {part:,} have words",
        "run es-simhash setup {index}",
    ),
    "short": Sentence(
        f"{_SHARE} have fewer than {{least}} letters, or 8 logographs, such as document {{example!r}}",
        "they say too little to be compared, and are near nothing: give title and text together as the text fields, or "
        "look up with es-simhash find {index} --preset identical",
    ),
    "hot": Sentence(
        "{field} {term!r} is in {documents:,} documents; by chance it would be in {chance:,}",
        "texts with much in common, such as template text or copies, make lookups slow: see them with es-simhash "
        "groups {index}, and leave template text out of the field",
    ),
    "lost_canonicals": Sentence(
        "documents that name a canonical that is not there, or that this login does not see: {documents:,}, in "
        "{groups:,} groups; who searches for documents that are no duplicates does not find them",
        "run es-simhash reconcile {index}, with all indices that are grouped together, by a login that sees all",
    ),
    "large_group": Sentence(
        "{documents:,} documents repeat document {group!r}",
        "look whether they are copies before you remove any: es-simhash groups {index} --min-size {documents}",
    ),
    "short_text": Sentence(
        "{documents:,} documents have the short text {text!r}, and {whole:,} of them that were read have {titles:,} "
        "different values of {field}",
        "they may be different documents: see them with es-simhash groups before you remove any, or compare both "
        "together: es-simhash setup {index} {options} --prefix simhash2",
    ),
}
"""The sentences of each kind."""

Severity = Literal["error", "warning", "note"]
Values = Mapping[str, int | float | str]

# A term with this many times the documents that chance would give it is reported.
_HOT = 20.0


@dataclass(frozen=True, slots=True)
class Finding(Record):
    """
    A fault of an index, or a note about it.
    *severity*: ``error``: near-duplicates are lost or wrong; ``warning``: lookups are slow or poor; ``note``: good to
    know. *values*: what the placeholders of its sentence stand for; ``quality.health`` has the sentences.
    """

    _NAMES = "severity kind message advice values"

    severity: Severity
    kind: FindingKind
    values: Values = field(default_factory=dict)

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
        return {"severity": self.severity, "kind": self.kind, "found": self.message, "what to do": self.advice}


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
        return [Sheet("Findings", self.to_dicts(), folded=("found", "what to do"))]

    def _notes(self) -> Mapping[str, Sequence[str]]:
        return {"not every document was looked at": self.reasons}


def judge_sample(
    hits: Sequence[Mapping[str, Any]], *, index: str, scheme: Scheme, text_fields: Sequence[str], prefix: str
) -> tuple[list[Finding], list[str]]:
    """
    Return findings from sampled documents of *index*, and what kept texts from being examined.
    *hits*: with the text fields and the object *prefix* in ``_source``, and with doc values of the fingerprint and the
    blocks. Without *text_fields* only the fingerprints are judged.
    """
    fields = Fields(prefix)
    found: dict[FindingKind, list[str]] = {"broken": [hit["_id"] for hit in hits if _is_broken(hit, fields)]}
    texts = [text_or_none(hit, text_fields) for hit in hits] if text_fields else []
    values = [_fingerprint(hit, fields.fingerprint) for hit in hits]
    known = [
        (hit["_id"], text, value)
        for hit, text, value in zip(hits, texts, values, strict=bool(texts))
        if text is not None and value is not None
    ]
    current = fingerprints([text for _, text, _ in known], scheme=scheme)
    short = have_fewer([text for _, text, _ in known], FEWEST_LETTERS).tolist()
    found["stale"] = [name for (name, _, value), now in zip(known, current, strict=True) if now != value]
    found["short"] = [name for (name, _, _), is_short in zip(known, short, strict=True) if is_short]
    is_mostly_short = len(found["short"]) > len(known) / 4
    severities: Mapping[FindingKind, Severity] = {"short": "warning" if is_mostly_short else "note"}
    findings = [
        Finding(
            severities.get(kind, "error"),
            kind,
            {
                "index": index,
                "part": len(names),
                "whole": len(hits if kind == "broken" else known),
                "example": names[0],
                "least": FEWEST_LETTERS,
            },
        )
        for kind, names in found.items()
        if names
    ]
    if not text_fields:
        return findings, ["the mapping does not record the text field, so texts were not examined"]
    unread = [hit["_id"] for hit, text in zip(hits, texts, strict=True) if text is None]
    said = f"{len(unread):,} sampled documents have no text that can be read, such as {unread[0]!r}" if unread else ""
    return findings, [said] if said else []


def _is_broken(hit: Mapping[str, Any], fields: Fields) -> bool:
    """Return whether the fingerprint, its block terms or its signed copy are not what this library writes."""
    value = _fingerprint(hit, fields.fingerprint)
    terms = tuple(((hit.get("fields") or {}).get(name) or [None])[0] for name in fields.blocks)
    if value is None or terms != block_terms(value):
        return True
    ours = (hit.get("_source") or {}).get(fields.prefix)
    number = ours.get("value") if isinstance(ours, Mapping) else None
    return number is not None and _unsigned(number) != value


def judge_missing(
    hits: Sequence[Mapping[str, Any]], missing: int, *, index: str, scheme: Scheme, text_fields: Sequence[str]
) -> list[Finding]:
    """Return the finding about *missing* documents without a fingerprint; *hits*: a sample of them."""
    texts = [text for hit in hits if (text := text_or_none(hit, text_fields)) is not None]
    lost = sum(value is not None for value in fingerprints(texts, scheme=scheme))
    if hits and text_fields and not lost:
        return []
    return [Finding("error", "missing", {"index": index, "missing": missing, "part": lost, "whole": len(texts)})]


def judge_blocks(counts: Mapping[str, Sequence[tuple[str, int]]], fingerprinted: int, *, index: str) -> list[Finding]:
    """
    Return a finding for each block field with a term that far more documents share than chance explains.
    *counts*: the most frequent term of each block field, if there is one, with its documents.
    """
    chance = fingerprinted / 2**16
    return [
        Finding(
            "warning" if documents > fingerprinted / 100 else "note",
            "hot",
            {"index": index, "field": name, "term": term, "documents": documents, "chance": round(chance, 1)},
        )
        for name, terms in counts.items()
        for term, documents in terms
        if documents > _HOT * (chance + sqrt(chance) + 1)
    ]


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


def _fingerprint(hit: Mapping[str, Any], name: str) -> int | None:
    return read_fingerprint(((hit.get("fields") or {}).get(name) or [None])[0])
