"""
The near-duplicates that a lookup found, as a table, as JSON, and as the answer to one line of a file.
"""

from __future__ import annotations

from typing import Any

from es_simhash.cli.failures import describe
from es_simhash.cli.output import count, print_json, print_line, warn
from es_simhash.cli.records import Record
from es_simhash.cli.tables import print_table
from es_simhash.errors import IncompleteSearchError
from es_simhash.hashing import to_hex
from es_simhash.index.rescore import NearDup, NearDups

__all__ = ["print_answer", "print_near_dups"]


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


def print_answer(record: Record, outcome: NearDups | Exception) -> bool:
    """
    Print the answer to one line of a file as one line of JSON; return whether it failed.
    """
    found = outcome.results if isinstance(outcome, IncompleteSearchError) else outcome
    shown: dict[str, Any] = {"line": record.line}
    if isinstance(found, NearDups):
        shown |= _to_dict(found)
    if isinstance(outcome, Exception):
        shown["error"] = describe(outcome)
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
