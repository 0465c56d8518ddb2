"""The memory of a client object: its prefix, its scheme, and what ``resolve`` learned of indices and servers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from es_simhash.hashing import Scheme, get_scheme
from es_simhash.mapping.faults import Fault
from es_simhash.mapping.fields import DEFAULT_PREFIX
from es_simhash.mapping.meta import IndexSettings
from es_simhash.transport.protocol import Index, index_key

# How long settings are used before the whole mapping is read again. Meanwhile ``resolve`` compares them.
SETTINGS_SECONDS = 60.0

# How long it is known of an index how large it is, and that no script may filter it: this only decides about plans.
STATS_SECONDS = 600.0

# Names of indices that a client object remembers something of.
MOST_NAMES = 2_000


@dataclass(frozen=True, slots=True)
class IndexStats:
    """
    Statistics of the fingerprints of an index.

    Attributes:
        documents:
            Number of fingerprinted documents.
        density:
            How many times longer the posting list of a document's own block term is, on average, than it would be
            if fingerprints were uniformly random; 1 or more.
    """

    documents: int = 1_000_000
    density: float = 1.0


ASSUMED = IndexStats()
"""What is assumed of an index as long as nobody could ask."""


@dataclass(frozen=True, slots=True)
class IndexFault:
    """One reason why a concrete index cannot be used."""

    index: str
    fault: Fault

    def __str__(self) -> str:
        return f"index {self.index!r}: {self.fault}"


class TextFields(dict[str, tuple[str, ...]]):
    """Text fields by index; *others* serve an index that records none, or that a rollover made since."""

    def __init__(self, each: Mapping[str, tuple[str, ...]] | None = None, others: Sequence[str] = ()) -> None:
        self.others = tuple(others)
        super().__init__({name: fields or self.others for name, fields in (each or {}).items()})

    def __missing__(self, index: str) -> tuple[str, ...]:
        """Return the text fields of an *index* made after the others were read: by default as the last one by name."""
        return self.others or (self[max(self)] if self else ())

    @property
    def all(self) -> list[str]:
        return sorted({name for fields in (*self.values(), self.others) for name in fields})


@dataclass(frozen=True, slots=True)
class Resolved:
    """
    The concrete indices behind a name, an alias, a pattern, a data stream or a list of these.
    *mappings*: what is below ``mappings``, by name, sorted; empty if it may not be read or settings were remembered.
    *each*: the settings of each index with the fields, by name, sorted. *assumed*: the settings to use if the mappings
    may not be read. *marker*: full name of the marker that all of them have, for searches to insist on.
    """

    mappings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    each: Mapping[str, IndexSettings] = field(default_factory=dict)
    faults: tuple[IndexFault, ...] = ()
    assumed: IndexSettings | None = None
    marker: str | None = None

    @property
    def text_fields(self) -> TextFields:
        return TextFields({name: own.text_fields for name, own in self.each.items()})

    @property
    def unmapped(self) -> tuple[str, ...]:
        """Names of the indices that have no field of ours at all."""
        faulty = {fault.index for fault in self.faults}
        return tuple(name for name in self.mappings if name not in self.each and name not in faulty)


_Value = TypeVar("_Value")


class Recent(dict[str, _Value]):
    """What was learned of each name, of some thousand at most: the half learned longest ago goes first."""

    def __setitem__(self, name: str, value: _Value) -> None:
        self.pop(name, None)
        super().__setitem__(name, value)
        if len(self) > MOST_NAMES:
            for old in list(self)[: MOST_NAMES // 2]:
                self.pop(old, None)  # perhaps another thread took it


@dataclass(slots=True)
class Context:
    """
    What the operations of one client object share.
    *wanted*: the scheme that the caller asked for; a name without version accepts the version that an index has;
    ``None`` adopts the scheme of the index. *clock*: seconds that only grow, which say when what was learned is too
    old.
    """

    prefix: str = DEFAULT_PREFIX
    wanted: str | Scheme | None = None
    clock: Callable[[], float] = lambda: 0.0
    _settings: Recent[tuple[float, IndexSettings, Resolved]] = field(default_factory=Recent)
    _stats: Recent[tuple[float, IndexStats]] = field(default_factory=Recent)
    _scriptless: Recent[float] = field(default_factory=Recent)
    _confirmed: Recent[tuple[float, Resolved | None, Any]] = field(default_factory=Recent)
    _filled: Recent[float] = field(default_factory=Recent)
    _longest: Recent[tuple[float, int]] = field(default_factory=Recent)

    def of_prefix(self, prefix: str) -> Context:
        """Return the memory for another *prefix*: what was learned of indices is about the fields of one."""
        return self if prefix == self.prefix else Context(prefix, self.wanted, self.clock)

    def accepts(self, scheme: Scheme) -> bool:
        return self.wanted is None or self.wanted == scheme.name or get_scheme(self.wanted) == scheme

    def assumed_settings(self) -> IndexSettings | None:
        """Return the settings to use where no mapping can be read; ``None`` if the caller named no scheme."""
        return None if self.wanted is None else IndexSettings(get_scheme(self.wanted), is_assumed=True)

    def recall(self, index: Index) -> tuple[IndexSettings, Resolved] | None:
        """Return the agreed settings and the concrete ones learned for *index*, unless they are too old."""
        found = self._settings.get(index_key(index))
        return found[1:] if found is not None and self.clock() - found[0] < SETTINGS_SECONDS else None

    def recall_any(self, index: Index) -> tuple[IndexSettings, Resolved] | None:
        """Return what :meth:`recall` returns, however old it is: what a lookup began with may grow old meanwhile."""
        found = self._settings.get(index_key(index))
        return None if found is None else found[1:]

    def learn(self, index: Index, agreed: IndexSettings, resolved: Resolved) -> None:
        """Remember settings for a while; mappings are left out, because they may be large."""
        resolved = replace(resolved, mappings={})
        self._settings[index_key(index)] = (self.clock(), agreed, resolved)
        self.confirm(index, resolved, at=self.clock())

    def unlearn(self, index: Index, settings: IndexSettings) -> None:
        """Forget that *index* has the agreed *settings*, and its statistics; what was learned since stays."""
        known = self.recall_any(index)
        if known is not None and known[0] is settings:
            self._settings.pop(index_key(index), None)
            self._stats.pop(index_key(index), None)

    def distrust_marker(self, index: Index, resolved: Resolved) -> None:
        """Note that searches of *index* cannot insist on the marker of *resolved*, although its mapping has it."""
        known = self._settings.get(index_key(index))
        if known is not None and known[2] is resolved:
            self._settings[index_key(index)] = (*known[:2], replace(resolved, marker=None))

    def confirm(self, index: Index, resolved: Resolved, *, at: float, answer: Any = None) -> None:
        """Note that the settings *resolved* of *index* were right at the time *at*, and the server's *answer* then."""
        self._confirmed[index_key(index)] = (at, resolved, answer)

    def is_confirmed_by(self, index: Index, resolved: Resolved, answer: Any) -> bool:
        """Return whether the same *answer* of a server was found before to confirm the settings *resolved*."""
        _, known, before = self._confirmed.get(index_key(index), (0.0, None, None))
        return known is resolved and before is not None and before == answer

    def seconds_since_confirmed(self, index: Index) -> float:
        """Return how long ago the settings of *index* were known to be right."""
        found = self._confirmed.get(index_key(index))
        return math.inf if found is None else self.clock() - found[0]

    def recall_stats(self, index: Index) -> IndexStats | None:
        """Return the statistics learned for *index*, unless they are too old."""
        when, stats = self._stats.get(index_key(index), (0.0, None))
        return stats if stats is not None and self.clock() - when < STATS_SECONDS else None

    def learn_stats(self, index: Index, stats: IndexStats) -> None:
        self._stats[index_key(index)] = (self.clock(), stats)

    def longest_text(self, index: Index) -> int:
        """Return how many characters the longest text of *index* had that lookups have seen lately; 0 if none was."""
        when, characters = self._longest.get(index_key(index), (0.0, 0))
        return characters if self.clock() - when < STATS_SECONDS else 0

    def note_text(self, index: Index, characters: int) -> None:
        if characters > self.longest_text(index):
            self._longest[index_key(index)] = self.clock(), characters

    def is_filled(self, index: Index) -> bool:
        return self.clock() - self._filled.get(index_key(index), -math.inf) < SETTINGS_SECONDS

    def learn_filled(self, index: Index) -> None:
        self._filled[index_key(index)] = self.clock()

    def may_script(self, index: Index) -> bool:
        """Return whether a script may filter *index*, as far as is known; what was refused long ago is tried again."""
        return self.clock() - self._scriptless.get(index_key(index), -math.inf) >= STATS_SECONDS

    def note_scriptless(self, index: Index) -> None:
        self._scriptless[index_key(index)] = self.clock()

    def forget(self) -> None:
        self._settings.clear()
        self._stats.clear()
        self._scriptless.clear()
        self._filled.clear()
        self._longest.clear()
