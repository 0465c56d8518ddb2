"""Methods that remove duplicates: plan, apply, tag, restore; each imports its operation on first call."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING

from es_simhash.arguments import check_items
from es_simhash.client.base import SyncBase
from es_simhash.transport.protocol import Index, OnProgress

if TYPE_CHECKING:
    from es_simhash.groups.grouping_request import GroupingRequest
    from es_simhash.groups.reconcile import Reconciled
    from es_simhash.removal.plan_options import PlanOptions
    from es_simhash.removal.records import DuplicateResult, RemovalPlan, Restored


class RemovalMethods(SyncBase):
    """Removal of duplicates."""

    def plan_removal(
        self, index: Index, path: str | os.PathLike[str], *, options: PlanOptions, progress: OnProgress | None = None
    ) -> RemovalPlan:
        """
        Write a plan of removal to the file *path*: which duplicates of *index* would be deleted, and for what.

        Nothing is written into the index. A duplicate is in the plan only if the texts that it and its canonical have
        now were read and are similar enough. The lines are ordered by similarity, smallest first. The guard rails
        (*max_share*, *protect*) judge :meth:`apply_removal`: a plan beyond them is made, and names what will be
        refused. See docs/removal.md.

        Args:
            path:
                Name of the plan. A file of that name is replaced when the plan is whole, but no gzip file, which may be
                an archive.
            ...

        Raises:
            IncompleteSearchError: If not every document could be looked at.
            InvalidInputError: If an argument cannot be used, or the text field is not known.
            MappingError: If the documents with a value of *protect* cannot be counted.
        """
        from es_simhash.removal.make_plan import plan_removal

        return self._run(plan_removal(self._server(progress), index, path, options))

    def apply_removal(
        self,
        path: str | os.PathLike[str],
        *,
        archive: str | os.PathLike[str],
        decisions: str | os.PathLike[str] | None = None,
        sha256: str | None = None,
        max_share: float | None = None,
        dry_run: bool = False,
        on_regrouped: Callable[[tuple[str, ...], Reconciled], object] | None = None,
        progress: OnProgress | None = None,
    ) -> Generator[DuplicateResult, None, None]:
        """
        Delete what the plan in the file *path* names, and yield a record of each line.

        Each document is in the archive, and that on the disk, before it is deleted; it is deleted only if what decided
        about it and its canonical, such as their texts, is as it was when the plan was made. What no longer fits is
        kept, and its record says why. At the end the documents that name a removed one get the group that they belong
        to now, so read all records. A run that was ended or killed goes on with the same files. Searches show it all
        after the next refresh. See docs/removal.md.

        Args:
            path:
                The plan.
            archive:
                The archive, gzip; made if it does not exist. Each plan has one of its own.
            decisions:
                File that the review page has made: the documents that it names are kept, and the archive says who
                decided, and why. One that does not fit the plan exactly is refused, and nothing is deleted. Without
                it, none is looked for: files beside the plan, by which the command refuses it, change nothing here.
            sha256:
                Digest of the plan that was approved, 64 hex digits; any other plan is refused.
            max_share:
                Largest share of all documents, and of those with a protected value, that may be removed, 0 to 1; by
                default the one of the plan.
            dry_run:
                Only yield what is left to delete, and what the plan fits no more; write nothing, no archive either.
            on_regrouped:
                As for :meth:`restore`.
            ...

        Raises:
            InvalidInputError: If a file cannot be used, or the archive cannot be written.
            GuardRailError: If by the present numbers a larger share would be removed; nothing is deleted then.
        """
        from es_simhash.removal.apply import apply_removal

        flow = apply_removal(
            self._server(progress),
            path,
            archive,
            max_share=max_share,
            on_regrouped=on_regrouped,
            dry_run=dry_run,
            decisions=decisions,
            sha256=sha256,
        )
        return self._stream(flow)

    def tag_duplicates(
        self,
        index: Index,
        *,
        dry_run: bool = False,
        request: GroupingRequest,
        contained: float | None = None,
        progress: OnProgress | None = None,
    ) -> Generator[DuplicateResult, None, None]:
        """
        Tag the duplicates that *index* holds, as :meth:`reconcile` does, and yield a record of each.

        Args:
            index:
                Name, list of names, alias or data stream.
            dry_run:
                Change nothing, and yield what would be done.
            request:
                As for :meth:`reconcile`, and with *contained* as for :meth:`plan_removal`.
            contained:
                As for :meth:`plan_removal`: tag instead the documents that add nothing to another one. The tag is the
                field ``simhash.contained_in``, and tags that are right no longer are removed.
            ...

        Raises:
            InvalidInputError: If an argument cannot be used, or the index has another grouping.
        """
        from es_simhash.removal.plan_options import PlanOptions
        from es_simhash.removal.tags import tag_contained, tag_duplicates

        if contained is None:
            return self._stream(tag_duplicates(self._server(progress), index, request, dry_run=dry_run))
        tags = PlanOptions(grouping=request, contained=contained, max_share=1.0, max_field_chars=0)
        return self._stream(tag_contained(self._server(progress), index, tags, dry_run=dry_run))

    def restore(
        self,
        archive: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        index: str | None = None,
        dry_run: bool = False,
        on_regrouped: Callable[[tuple[str, ...], Reconciled], object] | None = None,
        progress: OnProgress | None = None,
    ) -> Generator[Restored, None, None]:
        """
        Put the documents of *archive* back, and yield a record of each.

        A document gets the ``_source``, ``_id``, routing value and index that it had, and is only ever created: one
        that is there already is reported and not changed. A part of a data stream goes to its stream. Ingest pipelines
        are left out, except a final one. At the end the groups of the indices are made right again, as by
        :meth:`reconcile`; so read all records. Searches show it all after the next refresh. Run again, it does what is
        left.

        Args:
            archive:
                File that a removal has made, or several; of two versions of a document the first is restored.
            index:
                Where all documents go, instead of the indices that they were removed from: an index, an alias with a
                write index, or a data stream. It must have the same scheme.
            dry_run:
                Change nothing, and yield what would be done.
            on_regrouped:
                Is called at the end with the names of indices that are grouped together, and with what was done to
                their groups; ``changed`` is the number of documents rewritten. By default a warning tells of groups
                that could not be made right.
            ...

        Raises:
            InvalidInputError: If a file is no archive or is damaged; nothing is written then. Where the end of an
                archive was cut off, its whole lines are restored, with a warning.
        """
        from es_simhash.removal.restore import restore

        files = (
            [archive] if isinstance(archive, (str, os.PathLike)) else list(check_items("archive", archive, of="paths"))
        )
        return self._stream(
            restore(self._server(progress), files, index=index, dry_run=dry_run, on_regrouped=on_regrouped)
        )
