"""The memory of a client object: its prefix, its scheme, and what ``resolve`` learned of indices and servers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from es_simhash.arguments import is_plain
from es_simhash.hashing import Scheme, get_scheme
from es_simhash.mapping.faults import Fault
from es_simhash.mapping.fields import DEFAULT_PREFIX
from es_simhash.mapping.meta import IndexSettings, read_settings
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


class TextFields(dict[str, tuple[str, ...]]):
    """Text fields by index; *others* serve an index that records none, or that a rollover made since."""

    def __init__(self, by_index: Mapping[str, tuple[str, ...]] | None = None, others: Sequence[str] = ()) -> None:
        self.others = tuple(others)
        super().__init__({name: fields or self.others for name, fields in (by_index or {}).items()})

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
    *settings_of*: the settings of each index with the fields, by name, sorted. *faults*: with the index of each.
    *assumed*: the settings to use if the mappings may not be read. *marker*: full name of the marker that all of them
    have, for searches to insist on.
    """

    mappings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    settings_of: Mapping[str, IndexSettings] = field(default_factory=dict)
    faults: tuple[tuple[str, Fault], ...] = ()
    assumed: IndexSettings | None = None
    marker: str | None = None

    @property
    def text_fields(self) -> TextFields:
        return TextFields({name: settings.text_fields for name, settings in self.settings_of.items()})

    @property
    def unmapped(self) -> tuple[str, ...]:
        """Names of the indices that have no field of ours at all."""
        faulty = {index for index, _ in self.faults}
        return tuple(name for name in self.mappings if name not in self.settings_of and name not in faulty)


_Value = TypeVar("_Value")


class Recent(Generic[_Value]):
    """What was learned of each name, and when, for some *seconds*; of some thousand names: then it begins anew."""

    def __init__(self, clock: Callable[[], float], seconds: float = math.inf) -> None:
        self._clock = clock
        self._seconds = seconds
        self._names: dict[str, tuple[float, _Value]] = {}

    def __len__(self) -> int:
        return len(self._names)

    def learn(self, index: Index, value: _Value, *, at: float | None = None) -> None:
        if len(self._names) >= MOST_NAMES:
            self._names.clear()
        self._names[index_key(index)] = (self._clock() if at is None else at), value

    def recall(self, index: Index) -> _Value | None:
        """Return what was learned of *index*, if anything, unless it is too old."""
        when, value = self.find(index)
        return value if self._clock() - when < self._seconds else None

    def find(self, index: Index) -> tuple[float, _Value | None]:
        """Return when something was learned of *index*, and what, however old it is."""
        return self._names.get(index_key(index), (-math.inf, None))

    def forget(self, index: Index) -> None:
        self._names.pop(index_key(index), None)

    def clear(self) -> None:
        self._names.clear()


class Context:
    """
    What the operations of one client object share.
    *wanted*: the scheme that the caller asked for; a name without version accepts the version that an index has;
    ``None`` adopts the scheme of the index. *clock*: seconds that only grow, which say when what was learned is too
    old. *is_plain*: nothing is done that only makes answers faster.
    *files*: the files of schemes that the caller gave, by digest, for all prefixes.
    *known*: the settings on which the indices behind a name agree, and those of each. *confirmed*: settings that were
    right at a time. *scriptless*: names that no script may filter; what was refused long ago is tried again. *filled*:
    names without a document that lacks passages.
    """

    def __init__(
        self,
        prefix: str = DEFAULT_PREFIX,
        wanted: str | Scheme | None = None,
        clock: Callable[[], float] = lambda: 0.0,
        files: dict[str, str | bytes] | None = None,
    ) -> None:
        self.prefix = prefix
        self.wanted = wanted
        self.clock = clock
        self.files = {} if files is None else files
        self.learn_files(wanted)
        self.is_plain = is_plain()
        self.known = Recent[tuple[IndexSettings, Resolved]](clock, SETTINGS_SECONDS)
        self.confirmed = Recent[Resolved](clock)
        self.stats = Recent[IndexStats](clock, STATS_SECONDS)
        self.scriptless = Recent[bool](clock, STATS_SECONDS)
        self.filled = Recent[bool](clock, SETTINGS_SECONDS)

    def of_prefix(self, prefix: str) -> Context:
        """Return the memory for another *prefix*: what was learned of indices is about the fields of one."""
        return self if prefix == self.prefix else Context(prefix, self.wanted, self.clock, self.files)

    def learn_files(self, scheme: str | Scheme | None) -> None:
        """Remember where the files of a *scheme* are that the caller gave."""
        if isinstance(scheme, Scheme):
            self.files.update(scheme.files_by_digest())

    def settings_in(self, mapping: Mapping[str, Any]) -> IndexSettings | None:
        """Return what *mapping* records of the prefix, with the files that the caller gave; ``None`` if nothing."""
        found = read_settings(mapping, prefix=self.prefix)
        return found and replace(found, scheme=found.scheme.with_files(self.files))

    def accepts(self, scheme: Scheme) -> bool:
        return self.wanted is None or self.wanted == scheme.name or get_scheme(self.wanted) == scheme

    def assumed_settings(self) -> IndexSettings | None:
        """Return the settings to use where no mapping can be read; ``None`` if the caller named no scheme."""
        return None if self.wanted is None else IndexSettings(get_scheme(self.wanted), is_assumed=True)

    def learn(self, index: Index, agreed: IndexSettings, resolved: Resolved, *, at: float | None = None) -> None:
        """Remember settings for a while; mappings are left out, because they may be large."""
        resolved = replace(resolved, mappings={})
        self.known.learn(index, (agreed, resolved), at=at)
        self.confirmed.learn(index, resolved, at=at)

    def unlearn(self, index: Index, resolved: Resolved | None) -> None:
        """Forget the settings *resolved* of *index*, and its statistics; what was learned since stays."""
        known = self.known.find(index)[1]
        if known is not None and known[1] is resolved:
            self.known.forget(index)
            self.stats.forget(index)

    def forget(self) -> None:
        for learned in (self.known, self.stats, self.scriptless, self.filled):
            learned.clear()
