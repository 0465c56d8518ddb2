"""
Finds documents by their ids in all indices behind a name. What they are needed for is not decided here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from es_simhash.mapping.context import Context
from es_simhash.mapping.primaries_flow import reads_primaries
from es_simhash.transport.answers import check_whole
from es_simhash.transport.names import Index
from es_simhash.transport.pages_flow import read_each
from es_simhash.transport.protocol import Flow
from es_simhash.transport.refresh_flow import refresh
from es_simhash.transport.view import Hits

PAGE = 500


@reads_primaries
def find_copies(_context: Context, index: Index, ids: Sequence[str]) -> Flow[list[Mapping[str, Any]]]:
    """
    Return the hits of the documents with *ids*, each with its ``_source``; an id may be in several indices.

    Raises:
        IncompleteSearchError: If some documents could not be read.
    """
    found: list[Mapping[str, Any]] = []

    def take(hits: Hits) -> None:
        found.extend(hits)

    yield from refresh(index)
    check_whole((yield from read_each(index, {"query": {"ids": {"values": list(ids)}}}, take, page=PAGE)))
    return found
