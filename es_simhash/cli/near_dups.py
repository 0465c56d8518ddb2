"""
The near-duplicates that a lookup found, as a table, as JSON, and as the answer to one line of a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from es_simhash.cli.failures import describe, kind_of
from es_simhash.cli.output import count, print_json, print_line, warn
from es_simhash.cli.records import Record
from es_simhash.cli.tables import print_table
from es_simhash.cli.wording import for_shell
from es_simhash.errors import IncompleteSearchError
from es_simhash.hashing import Scheme, fingerprint, to_hex
from es_simhash.lookup.near_dups import NearDup, NearDups

_LEFT_OUT = {
    "shingles": "characters",
    "words": "characters",
    "keywords": "words: those of one character, stop words, and scripts other than Chinese and Latin without accents",
}


@dataclass(frozen=True, slots=True)
class NoFingerprint:
    """
    Why a text has no fingerprint, so that a lookup of it finds nothing.

    Attributes:
        kind:
            ``"empty"``, ``"blank"``, ``"no_letters"`` (it has no letters and no digits), ``"template"`` (it is nothing
            but boilerplate) or ``"left_out"`` (it has only what the scheme leaves out).
        scheme:
            Id of the scheme.
    """

    kind: str
    scheme: str

    @classmethod
    def of(cls, text: str, scheme: Scheme) -> NoFingerprint:
        """Return the reason for *text*, which has no features in *scheme*."""
        if not text.strip():
            return cls("blank" if text else "empty", scheme.id)
        if "boilerplate" in scheme.digests and fingerprint(text, scheme=scheme.without_boilerplate()) is not None:
            return cls("template", scheme.id)
        return cls("left_out" if any(map(str.isalnum, text)) else "no_letters", scheme.id)

    def __str__(self) -> str:
        """Return a sentence for people."""
        left_out = _LEFT_OUT.get(self.scheme.rpartition("-")[0], "words")
        why = {
            "empty": "is empty",
            "blank": "is blank",
            "no_letters": "has no letters and no digits",
            "template": "is nothing but template text, which the boilerplate of the scheme leaves out",
            "left_out": f"has only what the scheme {self.scheme} leaves out ({left_out})",
        }
        return f"the text {why[self.kind]}, so it has no fingerprint and matches nothing"


def print_near_dups(found: NearDups, *, as_json: bool) -> None:
    """
    Print what one lookup found.
    """
    if as_json:
        print_json(_to_dict(found))
        return
    limit = f"within {count(found.max_distance, 'bit')}"
    if not found:
        print_line(f"no near-duplicates {limit}")
        return
    fields = list(dict.fromkeys(name for each in found for name in each.source or ()))
    is_verified = any(each.similarity is not None for each in found)
    print_table(
        ["#bits", *(["#similarity"] if is_verified else []), "id", "index", "fingerprint", *fields],
        [_row(each, fields, is_verified=is_verified) for each in found],
        title=f"{count(len(found), 'near-duplicate')} {limit}",
    )
    for reason in found.unverified:
        warn(str(reason))


def print_answer(record: Record, text: str | None, outcome: NearDups | Exception) -> bool:
    """
    Print the answer to one line of a file as one line of JSON; return whether it failed.

    Args:
        record:
            The line.
        text:
            Its text; ``None`` where it has none.
        outcome:
            What the lookup found, or why it failed.
    """
    found = outcome.results if isinstance(outcome, IncompleteSearchError) else outcome
    shown: dict[str, Any] = {"line": record.line}
    if isinstance(found, NearDups):
        shown |= _to_dict(found)
        if text is not None and found.plan is None and found.scheme is not None:
            why = NoFingerprint.of(text, found.scheme)
            shown["no_fingerprint"] = {"kind": why.kind, "message": str(why)}
    if isinstance(outcome, Exception):
        shown["error"] = {"kind": kind_of(outcome), "message": for_shell(describe(outcome))}
    print_json(shown)
    return isinstance(outcome, Exception)


def _to_dict(found: NearDups) -> dict[str, Any]:
    return {
        "near_dups": [each.to_dict() for each in found],
        "complete": found.complete,
        "max_distance": found.max_distance,
        "scheme": None if found.scheme is None else str(found.scheme),
        "plan": None if found.plan is None else found.plan.name,
        "candidates": found.candidates,
        "unverified": list(map(str, found.unverified)),
    }


def _row(each: NearDup, fields: list[str], *, is_verified: bool) -> list[object]:
    similarity = "-" if each.similarity is None else f"{each.similarity:.3f}"
    source = each.source or {}
    return [
        each.distance,
        *([similarity] if is_verified else []),
        each.id,
        each.index,
        to_hex(each.fingerprint),
        *(" ".join(str(source.get(name, "")).split()) for name in fields),
    ]
