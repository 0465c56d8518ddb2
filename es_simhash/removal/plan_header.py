"""What a plan says of itself: its indices, its rule, its guard rails, and what was asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from es_simhash.arguments import check_sendable
from es_simhash.errors import MappingError
from es_simhash.mapping.rule import Grouping, rule_words
from es_simhash.record import Record, read_record
from es_simhash.removal.guard_rails import Excess, Guards


def _say(words: Mapping[str, str], key: str, **values: object) -> str:
    return words[key].format(**values)


@dataclass(frozen=True, slots=True)
class PlanHeader(Record):
    """
    What holds for all lines of a plan.
    *index_uuids*: UUID of each concrete index, by name. *grouping*: as ``_meta`` records one. *at*: ISO 8601. *view*:
    the names that the user gave, such as an alias: documents that they do not show are neither counted nor regrouped.
    It is empty in a plan that Spark made, and for date math. *decided_by*: the fields of each index that the digests of
    documents are made of. *filter*: the queries that every document that goes must match. *decided*: how many
    duplicates are not in it because earlier decisions keep them. *shown*: the fields that people are shown first, and
    what each is, such as the title. *asked*: the arguments that the plan was made with.
    """

    _NAMES = "at index_uuids view prefix grouping decided_by filter decided count guards shown asked"
    _OPTIONAL = "view filter decided"

    index_uuids: Mapping[str, str]
    prefix: str
    grouping: Mapping[str, Any]
    count: int = 0
    guards: Guards = field(default_factory=Guards)
    at: str = ""
    view: tuple[str, ...] = ()
    decided_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    filter: tuple[Mapping[str, Any], ...] = ()
    decided: int | None = None
    shown: Mapping[str, str] = field(default_factory=dict)
    asked: Mapping[str, Any] = field(default_factory=dict)

    @property
    def has_view(self) -> bool:
        """Whether it was made for other names than those of its indices; they may show a part of these only."""
        return not self.index_uuids.keys() >= set(self.view)

    @property
    def title(self) -> str | None:
        """The field of titles, where one is shown."""
        return next((name for name, kind in self.shown.items() if kind == "title"), None)

    @property
    def excess(self) -> list[Excess]:
        """The shares that are too large by the numbers of the plan."""
        return self.guards.find_excess(self.count)

    @property
    def rule(self) -> str:
        """By what its documents are duplicates, in words."""
        return "; ".join(self.rule_parts())

    def rule_parts(self, language: str = "en") -> list[str]:
        """Return :attr:`rule` in parts; it is the JSON where another version wrote it, or an editor."""
        say = partial(_say, rule_words(language))
        try:
            return Grouping.from_dict(self.grouping).parts(say)
        except (MappingError, TypeError, ValueError):
            return [json.dumps(dict(self.grouping))]

    @classmethod
    def read(cls, plain: Any) -> PlanHeader:
        """Return the header that :meth:`to_dict` made *plain* of; raise ValueError if it is no such header."""
        header = read_record(cls, plain)
        if not header.index_uuids.keys() <= header.decided_by.keys():
            raise ValueError("'decided_by' lacks an index")
        # What requests are made of.
        names = [*header.index_uuids, *header.view, header.prefix]
        check_sendable("it", [*names, header.grouping, header.decided_by, header.filter])
        return header
