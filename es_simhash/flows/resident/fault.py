"""
Why the fingerprints of an index cannot be kept in memory, as data.
"""

from __future__ import annotations

from typing import Literal

from es_simhash.errors import IncompleteSearchError, InvalidInputError, shorten
from es_simhash.flows.context import Index, index_key
from es_simhash.flows.protocol import status_of
from es_simhash.flows.transfer.answers import refusal_text

__all__ = ["CUT", "ResidentError", "ResidentFault", "as_fault"]

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
