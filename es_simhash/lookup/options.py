"""
Options of a lookup, checked, and the values of options that the caller did not give.

No request is made here. What an option does lives in ``question``, ``search`` and the flows around them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeVar, get_args

from es_simhash.arguments import check_choice, check_count, check_name, check_names
from es_simhash.errors import IncompleteSearchError
from es_simhash.lookup.plan import LookupPlan, check_plan
from es_simhash.lookup.query import check_filter, check_source
from es_simhash.lookup.verification import Verification, Verify, verification_of
from es_simhash.mapping.context import Context
from es_simhash.mapping.limits import DEFAULT_MAX_DISTANCE, Limits, check_max_distance
from es_simhash.mapping.meta import IndexSettings
from es_simhash.texts.presets import Preset, get_preset
from es_simhash.transport.names import Index

OnIncomplete = Literal["raise", "return"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """
    The sizes of requests. The answers do not depend on them.

    Attributes:
        first_page:
            Hits of a first search, if no more are expected. Most searches do not fill the page, which costs next to
            nothing; a page that is too small costs the search a second time.
        next_page:
            Hits a page where one page does not hold all candidates.
        largest_page:
            Most hits a page; by default servers refuse more.
        ranked_from:
            Candidates from which on the nearest few are found sooner in order of clauses matched.
        fingerprints:
            Near fingerprints whose documents are asked for together.
        batch:
            Lookups in one multi-search.
        batch_in_memory:
            Lookups in one search where fingerprints are in memory, which has no answer for most of them.
        shared:
            Most lookups in one search.
        shared_terms:
            Most block terms in one search of several lookups, which keeps its body small.
        shared_passing:
            Most documents, for each lookup of a shared search, whose distance to every one of them is computed.
    """

    first_page: int = 2_000
    next_page: int = 5_000
    largest_page: int = 10_000
    ranked_from: int = 50_000
    fingerprints: int = 1_000
    batch: int = 100
    batch_in_memory: int = 1_000
    shared: int = 50
    shared_terms: int = 6_000
    shared_passing: int = 12_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """
    The keyword arguments of the client's find methods, checked.

    Raises:
        TypeError: If one has the wrong type.
        InvalidInputError: If one has a value that cannot be used.
    """

    max_distance: int | None = None
    size: int | None = None
    filter: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None
    exclude_ids: Iterable[str] = ()
    source: bool | Sequence[str] = False
    routing: str | None = None
    plan: LookupPlan | None = None
    on_incomplete: OnIncomplete = "raise"
    verify: Verify | None = None
    preset: str | Preset | None = None
    sizes: Sizes = Sizes()
    verification: Verification | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        preset = None if self.preset is None else get_preset(self.preset)
        if preset is not None and self.max_distance is None:
            object.__setattr__(self, "max_distance", preset.max_distance)
        verify = preset is not None if self.verify is None else self.verify
        object.__setattr__(self, "verification", verification_of(verify, preset=preset))
        if self.max_distance is not None:
            check_max_distance(self.max_distance)
        if self.size is not None:
            check_count("size", self.size, 1)
        if self.routing is not None:
            check_name("routing", self.routing)
        if self.plan is not None:
            check_plan(self.plan, 0)
        check_filter(self.filter)
        check_source(self.source)
        object.__setattr__(self, "exclude_ids", check_names("exclude_ids", self.exclude_ids, of="ids"))
        check_choice("on_incomplete", self.on_incomplete, get_args(OnIncomplete))


def effective_distance(settings: IndexSettings, options: Options) -> int:
    """
    Return the max_distance that applies: the caller's, else the index's, else 3 bits.
    """
    for distance in (options.max_distance, settings.max_distance):
        if distance is not None:
            return distance
    return DEFAULT_MAX_DISTANCE


def usable_limits(context: Context, index: Index, settings: IndexSettings) -> Limits:
    """
    Return what the server allows queries of *index*; no scripts if the field that they read may be missing or rounded.
    """
    limits = context.limits(index)
    return limits if settings.allows_scripts else replace(limits, scripts=False)


class _Answer(Protocol):
    """What answers of lookups have in common."""

    @property
    def complete(self) -> bool: ...
    @property
    def reasons(self) -> tuple[str, ...]: ...
    def __len__(self) -> int: ...


_A = TypeVar("_A", bound=_Answer)


def check_complete(answer: _A, on_incomplete: OnIncomplete, *, what: str = "near-duplicates") -> _A:
    """
    Return *answer*, which has *what*, if it is complete, or if the caller asked for incomplete answers.

    Raises:
        IncompleteSearchError: Otherwise; it carries the answer.
    """
    if answer.complete or on_incomplete == "return":
        return answer
    raise IncompleteSearchError(
        f"{what} may be missing: {'; '.join(answer.reasons)}; the {len(answer)} found are in .results, "
        'or pass on_incomplete="return"',
        results=answer,
        reasons=answer.reasons,
    )
