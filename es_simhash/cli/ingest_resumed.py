"""
Finds the lines that an ingest which was killed has written already, into an index that a rollover has left behind.

Behind an alias or a data stream an id is unique only within one index, so the server would take such a line a second
time. Nothing is written here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from es_simhash.cli.connect import Connection
from es_simhash.cli.index_identity import IndexIdentity
from es_simhash.cli.ingest_checkpoint import CHECKPOINT_LINES, IngestCheckpoint
from es_simhash.client.dialects import find_dialect
from es_simhash.client.drivers import run
from es_simhash.ingest.source_flow import LARGEST_BATCH
from es_simhash.ingest.written import Written
from es_simhash.mapping.context import Context
from es_simhash.mapping.limits_flow import ServerLimits, within_limits
from es_simhash.writes.copies_flow import find_copies


class WrittenBefore:
    """
    The documents that may have been written after the place where the checkpoint says that the ingest has got.

    Args:
        connection:
            The server.
        index:
            The name that is written to.
        now:
            The indices behind it; ``None``, where they may not be read, finds nothing.
        saved:
            The checkpoint.
        prefix:
            Name of the object that holds our fields.

    Attributes:
        left:
            How many more documents may have been written before.
    """

    def __init__(
        self, connection: Connection, index: str, now: IndexIdentity | None, saved: IngestCheckpoint, *, prefix: str
    ) -> None:
        self._connection = connection
        self._index = index
        self._current = now.index if now is not None else None
        self._saved = saved
        self._prefix = prefix
        has_earlier = now is not None and len(now.behind) > 1 and not saved.is_new
        # Those whose answer came after the last save, and one batch without an answer.
        self.left = CHECKPOINT_LINES + LARGEST_BATCH if has_earlier else 0

    def find(self, actions: Sequence[Mapping[str, Any]]) -> list[Written | None]:
        """
        Return for each of the next *actions* the report, if its document is in an index that is not written to now.

        A document with an id of the file's own counts as written if its content is the same, too.
        """
        self.left = max(0, self.left - len(actions))
        if not actions:
            return []
        flow = find_copies(Context(), self._index, [each["_id"] for each in actions])
        client = self._connection.client
        copies: dict[str, list[Mapping[str, Any]]] = {}
        for hit in run(within_limits(flow, ServerLimits()), client, find_dialect(client, self._connection.product)):
            if hit["_index"] != self._current:
                copies.setdefault(hit["_id"], []).append(hit)
        return [self._report(each, copies.get(each["_id"], ())) for each in actions]

    def _report(self, action: Mapping[str, Any], copies: Sequence[Mapping[str, Any]]) -> Written | None:
        for hit in copies:
            source = hit.get("_source") or {}
            if self._saved.made(hit["_id"]) or self._plain(source) == self._plain(action["_source"]):
                return Written(0, hit["_id"], hit["_index"], "unchanged", fingerprinted=self._prefix in source)
        return None

    def _plain(self, source: Mapping[str, Any]) -> str:
        """Return a document without our fields, so that any difference shows."""
        return json.dumps({key: value for key, value in source.items() if key != self._prefix}, sort_keys=True)
