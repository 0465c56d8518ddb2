"""
Methods that remove duplicates: plan, apply, restore, dedupe.

A flow is imported when its method is first called, so that a program that only looks up does not load the others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING

from es_simhash.client.base import SyncBase

if TYPE_CHECKING:
    from es_simhash.flows.grouping.reconcile import Reconciled
    from es_simhash.flows.removal.restored import Restored

__all__ = ["RemovalMethods"]


class RemovalMethods(SyncBase):
    """Removal of duplicates."""

    def restore(
        self,
        archive: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        index: str | None = None,
        dry_run: bool = False,
        on_regrouped: Callable[[tuple[str, ...], Reconciled], object] | None = None,
    ) -> Generator[Restored, None, None]:
        """
        Put the documents of *archive* back, and yield a record of each.

        A document gets the ``_source``, ``_id``, routing value and index that it had, and is only ever created: one
        that is there already is reported and not changed. A part of a data stream goes to its stream. Ingest pipelines
        are left out, except a final one. At the end the groups of the indices are made right again, as by
        :meth:`reconcile`; so read all records. Run again, it does what is left.

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
                their groups. By default a warning tells of groups that could not be made right.

        Raises:
            InvalidInputError: If a file is no archive or is damaged; nothing is written then. The end of an archive
                that was cut off while it was written is left out, with a warning: none of its documents was removed.
        """
        from es_simhash.flows.removal.restore import restore

        files = [archive] if isinstance(archive, (str, os.PathLike)) else list(archive)
        return self._stream(restore(self._context, files, index=index, dry_run=dry_run, on_regrouped=on_regrouped))
