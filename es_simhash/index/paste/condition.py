"""
What a document must have, as a tree without a language; ``esql`` and ``query_bar`` write it down in theirs.

A lookup plan asks for a number of matching clauses. These languages cannot count, so a plan becomes a tree of "any"
and "all" that the same fingerprints match. No text of a query is here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from es_simhash.arguments import check_count
from es_simhash.hashing import neighbour_terms, split_blocks, to_hex
from es_simhash.index.explain_plan import explain_plan
from es_simhash.index.fields import DEFAULT_PREFIX, Fields
from es_simhash.index.plan import Limits, LookupPlan
from es_simhash.index.plan_cost import IndexStats
from es_simhash.index.plan_radii import Radii, neighbour_count

__all__ = [
    "AllOf",
    "AnyOf",
    "Condition",
    "Exists",
    "NearBlock",
    "Not",
    "OneOf",
    "block_condition",
    "count_written_terms",
    "plan_to_paste",
]


@dataclass(frozen=True, slots=True)
class Exists:
    """The document has a value in *field*."""

    field: str


@dataclass(frozen=True, slots=True)
class OneOf:
    """The value of *field* is one of *values*."""

    field: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NearBlock:
    """The block term in *field* is within *radius* bits of *block*."""

    field: str
    block: int
    radius: int

    @property
    def values(self) -> tuple[str, ...]:
        """The block terms, nearest first."""
        return tuple(neighbour_terms(self.block, self.radius))


@dataclass(frozen=True, slots=True)
class Not:
    """The document does not match *part*."""

    part: Condition


@dataclass(frozen=True, slots=True)
class AllOf:
    """The document matches all *parts*."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """The document matches at least one of *parts*."""

    parts: tuple[Condition, ...]


Condition: TypeAlias = Exists | OneOf | NearBlock | Not | AllOf | AnyOf

# What a part of a plan comes to when nothing more can be asked: every document matches, or none does.
_ALL = AllOf(())
_NONE = AnyOf(())


def block_condition(fingerprint: int, plan: LookupPlan, *, prefix: str = DEFAULT_PREFIX) -> Condition:
    """
    Return the condition that the same documents match as the block terms of *plan* for *fingerprint*.

    A block at distance d from the block of the fingerprint matches as many clauses as it has radii of at least d. So
    "at least m clauses match" means: the first block matches c of them, which is one Hamming ball, and the other
    blocks match m - c, for some c.
    """
    to_hex(fingerprint)  # checks type and range
    fields = Fields(prefix)
    if plan.is_scan:
        return Exists(fields.fingerprint)
    blocks = zip(fields.blocks, split_blocks(fingerprint), plan.radii, strict=True)
    return _at_least(plan.minimum_should_match, list(blocks))


def _at_least(needed: int, blocks: list[tuple[str, int, Radii]]) -> Condition:
    """Return the condition that at least *needed* clauses of *blocks* match: each a field, a block and its radii."""
    if needed <= 0:
        return _ALL
    if not blocks:
        return _NONE
    (field, block, radii), *others = blocks
    # With the c-th largest radius as its distance at most, a block matches c clauses.
    largest_first = sorted(radii, reverse=True)
    ways: list[Condition] = []
    for matched in range(len(radii) + 1):
        rest = _at_least(needed - matched, others)
        if rest == _NONE:
            continue
        own = [NearBlock(field, block, largest_first[matched - 1])] if matched else []
        ways.insert(0, _all_of([*own, rest]))
        if rest == _ALL:
            break  # a block that matches more clauses is within the same ball
    return _any_of(ways)


def _all_of(parts: list[Condition]) -> Condition:
    flat = [each for part in parts for each in (part.parts if isinstance(part, AllOf) else (part,))]
    return flat[0] if len(flat) == 1 else AllOf(tuple(flat))


def _any_of(parts: list[Condition]) -> Condition:
    flat = [each for part in parts for each in (part.parts if isinstance(part, AnyOf) else (part,))]
    return flat[0] if len(flat) == 1 else AnyOf(tuple(flat))


def count_written_terms(condition: Condition) -> int:
    """
    Return how many values *condition* has where it is written down.
    """
    match condition:
        case NearBlock(radius=radius):
            return neighbour_count(radius)
        case OneOf(values=values):
            return len(values)
        case AllOf(parts=parts) | AnyOf(parts=parts):
            return sum(map(count_written_terms, parts))
        case Not(part=part):
            return count_written_terms(part)
        case _:
            return 1


def plan_to_paste(max_distance: int, *, documents: int, most_terms: int, is_checked: bool) -> LookupPlan:
    """
    Return the cheapest lookup plan whose condition has at most *most_terms* values; the scan where there is none.

    Args:
        max_distance:
            Largest distance in bits, inclusive.
        documents:
            Number of fingerprinted documents in the index.
        most_terms:
            Most values that the text may have.
        is_checked:
            Whether the server goes on to compute distances, so that candidates cost little.
    """
    check_count("documents", documents, 0, 1 << 62)
    for each in explain_plan(max_distance, stats=IndexStats(documents=documents), limits=Limits(scripts=is_checked)):
        plan = each.plan
        if plan.script == is_checked and count_written_terms(block_condition(0, plan)) <= most_terms:
            return plan
    raise AssertionError  # the scan, which has one value, is always among them
