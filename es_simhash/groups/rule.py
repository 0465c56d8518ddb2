"""How an index is grouped, as its ``_meta`` records it so that all writers agree: plain values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from es_simhash.arguments import check_choice, check_field
from es_simhash.errors import InvalidInputError, MappingError, WrongTypeError, shorten
from es_simhash.groups.order import BY_ID, LONGEST, Canonical, OrderKey, check_order, parse_key
from es_simhash.hashing import get_scheme
from es_simhash.lookup.options import Verification, Verified, measure_of
from es_simhash.mapping.meta import DEFAULT_MAX_DISTANCE, IndexSettings, check_max_distance, no_text_field
from es_simhash.texts.measures import WORD_SHINGLES, TextMeasure
from es_simhash.texts.presets import Preset, get_preset
from es_simhash.texts.similarity import DEFAULT_SIMILARITY, check_bound

# Largest first: a span is written in the largest unit that divides it.
_UNITS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_SPAN = re.compile(r"([0-9]{1,15})(d|h|m|s|ms)")


@dataclass(frozen=True, slots=True)
class Within:
    """A date field, and the largest difference of dates between neighbours, inclusive."""

    field: str
    milliseconds: int

    @property
    def span(self) -> str:
        """The difference as text, such as ``7d``."""
        unit = next(unit for unit, size in _UNITS.items() if self.milliseconds % size == 0)
        return f"{self.milliseconds // _UNITS[unit]}{unit}"

    def __str__(self) -> str:
        """Return it as the command line takes it."""
        return f"{self.field}:{self.span}"

    def to_list(self) -> list[str]:
        """Return the plain JSON values that stand in ``_meta``."""
        return [self.field, self.span]


def parse_within(value: Within | Sequence[str]) -> Within:
    """
    Return field and span of a pair such as ``("published", "7d")``, with the units d, h, m, s and ms.

    >>> parse_within(("published", "168h")).span
    '7d'
    """
    if isinstance(value, Within):
        return value
    pair: Any = value
    if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not all(isinstance(each, str) for each in pair):
        raise WrongTypeError(f'within must be a pair such as ("published", "7d"), not {shorten(value)}')
    field, span = pair
    match = _SPAN.fullmatch(span)
    if not field or match is None:
        raise InvalidInputError(
            f"within {shorten(list(pair))} cannot be used: give a date field and a span, such as 7d, 12h or 30m"
        )
    return Within(check_field("within", field), int(match[1]) * _UNITS[match[2]])


Rule = Literal["star", "connected"]
RULES: tuple[str, ...] = get_args(Rule)
GROUPING_KEY = "grouping"


@dataclass(frozen=True, slots=True)
class Grouping:
    """
    How the documents of an index are grouped.

    Two documents are neighbours if their distance is at most max_distance and, where these are given, both
    present texts were read and have at least *similarity* by *measure*, both have the same value of *per*, and
    both have dates *within* a span. *rule*: under ``"star"`` every member is a neighbour of its canonical; under
    ``"connected"`` chains count. *order*: keys for :func:`~es_simhash.groups.order.parse_key` that choose the
    canonical; the id decides last.
    """

    rule: Rule = "star"
    max_distance: int = DEFAULT_MAX_DISTANCE
    order: tuple[str, ...] = (BY_ID,)
    similarity: float | None = None
    per: str | None = None
    within: Within | None = None
    measure: TextMeasure = WORD_SHINGLES

    def __post_init__(self) -> None:
        check_choice("rule", self.rule, RULES)
        check_max_distance(self.max_distance)
        object.__setattr__(self, "order", check_order(self.order))
        if self.similarity is not None:
            object.__setattr__(self, "similarity", check_bound(self.similarity))
        else:
            object.__setattr__(self, "measure", WORD_SHINGLES)  # so that equal groupings are equal
        if self.per is not None:
            check_field("per", self.per)
        if self.within is not None:
            object.__setattr__(self, "within", parse_within(self.within))

    def __str__(self) -> str:
        """Return the grouping as words, for messages."""
        texts = "texts not compared" if self.similarity is None else f"similarity {self.similarity:g}"
        texts += "" if self.measure == WORD_SHINGLES else f" ({self.measure})"
        more = [f"per {self.per}"] if self.per else []
        more += [f"within {self.within}"] if self.within else []
        limits = ", ".join([f"max_distance {self.max_distance}", texts, *more])
        return f"rule {self.rule}, {limits} and canonical {', '.join(self.order)}"

    @property
    def keys(self) -> tuple[OrderKey, ...]:
        """The keys of the order that compare something else than the id."""
        return tuple(parse_key(each) for each in self.order if each != BY_ID)

    @property
    def is_by_distance_alone(self) -> bool:
        """Whether nothing but the distance decides which documents are neighbours."""
        return self.similarity is None and self.per is None and self.within is None

    def to_dict(self) -> dict[str, Any]:
        """
        Return the plain JSON values for ``_meta``.

        A similarity of another measure than the usual one is an object: versions that know of no other measure expect
        a number there, and refuse the index.
        """
        is_usual = self.measure == WORD_SHINGLES
        return {
            "rule": self.rule,
            "max_distance": self.max_distance,
            "canonical": list(self.order),
            "similarity": self.similarity if is_usual else {"at_least": self.similarity, **self.measure.to_dict()},
            **({} if self.per is None else {"per": self.per}),
            **({} if self.within is None else {"within": self.within.to_list()}),
        }

    @classmethod
    def from_dict(cls, recorded: Mapping[str, Any]) -> Grouping:
        """Return what :meth:`to_dict` wrote; earlier versions wrote no ``similarity``: by distance alone."""
        try:
            similarity, measure = recorded.get("similarity"), WORD_SHINGLES
            if isinstance(similarity, Mapping):
                similarity, measure = similarity["at_least"], TextMeasure.from_dict(similarity)
            return cls(
                recorded["rule"],
                recorded["max_distance"],
                recorded["canonical"],
                similarity,
                recorded.get("per"),
                recorded.get("within"),
                measure,
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise MappingError(
                f"the grouping recorded in the mapping, {shorten(recorded)}, cannot be read ({error}): "
                "it was written by another version of this library"
            ) from error

    @classmethod
    def read(cls, settings: IndexSettings) -> Grouping | None:
        """Return the grouping that *settings* of an index record; ``None`` where it was never grouped."""
        recorded = (settings.extra or {}).get(GROUPING_KEY)
        return None if recorded is None else cls.from_dict(recorded)

    def put(self, extra: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return *extra* with this grouping in it."""
        return {**(extra or {}), GROUPING_KEY: self.to_dict()}


@dataclass(frozen=True, slots=True)
class GroupingRequest:
    """
    The grouping that a caller asks for; ``None`` means what is recorded, else the default.

    ``False`` switches *verify*, *per* or *within* off. *default_order* counts where none is asked for or
    recorded. What is given beside *preset* goes before it.
    """

    rule: Rule | None = None
    max_distance: int | None = None
    canonical: Canonical | None = None
    default_order: str = BY_ID
    preset: str | Preset | None = None
    verify: Verified | None = None
    per: str | Literal[False] | None = None
    within: Within | Sequence[str] | Literal[False] | None = None

    def __post_init__(self) -> None:
        self.put_on(Grouping())  # refuses what cannot be used before a server is asked

    def check_scheme(self, settings: IndexSettings) -> None:
        """Raise if the preset was measured with another scheme than that of an index with *settings*."""
        if self.preset is None:
            return
        preset = get_preset(self.preset)
        if get_scheme(preset.scheme) != settings.scheme:
            raise InvalidInputError(
                f"preset {preset.name!r} is for scheme {preset.scheme}, and the index has {settings.scheme}: "
                "give max_distance and verify instead"
            )

    def put_on(self, grouping: Grouping) -> Grouping:
        """Return *grouping* with everything that is asked for in its place."""
        preset = None if self.preset is None else get_preset(self.preset)
        changed: dict[str, Any] = {}
        if self.rule is not None:
            changed["rule"] = self.rule
        if preset is not None:
            changed |= {"max_distance": preset.max_distance, "similarity": preset.similarity}
            changed["measure"] = measure_of(preset)
        if self.max_distance is not None:
            changed["max_distance"] = self.max_distance
        if isinstance(self.verify, Verification):
            self.verify.check_recordable()
            changed |= {"similarity": self.verify.similarity, "measure": self.verify.text_measure}
        elif self.verify is not None:
            changed["similarity"] = _similarity(self.verify, preset)
        if self.canonical is not None:
            changed["order"] = self.canonical
        if self.per is not None:
            changed["per"] = None if self.per is False else self.per
        if self.within is not None:
            changed["within"] = None if self.within is False else self.within
        return replace(grouping, **changed)


def _similarity(verify: bool | float, preset: Preset | None) -> float | None:  # noqa: FBT001 -- what callers give
    """Return the bound that a number, ``True`` or ``False`` stands for; ``None`` for no comparison."""
    if verify is False:
        return None
    if verify is True:
        return DEFAULT_SIMILARITY if preset is None else preset.similarity
    return check_bound(verify)


def choose_grouping(
    settings: IndexSettings, request: GroupingRequest, *, has_texts: bool | None = None, may_differ: bool = False
) -> Grouping:
    """
    Return the grouping that applies: the recorded one, else the request completed by the defaults.

    *has_texts*: whether every index concerned records its text fields; then texts are compared by default.
    *may_differ* allows a request other than the record: for a dry run, which writes nothing, and to group an
    index anew.
    """
    has_texts = bool(settings.text_fields) if has_texts is None else has_texts
    request.check_scheme(settings)
    recorded = Grouping.read(settings)
    if recorded is None:
        distance = DEFAULT_MAX_DISTANCE if settings.max_distance is None else settings.max_distance
        similarity = DEFAULT_SIMILARITY if has_texts else None
        chosen = request.put_on(Grouping("star", distance, check_order(request.default_order), similarity))
    else:
        chosen = request.put_on(recorded)
        if chosen != recorded and not may_differ:
            raise InvalidInputError(
                f"the index is grouped by {recorded}, not by {chosen}: leave these options out, change the grouping "
                "with reconcile(regroup=True), or group by another rule under a second prefix"
            )
    if chosen.similarity is not None and not has_texts:
        raise no_text_field("texts cannot be compared", "compare none (verify=False, --no-verify)")
    if not has_texts and any(key.kind == LONGEST for key in chosen.keys):
        raise no_text_field("the longest text is not known", "choose another canonical order")
    return replace(chosen, measure=chosen.measure.after(settings.scheme))
