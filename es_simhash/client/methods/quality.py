"""Methods about an index: its numbers, a report, what is wrong, what to choose, and why; loaded on first call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from es_simhash.client.base import SyncBase
from es_simhash.transport.protocol import Index, OnProgress

if TYPE_CHECKING:
    from es_simhash.lookup.query import Filter
    from es_simhash.quality.explanation import Explanation
    from es_simhash.quality.health import Diagnosis
    from es_simhash.quality.read_report import ReportOptions
    from es_simhash.quality.report.report_page import IndexReport
    from es_simhash.quality.sampling import SampleOptions
    from es_simhash.quality.stats import Stats
    from es_simhash.quality.tune import TuneOptions, Tuning


class QualityMethods(SyncBase):
    """The numbers of an index, and what its fingerprints are worth. Nothing is written to a server."""

    def check_sample(self, index: Index, *, options: SampleOptions, progress: OnProgress | None = None) -> Diagnosis:
        """
        Return the faults of the fingerprints of *index*, with notes and advice; reads only.

        Looks at mapping faults, documents without fingerprint, stale and broken fingerprints, short texts, a group of
        very many documents, and numbers that JavaScript rounds.

        Args:
            ...
        """
        from es_simhash.quality.check_sample import diagnose

        return self._run(lambda: diagnose(self._server(progress), index, options))

    def tune(self, index: Index, *, options: TuneOptions, progress: OnProgress | None = None) -> Tuning:
        """
        Return which preset finds edited copies of texts like those of *index*; writes nothing.

        The texts are sampled, and copies of them are edited in known ways. The index does not need our fields.

        Args:
            ...

        Raises:
            InvalidInputError: If the text field is unknown, or no sampled document has text.
        """
        from es_simhash.quality.tune import tune

        return self._run(lambda: tune(self._server(progress), index, options))

    def explain(
        self,
        index: Index,
        first: str | None = None,
        second: str | None = None,
        *,
        texts: Sequence[str] = (),
    ) -> Explanation:
        """
        Return why two documents are near-duplicates, or are not: by the rule, and how alike they are.

        A text may take the place of a document, or two of both: by the scheme of *index*.

        Args:
            index:
                Name of an index, alias or data stream.
            first:
                Id of a document.
            second:
                Id of another.
            texts:
                A text in place of the second document, or two texts in place of both.

        Raises:
            InvalidInputError: If a document is missing or has no readable text, or not exactly two are given.
        """
        from es_simhash.quality.explanation import explain_documents

        ids = [id_ for id_ in (first, second) if id_ is not None]
        return self._run(lambda: explain_documents(self._server(), index, ids, texts))

    def stats(self, index: Index, *, filter: Filter = None, progress: OnProgress | None = None) -> Stats:
        """
        Return how many documents, duplicates and groups *index* has; by size and by distance.

        Every number is exact: the server counts all documents. Cost: one search, and about two for every 10,000 groups
        with duplicates.

        Args:
            index:
                Name of an index, alias or data stream, a pattern, or several of them.
            filter:
                A query, or a list of queries; only documents that match all of them are counted.
            progress:
                As for :meth:`tune`.

        Raises:
            MappingError: If the index lacks our fields, or its grouping is being changed.
            IncompleteSearchError: If some documents could not be counted.
        """
        from es_simhash.quality.read_stats import read_stats

        return self._run(lambda: read_stats(self._server(progress), index, filter))

    def report(self, index: Index, *, options: ReportOptions, progress: OnProgress | None = None) -> IndexReport:
        """
        Return a report about the near-duplicates in *index*; its ``html()`` is one page that loads nothing.

        It has the numbers of :meth:`stats`, the largest groups with the words that differ, and the health of the
        fingerprints.

        Args:
            ...

        Raises:
            MappingError: If the index lacks our fields, or its grouping is being changed.
            InvalidInputError: If *queries* has a line that is no search.
            IncompleteSearchError: If some documents could not be read.
        """
        from es_simhash import __version__
        from es_simhash.quality.read_report import read_report

        return self._run(lambda: read_report(self._server(progress), index, options, version=__version__))
