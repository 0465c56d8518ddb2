# Generated from methods/upkeep.py by tools/generate_clients.py: change that file, then run `make client`.
"""Methods that create, check, fill and clean indices; each imports its operation on first call."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from es_simhash.client.base import SyncBase
from es_simhash.hashing import DEFAULT_SCHEME, Scheme
from es_simhash.mapping.meta import IndexSettings, build_settings
from es_simhash.transport.protocol import Index, OnProgress

if TYPE_CHECKING:
    from typing import Literal

    from es_simhash.dashboards.pack import DashboardPack
    from es_simhash.lookup.lookup_options import Verify
    from es_simhash.lookup.query import Filter
    from es_simhash.mapping.rule import Canonical
    from es_simhash.pipeline.install import InstalledPipeline, UseAs
    from es_simhash.setup import Setup
    from es_simhash.texts.measures import Preset
    from es_simhash.upkeep.check import IndexCheck
    from es_simhash.upkeep.follow_options import FollowReport
    from es_simhash.upkeep.needed import BackfillProgress
    from es_simhash.upkeep.remove_fields import RemovedFields


class UpkeepMethods(SyncBase):
    """Indices and the fingerprints in them."""

    def setup(
        self,
        index: Index,
        *,
        text_field: str | Sequence[str] = (),
        time_field: str | None = None,
        preset: str | Preset | None = None,
        verify: Verify | None = None,
        max_distance: int | None = None,
        canonical: Canonical | None = None,
        per: str | Literal[False] | None = None,
        within: tuple[str, str] | Literal[False] | None = None,
        dry_run: bool = False,
        progress: OnProgress | None = None,
    ) -> Setup:
        """
        Make *index*, which exists, ready: record fields, a grouping and a distance, fill it, group it; say what is so.

        The preset is the strictest that reports at least 98 % of the edited copies of a sample that share 80 % of
        their shingles with the original (:meth:`tune`). What the index records already stays, and decides. A run that
        ended early is continued by the next one. Others may write meanwhile; :meth:`follow` keeps up with them.
        Cost: all documents are read once, and once more where their texts are compared; a dry run of an index that has
        fingerprints reads them too.

        Args:
            index:
                Name, list of names, pattern, alias or data stream.
            text_field:
                Field or fields of the text; by default those that the index records.
            time_field:
                Date or number whose smallest value makes a document the canonical of its group; by default what the
                index records, else the document that was grouped first.
            preset, verify, max_distance, canonical, per, within:
                The rule, as for :meth:`ingest`, if the index records none; by default the texts decide.
            dry_run:
                Change nothing, and return what would be recorded and written.
            progress:
                Is called with a :class:`Progress` after each part of the work.

        Raises:
            InvalidInputError: If no document has such a text, or the index records other text fields or another rule.
            MappingError: If the index maps our fields or the time field wrongly, or its grouping is being changed.
            IncompleteSearchError: If not every document could be read.
        """
        from es_simhash.groups.grouping_request import GroupingRequest
        from es_simhash.setup import setup

        self._check_flags(dry_run=dry_run)
        request = GroupingRequest(
            preset=preset, verify=verify, max_distance=max_distance, canonical=canonical, per=per, within=within
        )
        return self._run(
            lambda: setup(
                self._server(progress, is_dry=dry_run), index, text_field, time_field, request, dry_run=dry_run
            )
        )

    def create_index(
        self,
        index: str,
        *,
        scheme: str | Scheme | None = None,
        text_field: str | Sequence[str] = (),
        max_distance: int | None = None,
        value: bool = True,
        passages: bool = False,
        mappings: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        dry_run: bool = False,
    ) -> IndexSettings:
        """
        Create *index* with our fields, and return what its mapping now records.

        Args:
            index:
                Name of the new index.
            scheme:
                Scheme of its fingerprints; by default this client's, else the library's default.
            text_field:
                Field or fields that the text comes from, recorded for ingest and backfill.
            max_distance:
                Distance in bits that lookups use if they are given none; ``None`` leaves it at 3.
            value:
                Whether documents carry the signed 64-bit copy for scripts.
            passages:
                Whether documents carry the terms of their passages, for :meth:`find_passages`.
            mappings:
                Mapping of the caller's own fields; kept as it is.
            settings:
                Index settings, such as ``{"number_of_shards": 1}``.
            dry_run:
                Create nothing, and return what would be recorded.

        Raises:
            InvalidInputError: If an argument cannot be used, or the mappings given use the prefix already.
        """
        from es_simhash.upkeep.put_fields import create_index

        self._check_flags(value=value, passages=passages, dry_run=dry_run)
        used = next(named for named in (scheme, self._context.wanted, DEFAULT_SCHEME) if named is not None)
        self._context.learn_files(used)
        ours = build_settings(
            scheme=used, text_field=text_field, max_distance=max_distance, value=value, passages=passages
        )
        return self._run(
            lambda: create_index(self._server(is_dry=dry_run), index, ours, mappings, settings, dry_run=dry_run)
        )

    def put_mapping(
        self,
        index: Index,
        *,
        scheme: str | Scheme | None = None,
        text_field: str | Sequence[str] = (),
        max_distance: int | None = None,
        value: bool | None = None,
        passages: bool | None = None,
        dry_run: bool = False,
    ) -> list[str]:
        """
        Add our fields to indices that exist; return the names of those changed, or with *dry_run* to be changed.

        What is not given stays as an index records it; the caller's own fields and ``_meta`` keys stay too. Arguments
        are those of :meth:`create_index`. Where passages are added to documents, :meth:`find_passages` is an error
        until :meth:`backfill` has seen all of them.

        Raises:
            MappingError: If an index uses the prefix for something else, or records another scheme.
        """
        from es_simhash.upkeep.put_fields import put_mapping

        self._check_flags(dry_run=dry_run)
        return self._run(
            lambda: put_mapping(
                self._server(is_dry=dry_run),
                index,
                scheme,
                text_field,
                max_distance,
                value=value,
                passages=passages,
                dry_run=dry_run,
            )
        )

    def make_dashboards(
        self,
        index: str,
        *,
        time_field: str | None = None,
        source_field: str | None = None,
        text_field: str | None = None,
    ) -> DashboardPack:
        """
        Return the saved objects of :func:`build_dashboards` for *index*, and what is wrong with their fields there.

        Cost: one request.

        Args:
            index:
                As for :func:`build_dashboards`, as all others are.
            time_field:
                Date field of the documents.
            source_field:
                Keyword field that says where a document comes from.
            text_field:
                Field whose text is shown; by default the first that the index records.

        Raises:
            InvalidInputError: If a name cannot be that of an index or a field.
        """
        from es_simhash.dashboards.charts import Subject
        from es_simhash.dashboards.pack import read_pack

        subject = Subject(index, time_field, source_field, text_field, self._context.prefix)
        return self._run(lambda: read_pack(self._server(), subject))

    def put_pipeline(
        self, index: Index, *, name: str | None = None, use_as: UseAs | None = None, dry_run: bool = False
    ) -> InstalledPipeline:
        """
        Store an ingest pipeline that computes the fingerprints of what is written to *index*, by any program.

        The server first computes fingerprints of probe texts; nothing is stored unless all bits are those of Python.
        An index that a rollover creates has the pipeline if its template sets ``index.final_pipeline``.

        Args:
            index:
                Name, list of names, pattern, alias or data stream. It records its scheme and its text field.
            name:
                Name of the pipeline; by default the prefix, with ``-fingerprints`` behind it.
            use_as:
                ``"final"``: every document passes it, after all other pipelines, so it reads the text that is stored;
                ``"default"``: documents that name no other pipeline pass it. By default it is only stored.
            dry_run:
                Prove it on the probes, and store nothing.

        Raises:
            SchemeError: If a pipeline cannot compute the scheme of the index.
            InvalidInputError: If the index records no text field, or another argument cannot be used.
            SimHashError: If the server does not run the script or makes other bits, or another pipeline has its name
                or its place.
        """
        from es_simhash.pipeline.install import put_pipeline

        self._check_flags(dry_run=dry_run)
        return self._run(lambda: put_pipeline(self._server(is_dry=dry_run), index, name, use_as, dry_run=dry_run))

    def check(self, index: Index) -> list[IndexCheck]:
        """Return, for each index, whether lookups work there and what is wrong; reads only."""
        from es_simhash.upkeep.check import check_indices

        return self._run(lambda: check_indices(self._server(), index))

    def remove_fields(self, index: Index, *, groups_only: bool = False, dry_run: bool = False) -> RemovedFields:
        """
        Remove our fields from the documents of *index*, and our entry from its ``_meta``.

        An index that does not record the prefix is left as it is, and keys of others in our object stay. Fields once
        mapped stay in the mapping, empty. Where the server allows no scripts, ``_source`` keeps the prefix, or each
        group field, with a null.

        Args:
            index:
                Name, list of names, pattern, alias or data stream.
            groups_only:
                Undo what :meth:`reconcile` and :meth:`ingest` wrote as tags: remove only the group
                fields, and the recorded grouping. The fingerprints stay, and the index can be grouped by another
                rule.
            dry_run:
                Change nothing, and count what would be changed.
        """
        from es_simhash.upkeep.remove_fields import remove_fields

        self._check_flags(groups_only=groups_only, dry_run=dry_run)
        return self._run(
            lambda: remove_fields(self._server(is_dry=dry_run), index, groups_only=groups_only, dry_run=dry_run)
        )

    def backfill(
        self,
        index: Index,
        *,
        text_field: str | Sequence[str] | None = None,
        filter: Filter = None,
        workers: int | None = None,
        slices: int = 2,
        dry_run: bool = False,
        progress: OnProgress | None = None,
    ) -> Generator[BackfillProgress, None, None]:
        """
        Give each document of *index* the fingerprint of its present text, and yield the progress.

        Missing fingerprints are added and stale ones replaced; correct ones are not written. A document that
        somebody changes meanwhile is read again, so nobody's change is lost. Our fields are added to the mapping
        where it lacks them. The work is done as the reports are read, and searches show it with the last one; a second
        run does what is left.

        Args:
            index:
                Name, list of names, pattern, alias or data stream.
            text_field:
                Field or fields of the text; by default those that the index records.
            filter:
                A query, or a list of queries, that the documents to look at match.
            workers:
                Number of processes that compute fingerprints; by default none. As for :func:`with_fingerprints`.
            slices:
                Slices of the index that are read, and bulk requests that are sent, at once.
            dry_run:
                Write nothing; count what would change.
            progress:
                Is called with a :class:`Progress` after each part of the work.

        Raises:
            MappingError: If the index lacks the fields and they cannot be added.
            IncompleteSearchError: If not every document could be looked at.
            InvalidInputError: If an argument cannot be used.
        """
        from es_simhash.upkeep.backfill import BackfillOptions, backfill

        self._check_flags(dry_run=dry_run)
        options = BackfillOptions(text_field=text_field, filter=filter, workers=workers, slices=slices, dry_run=dry_run)
        return self._stream(backfill(self._server(progress, is_dry=options.dry_run), index, options))

    def follow(
        self,
        index: Index,
        *,
        text_field: str | Sequence[str] | None = None,
        once: bool = False,
        interval: float = 5.0,
        state_index: str = "es-simhash-state",
    ) -> Generator[FollowReport, None, None]:
        """
        Give whatever arrives in *index* its fingerprint, and its group where one is recorded; yield reports.

        It reads what changed, whoever wrote it, without an end. The work is done as the reports are read: stop reading,
        and it records how far it came. A server that cannot be reached is waited for.

        Args:
            index:
                Name, list of names, wildcard, alias or data stream. New indices behind it are followed too.
            text_field:
                Field or fields of the text; by default those that the index records.
            once:
                End when everything is done that was written before the call; a block of the index is an error then.
            interval:
                Seconds between two looks while nothing changes.
            state_index:
                Index that holds the positions; it is created if it is missing.

        Raises:
            MappingError: If an index maps our fields wrongly, or lacks them and no text field is named.
            InvalidInputError: If the position cannot be read or written.
        """
        from es_simhash.upkeep.follow import follow
        from es_simhash.upkeep.follow_options import FollowOptions

        self._check_flags(once=once)
        options = FollowOptions(text_field=text_field, once=once, interval=interval, state_index=state_index)
        return self._stream(follow(self._server(), index, options))
