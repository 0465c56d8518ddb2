"""
Refuses indices of which not every document has passages, for those who must not miss a document.
"""

from __future__ import annotations

from collections.abc import Mapping

from es_simhash.errors import IncompleteSearchError
from es_simhash.flows.context import Context, Index, index_key
from es_simhash.flows.passages.lookup import Unfilled, refuse_without_passages
from es_simhash.flows.protocol import Flow
from es_simhash.flows.transfer.answers import check_whole
from es_simhash.flows.transfer.count import count_documents
from es_simhash.flows.transfer.refresh import refresh
from es_simhash.index.meta import IndexSettings
from es_simhash.index.passages.query import without_passages_query

__all__ = ["check_filled"]


def check_filled(context: Context, index: Index, each: Mapping[str, IndexSettings]) -> Flow[None]:
    """
    Refuse *index* where documents without passages may contain others; *each* has the settings of concrete indices.

    Raises:
        MappingError: If an index has no passages.
        IncompleteSearchError: If documents have no passages yet, or could not be counted.
    """
    refuse_without_passages(each, "texts cannot be compared")
    yield from refresh(index)
    missing, gaps = yield from count_documents(index, without_passages_query(context.prefix))
    check_whole(gaps)
    unfilled = [Unfilled(name) for name, own in each.items() if own.passages == "partial"]
    unfilled += [Unfilled(index_key(index), missing)] if missing else []
    if unfilled:
        raise IncompleteSearchError(
            f"documents that contain others may be missing: {'; '.join(map(str, unfilled))}",
            reasons=tuple(map(str, unfilled)),
        )
