"""What a server allows a query, what is known of an index, and the bounds of a distance."""

from __future__ import annotations

from dataclasses import dataclass

from es_simhash.arguments import check_count
from es_simhash.hashing import BLOCK_BITS, BLOCKS

DEFAULT_MAX_DISTANCE = 3


DEFAULT_MAX_TERMS = 65_536  # of index.max_terms_count, on both products


@dataclass(frozen=True, slots=True)
class Limits:
    """
    What a server allows a query.

    Attributes:
        scripts:
            Whether a script may filter.
        max_terms:
            Most values in one ``terms`` query (``index.max_terms_count``); longer lists are split.
        max_clauses:
            Most clauses in one query (``indices.query.bool.max_clause_count``).
        skims:
            Whether documents can be searched by their fingerprints, so that many candidates need not be read whole.
    """

    scripts: bool = True
    max_terms: int = DEFAULT_MAX_TERMS
    max_clauses: int = 1_024
    skims: bool = True

    def within(self, other: Limits) -> Limits:
        """Return the limits that allow what both these and the *other* allow."""
        return Limits(
            self.scripts and other.scripts,
            min(self.max_terms, other.max_terms),
            min(self.max_clauses, other.max_clauses),
            self.skims and other.skims,
        )


def check_max_distance(max_distance: int) -> int:
    """Return *max_distance* if it is a whole number of bits from 0 to 64."""
    return check_count("max_distance", max_distance, 0, BLOCKS * BLOCK_BITS)


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
