"""
Finds documents by their ids in all indices behind a name. What they are needed for is not decided here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from es_simhash.flows.context import Context, Index
from es_simhash.flows.protocol import Flow
from es_simhash.flows.transfer.answers import check_whole
from es_simhash.flows.transfer.pages import Hits, read_each
from es_simhash.flows.transfer.primaries import reads_primaries
from es_simhash.flows.transfer.refresh import refresh

__all__ = ["find_copies"]

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
