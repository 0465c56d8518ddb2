# Generated from methods/distinct.py by tools/generate_clients.py: change that file, then run `make client`.
"""Methods that search without near-duplicates."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any

from es_simhash.client.base import AsyncBase
from es_simhash.folding.request import DistinctOptions
from es_simhash.transport.protocol import Index

if TYPE_CHECKING:
    from es_simhash.folding.page import DistinctPage


class AsyncDistinctMethods(AsyncBase):
    """Searches that show one document of each group."""

    async def search_distinct(
        self, index: Index, body: Mapping[str, Any], *, after: str | None = None, size: int = 10, total: bool = False
    ) -> DistinctPage:
        """
        Return a page of the hits of *body*, one for all that are near-duplicates: the best-ranked one.

        Over all pages no two hits are of one group; each page is full while any remain; the order is that of the
        search. A document without a group stands for itself. The hits of a page are read in one view of the index. A
        group of which a document is added, changed or deleted between two pages may be shown once more, or missed (by
        score, any write may move documents); :meth:`search_distinct_pages` reads all pages in one view. Cost: a search
        for the hits, or more where much is folded, and one for their groups; a view for a later page; for several
        indices one request more where a field gives the order; ``total`` reads every group.

        Args:
            index:
                Name, list of names, wildcard, alias or data stream.
            body:
                A search: query, sort, ``_source``, fields, highlight, post_filter, aggs, track_scores and
                runtime_mappings. By default the highest score comes first.
            after:
                ``page.after`` of the page before, from the same index, query and sort.
            size:
                Hits of a page, 1 to 10,000.
            total:
                Count all distinct hits, exactly. Every matching document is looked at.

        Raises:
            InvalidInputError: If *body* has what cannot be folded exactly, or *after* is of another search.
            MappingError: If the index was never grouped, or its grouping is being changed.
            IncompleteSearchError: If not every shard answers.
        """
        from es_simhash.folding.search_distinct import search_distinct

        self._check_flags(total=total)
        options = DistinctOptions(size=size, total=total)
        return await self._run(lambda: search_distinct(self._server(), index, body, options, after))

    def search_distinct_pages(
        self, index: Index, body: Mapping[str, Any], *, size: int = 10, total: bool = False
    ) -> AsyncGenerator[DistinctPage, None]:
        """
        Yield every page that :meth:`search_distinct` would return, read in one view of the index.

        What was shown is kept in memory, so ``after`` of each page is ``None``. Closing the generator closes the view,
        which otherwise stays open for ten minutes after the last page.
        """
        from es_simhash.folding.search_distinct import search_distinct_pages

        self._check_flags(total=total)
        options = DistinctOptions(size=size, total=total)
        return self._stream(search_distinct_pages(self._server(), index, body, options))
