"""
Judges the fingerprints of an index: faults and notes, from counts and sampled documents.

No request is made here; ``flows.upkeep.doctor`` gets the counts and documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from dataclasses import asdict, dataclass, field
from math import sqrt
from typing import Any, Literal

from es_simhash.errors import InvalidInputError
from es_simhash.hashing import Scheme, block_terms, fingerprints, from_hex
from es_simhash.index.documents import text_or_none
from es_simhash.index.fields import Fields
from es_simhash.index.similarity import shingle_set
from es_simhash.tables.notebook import Sheet
from es_simhash.tables.tabular import Tabular

__all__ = ["FEW_SHINGLES", "Diagnosis", "Finding", "judge_blocks", "judge_missing", "judge_sample"]

Severity = Literal["error", "warning", "note"]

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
        topic:
            ``mapping``, ``missing``, ``stale``, ``broken``, ``short``, ``hot``, ``numbers`` or ``texts``.
        message:
            What was found.
        advice:
            What to do.
    """

    severity: Severity
    topic: str
    message: str
    advice: str


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
        return {**asdict(self), "healthy": self.is_healthy}

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a row for each finding."""
        return [asdict(each) for each in self.findings]

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
    texts = Finding(
        "note",
        "texts",
        "the mapping does not record the text field, so texts were not examined",
        "record the text field: put_mapping, or es-simhash create --existing --text-field",
    )
    return [*findings, texts]


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
    return _find_wrong_values(hits, broken, rounded, numbers, fields.value)


def _find_wrong_values(
    hits: Sequence[Mapping[str, Any]], broken: Sequence[str], rounded: Sequence[str], numbers: int, field: str
) -> list[Finding]:
    """Return findings from the ids of *hits* with wrong values, and how many hold *field* as a number."""
    findings = []
    if broken:
        findings.append(
            Finding(
                "error",
                "broken",
                f"{_share(broken, hits)} have a fingerprint that is not 16 lower-case hex digits, or block terms that "
                f"are not its own, such as document {broken[0]!r}",
                "write the fields with this library only, and backfill these documents",
            )
        )
    if rounded:
        findings.append(
            Finding(
                "error",
                "numbers",
                f"{_share(rounded, hits)} have a {field} other than their fingerprint, such as {rounded[0]!r}",
                "a program that reads numbers as doubles, such as JavaScript, rounded them: backfill the index",
            )
        )
    elif numbers:
        findings.append(
            Finding(
                "note",
                "numbers",
                f"{numbers:,} of {len(hits):,} sampled documents hold {field} as a number, which a program that "
                "reads numbers as doubles, such as JavaScript, would round; therefore lookups use no scripts",
                "backfill the index: it writes decimal strings",
            )
        )
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
    absent = [hit["_id"] for hit, text in zip(hits, texts, strict=True) if text is None]
    return _find_wrong_texts(absent, stale, short, sampled=hits, known=known)


def _find_wrong_texts(
    absent: Sequence[str], stale: Sequence[str], short: Sequence[str], *, sampled: Sized, known: Sized
) -> list[Finding]:
    """Return findings from the ids of documents without text, with another one, and with a short one."""
    findings = []
    if absent:
        findings.append(
            Finding(
                "warning",
                "texts",
                f"{_share(absent, sampled)} have a fingerprint but no readable text, such as {absent[0]!r}",
                "verification cannot compare them: keep the text in _source, and let this user read it",
            )
        )
    if stale:
        findings.append(
            Finding(
                "error",
                "stale",
                f"{_share(stale, known)} have a fingerprint of another text, such as document {stale[0]!r}",
                "the text was updated without the fields, or is redacted for this user: backfill them, and send "
                "updates through with_fingerprints",
            )
        )
    if short:
        findings.append(
            Finding(
                "warning" if len(short) > len(known) / 4 else "note",
                "short",
                f"{_share(short, known)} have fewer than {FEW_SHINGLES} shingles, such as document {short[0]!r}",
                "one changed word changes many of their bits: look up with a preset or with verification",
            )
        )
    return findings


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
    if hits and text_fields and not lost:
        return [
            Finding(
                "note",
                "missing",
                f"documents without a fingerprint: {missing:,}; those examined ({len(hits):,}) have no features",
                "nothing: such texts match nothing",
            )
        ]
    detail = f"; {_share(lost, hits)} of those examined should have one" if hits and text_fields else ""
    return [Finding("error", "missing", f"documents without a fingerprint: {missing:,}{detail}", "backfill the index")]


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
            same = f"; {most_equal:,} documents share one fingerprint" if most_equal > count / 2 else ""
            findings.append(
                Finding(
                    "warning" if count > fingerprinted / 100 else "note",
                    "hot",
                    f"{name} {term!r} is in {count:,} documents; by chance it would be in {chance:,.1f}{same}",
                    "texts with much in common, such as boilerplate or copies: lookups near them read more; take "
                    "boilerplate out before fingerprinting, or group the copies",
                )
            )
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


def _share(part: Sized, whole: Sized) -> str:
    return f"{len(part):,} of {len(whole):,} sampled documents"
