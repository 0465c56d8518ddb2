# Generated from sync_methods/report.py by tools/generate_async_client.py: change that file, then run `make client`.
"""Methods that give the numbers of an index and a report; each imports its flow on first call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from es_simhash.client.base import AsyncBase, Filter
from es_simhash.mapping.meta import DEFAULT_MAX_DISTANCE
from es_simhash.transport.names import Index

if TYPE_CHECKING:
    from es_simhash.quality.report.page import IndexReport
    from es_simhash.quality.size_flow import Product, Size
    from es_simhash.quality.stats import Stats


class AsyncReportMethods(AsyncBase):
    """The numbers of an index, and a report about it."""

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

        Every number is exact: the server counts all documents. Cost: one search, about two for every 10,000 groups with
        duplicates, three for a time field, and about one for every 10,000 sources.

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
        from es_simhash.quality.stats_flow import StatsOptions, read_stats

        options = StatsOptions(time_field=time_field, source_field=source_field, text_field=text_field, filter=filter)
        return await self._run(read_stats(self._context, index, options))

    async def size(
        self,
        index: Index,
        *,
        documents: int | None = None,
        max_distance: int = DEFAULT_MAX_DISTANCE,
        product: Product | None = None,
        shards: int | None = None,
        replicas: int | None = None,
        scripts: bool = True,
    ) -> Size:
        """
        Return the real size of *index*, and what it takes, or takes with more documents: disk, memory, lookups.

        Each number of the result says whether it was measured, modelled or is exact, and up to how many documents that
        was tried. :func:`estimate_size` does the same for an index that does not exist yet. Cost: four requests.

        Args:
            index:
                Name, list of names, pattern, alias or data stream; it need not have our fields.
            documents:
                How many documents it will have; by default as many as it has.
            max_distance:
                Largest distance of a lookup in bits, inclusive, 0 to 64.
            product:
                ``"opensearch"`` or ``"elasticsearch"``; ``None`` for whichever is less and more.
            shards:
                How many primary shards it will have; by default as many as it has.
            replicas:
                How many copies of each it will have; by default as many as it has.
            scripts:
                Whether the server may run a script to compare fingerprints.

        Raises:
            InvalidInputError: If there is no such index.
            IncompleteSearchError: If some documents could not be counted.
        """
        from es_simhash.quality.size_flow import SizeOptions, read_size

        options = SizeOptions(
            documents=documents,
            max_distance=max_distance,
            product=product,
            shards=shards,
            replicas=replicas,
            scripts=scripts,
        )
        return await self._run(read_size(self._context, index, options))

    async def report(
        self,
        index: Index,
        *,
        time_field: str | None = None,
        source_field: str | None = None,
        text_field: str | None = None,
        filter: Filter = None,
        sample: int = 1_000,
        seed: int = 0,
    ) -> IndexReport:
        """
        Return a report about the near-duplicates in *index*; its ``html()`` is one page that loads nothing.

        It has the numbers of :meth:`stats`, the largest and the strangest groups with the words that differ, an
        estimate of what each preset would remove, and the health of the fingerprints.

        Args:
            index:
                Name, list of names, pattern, alias or data stream.
            time_field:
                Date field of the documents.
            source_field:
                Keyword field that says where a document comes from.
            text_field:
                Field whose text is shown; by default those that the index records.
            filter:
                A query, or a list of queries; only documents that match all of them are counted, shown and drawn for
                the presets. The health is that of all fingerprints.
            sample:
                Documents drawn at random whose fingerprints are examined, 1 to 10,000. The presets are measured with
                200 others.
            seed:
                Chooses the samples.

        Raises:
            MappingError: If the index lacks our fields, or its grouping is being changed.
            InvalidInputError: If a field is not mapped, or cannot be counted.
            IncompleteSearchError: If some documents could not be read.
        """
        from es_simhash import __version__
        from es_simhash.quality.report_flow import ReportOptions, read_report

        options = ReportOptions(
            time_field=time_field,
            source_field=source_field,
            text_field=text_field,
            filter=filter,
            sample=sample,
            seed=seed,
        )
        return await self._run(read_report(self._context, index, options, version=__version__))
