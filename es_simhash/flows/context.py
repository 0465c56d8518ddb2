"""
What a client object knows: its prefix, the scheme asked for, and what it has learned about indices.

The flows that read the settings of indices are here too, because they fill that memory. Names, aliases, patterns and
data streams are resolved here to concrete indices, each with its own settings: :func:`resolve_index`. No lookup and no
write.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from es_simhash.errors import (
    IncompleteSearchError,
    InvalidInputError,
    MappingError,
    SchemeMismatchError,
    shorten,
)
from es_simhash.flows.protocol import Call, Flow, status_of
from es_simhash.hashing import Scheme, get_scheme
from es_simhash.index.faults import Fault, find_faults
from es_simhash.index.fields import DEFAULT_PREFIX
from es_simhash.index.meta import IndexSettings, read_settings
from es_simhash.index.plan import Limits
from es_simhash.index.plan_cost import IndexStats

__all__ = [
    "Context",
    "Index",
    "IndexFault",
    "Resolved",
    "agree",
    "check_index",
    "judge_mappings",
    "local_names",
    "read_index_settings",
    "read_settings_by_index",
    "resolve_index",
]

Index = str | Sequence[str]

# How long settings are used before the whole mapping is read again. Meanwhile ``confirmation`` compares them.
SETTINGS_SECONDS = 60.0
# How long statistics and limits of an index are used: they only decide which plan is the fastest.
STATS_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class IndexFault:
    """
    One reason why a concrete index cannot be used.

    Attributes:
        index:
            Name of the concrete index.
        fault:
            What is wrong with its mapping.
    """

    index: str
    fault: Fault

    def __str__(self) -> str:
        """Return the sentence for people."""
        return f"index {self.index!r}: {self.fault}"


@dataclass(frozen=True, slots=True)
class Resolved:
    """
    The concrete indices that a name, an alias, a pattern, a data stream or a list of these stands for.

    Attributes:
        mappings:
            Their mappings (the part below ``mappings`` of an answer), by name, sorted. Empty where they may not be
            read, and where settings were remembered.
        each:
            The settings that each index with our fields records, by name, sorted. A flow that writes to an index goes
            by these.
        faults:
            Why some indices cannot be used.
        assumed:
            The settings to use where the mappings may not be read; else ``None``.
    """

    mappings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    each: Mapping[str, IndexSettings] = field(default_factory=dict)
    faults: tuple[IndexFault, ...] = ()
    assumed: IndexSettings | None = None

    @property
    def unmapped(self) -> tuple[str, ...]:
        """Names of the indices that have no field of ours at all."""
        faulty = {fault.index for fault in self.faults}
        return tuple(name for name in self.mappings if name not in self.each and name not in faulty)


@dataclass(slots=True)
class Context:
    """
    What the flows of one client object share.

    Attributes:
        prefix:
            Name of the object that holds the fields.
        wanted:
            The scheme the caller asked for; a name without version stands for whichever version an index has.
            ``None`` to adopt the index's.
        clock:
            Returns seconds that only grow; decides when what was learned is too old.
    """

    prefix: str = DEFAULT_PREFIX
    wanted: str | Scheme | None = None
    clock: Callable[[], float] = lambda: 0.0
    _settings: dict[str, tuple[float, IndexSettings, Resolved]] = field(default_factory=dict)
    _stats: dict[str, tuple[float, IndexStats]] = field(default_factory=dict)
    _limits: dict[str, tuple[float, Limits]] = field(default_factory=dict)
    _confirmed: dict[str, tuple[float, Resolved | None, Any]] = field(default_factory=dict)

    def accepts(self, scheme: Scheme) -> bool:
        """Return whether *scheme* is one that the caller asked for."""
        return self.wanted is None or self.wanted == scheme.name or get_scheme(self.wanted) == scheme

    def assumed_settings(self) -> IndexSettings | None:
        """Return the settings to use where no mapping can be read; ``None`` if the caller named no scheme."""
        # Nothing says that no program has rounded the numbers, so scripts may not read them.
        return None if self.wanted is None else IndexSettings(get_scheme(self.wanted), value_type="number")

    def recall(self, index: Index) -> tuple[IndexSettings, Resolved] | None:
        """Return the agreed settings and the concrete ones learned for *index*, unless they are too old."""
        found = self._settings.get(_key(index))
        return found[1:] if found is not None and self.clock() - found[0] < SETTINGS_SECONDS else None

    def recall_any(self, index: Index) -> tuple[IndexSettings, Resolved] | None:
        """Return what :meth:`recall` returns, however old it is: what a lookup began with may grow old meanwhile."""
        found = self._settings.get(_key(index))
        return None if found is None else found[1:]

    def learn(self, index: Index, agreed: IndexSettings, resolved: Resolved) -> None:
        """Remember settings for a while; mappings are left out, because they may be large."""
        resolved = replace(resolved, mappings={})
        self._settings[_key(index)] = (self.clock(), agreed, resolved)
        self.confirm(index, resolved, at=self.clock())

    def unlearn(self, index: Index, settings: IndexSettings) -> None:
        """Forget that *index* has the agreed *settings*, and its statistics; what was learned since stays."""
        known = self.recall_any(index)
        if known is not None and known[0] is settings:
            self._settings.pop(_key(index), None)
            self._stats.pop(_key(index), None)

    def confirm(self, index: Index, resolved: Resolved, *, at: float, answer: Any = None) -> None:
        """Note that the settings *resolved* of *index* were right at the time *at*, and the server's *answer* then."""
        self._confirmed[_key(index)] = (at, resolved, answer)

    def is_confirmed_by(self, index: Index, resolved: Resolved, answer: Any) -> bool:
        """Return whether the same *answer* of a server was found before to confirm the settings *resolved*."""
        _, known, before = self._confirmed.get(_key(index), (0.0, None, None))
        return known is resolved and before is not None and before == answer

    def seconds_since_confirmed(self, index: Index) -> float:
        """Return how long ago the settings of *index* were known to be right."""
        found = self._confirmed.get(_key(index))
        return math.inf if found is None else self.clock() - found[0]

    def recall_stats(self, index: Index) -> IndexStats | None:
        """Return the statistics learned for *index*, unless they are too old."""
        when, stats = self._stats.get(_key(index), (0.0, None))
        return stats if stats is not None and self.clock() - when < STATS_SECONDS else None

    def learn_stats(self, index: Index, stats: IndexStats) -> None:
        """Remember *stats* for a while."""
        self._stats[_key(index)] = (self.clock(), stats)

    def limits(self, index: Index) -> Limits:
        """Return the limits learned for queries of *index*; what was refused long ago is tried again."""
        when, limits = self._limits.get(_key(index), (0.0, Limits()))
        return limits if self.clock() - when < STATS_SECONDS else Limits()

    def learn_limits(self, index: Index, limits: Limits) -> None:
        """Remember *limits* together with those learned before."""
        self._limits[_key(index)] = (self.clock(), limits.within(self.limits(index)))

    def forget(self) -> None:
        """Forget everything learned, after a mapping was changed."""
        self._settings.clear()
        self._stats.clear()
        self._limits.clear()


def _key(index: Index) -> str:
    return index if isinstance(index, str) else ",".join(index)


def check_index(index: Index) -> str | list[str]:
    """
    Return *index* if it names at least one index, alias, data stream or pattern.

    Raises:
        TypeError: If it is neither a string nor a list of strings.
        InvalidInputError: If a name is empty: a server would take it for all indices.
    """
    names = [index] if isinstance(index, str) else list(index) if isinstance(index, (list, tuple)) else None
    if names is None or not all(isinstance(name, str) for name in names):
        raise TypeError(f"index must be a name or a list of names, not {shorten(index)}")
    if not names or not all(part.strip() for name in names for part in name.split(",")):
        raise InvalidInputError(f"index {shorten(index)} names no index: give a name, a pattern or a list of them")
    return index if isinstance(index, str) else names


def read_index_settings(context: Context, index: Index) -> Flow[IndexSettings]:
    """
    Return the settings on which all indices behind *index* agree: the view that lookups use.

    Costs one request (get mapping) unless the answer is remembered. Several indices must agree on the scheme;
    indices without our fields hold no fingerprints and are left out. A caller that may not read mappings, or that
    searches other clusters, passes the scheme, and it is used unchecked.

    Raises:
        SchemeMismatchError: If the indices, or an index and the caller, use different schemes.
        MappingError: If no index has the fields, or one has them with wrong types.
        IncompleteSearchError: If a pattern matches no index.
        InvalidInputError: If only other clusters are searched and no scheme was passed.
    """
    agreed, _ = yield from _read_settings(context, index)
    return agreed


def read_settings_by_index(context: Context, index: Index) -> Flow[Mapping[str, IndexSettings]]:
    """
    Return the settings of each concrete index behind *index*, by name; indices without our fields are left out.

    Costs and raises as :func:`read_index_settings`. Empty where the mappings may not be read.
    """
    _, resolved = yield from _read_settings(context, index)
    return resolved.each


def _read_settings(context: Context, index: Index) -> Flow[tuple[IndexSettings, Resolved]]:
    known = context.recall(check_index(index))
    if known is None:
        resolved = yield from resolve_index(context, index)
        known = agree(resolved, context), resolved
        _check_remote(context, index, known[0])
        context.learn(index, *known)
    return known


def _check_remote(context: Context, index: Index, settings: IndexSettings) -> None:
    """Refuse names on other clusters unless the caller vouches for their scheme, which must be that of the others."""
    local = local_names(index)
    remote = [name for name in _key(index).split(",") if name not in local]
    if not remote:
        return
    assumed = context.assumed_settings()
    if assumed is None:
        raise InvalidInputError(
            f"the mapping of {shorten(remote[0])} is on another cluster and cannot be read: name the scheme of "
            f"its fingerprints (the other indices have {settings.scheme})"
        )
    if assumed.scheme != settings.scheme:
        raise _mismatch(_key(index), settings.scheme, f"{shorten(remote[0])} on another cluster", assumed.scheme)


def local_names(index: Index) -> list[str]:
    """
    Return the names in *index* that are not on another cluster.
    """
    names = _key(check_index(index)).split(",")
    return [name for name in names if ":" not in name or name.startswith("<")]  # <...> is date math


def resolve_index(context: Context, index: Index) -> Flow[Resolved]:
    """
    Return the concrete indices behind *index*, each with its own settings, as they are now.

    Costs one request (get mapping), which is always made. Nothing is compared: :func:`agree` does that.

    Raises:
        IncompleteSearchError: If a pattern matches no index.
        InvalidInputError: If only other clusters are named and no scheme was passed.
    """
    local = local_names(index)
    assumed = context.assumed_settings()
    if not local:
        if assumed is None:
            raise InvalidInputError(
                f"the mapping of {shorten(_key(index))} is on another cluster and cannot be read: name the scheme"
            )
        return Resolved(assumed=assumed)
    try:
        answer = yield Call("get_mapping", {"index": ",".join(local)})
    except Exception as error:
        if status_of(error) not in (401, 403):
            raise
        if assumed is None:
            if status_of(error) == 403:
                error.add_note("The mapping could not be read: name the scheme to search without reading it.")
            raise
        return Resolved(assumed=assumed)
    if not answer:
        reason = f"no index matches {shorten(_key(index))}"
        raise IncompleteSearchError(f"{reason}: check the name", reasons=(reason,))
    return judge_mappings(answer, context)


def judge_mappings(answer: Mapping[str, Any], context: Context) -> Resolved:
    """
    Return the indices of a get-mapping *answer* with their settings, and why some of them cannot be used.
    """
    mappings = {name: each.get("mappings") or {} for name, each in sorted(answer.items())}
    each: dict[str, IndexSettings] = {}
    faults: list[IndexFault] = []
    for name, mapping in mappings.items():
        settings = read_settings(mapping, prefix=context.prefix)
        has_prefix = context.prefix in (mapping.get("properties") or {})
        if settings is None and not has_prefix:
            continue
        if found := find_faults(mapping, prefix=context.prefix):
            faults += [IndexFault(name, fault) for fault in found]
        elif (known := settings or context.assumed_settings()) is not None:
            # The mapping names the user's own files by digest; the caller's equal scheme knows where they are.
            wanted = context.wanted if isinstance(context.wanted, Scheme) else None
            each[name] = replace(known, scheme=wanted) if wanted and wanted == known.scheme else known
        else:
            faults.append(IndexFault(name, Fault("no_scheme")))
    return Resolved(mappings, each, tuple(faults))


def agree(resolved: Resolved, context: Context) -> IndexSettings:
    """
    Return the settings on which the *resolved* indices, and the caller, agree.

    The text fields are empty where indices record different ones.

    Raises:
        SchemeMismatchError: If the indices, or an index and the caller, use different schemes.
        MappingError: If no index has the fields, or one cannot be used.
    """
    if resolved.assumed is not None:
        return resolved.assumed
    if resolved.faults:
        more = f" (and {len(resolved.faults) - 1} more)" if len(resolved.faults) > 1 else ""
        raise MappingError(
            f"{resolved.faults[0]}{more}: create the index with create_index, or see what check reports",
            problems=tuple(map(str, resolved.faults)),
        )
    if not resolved.each:
        raise MappingError(
            f"index {shorten(next(iter(resolved.mappings)))} has no {context.prefix!r} fields: create it with "
            "create_index, or backfill it and name its text field",
            problems=(f"no index has {context.prefix!r} fields",),
        )
    first, settings = next(iter(resolved.each.items()))
    for name, each in resolved.each.items():
        if each.scheme != settings.scheme:
            raise _mismatch(name, each.scheme, f"index {first!r}", settings.scheme)
        if not context.accepts(each.scheme):
            raise _mismatch(name, each.scheme, "this client", context.wanted)
    every = list(resolved.each.values())
    text_fields = {each.text_fields for each in every if each.text_fields}
    return replace(
        settings,
        text_fields=text_fields.pop() if len(text_fields) == 1 else (),
        # The largest default finds what any of them promises.
        max_distance=max((each.max_distance for each in every if each.max_distance is not None), default=None),
        # A script fails on a shard whose index does not map the copy it reads.
        value=all(each.value for each in every),
        value_type="string" if all(each.value_type == "string" for each in every) else "number",
    )


def _mismatch(index: str, scheme: Scheme, there: str, other: str | Scheme | None) -> SchemeMismatchError:
    return SchemeMismatchError(
        f"index {index!r} holds fingerprints of scheme {scheme}, but {there} uses {other}: their bits cannot be "
        "compared; leave scheme out to adopt the index's own, or search the other prefix",
        index_scheme=str(scheme),
        client_scheme=str(other),
    )
