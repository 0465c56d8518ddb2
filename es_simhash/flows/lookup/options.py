"""
How to look up, apart from what: the wishes of a caller, and what applies where there are none.

No request is made here; what is done with the wishes is ``lookup``'s business, and that of the flows around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from es_simhash.errors import IncompleteSearchError, InvalidInputError, shorten
from es_simhash.flows.context import Context, Index
from es_simhash.flows.lookup.verify import DEFAULT_SIMILARITY, Verification, Verify, verification_of
from es_simhash.index.meta import IndexSettings
from es_simhash.index.plan import DEFAULT_MAX_DISTANCE, Limits, LookupPlan, check_max_distance
from es_simhash.index.presets import Preset, get_preset
from es_simhash.index.query import check_filter, check_source
from es_simhash.index.rescore import NearDups

__all__ = ["OnIncomplete", "Options", "checked", "effective_distance", "usable_limits"]

OnIncomplete = Literal["raise", "return"]


@dataclass(frozen=True, slots=True)
class Options:
    """
    How to look up, apart from what: the keyword arguments of the client's find methods.

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
    verification: Verification | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        similarity = DEFAULT_SIMILARITY
        if self.preset is not None:
            preset = get_preset(self.preset)
            similarity = preset.similarity
            if self.max_distance is None:
                object.__setattr__(self, "max_distance", preset.max_distance)
        verify = self.preset is not None if self.verify is None else self.verify
        object.__setattr__(self, "verification", verification_of(verify, similarity=similarity))
        if self.max_distance is not None:
            check_max_distance(self.max_distance)
        if self.size is not None and (isinstance(self.size, bool) or not isinstance(self.size, int)):
            raise TypeError(f"size must be an int or None, not {type(self.size).__name__}")
        if self.size is not None and self.size < 1:
            raise InvalidInputError(f"size {self.size} is too small: give 1 or more, or None for all")
        check_filter(self.filter)
        check_source(self.source)
        if isinstance(self.exclude_ids, (str, bytes)):
            raise TypeError(f"exclude_ids must be a list of ids, not one string {shorten(self.exclude_ids)}")
        object.__setattr__(self, "exclude_ids", tuple(self.exclude_ids))
        if self.on_incomplete not in ("raise", "return"):
            raise InvalidInputError(
                f"on_incomplete {shorten(self.on_incomplete)} is not known: give 'raise' or 'return'"
            )


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
    Return what the server allows queries of *index*, without scripts where documents lack the copy for them.
    """
    limits = context.limits(index)
    return limits if settings.value else replace(limits, scripts=False)


def checked(answer: NearDups, options: Options) -> NearDups:
    """
    Return *answer* if it is complete, or the caller takes it all the same.

    Raises:
        IncompleteSearchError: Otherwise; it carries the answer.
    """
    if answer.complete or options.on_incomplete == "return":
        return answer
    raise IncompleteSearchError(
        f"near-duplicates may be missing: {'; '.join(answer.reasons)}; the {len(answer)} found are in .results, "
        'or pass on_incomplete="return"',
        results=answer,
        reasons=answer.reasons,
    )
