"""
What a caller may choose of lookups in memory, and when they pay. No request is made here.

Why the fingerprints of an index cannot be kept in memory, as data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from es_simhash.arguments import check_choice, check_count
from es_simhash.errors import IncompleteSearchError, InvalidInputError, shorten
from es_simhash.transport.answers import refusal_text
from es_simhash.transport.names import Index, index_key
from es_simhash.transport.protocol import status_of

Lookups = Literal["auto", "server", "memory"]


MEMORY_BYTES = 1 << 30


# Fewer lookups than these are never worth a table.
FEWEST = 2_000


# Milliseconds to read one fingerprint, and of a lookup by block terms beyond what the cost model counts: estimates from
# runs of bench/memory.py and bench/many.py. They decide only which way is faster.
READING, ASKING = 0.01, 0.7


@dataclass(frozen=True, slots=True)
class LookupRequest:
    """
    How to look up: two keyword arguments of the client's methods.

    Raises:
        TypeError: If one has the wrong type.
        InvalidInputError: If one has a value that cannot be used.
    """

    lookups: Lookups = "auto"
    memory_bytes: int | None = None

    def __post_init__(self) -> None:
        check_choice("lookups", self.lookups, get_args(Lookups))
        if self.memory_bytes is not None:
            check_count("memory_bytes", self.memory_bytes)

    @property
    def most_bytes(self) -> int:
        """Most bytes that fingerprints may occupy."""
        return self.memory_bytes or MEMORY_BYTES


def pays(lookups: int, *, milliseconds: float, documents: int) -> bool:
    """
    Return whether so many *lookups* by block terms cost more than to read the fingerprints of so many *documents*.

    *milliseconds* is what the cost model says of one lookup.
    """
    return lookups >= FEWEST and lookups * (ASKING + milliseconds) > READING * documents


ResidentFault = Literal[
    "remote", "statistics", "primary", "numbers", "search", "answer", "fingerprint", "memory", "view", "expired"
]


# Most characters of a server's own words.
CUT = 200


class ResidentError(Exception):
    """
    The fingerprints of an index cannot be kept in memory; caught where lookups are made.

    Attributes:
        kind:
            ``"remote"``: the index is on another cluster. ``"statistics"``: the numbers of its shards cannot be read;
            ``"primary"``: not of every shard. ``"numbers"``: operations cannot be searched by number. ``"view"``: the
            server keeps no point in time. ``"expired"``: not any more. ``"search"``: it refuses to search in it.
            ``"fingerprint"``: a document has block terms and no readable fingerprint. ``"memory"``: there are too many
            fingerprints. ``"answer"``: the server was too busy, or shards did not answer.
        detail:
            The server's own words, or what there is too much of.
    """

    def __init__(self, kind: ResidentFault, detail: str = "") -> None:
        super().__init__(kind, detail)
        self.kind = kind
        self.detail = detail

    @property
    def is_passing(self) -> bool:
        """Whether it may be otherwise in a moment."""
        return self.kind in ("primary", "answer", "expired")

    def __str__(self) -> str:
        """Return the sentence for people."""
        sentences = {
            "remote": "the index is on another cluster",
            "statistics": "the server does not show the sequence numbers of the shards",
            "primary": "a shard has no primary",
            "answer": "the server did not answer a search whole",
            "numbers": "the server does not search operations by their sequence numbers",
            "search": "the server refuses the searches that read fingerprints",
            "fingerprint": "a document has block terms and no fingerprint that can be read",
            "memory": "the fingerprints need more memory than memory_bytes allows",
            "view": "the server keeps no point in time",
            "expired": "the point in time has ended",
        }
        return sentences[self.kind] + (f" ({self.detail})" if self.detail else "")

    def for_caller(self, index: Index) -> IncompleteSearchError | InvalidInputError:
        """Return the error of a caller who demands that fingerprints are in memory."""
        said = f"lookups='memory' cannot be used for {shorten(index_key(index))}: {self}"
        if self.is_passing:
            return IncompleteSearchError(f"{said}; run it again, or pass 'auto'", reasons=(str(self),))
        return InvalidInputError(f"{said}; change that, or pass 'auto'")


def as_fault(error: Exception, kind: ResidentFault) -> Exception:
    """
    Return what a refusal means here; the client's own exception where the server did not answer.
    """
    return error if status_of(error) is None else ResidentError(kind, refusal_text(error)[:CUT])
