"""
Lookups as text to paste into query bars (KQL, in Dashboards DQL; Lucene), and the conditions of these and of ES|QL.

These languages cannot count matching clauses, so a plan becomes a tree of "any" and "all" that the same fingerprints
match. A bar computes no distance: it shows candidates. Nothing is sent.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

from es_simhash.arguments import check_choice, check_count
from es_simhash.errors import Argument, InvalidInputError, Said, shorten
from es_simhash.hashing import neighbour_terms, split_blocks, to_hex
from es_simhash.lookup.plan import LookupPlan, Radii, explain_plan, neighbour_count
from es_simhash.mapping.context import IndexStats
from es_simhash.mapping.fields import DEFAULT_PREFIX, Fields
from es_simhash.mapping.meta import DEFAULT_MAX_DISTANCE
from es_simhash.tables.hidden import HIDDEN, json_escape
from es_simhash.transport.limits import Limits


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
    Return the condition that matches the same documents as the block terms of *plan* for *fingerprint*.
    A block at distance d from the block of the fingerprint matches as many clauses as it has radii of at least d. So
    "at least m clauses match" means: the first block matches c of them, which is one Hamming ball, and the other blocks
    match m - c, for some c.
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
        ways.insert(0, _joined(AllOf, [*own, rest]))
        if rest == _ALL:
            break  # a block that matches more clauses is within the same ball
    return _joined(AnyOf, ways)


def _joined(kind: type[AllOf | AnyOf], parts: list[Condition]) -> Condition:
    flat = [each for part in parts for each in (part.parts if isinstance(part, kind) else (part,))]
    return flat[0] if len(flat) == 1 else kind(tuple(flat))


def count_written_terms(condition: Condition) -> int:
    """Return how many values *condition* has where it is written down."""
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
    Return the cheapest lookup plan whose condition has at most *most_terms* values; the scan if there is none.
    *is_checked*: whether the server then computes distances, so that candidates cost little.
    """
    check_count("documents", documents, 0, 1 << 62)
    for each in explain_plan(max_distance, stats=IndexStats(documents=documents), limits=Limits(scripts=is_checked)):
        plan = each.plan
        if plan.script == is_checked and count_written_terms(block_condition(0, plan)) <= most_terms:
            return plan
    raise AssertionError  # the scan, which has one value, is always among them


Language: TypeAlias = Literal["kql", "lucene"]
"""KQL is called DQL in Dashboards."""

Selection: TypeAlias = Literal["canonicals", "duplicates", "without-fingerprint"]

# Both products turn each value into a clause, and allow 1,024 clauses by default.
_MOST_BAR_TERMS = 1_000


def build_query_bar(
    language: Language,
    *,
    group: str | None = None,
    only: Selection | None = None,
    fingerprint: int | None = None,
    max_distance: int = DEFAULT_MAX_DISTANCE,
    documents: int = 1_000_000,
    prefix: str = DEFAULT_PREFIX,
) -> str:
    r"""
    Return the text for a query bar that shows a group, a kind of documents, or the candidates for a fingerprint.

    Give exactly one of *group*, *only* and *fingerprint*. Candidates contain all near-duplicates, and documents that
    are farther away.

    Args:
        language:
            "kql" or "lucene".
        group:
            Name of a group, as in the field ``group`` of its documents.
        only:
            "canonicals" (documents in groups that are not duplicates, also those without any duplicate), "duplicates",
            or "without-fingerprint".
        fingerprint:
            Unsigned 64-bit SimHash to look up.
        max_distance:
            Largest distance of a near-duplicate that is not lost, in bits, inclusive. No index is asked: give the
            distance that yours records.
        documents:
            Number of fingerprinted documents in the index; the cheapest plan depends on it.
        prefix:
            Name of the object that holds the fields.

    Raises:
        InvalidInputError: If an argument cannot be used, or max_distance needs more block terms than a bar takes.

    Examples:
        >>> build_query_bar("kql", group='the "first"')
        'simhash.group: "the \\"first\\""'
        >>> build_query_bar("lucene", only="duplicates")
        '_exists_:simhash.duplicate_of'
    """
    check_choice("language", language, get_args(Language))
    if sum(each is not None for each in (group, only, fingerprint)) != 1:
        raise InvalidInputError("give exactly one of group, only and fingerprint")
    if fingerprint is not None:
        return write(_candidates(fingerprint, max_distance, documents, prefix), language)
    return write(_selected(only, group, Fields(prefix)), language)


def _selected(only: Selection | None, group: str | None, fields: Fields) -> Condition:
    if group is not None:
        if not group:
            raise InvalidInputError("group '' is empty: give the value of the field group of a document")
        return OneOf(fields.group, (group,))
    kinds: dict[str, Condition] = {
        "canonicals": AllOf((Exists(fields.group), Not(Exists(fields.duplicate_of)))),
        "duplicates": Exists(fields.duplicate_of),
        "without-fingerprint": Not(Exists(fields.fingerprint)),
    }
    if not isinstance(only, str) or only not in kinds:
        raise InvalidInputError(f"only {shorten(only)} is unknown: give one of {', '.join(get_args(Selection))}")
    return kinds[only]


def _candidates(fingerprint: int, max_distance: int, documents: int, prefix: str) -> Condition:
    """Return the condition for candidates of *fingerprint*; raise InvalidInputError if it is too long for a bar."""
    plan = plan_to_paste(max_distance, documents=documents, most_terms=_MOST_BAR_TERMS, is_checked=False)
    if plan.is_scan:
        raise InvalidInputError(
            Said(
                Argument("max_distance"),
                f" {max_distance} needs more than the {_MOST_BAR_TERMS:,} block terms that a query bar takes: give a "
                "smaller one, or use Dev Tools text, ES|QL, or a field with the distance",
            )
        )
    return block_condition(fingerprint, plan, prefix=prefix)


class _Language(NamedTuple):
    exists: str
    one_of: str
    words: tuple[str, str, str]


_LANGUAGES = {
    "kql": _Language("{}: *", "{}: {}", ("and", "or", "not")),
    "lucene": _Language("_exists_:{}", "{}:{}", ("AND", "OR", "NOT")),
    "esql": _Language("{} IS NOT NULL", "{} IN {}", ("AND", "OR", "NOT")),
}


def write(condition: Condition, language: Language | Literal["esql"]) -> str:
    """Return *condition* in a language. Lucene's query parser has no precedence: what is mixed has brackets."""
    exists, one_of, (every, some, no) = _LANGUAGES[language]
    name = esql_name if language == "esql" else str

    def grouped(part: Condition) -> str:
        return f"({write(part, language)})" if isinstance(part, (AllOf, AnyOf)) else write(part, language)

    match condition:
        case Exists(field=field):
            return exists.format(name(field))
        case OneOf(field=field, values=values) | NearBlock(field=field, values=values):
            if language == "esql":
                return one_of.format(name(field), f"({', '.join(map(esql_string, values))})")
            written = list(map(_quoted, values)) if isinstance(condition, OneOf) else values
            return one_of.format(field, written[0] if len(written) == 1 else f"({f' {some} '.join(written)})")
        case Not(part=part):
            return f"{no} {grouped(part)}"
        case AllOf(parts=parts):
            return f" {every} ".join(map(grouped, parts))
        case AnyOf(parts=parts):
            return f" {some} ".join(map(grouped, parts))


# A query bar is one line, and what cannot be seen cannot be checked: both languages know escapes for such characters.
_UNSEEN = re.compile(f"[\t\n\xa0\u200b-\u200f\u202f]|{HIDDEN}")


def _quoted(text: str) -> str:
    """Return *text* as a phrase, in which neither language reads an operator; their escapes within it are the same."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    seen = _UNSEEN.sub(lambda match: json_escape(match[0]), escaped)
    return f'"{seen}"'


def esql_name(field: str) -> str:
    """Return the name of one of our fields, quoted where it could be read as something else than a name."""
    prefix, _, name = field.partition(".")
    return f"{prefix}.{name}" if prefix == DEFAULT_PREFIX else f"`{prefix}`.{name}"


def esql_string(text: str) -> str:
    """Return *text* as a string of ES|QL."""
    for plain, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        text = text.replace(plain, escaped)
    return f'"{text}"'
