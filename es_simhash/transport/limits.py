"""What servers allow a request by default: no request of this library asks for more, whatever a server would allow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

MAX_HITS = 10_000
"""Most hits of a search, and most ids in one ``ids`` query (``index.max_result_window``)."""

MAX_CLAUSES = 1_024
"""Most clauses in one query (``indices.query.bool.max_clause_count``)."""

MAX_TERMS = 65_536
"""Most values in one ``terms`` query (``index.max_terms_count``)."""


def ids_query(ids: Iterable[str]) -> dict[str, Any]:
    """Return the query for the documents with one of *ids*, however many these are."""
    every = list(ids)
    parts = [{"ids": {"values": every[begin : begin + MAX_HITS]}} for begin in range(0, len(every) or 1, MAX_HITS)]
    return parts[0] if len(parts) == 1 else {"bool": {"should": parts}}
