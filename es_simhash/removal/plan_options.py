"""What a plan of removal is to contain: the arguments of ``plan_removal``; and the header that says it in the file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

from es_simhash.arguments import (
    FilePath,
    check_choice,
    check_field,
    check_inputs,
    check_items,
    check_options,
    check_sendable,
    option,
)
from es_simhash.errors import InvalidInputError, MappingError, shorten
from es_simhash.groups.grouping_request import GroupingRequest
from es_simhash.lookup.query import Filter, check_filter
from es_simhash.mapping.fields import Fields
from es_simhash.mapping.rule import Grouping, parse_key, rule_words
from es_simhash.record import Record, read_record
from es_simhash.removal.find_shown import names_of
from es_simhash.removal.guard_rails import DEFAULT_MAX_SHARE, Guards, check_max_share
from es_simhash.removal.losses import LOSSLESS, TAKEN_IN, Loss
from es_simhash.transport.protocol import is_index_name


def _check_shown(name: str, value: Any) -> tuple[str, ...]:
    return tuple(check_field(name, item) for item in check_items(name, value, of="names of fields"))


def _check_also(name: str, value: Any) -> tuple[Loss, ...]:
    return tuple(check_choice(name, item, TAKEN_IN) for item in check_items(name, value, of="classes"))


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """
    What a plan is to contain, checked.

    Args:
        preset:
            ``"identical"``, ``"near"``, ``"similar"``, ``"edited"`` or ``"noisy"``: a max_distance and a
            similarity, where these are not given beside it.
        verify:
            Smallest similarity of a duplicate to its canonical, 0 to 1, or a :class:`Verification`; by default what
            the index's grouping records, else 0.8. A plan always compares texts.
        grouping:
            As for :meth:`ingest`; they need not be those that are recorded.
        filter:
            A query, or a list of queries, that the duplicates match.
        also:
            Classes that are removed as well, where by default only ``"same"`` and ``"contained"`` are, which lose
            nothing: ``"few"`` (a few words of its own, and no number), ``"numbers"`` (only numbers differ),
            ``"title"`` (it has a title of its own), ``"rewritten"`` (more of its own).
        max_share:
            Largest share of all documents that :meth:`apply_removal` may remove, 0 to 1. A plan beyond it is made,
            and its ``excess`` says what will be refused.
        after:
            Files of earlier removals: what people kept there is not in this plan, also after a reindex under the
            same alias, where the id counts. Files of which none keeps a document of these indices are refused.
        show:
            Fields whose values people see first; by default title, URL, source and date, by their usual names,
            where the mapping or some documents have them. A title that is found is shown in any case.
    """

    grouping: GroupingRequest = field(default_factory=GroupingRequest)
    filter: Filter = None
    also: Sequence[Loss] = option((), _check_also)
    max_share: float = option(DEFAULT_MAX_SHARE, lambda _, share: check_max_share(share))
    after: Sequence[FilePath] = option((), check_inputs)
    show: Sequence[str] = option((), _check_shown)

    def __post_init__(self) -> None:
        check_filter(self.filter)
        if self.grouping.verify is False:
            raise InvalidInputError("a plan compares texts: leave verify=False out, or give a smallest similarity")
        check_options(self)

    @classmethod
    def of(cls, **given: Any) -> PlanOptions:
        """Return the options for the arguments of ``plan_removal``."""
        of_groups = {known.name for known in fields(GroupingRequest)} & given.keys()
        grouping = GroupingRequest(**{name: given.pop(name) for name in of_groups})
        return cls(grouping=grouping, **given)

    def asked(self) -> dict[str, Any]:
        """Return what differs from the defaults, as plain JSON values: two plans of one index differ by no more."""
        plain: dict[str, Any] = {}
        for options in (self, self.grouping):
            for own in fields(options):
                value = getattr(options, own.name)
                if own.name not in ("grouping", "max_share") and value not in (None, (), own.default):
                    plain[own.name] = value
        written: dict[str, Any] = json.loads(json.dumps(plain, default=str))
        return written


def allowed_with(also: Sequence[Loss]) -> frozenset[Loss]:
    """Return the classes that go without a decision of a person: those that lose nothing, and *also* these."""
    return frozenset((*LOSSLESS, *also))


def _say(words: Mapping[str, str], key: str, **values: object) -> str:
    return words[key].format(**values)


@dataclass(frozen=True, slots=True)
class PlanHeader(Record):
    """
    What holds for all lines of a plan.
    *index_uuids*: UUID of each concrete index, by name. *grouping*: as ``_meta`` records one. *at*: ISO 8601. *view*:
    the names that the user gave, such as an alias: documents that they do not show are neither counted nor regrouped.
    It is empty for date math. *decided_by*: the fields of each index that the digests of documents are made of.
    *text_fields*: those of them that are the text. *filter*: the queries that every document that goes must match.
    *decided*: how many duplicates are not in it because earlier decisions keep them. *also*: the classes that go beside
    those that lose nothing. *count*: all lines. *shown*: the fields that people are shown first, and what each is, such
    as the title. *asked*: the arguments that the plan was made with.
    """

    _NAMES = "at index_uuids view prefix grouping decided_by text_fields filter decided also count guards shown asked"
    _OPTIONAL = "view filter decided also"

    index_uuids: Mapping[str, str]
    prefix: str
    grouping: Mapping[str, Any]
    count: int = 0
    guards: Guards = field(default_factory=Guards)
    at: str = ""
    view: tuple[str, ...] = ()
    decided_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    text_fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    filter: tuple[Mapping[str, Any], ...] = ()
    decided: int | None = None
    also: tuple[Loss, ...] = ()
    shown: Mapping[str, str] = field(default_factory=dict)
    asked: Mapping[str, Any] = field(default_factory=dict)

    @property
    def has_view(self) -> bool:
        """Whether it was made for other names than those of its indices; they may show a part of these only."""
        return not self.index_uuids.keys() >= set(self.view)

    @property
    def titles(self) -> tuple[str, ...]:
        """The fields of titles that are shown."""
        return names_of("title", self.shown)

    @property
    def date(self) -> str | None:
        """The field of dates, where one is shown."""
        return next(iter(names_of("date", self.shown)), None)

    @property
    def allowed(self) -> frozenset[Loss]:
        """The classes that go without a decision of a person."""
        return allowed_with(self.also)

    @property
    def rule(self) -> str:
        """The rule of its duplicates in words; as JSON if this version cannot read it."""
        try:
            return str(Grouping.from_dict(self.grouping))
        except (MappingError, TypeError, ValueError):
            return json.dumps(dict(self.grouping))

    def who_stays(self, language: str) -> str | None:
        """Return which document stays, in words; ``None`` if it is the one that was grouped first, or not readable."""
        with suppress(MappingError, TypeError, ValueError):
            key = parse_key(Grouping.from_dict(self.grouping).order[0])
            if key.field != Fields(self.prefix).at:
                return key.words(partial(_say, rule_words(language)))
        return None

    @classmethod
    def read(cls, plain: Any) -> PlanHeader:
        """Return the header that :meth:`to_dict` made *plain* of; raise ValueError if it is no such header."""
        header = read_record(cls, plain)
        if not header.index_uuids.keys() <= header.decided_by.keys():
            raise ValueError("'decided_by' lacks an index")
        # What requests are made of.
        names = [*header.index_uuids, *header.view, header.prefix]
        check_sendable("it", [*names, header.grouping, header.decided_by, header.text_fields, header.filter])
        if strange := [name for name in header.index_uuids if not is_index_name(name)]:
            raise ValueError(f"no index has the name {shorten(strange[0])}")
        return header
