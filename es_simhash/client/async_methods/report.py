# Generated from sync_methods/report.py by tools/generate_async_client.py: change that file, then run `make client`.
"""
Methods that give the numbers of an index.

A flow is imported when its method is first called, so that a program that only looks up does not load the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from es_simhash.client.base import AsyncBase, Filter
from es_simhash.flows.context import Index

if TYPE_CHECKING:
    from es_simhash.quality.stats import Stats

__all__ = ["AsyncReportMethods"]


class AsyncReportMethods(AsyncBase):
    """The numbers of an index."""

    async def stats(
        self,
        index: Index,
        *,
        time_field: str | None = None,
        source_field: str | None = None,
        text_field: str | None = None,
        filter: Filter = None,
    ) -> Stats:
        """
        Return how many documents, duplicates and groups *index* has; by size, by distance, over time, by source.

        Every number is exact: the server counts all documents. Cost: one search, two for every 10,000 groups with
        duplicates, three for a time field, and one for every 10,000 sources.

        Args:
            index:
                Name, list of names, pattern, alias or data stream.
            time_field:
                Date field of the documents, to count over time.
            source_field:
                Keyword field that says where a document comes from, to count by source.
            text_field:
                Field whose text is shown of the largest groups.
            filter:
                A query, or a list of queries; only documents that match all of them are counted.

        Raises:
            MappingError: If the index lacks our fields, or its grouping is being changed.
            InvalidInputError: If a field is not mapped, or cannot be counted.
            IncompleteSearchError: If some documents could not be counted.
        """
        from es_simhash.flows.upkeep.stats import StatsOptions, read_stats

        options = StatsOptions(time_field=time_field, source_field=source_field, text_field=text_field, filter=filter)
        return await self._run(read_stats(self._context, index, options))
