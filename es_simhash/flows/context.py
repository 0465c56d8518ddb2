"""
What a client object knows: its prefix, the scheme asked for, and what it has learnt of indices.

The flow that reads an index's settings is here too, since it is what fills that memory. No lookup and no write.
"""

from __future__ import annotations

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
from es_simhash.index.faults import find_faults
from es_simhash.index.fields import DEFAULT_PREFIX
from es_simhash.index.meta import IndexSettings, read_settings
from es_simhash.index.plan import IndexStats, Limits

__all__ = ["Context", "check_index", "read_index_settings"]

Index = str | Sequence[str]

# How long a mapping read once is trusted. Another program may replace an index by one of another scheme; then
# lookups go wrong for no longer than this.
REMEMBERED_SECONDS = 60.0
# How long the size of an index is: it only decides which plan is the fastest.
SURVEYED_SECONDS = 600.0


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
            Tells seconds that only grow, for forgetting what was learnt.
    """

    prefix: str = DEFAULT_PREFIX
    wanted: str | Scheme | None = None
    clock: Callable[[], float] = lambda: 0.0
    _learnt: dict[str, tuple[float, IndexSettings]] = field(default_factory=dict)
    _stats: dict[str, tuple[float, IndexStats]] = field(default_factory=dict)
    _limits: dict[str, tuple[float, Limits]] = field(default_factory=dict)

    def accepts(self, scheme: Scheme) -> bool:
        """Return whether *scheme* is one that the caller asked for."""
        return self.wanted is None or self.wanted == scheme.name or get_scheme(self.wanted) == scheme

    def assumed_settings(self) -> IndexSettings | None:
        """Return what to go by where no mapping can be read; ``None`` if the caller named no scheme."""
        return None if self.wanted is None else IndexSettings(get_scheme(self.wanted))

    def recall(self, index: Index) -> IndexSettings | None:
        """Return the settings learnt of *index*, unless they are too old."""
        when, settings = self._learnt.get(_key(index), (0.0, None))
        return settings if settings is not None and self.clock() - when < REMEMBERED_SECONDS else None

    def learn(self, index: Index, settings: IndexSettings) -> None:
        """Remember *settings* for a while."""
        self._learnt[_key(index)] = (self.clock(), settings)

    def recall_stats(self, index: Index) -> IndexStats | None:
        """Return what was learnt of the size of *index*, unless it is too old."""
        when, stats = self._stats.get(_key(index), (0.0, None))
        return stats if stats is not None and self.clock() - when < SURVEYED_SECONDS else None

    def learn_stats(self, index: Index, stats: IndexStats) -> None:
        """Remember *stats* for a while."""
        self._stats[_key(index)] = (self.clock(), stats)

    def limits(self, index: Index) -> Limits:
        """Return what the server is known to allow queries of *index*; what it refused long ago is tried again."""
        when, limits = self._limits.get(_key(index), (0.0, Limits()))
        return limits if self.clock() - when < SURVEYED_SECONDS else Limits()

    def learn_limits(self, index: Index, limits: Limits) -> None:
        """Remember *limits*, beside those that were learnt before."""
        self._limits[_key(index)] = (self.clock(), limits.within(self.limits(index)))

    def forget(self) -> None:
        """Forget everything learnt, after a mapping was changed."""
        self._learnt.clear()
        self._stats.clear()
        self._limits.clear()


def _key(index: Index) -> str:
    return index if isinstance(index, str) else ",".join(index)


def check_index(index: Index) -> str | list[str]:
    """
    Return *index* if it names at least one index, alias, data stream or pattern.

    Raises:
        TypeError: If it is neither a string nor a list of strings.
        InvalidInputError: If a name is empty, which a server would take for every index there is.
    """
    names = [index] if isinstance(index, str) else list(index) if isinstance(index, (list, tuple)) else None
    if names is None or not all(isinstance(name, str) for name in names):
        raise TypeError(f"index must be a name or a list of names, not {shorten(index)}")
    if not names or not all(part.strip() for name in names for part in name.split(",")):
        raise InvalidInputError(f"index {shorten(index)} names no index: give a name, a pattern or a list of them")
    return index if isinstance(index, str) else names


def read_index_settings(context: Context, index: Index) -> Flow[IndexSettings]:
    """
    Return the settings that lookups and writes in *index* go by.

    Costs one request (get mapping) unless the answer is remembered. Several indices must agree on the scheme;
    indices without our fields hold no fingerprints and have no say. A caller that may not read mappings, or that
    searches other clusters, passes the scheme and is believed.

    Raises:
        SchemeMismatchError: If the indices, or an index and the caller, use different schemes.
        MappingError: If no index has the fields, or one has them with wrong types.
        IncompleteSearchError: If a pattern matches no index.
        InvalidInputError: If only other clusters are searched and no scheme was passed.
    """
    index = check_index(index)
    known = context.recall(index)
    if known is None:
        known = yield from _ask(context, index)
        context.learn(index, known)
    return known


def _ask(context: Context, index: str | list[str]) -> Flow[IndexSettings]:
    names = _key(index).split(",")
    local = [name for name in names if ":" not in name or name.startswith("<")]  # <...> is date math
    if not local:
        assumed = context.assumed_settings()
        if assumed is None:
            raise InvalidInputError(
                f"the mapping of {shorten(_key(index))} is on another cluster and cannot be read: pass scheme="
            )
        return assumed
    try:
        mappings = yield Call("get_mapping", {"index": ",".join(local)})
    except Exception as error:
        if status_of(error) not in (401, 403):
            raise
        assumed = context.assumed_settings()
        if assumed is None:
            if status_of(error) == 403:
                error.add_note("The mapping could not be read: pass scheme= to search without reading it.")
            raise
        return assumed
    if not mappings:
        reason = f"no index matches {shorten(_key(index))}"
        raise IncompleteSearchError(f"{reason}: check the name", reasons=(reason,))
    return agree(mappings, context)


def agree(answer: Mapping[str, Any], context: Context) -> IndexSettings:
    """
    Return the settings on which the indices of a get-mapping *answer*, and the caller, agree.
    """
    found: dict[str, IndexSettings] = {}
    problems: list[str] = []
    for name, held in sorted(answer.items()):
        mapping = held.get("mappings") or {}
        settings = read_settings(mapping, prefix=context.prefix)
        has_prefix = context.prefix in (mapping.get("properties") or {})
        faults = find_faults(mapping, prefix=context.prefix) if has_prefix or settings else []
        problems += [f"index {name!r}: {fault}" for fault in faults]
        if settings is None and has_prefix and not faults:
            settings = context.assumed_settings()
        if settings is not None:
            found[name] = settings
        elif has_prefix and not faults:
            problems.append(f"index {name!r} does not say which scheme its fingerprints have")
    if problems:
        raise MappingError(
            f"{problems[0]}{f' (and {len(problems) - 1} more)' if len(problems) > 1 else ''}: "
            "create the index with create_index, or see what check reports",
            problems=tuple(problems),
        )
    if not found:
        raise MappingError(
            f"index {shorten(next(iter(sorted(answer))))} has no {context.prefix!r} fields: create it with "
            "create_index, or backfill it and name its text field",
            problems=(f"no index has {context.prefix!r} fields",),
        )
    first = next(iter(found))
    for name, settings in found.items():
        if settings.scheme != found[first].scheme:
            raise _mismatch(name, settings.scheme, f"index {first!r}", found[first].scheme)
        if not context.accepts(settings.scheme):
            raise _mismatch(name, settings.scheme, "this client", context.wanted)
    # A script fails on a shard whose index does not map the copy it reads.
    settings = replace(found[first], value=all(each.value for each in found.values()))
    # The largest default finds what any of them promises.
    recorded = [each.max_distance for each in found.values() if each.max_distance is not None]
    settings = replace(settings, max_distance=max(recorded, default=None))
    # The mapping names the user's own files by digest; the caller's equal scheme knows where they are.
    return replace(settings, scheme=context.wanted) if isinstance(context.wanted, Scheme) else settings


def _mismatch(index: str, scheme: Scheme, there: str, other: str | Scheme | None) -> SchemeMismatchError:
    return SchemeMismatchError(
        f"index {index!r} holds fingerprints of scheme {scheme}, but {there} uses {other}: their bits cannot be "
        "compared; leave scheme out to adopt the index's own, or search the other prefix",
        index_scheme=str(scheme),
        client_scheme=str(other),
    )
