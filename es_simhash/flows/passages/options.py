"""
Options of a lookup of passages, checked. No request is made here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from es_simhash.arguments import check_choice, check_count, check_name, check_names
from es_simhash.flows.lookup.options import OnIncomplete
from es_simhash.index.query import check_filter
from es_simhash.index.similarity import check_bound

__all__ = ["SHORTEST_RUN", "PassageOptions", "PassageSizes"]

SHORTEST_RUN = 100
"""Letters of the shortest run that is certain to be found (``hashing.winnowing.GUARANTEE``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageSizes:
    """
    The sizes of requests, and what one lookup may read.

    Attributes:
        first_page:
            Candidates read by the first search; most lookups have fewer.
        next_page:
            Candidates a page where there are more.
        terms:
            Most terms of one search.
        common:
            Candidates that are read without further ado. Where there are more, a term with more than a tenth of this
            number of documents is common, and documents that share only common terms with the text are compared last.
        counted:
            Most terms counted by one search.
    """

    first_page: int = 100
    next_page: int = 500
    terms: int = 10_000
    common: int = 10_000
    counted: int = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageOptions:
    """
    The keyword arguments of the client's methods for passages, checked.

    Raises:
        TypeError: If one has the wrong type.
        InvalidInputError: If one has a value that cannot be used.
    """

    min_contained: float = 0.8
    min_run: int = 200
    size: int | None = None
    filter: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None
    exclude_ids: Iterable[str] = ()
    routing: str | None = None
    on_incomplete: OnIncomplete = "raise"
    sizes: PassageSizes = PassageSizes()

    def __post_init__(self) -> None:
        object.__setattr__(self, "min_contained", check_bound(self.min_contained, name="min_contained"))
        check_count("min_run", self.min_run, SHORTEST_RUN)
        if self.size is not None:
            check_count("size", self.size, 1)
        if self.routing is not None:
            check_name("routing", self.routing)
        check_filter(self.filter)
        object.__setattr__(self, "exclude_ids", check_names("exclude_ids", self.exclude_ids, of="ids"))
        check_choice("on_incomplete", self.on_incomplete, get_args(OnIncomplete))
