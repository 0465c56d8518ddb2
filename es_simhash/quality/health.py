"""
The findings of a sample: when there is one, how grave it is, and the sentence that says it. No request is made.

``report/words.zh.json`` has the sentences in Chinese. A name in braces is a value of the finding.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from es_simhash.hashing import Scheme, block_terms, fingerprints
from es_simhash.mapping.fields import Fields, read_fingerprint, text_or_none
from es_simhash.record import Record
from es_simhash.tables.notebook import Part, Sheet
from es_simhash.tables.tabular import Tabular
from es_simhash.texts.letters import have_fewer
from es_simhash.texts.measures import FEWEST_LETTERS

FindingKind = Literal["mapping", "stale", "broken", "short", "lost_canonicals", "large_group", "short_text"]


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
    "short": Sentence(
        f"{_SHARE} have fewer than {{least}} letters, or 8 logographs, such as document {{example!r}}",
        "they say too little to be compared, and are near nothing: give title and text together as the text fields, or "
        "look up with es-simhash find {index} --preset identical",
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
class Diagnosis(Tabular, Record):
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
    reasons: tuple[str, ...] = ()

    @property
    def is_healthy(self) -> bool:
        """Whether no error was found, and every document asked for was looked at."""
        return not self.reasons and all(finding.severity != "error" for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return {**Record.to_dict(self), "healthy": self.is_healthy}

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
    broken = [hit["_id"] for hit in hits if _is_broken(hit, fields)]
    unread, known, texts = list[str](), list[tuple[str, int]](), list[str]()
    for hit in hits:
        text, value = text_or_none(hit, text_fields) if text_fields else None, _fingerprint(hit, fields.fingerprint)
        if text is None:
            unread.append(hit["_id"])
        elif value is not None:
            known.append((hit["_id"], value))
            texts.append(text)
    current = fingerprints(texts, scheme=scheme)
    stale = [name for (name, value), now in zip(known, current, strict=True) if now != value]
    are_short = have_fewer(texts, FEWEST_LETTERS).tolist()
    short = [name for (name, _), is_short in zip(known, are_short, strict=True) if is_short]

    def finding(severity: Severity, kind: FindingKind, names: Sequence[str], whole: int) -> list[Finding]:
        values: Values = {"index": index, "part": len(names), "whole": whole, "least": FEWEST_LETTERS}
        return [Finding(severity, kind, {**values, "example": names[0]})] if names else []

    findings = [
        *finding("error", "broken", broken, len(hits)),
        *finding("error", "stale", stale, len(known)),
        *finding("note", "short", short, len(known)),
    ]
    if not text_fields:
        return findings, ["the mapping does not record the text field, so texts were not examined"]
    if not unread:
        return findings, []
    return findings, [f"{len(unread):,} sampled documents have no text that can be read, such as {unread[0]!r}"]


def _is_broken(hit: Mapping[str, Any], fields: Fields) -> bool:
    """Return whether the fingerprint, its block terms or its signed copy are not what this library writes."""
    value = _fingerprint(hit, fields.fingerprint)
    terms = tuple(((hit.get("fields") or {}).get(name) or [None])[0] for name in fields.blocks)
    if value is None or terms != block_terms(value):
        return True
    ours = (hit.get("_source") or {}).get(fields.prefix)
    number = ours.get("value") if isinstance(ours, Mapping) else None
    return number is not None and _unsigned(number) != value


def _unsigned(value: Any) -> int | None:
    """Return the fingerprint that the signed copy *value* represents; ``None`` if it is not a whole number."""
    try:
        return int(value) % (1 << 64)
    except (TypeError, ValueError):
        return None


def _fingerprint(hit: Mapping[str, Any], name: str) -> int | None:
    return read_fingerprint(((hit.get("fields") or {}).get(name) or [None])[0])
