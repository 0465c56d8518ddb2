# Generated from methods/removal.py by tools/generate_clients.py: change that file, then run `make client`.
"""Methods that remove duplicates: plan, apply, tag, restore; each imports its operation on first call."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

from es_simhash.arguments import check_items
from es_simhash.client.base import SyncBase
from es_simhash.transport.protocol import Index, OnProgress

if TYPE_CHECKING:
    from typing import Literal

    from es_simhash.arguments import FilePath
    from es_simhash.lookup.lookup_options import Verify
    from es_simhash.lookup.query import Filter
    from es_simhash.mapping.rule import Canonical
    from es_simhash.removal.losses import Loss
    from es_simhash.removal.records import DuplicateResult, RemovalPlan, Restored
    from es_simhash.texts.measures import Preset


class RemovalMethods(SyncBase):
    """Removal of duplicates."""

    def plan_removal(
        self,
        index: Index,
        path: str | os.PathLike[str] | None = None,
        *,
        preset: str | Preset | None = None,
        verify: Verify | None = None,
        max_distance: int | None = None,
        canonical: Canonical | None = None,
        per: str | Literal[False] | None = None,
        within: tuple[str, str] | Literal[False] | None = None,
        filter: Filter = None,
        also: Sequence[Loss] = (),
        max_share: float = 0.2,
        after: Sequence[FilePath] = (),
        show: Sequence[str] = (),
        progress: OnProgress | None = None,
    ) -> RemovalPlan:
        """
        Make the file *path* of a removal, with a plan: which duplicates of *index* would be deleted, and for what.

        Nothing is written into the index. A duplicate is in the plan only if the texts that it and its canonical have
        now were read and are similar enough. By default only those are removed of which nothing is lost: the canonical
        has the same text, or all of it; the others are held back, and *also* takes them in, by class. *max_share*
        judges :meth:`apply_removal`: a plan beyond it is made, and names what will be refused. See docs/removal.md.

        Args:
            index:
                Name, list of names, pattern, alias or data stream.
            path:
                Name of a new file; one that exists is refused. Without it, the plan is returned with its lines, to look
                at, and cannot be applied.
            preset:
                ``"identical"``, ``"near"``, ``"similar"``, ``"edited"`` or ``"noisy"``: a max_distance and a
                similarity, where these are not given beside it.
            verify:
                Smallest similarity of a duplicate to its canonical, 0 to 1, or a :class:`Verification`; by default what
                the index's grouping records, else 0.8. A plan always compares texts.
            max_distance, canonical, per, within:
                As for :meth:`ingest`; they need not be those that are recorded.
            filter:
                A query, or a list of queries, that the duplicates match.
            also:
                Classes that are removed as well, where by default only ``"same"`` and ``"contained"`` are, which lose
                nothing: ``"few"`` (a few words of its own, and no number), ``"numbers"`` (only numbers differ),
                ``"title"`` (it has a title of its own), ``"rewritten"`` (more of its own).
            max_share:
                Largest share of all documents that :meth:`apply_removal` may remove, 0 to 1. A plan beyond it is made,
                and its ``excess`` says what will be refused.
            after:
                Files of earlier removals: what people kept there is not in this plan, also after a reindex under the
                same alias, where the id counts. Files of which none keeps a document of these indices are refused.
            show:
                Fields whose values people see first; by default title, URL, source and date, by their usual names,
                where the mapping or some documents have them. A title that is found is shown in any case.
            progress:
                Is called with a :class:`Progress` after each part of the work.

        Raises:
            IncompleteSearchError: If not every document could be looked at.
            InvalidInputError: If an argument cannot be used, or the text field is not known.
        """
        from es_simhash.groups.grouping_request import GroupingRequest
        from es_simhash.removal.make_plan import plan_removal
        from es_simhash.removal.plan_options import PlanOptions

        options = PlanOptions(
            grouping=GroupingRequest(
                preset=preset, verify=verify, max_distance=max_distance, canonical=canonical, per=per, within=within
            ),
            filter=filter,
            also=also,
            max_share=max_share,
            after=after,
            show=show,
        )
        return self._run(lambda: plan_removal(self._server(progress, is_dry=True), index, path, options))

    def apply_removal(
        self,
        path: str | os.PathLike[str],
        *,
        decisions: Sequence[str | os.PathLike[str]] = (),
        sha256: str | None = None,
        max_share: float | None = None,
        large_groups: bool = False,
        dry_run: bool = False,
        progress: OnProgress | None = None,
    ) -> Generator[DuplicateResult, None, None]:
        """
        Delete what the removal in the file *path* plans, and yield a record of each line.

        Each document is archived in the file, and that on the disk, before it is deleted; it is deleted only if what
        decided about it and its canonical, such as their texts, is as it was when the plan was made, and of what it
        says no more is lost than the plan allows. What no longer fits is kept, and its record says why. What people
        decided to keep stays, and what they decided to remove goes. At the end the documents that name a
        removed one get the group that they belong to now, so read all records. A run that was ended or killed goes on
        with the same file. Searches show it all after the next refresh. See docs/removal.md.

        Args:
            path:
                File of a removal.
            decisions:
                Files that the review page has made, or a program: what one of them keeps is not deleted, and what one
                removes goes though it is held back, now and in later runs. An error if a file does not fit the plan, or
                if the one that the page names, such as ``removal.decisions.json`` for ``removal.db``, lies beside the
                removal and was not given.
            sha256:
                Digest of the plan that was approved, 64 hex digits; any other plan is refused.
            max_share:
                Largest share of all documents that may be removed, 0 to 1; by default the one of the plan.
            large_groups:
                Allow that more than 1,000 documents, and 1 % of the index, go for one that stays.
            dry_run:
                Only yield what is left to delete, and what the plan fits no more; write nothing.
            progress:
                Is called with a :class:`Progress` after each part of the work.

        Raises:
            InvalidInputError: If a file cannot be used, or cannot be written; then nothing more is deleted.
            GuardRailError: If by the present numbers a larger share would be removed, or very many documents for one;
                nothing is deleted then.
        """
        from es_simhash.removal.apply import apply_removal

        self._check_flags(large_groups=large_groups, dry_run=dry_run)
        flow = apply_removal(
            self._server(progress, is_dry=dry_run),
            path,
            decisions=decisions,
            sha256=sha256,
            max_share=max_share,
            large_groups=large_groups,
            dry_run=dry_run,
        )
        return self._stream(flow)

    def restore(
        self,
        path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        index: str | None = None,
        dry_run: bool = False,
        progress: OnProgress | None = None,
    ) -> Generator[Restored, None, None]:
        """
        Put the documents that a removal has archived in *path* back, and yield a record of each.

        A document gets the ``_source``, ``_id``, routing value and index that it had, and is only ever created: one
        that is there already is reported and not changed. A part of a data stream goes to its stream. Ingest pipelines
        are left out, except a final one. At the end the groups of the indices are made right again, as by
        :meth:`reconcile`; so read all records. Searches show it all after the next refresh. Run again, it does what is
        left.

        Args:
            path:
                File of a removal, or several; of two versions of a document the first is restored.
            index:
                Where all documents go, instead of the indices that they were removed from: an index or a data stream.
                It must have the same scheme.
            dry_run:
                Change nothing, and yield what would be done.
            progress:
                Is called with a :class:`Progress` after each part of the work.

        Raises:
            InvalidInputError: If a file is no removal; nothing is written then. At the end, if a file was cut or
                damaged: what is whole was restored.
        """
        from es_simhash.removal.restore import restore

        self._check_flags(dry_run=dry_run)
        files = [path] if isinstance(path, (str, os.PathLike)) else list(check_items("path", path, of="paths"))
        return self._stream(restore(self._server(progress, is_dry=dry_run), files, index=index, dry_run=dry_run))
